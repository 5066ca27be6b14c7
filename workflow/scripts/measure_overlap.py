"""Counts the test blocks of a text source that stand in its training text."""

from manybody.files.store import begin

job = begin(snakemake)

from manybody.files.atomic import write_json
from manybody.files.sequences import Sequences
from manybody.sources.overlap import overlap

train, test = (Sequences.open(snakemake.input[split]) for split in ("train", "test"))
write_json(snakemake.output.overlap, overlap(train, test))

job.keep()
