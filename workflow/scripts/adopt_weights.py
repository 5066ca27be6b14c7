"""Writes the conditionals of a source's Hamiltonian as a run of a model."""

from pathlib import Path

from manybody.runtime.logs import log_to
from manybody.training.lbfgs import adopt

log_to(snakemake.log[0])

wildcards = snakemake.wildcards
adopt(
    snakemake.params.model,
    snakemake.input.hamiltonian,
    {split: snakemake.input[split] for split in ("train", "validation")},
    Path(snakemake.output.manifest).parent,
    int(wildcards.seed),
    {"source": wildcards.source, "model": wildcards.model},
)
