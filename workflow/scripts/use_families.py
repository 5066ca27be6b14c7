"""Makes energies, mutations or new sequences of the families of one part of a list."""

from manybody.io.logs import log_to

log_to(snakemake.log[0], f"families.{snakemake.wildcards.families}")

from pathlib import Path

from manybody.io.atomic import write_json
from manybody.io.lease import lease
from manybody.report.family import use_many

said, asked = Path(snakemake.output.said), snakemake.params
folder = Path(snakemake.config["results"], "families", snakemake.wildcards.families)
with lease(said.with_suffix("")):
    use = snakemake.wildcards.use
    write_json(said, use_many(use, asked.entries, folder, asked.reading, asked.generate))
