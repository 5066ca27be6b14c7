"""Draws the splits of a source exactly: of a tree, a code law or a cut Hamiltonian."""

from manybody.io.store import begin

job = begin(snakemake)

from importlib import import_module

from manybody.data import SPLITS

import_module(snakemake.params.module).make(
    snakemake.params.source,
    snakemake.wildcards.source,
    list(snakemake.input.given),
    {split: snakemake.output[split] for split in SPLITS},
)

job.keep()
