"""Makes the table of what one-layer models lose on each held-out sequence by their equations."""

from manybody.files.store import begin

job = begin(snakemake)

from manybody.evaluation.equations import evaluate
from manybody.files.tables import write_theory

inputs = snakemake.input
losses = evaluate(inputs.models, inputs.validation, inputs.hamiltonian)
write_theory(snakemake.output.losses, losses, dict(snakemake.wildcards.items()))

job.keep()
