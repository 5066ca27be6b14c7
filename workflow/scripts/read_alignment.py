"""Reads an alignment, cuts it into three splits and weights its training sequences."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.data import SPLITS
from manybody.data.alignment import make
from manybody.io.atomic import write_text
from manybody.io.logs import tell

said = make(
    snakemake.params.source,
    snakemake.wildcards.source,
    {split: snakemake.output[split] for split in SPLITS},
    snakemake.output.sequence_weights,
    snakemake.threads,
)
lines = [f"# {snakemake.wildcards.source}\n", *(f"- {sentence}" for sentence in said), ""]
write_text(snakemake.output.card, "\n".join(lines))
tell(snakemake.wildcards.source, said)

job.keep()
