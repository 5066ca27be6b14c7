"""Makes the table of one run's maps: A and V, or attention averaged over validation sequences."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.io.tables import MAPS
from manybody.measure.maps import extract

inputs, params, wildcards = snakemake.input, snakemake.params, snakemake.wildcards
maps = extract(
    inputs.model,
    inputs.validation,
    params.steps,
    params.sequences,
    threads=snakemake.threads,
    label=f"maps {wildcards.model} seed {wildcards.seed}",
)
MAPS.write(
    snakemake.output.maps,
    maps,
    {"source": wildcards.source, "model": wildcards.model, "seed": int(wildcards.seed)},
)

job.keep()
