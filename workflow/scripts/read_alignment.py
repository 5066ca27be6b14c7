"""Reads an alignment, cuts it into three splits and weights its training sequences."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.data import SPLITS
from manybody.data.alignment import make
from manybody.io.atomic import atomic
from manybody.io.logs import tell

said = make(
    snakemake.params.source,
    snakemake.wildcards.source,
    {split: snakemake.output[split] for split in SPLITS},
    snakemake.output.sequence_weights,
    snakemake.threads,
)
with atomic(snakemake.output.card) as card:
    lines = [f"# {snakemake.wildcards.source}\n", *(f"- {sentence}" for sentence in said), ""]
    card.write_text("\n".join(lines), encoding="utf-8")
tell(snakemake.wildcards.source, said)

job.keep()
