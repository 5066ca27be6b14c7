"""Makes the Hamiltonian of a source and samples the three splits."""

from manybody.io.store import begin

job = begin(snakemake)

from importlib import import_module

from manybody.data import SPLITS

import_module(snakemake.params.module).make(
    snakemake.params.source,
    snakemake.wildcards.source,
    snakemake.output.hamiltonian,
    {split: snakemake.output[split] for split in SPLITS},
    snakemake.threads,
)

job.keep()
