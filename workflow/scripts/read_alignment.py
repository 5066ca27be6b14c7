"""Reads an alignment, cuts it into three splits and weights its training sequences."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.data import SPLITS
from manybody.data.alignment import make

make(
    snakemake.params.source,
    snakemake.wildcards.source,
    {split: snakemake.output[split] for split in SPLITS},
    snakemake.output.sequence_weights,
    snakemake.threads,
)

job.keep()
