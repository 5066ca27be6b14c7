"""Draws one figure, and writes the numbers in it."""

from manybody.io.store import begin

job = begin(snakemake)

from importlib import import_module
from pathlib import Path

from manybody.plotting import style

params = snakemake.params
module = import_module(f"manybody.plotting.{params.paper}.{params.figure}".replace("-", "_"))
figure, drawn = module.draw(dict(snakemake.input.items()), params.block, params.context)
style.save(figure, drawn, Path(snakemake.output.pdf).with_suffix(""))

job.keep()
