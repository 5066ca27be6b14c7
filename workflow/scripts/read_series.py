"""Reads the checkpoints of a model trained elsewhere, audits them, and writes them as a run."""

from manybody.io.store import begin

job = begin(snakemake)

from pathlib import Path

from manybody.io.devices import pick
from manybody.training.series import adopt

wildcards, params = snakemake.wildcards, snakemake.params
adopt(
    params.model,
    snakemake.input.validation,
    Path(snakemake.output.manifest).parent,
    Path(params.record),
    Path(params.downloads),
    int(wildcards.seed),
    {"source": wildcards.source, "model": wildcards.model},
    pick(params.device),
)

job.keep()
