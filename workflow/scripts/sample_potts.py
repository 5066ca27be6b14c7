"""Finds the temperature of a Potts model and samples the three splits of its source."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.data.potts import SPLITS, make

make(
    snakemake.params.source,
    snakemake.wildcards.source,
    snakemake.output.hamiltonian,
    {split: snakemake.output[split] for split in SPLITS},
    snakemake.threads,
)

job.keep()
