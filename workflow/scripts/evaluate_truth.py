"""Makes the table of what true conditionals lose on the sequence sets of an evaluation."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.io.tables import places, write_theory
from manybody.measure.truths import evaluate

targets = places(snakemake.params.targets, snakemake.input.targets)
write_theory(
    snakemake.output.losses,
    *evaluate(snakemake.input.truth, snakemake.params.module, targets),
)

job.keep()
