"""Judges the claims about one figure."""

from importlib import import_module

from manybody.files.tables import write_csv
from manybody.runtime.logs import log_to

log_to(snakemake.log[0])

params = snakemake.params
name = f"{params.paper}.{params.figure}".replace("-", "_")
try:
    judge = import_module(f"manybody.claims.{name}").judge
except (AttributeError, ImportError):  # TRANSITION: until all figures have a judge of their own
    draw = import_module(f"manybody.plotting.{name}").draw
    judge = lambda *given: draw(*given)[2]  # noqa: E731
claims = judge(dict(snakemake.input.items()), params.block, params.context)
write_csv(claims, snakemake.output.claims)
