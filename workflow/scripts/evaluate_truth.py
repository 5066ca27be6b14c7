"""Makes the table of what true conditionals lose on the sequence sets of an evaluation."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.io.tables import place, write_theory
from manybody.measure.truths import evaluate

targets = {
    name: place(target, path)
    for (name, target), path in zip(
        snakemake.params.targets.items(), snakemake.input.targets, strict=True
    )
}
found = evaluate(snakemake.input.truth, snakemake.params.module, targets)
write_theory(snakemake.output.losses, *found)

job.keep()
