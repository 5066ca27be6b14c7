"""Measures how far the layers of one model's runs have moved at each checkpoint."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.io.tables import DISPLACEMENTS
from manybody.measure.displacements import measure

DISPLACEMENTS.write(
    snakemake.output.displacements,
    measure(snakemake.input.models),
    {"source": snakemake.wildcards.source, "model": snakemake.wildcards.model},
)

job.keep()
