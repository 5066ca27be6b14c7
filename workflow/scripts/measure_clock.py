"""Measures what one run lacks of each term of its code law at every checkpoint."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.io.tables import CLOCKS
from manybody.measure.clock import measure

inputs, wildcards = snakemake.input, snakemake.wildcards
label = f"clock {wildcards.model} seed {wildcards.seed}"
found = measure(inputs.model, inputs.test, snakemake.threads, label)
CLOCKS.write(
    snakemake.output.clock,
    found,
    {"source": wildcards.source, "model": wildcards.model, "seed": int(wildcards.seed)},
)

job.keep()
