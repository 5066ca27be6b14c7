"""Measures what one run lacks of each term of its code law at every checkpoint."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.io.checkpoints import checkpoint_steps
from manybody.io.progress import Progress
from manybody.io.tables import CLOCKS
from manybody.measure.clock import measure

inputs, wildcards = snakemake.input, snakemake.wildcards
steps = len(checkpoint_steps(inputs.model))
with Progress(steps, "checkpoints", f"clock {wildcards.model} seed {wildcards.seed}") as bar:
    found = measure(inputs.model, inputs.test, snakemake.threads, bar)
CLOCKS.write(
    snakemake.output.clock,
    found,
    {"source": wildcards.source, "model": wildcards.model, "seed": int(wildcards.seed)},
)

job.keep()
