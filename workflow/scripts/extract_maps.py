"""Makes the table of one run's maps: A and V, or attention averaged over validation sequences."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.io.checkpoints import checkpoint_steps
from manybody.io.progress import Progress
from manybody.io.tables import MAPS
from manybody.measure.maps import extract

inputs, params, wildcards = snakemake.input, snakemake.params, snakemake.wildcards
checkpoints = len(checkpoint_steps(inputs.model)) if params.steps == "all" else 1
with Progress(checkpoints, "checkpoints", f"maps {wildcards.model} seed {wildcards.seed}") as bar:
    maps = extract(
        inputs.model,
        inputs.validation,
        params.steps,
        params.sequences,
        threads=snakemake.threads,
        progress=bar,
    )
MAPS.write(
    snakemake.output.maps,
    maps,
    {"source": wildcards.source, "model": wildcards.model, "seed": int(wildcards.seed)},
)

job.keep()
