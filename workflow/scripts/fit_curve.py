"""Fits factored attention to many subsets of a source, and writes how good the fits are."""

from manybody.io.store import begin

job = begin(snakemake)

from pathlib import Path

from manybody.io.lease import lease
from manybody.io.tables import write_theory
from manybody.training import learning_curves

table = Path(snakemake.output.table)
resume = table.with_suffix(".resume")
with lease(resume):
    curve = learning_curves.compute(
        snakemake.params.entry,
        dict(snakemake.input.items()),
        resume,
        snakemake.threads,
        snakemake.params.code,
    )
    write_theory(table, *curve)
    learning_curves.forget(resume)

job.keep()
