"""Draws a many-body Hamiltonian and samples the three splits of its source."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.data.many_body import SPLITS, make

make(
    snakemake.params.source,
    snakemake.wildcards.source,
    snakemake.output.hamiltonian,
    {split: snakemake.output[split] for split in SPLITS},
    snakemake.threads,
)

job.keep()
