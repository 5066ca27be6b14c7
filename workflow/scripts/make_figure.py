"""Makes one figure: picture, what is drawn, claims, caption."""

from manybody.io.store import begin

job = begin(snakemake)

from pathlib import Path

from manybody.papers import figure_module
from manybody.papers.figure import make

params = snakemake.params
make(
    figure_module(params.paper, params.figure),
    params.block,
    params.inputs,
    dict(snakemake.input.items()),
    params.caption,
    Path(snakemake.output.pdf).with_suffix(""),
)

job.keep()
