"""Makes the table of one theoretical calculation."""

from manybody.io.store import begin

job = begin(snakemake)

from importlib import import_module

from manybody.io.tables import write_theory

module = import_module(snakemake.params.module)
frame, about = module.compute(snakemake.params.entry)
write_theory(snakemake.output.table, frame, about)

job.keep()
