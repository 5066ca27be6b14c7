"""Tokenises one split of a source and cuts it into blocks."""

from manybody.files.store import begin

job = begin(snakemake)

from manybody.files.atomic import read_json
from manybody.sources.tokenizer import encode_split

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
