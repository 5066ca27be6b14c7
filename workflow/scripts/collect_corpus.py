"""Collects the documents of one corpus and cuts them into three splits."""

import gc

from manybody.data.text import collect
from manybody.io.logs import log_to

log_to(snakemake.log[0], f"corpora.{snakemake.wildcards.corpus}")
gc.disable()  # a search for cycles, which syntax trees do not have, takes a third of the time

collect(snakemake.params.corpus, dict(snakemake.output.items()), snakemake.params.downloads)
