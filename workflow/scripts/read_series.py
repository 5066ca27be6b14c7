"""Reads the checkpoints of a model trained elsewhere, audits them, and writes them as a run."""

from manybody.io.store import begin

job = begin(snakemake)

from pathlib import Path

from manybody.io.devices import pick
from manybody.io.manifest import Manifest
from manybody.models.pretrained.series import checkpoints
from manybody.training.series import adopt

wildcards, params = snakemake.wildcards, snakemake.params
weights = params.model["weights"]
for passed in checkpoints(Path(weights).expanduser())[1] if isinstance(weights, str) else []:
    print(f"passed over: {passed}")
made = adopt(
    params.model,
    snakemake.input.validation,
    Path(snakemake.output.manifest).parent,
    Path(params.record),
    Path(params.downloads),
    int(wildcards.seed),
    {"source": wildcards.source, "model": wildcards.model},
    pick(params.device),
)
for step, reasons in Manifest.read(made, "model").about["suspects"].items():
    print(f"step {step} is left out: {'; '.join(reasons)}")

job.keep()
