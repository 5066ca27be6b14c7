"""Finds the temperature of a Potts model and samples the three splits of its source."""

from manybody.runtime.logs import log_to
from manybody.sources.potts import SPLITS, make

log_to(snakemake.log[0])

make(
    snakemake.params.source,
    snakemake.wildcards.source,
    snakemake.output.hamiltonian,
    {split: snakemake.output[split] for split in SPLITS},
    snakemake.threads,
)
