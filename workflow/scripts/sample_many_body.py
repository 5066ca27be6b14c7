"""Draws a many-body Hamiltonian and samples the three splits of its source."""

from manybody.runtime.logs import log_to
from manybody.sources.many_body import SPLITS, make

log_to(snakemake.log[0])

make(
    snakemake.params.source,
    snakemake.wildcards.source,
    snakemake.output.hamiltonian,
    {split: snakemake.output[split] for split in SPLITS},
    snakemake.threads,
)
