"""Measures how far the layers of one model's runs have moved at each checkpoint."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.io.tables import write_displacements
from manybody.measure.displacements import measure

write_displacements(
    snakemake.output.displacements,
    measure(snakemake.input.models),
    {"source": snakemake.wildcards.source, "model": snakemake.wildcards.model},
)

job.keep()
