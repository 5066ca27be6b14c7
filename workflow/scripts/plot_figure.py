"""Draws one figure; writes it, the numbers in it, and what they say of the paper's claims."""

from importlib import import_module
from pathlib import Path

from manybody.plotting import style
from manybody.runtime.logs import log_to

log_to(snakemake.log[0])

params = snakemake.params
paper = params.paper.replace("-", "_")
module = import_module(f"manybody.plotting.{paper}.{params.figure}")
figure, drawn, checks = module.draw(dict(snakemake.input.items()), params.block, params.context)
style.save(figure, drawn, Path(snakemake.output.pdf).with_suffix(""))
style.write_csv(checks, snakemake.output.checks)
