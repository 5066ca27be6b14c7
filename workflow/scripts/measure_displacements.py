"""Measures how far the layers of one model's runs have moved at each checkpoint."""

from manybody.files.store import begin

job = begin(snakemake)

from manybody.evaluation.displacements import measure
from manybody.files.tables import write_displacements

about = {name: snakemake.wildcards[name] for name in ("source", "model")}
write_displacements(snakemake.output.displacements, measure(snakemake.input.models), about)

job.keep()
