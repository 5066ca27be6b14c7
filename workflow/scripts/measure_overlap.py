"""Counts the test blocks of a text source that stand in its training text."""

from manybody.files.atomic import write_json
from manybody.files.sequences import Sequences
from manybody.runtime.logs import log_to
from manybody.sources.overlap import overlap

log_to(snakemake.log[0])

train, test = (Sequences.open(snakemake.input[split]) for split in ("train", "test"))
write_json(snakemake.output.overlap, overlap(train, test))
