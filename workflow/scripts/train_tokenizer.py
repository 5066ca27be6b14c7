"""Trains the byte-level BPE of one source on its training documents."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.data.tokenizer import train

train(
    snakemake.input.documents,
    snakemake.params.vocabulary,
    snakemake.output.tokenizer,
    snakemake.params.end_of_document,
)

job.keep()
