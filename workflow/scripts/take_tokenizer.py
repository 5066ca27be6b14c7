"""Takes the tokenizer of a model trained elsewhere for the sequences of one source."""

from manybody.io.store import begin

job = begin(snakemake)

from pathlib import Path

from manybody.data.own_tokenizer import fetched, take

with fetched(snakemake.params.tokenizer, Path(snakemake.params.downloads)) as (folder, origin):
    take(folder, origin, snakemake.output.tokenizer, snakemake.output.special)

job.keep()
