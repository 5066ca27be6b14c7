"""Writes the page of a run, and its config beside it."""

from pathlib import Path

import yaml

from manybody.io.logs import log_to
from manybody.report import document

log_to(snakemake.log[0])

document.write(
    snakemake.output.page,
    snakemake.config,  # its digest is among the params
    snakemake.params.figures,
    snakemake.input.claims,
    snakemake.input.clones,
    snakemake.input.cards,
    snakemake.params.shown,
    snakemake.input.losses,
    snakemake.input.ngrams,
)
Path(snakemake.output.config).write_text(yaml.safe_dump(snakemake.config, sort_keys=False), "utf-8")
