"""Tokenises one split of a source and cuts it into blocks."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.data.tokenizer import encode_split
from manybody.io.atomic import read_json

special = snakemake.input.special
source, split = snakemake.params.source, snakemake.wildcards.split
encode_split(
    snakemake.input.documents,
    snakemake.input.tokenizer,
    source["length"],
    snakemake.output.sequences,
    {"source": snakemake.wildcards.source, "split": split, "corpus": source["corpus"]},
    source.get("blocks", {}).get(split),
    source["end_of_document"],
    read_json(special) if special else None,
)

job.keep()
