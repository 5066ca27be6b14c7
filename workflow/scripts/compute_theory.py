"""Makes the table of one theoretical calculation."""

from importlib import import_module

from manybody.files.tables import write_theory
from manybody.runtime.logs import log_to

log_to(snakemake.log[0])

module = import_module(snakemake.params.module)
frame, about = module.compute(snakemake.params.entry)
write_theory(snakemake.output.table, frame, about)
