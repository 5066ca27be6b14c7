"""Trains the byte-level BPE of one source on its training documents."""

from manybody.runtime.logs import log_to
from manybody.sources.tokenizer import train

log_to(snakemake.log[0])

train(
    snakemake.input.documents,
    snakemake.params.vocabulary,
    snakemake.output.tokenizer,
    snakemake.params.end_of_document,
)
