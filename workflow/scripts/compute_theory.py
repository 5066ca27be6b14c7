"""Makes the table of one theoretical calculation."""

from importlib import import_module

from manybody.logs import log_to
from manybody.tables import write_theory

log_to(snakemake.log[0])

module = import_module(f"manybody.{snakemake.params.module}")
frame, about = module.compute(snakemake.params.entry)
write_theory(snakemake.output.table, frame, about)
