"""Fits a pair model to each family of one part of a list, and writes what a page says of them."""

from manybody.io.logs import log_to

log_to(snakemake.log[0], f"families.{snakemake.wildcards.families}")

from pathlib import Path

from manybody.io.atomic import write_json
from manybody.io.lease import lease
from manybody.measure.family import fit_many

records = Path(snakemake.output.records)
folder = Path(snakemake.config["results"], "families", snakemake.wildcards.families)
with lease(records.with_suffix("")):
    options, code = snakemake.params.options, snakemake.params.code
    write_json(records, fit_many(snakemake.params.entries, folder, options, code))
