"""Tests every checkpoint of one run on the sequence sets of an evaluation."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.io.checkpoints import checkpoint_steps
from manybody.io.devices import pick
from manybody.io.progress import Progress
from manybody.io.tables import LOSSES, places
from manybody.measure.losses import evaluate

evaluation, run = snakemake.params.evaluation, snakemake.input.model
targets = places(evaluation["targets"], snakemake.input.targets)
steps = len(checkpoint_steps(run)) if evaluation["steps"] == "all" else 1
with Progress(steps * len(targets), "sets", f"evaluate {snakemake.wildcards.evaluation}") as bar:
    losses = evaluate(
        run,
        targets,
        evaluation["positions"],
        evaluation["steps"],
        device=pick(snakemake.params.device),
        progress=bar,
    )
LOSSES.write(
    snakemake.output.losses,
    losses,
    {"evaluation": snakemake.wildcards.evaluation, "seed": int(snakemake.wildcards.seed)},
)

job.keep()
