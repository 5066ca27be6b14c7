"""Draws one figure, and writes the numbers in it."""

from importlib import import_module
from pathlib import Path

from manybody.plotting import style
from manybody.runtime.logs import log_to

log_to(snakemake.log[0])

params = snakemake.params
module = import_module(f"manybody.plotting.{params.paper}.{params.figure}".replace("-", "_"))
figure, drawn = module.draw(dict(snakemake.input.items()), params.block, params.context)
style.save(figure, drawn, Path(snakemake.output.pdf).with_suffix(""))
