"""Makes the table of what one-layer models lose on each held-out sequence by their equations."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.io.tables import write_theory
from manybody.measure.equations import evaluate

inputs = snakemake.input
losses = evaluate(inputs.models, inputs.validation, inputs.hamiltonian)
write_theory(snakemake.output.losses, losses, dict(snakemake.wildcards.items()))

job.keep()
