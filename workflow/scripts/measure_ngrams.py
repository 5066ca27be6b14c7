"""Measures how far n-grams of a text source predict its test blocks."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.data.inspection import ngram_losses
from manybody.io.atomic import write_json
from manybody.io.sequences import Sequences

train, test = (Sequences.open(snakemake.input[split]) for split in ("train", "test"))
write_json(snakemake.output.ngrams, ngram_losses(train, test))

job.keep()
