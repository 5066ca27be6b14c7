"""Collects the documents of one corpus and cuts them into three splits."""

from manybody.runtime.logs import log_to
from manybody.sources.text import collect

log_to(snakemake.log[0], f"corpora.{snakemake.wildcards.corpus}")

collect(snakemake.params.corpus, dict(snakemake.output.items()), snakemake.params.downloads)
