"""Counts the test blocks of a text source that stand in its training text."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.data.overlap import overlap
from manybody.io.atomic import write_json
from manybody.io.sequences import Sequences

train, test = (Sequences.open(snakemake.input[split]) for split in ("train", "test"))
write_json(snakemake.output.overlap, overlap(train, test.tokens))

job.keep()
