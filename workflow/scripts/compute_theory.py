"""Makes the table of one theoretical calculation."""

from importlib import import_module

from manybody.logs import log_to
from manybody.tables import write_theory

log_to(snakemake.log[0])

entry = snakemake.params.entry
module = import_module(f"manybody.theory.{entry['kind'].replace('-', '_')}")
frame, about = module.compute(entry)
write_theory(snakemake.output.table, frame, about)
