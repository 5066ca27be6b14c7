"""Writes the page of the families of a list."""

from manybody.io.logs import log_to

log_to(snakemake.log[0])

from manybody.io.atomic import read_json
from manybody.report.family import write_many

records = [record for path in snakemake.input.records for record in read_json(path)]
used = [(name, said) for path in snakemake.input.used for name, said in read_json(path).items()]
name = snakemake.wildcards.families
write_many(snakemake.output.page, name, records, f"families.{name} of the config", used)
