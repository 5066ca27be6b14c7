"""Counts the test blocks of a text source that stand in its training text."""

from manybody.artifacts import write_json
from manybody.logs import log_to
from manybody.sequences import Sequences
from manybody.sources.overlap import overlap

log_to(snakemake.log[0])

train, test = (Sequences.open(snakemake.input[split]) for split in ("train", "test"))
write_json(snakemake.output.overlap, overlap(train, test))
