"""Trains one model on one source with one seed."""

from pathlib import Path

from manybody.logs import log_to
from manybody.sequences import Sequences
from manybody.training import train

log_to(snakemake.log[0])

data = {split: Sequences.open(snakemake.input[split]) for split in ("train", "validation")}
wildcards, params = snakemake.wildcards, snakemake.params
train(
    {**params.model, "vocabulary": data["train"].vocabulary, "length": data["train"].length},
    params.recipe,
    data,
    Path(snakemake.output.manifest).parent,
    seed=int(wildcards.seed),
    init_seed=params.init_seed,
    about={"source": wildcards.source, "model": wildcards.model},
    device=params.device,
    code=params.code,
)
