"""Tests every checkpoint of one run on the sequence sets of an evaluation."""

from manybody.io.store import begin

job = begin(snakemake)

from manybody.io.devices import pick
from manybody.io.tables import LOSSES, places
from manybody.measure.losses import evaluate

evaluation = snakemake.params.evaluation
losses = evaluate(
    snakemake.input.model,
    places(evaluation["targets"], snakemake.input.targets),
    evaluation["positions"],
    evaluation["steps"],
    device=pick(snakemake.params.device),
    label=f"evaluate {snakemake.wildcards.evaluation}",
)
LOSSES.write(
    snakemake.output.losses,
    losses,
    {"evaluation": snakemake.wildcards.evaluation, "seed": int(snakemake.wildcards.seed)},
)

job.keep()
