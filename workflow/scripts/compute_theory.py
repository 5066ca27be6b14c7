"""Makes the table of one theoretical calculation."""

from manybody.io.store import begin

job = begin(snakemake)

from importlib import import_module

from manybody.io.tables import write_theory

compute = import_module(snakemake.params.module).compute
write_theory(snakemake.output.table, *compute(snakemake.params.entry))

job.keep()
