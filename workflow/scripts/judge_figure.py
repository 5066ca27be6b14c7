"""Judges the claims about one figure."""

from manybody.io.store import begin

job = begin(snakemake)

from importlib import import_module

from manybody.io.tables import write_csv

params = snakemake.params
module = import_module(f"manybody.claims.{params.paper}.{params.figure}".replace("-", "_"))
claims = module.judge(dict(snakemake.input.items()), params.block, params.context)
write_csv(claims, snakemake.output.claims)

job.keep()
