"""Reads an alignment, cuts it into three splits and weights its training sequences."""

import sys

from manybody.io.store import begin

job = begin(snakemake)

from manybody.data import SPLITS
from manybody.data.alignment import make

said = make(
    snakemake.params.source,
    snakemake.wildcards.source,
    {split: snakemake.output[split] for split in SPLITS},
    snakemake.output.sequence_weights,
    snakemake.output.card,
    snakemake.threads,
)
for place in (sys.stdout, sys.__stdout__):  # the log, and the terminal
    print(snakemake.wildcards.source, "; ".join(said), sep=": ", file=place, flush=True)

job.keep()
