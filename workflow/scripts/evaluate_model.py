"""Tests every checkpoint of one run on the sequence sets of an evaluation."""

from manybody.files.store import begin

job = begin(snakemake)

from manybody.evaluation.losses import evaluate
from manybody.files.checkpoints import checkpoint_steps
from manybody.files.tables import place, write_losses
from manybody.runtime.devices import pick
from manybody.runtime.progress import Progress

evaluation, run = snakemake.params.evaluation, snakemake.input.model
targets = {
    name: place(target, path)
    for (name, target), path in zip(
        evaluation["targets"].items(), snakemake.input.targets, strict=True
    )
}
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
write_losses(
    snakemake.output.losses,
    losses,
    {"evaluation": snakemake.wildcards.evaluation, "seed": int(snakemake.wildcards.seed)},
)

job.keep()
