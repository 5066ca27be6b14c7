"""Reads an alignment, cuts it into three splits and weights its training sequences."""

from manybody.runtime.logs import log_to
from manybody.sources.alignment import SPLITS, make

log_to(snakemake.log[0])

make(
    snakemake.params.source,
    snakemake.wildcards.source,
    {split: snakemake.output[split] for split in SPLITS},
    snakemake.output.sequence_weights,
    snakemake.threads,
)
