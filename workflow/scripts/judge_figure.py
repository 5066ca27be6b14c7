"""Judges the claims about one figure."""

from importlib import import_module

from manybody.files.tables import write_csv
from manybody.runtime.logs import log_to

log_to(snakemake.log[0])

params = snakemake.params
module = import_module(f"manybody.claims.{params.paper}.{params.figure}".replace("-", "_"))
claims = module.judge(dict(snakemake.input.items()), params.block, params.context)
write_csv(claims, snakemake.output.claims)
