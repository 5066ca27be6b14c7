"""Makes the table of what one-layer models lose on each held-out sequence by their equations."""

from manybody.evaluation.equations import evaluate
from manybody.files.tables import write_theory
from manybody.runtime.logs import log_to

log_to(snakemake.log[0])

inputs = snakemake.input
losses = evaluate(inputs.models, inputs.validation, inputs.hamiltonian)
write_theory(snakemake.output.losses, losses, dict(snakemake.wildcards.items()))
