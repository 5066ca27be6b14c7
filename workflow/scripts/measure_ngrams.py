"""Measures how far n-grams of a text source predict its test blocks."""

from manybody.files.store import begin

job = begin(snakemake)

from manybody.files.atomic import write_json
from manybody.files.sequences import Sequences
from manybody.sources.inspection import ngram_losses

train, test = (Sequences.open(snakemake.input[split]) for split in ("train", "test"))
write_json(snakemake.output.ngrams, ngram_losses(train, test))

job.keep()
