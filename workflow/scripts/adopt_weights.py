"""Writes the conditionals of a source's Hamiltonian as a run of a model."""

from manybody.io.store import begin

job = begin(snakemake)

from pathlib import Path

from manybody.training.lbfgs import adopt

wildcards = snakemake.wildcards
adopt(
    snakemake.params.model,
    snakemake.input.hamiltonian,
    {split: snakemake.input[split] for split in ("train", "validation")},
    Path(snakemake.output.manifest).parent,
    int(wildcards.seed),
    {"source": wildcards.source, "model": wildcards.model},
)

job.keep()
