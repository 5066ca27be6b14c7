"""Clones of a code law: when students of the law saturate on them follows from its terms."""

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from manybody.io.options import Block, Seed, key, refers
from manybody.measure import clone_times
from manybody.papers import claims as records, style

COVERED = 0.9  # share of the clones that lie in their intervals where the prediction holds
WIDEST = math.log(2)  # half width of an interval that still tells whether a prediction holds
KINDS = (  # panels, what they show, and how
    ("d", "parts of the law", "o", "black"),
    ("d, trained", "trained generators", "s", "0.6"),
)


class Clones(Block):
    """Parts of a law with weaker or fewer terms, and clones of models trained on it, on which its
    students are tested."""

    evaluation: refers("evaluations") = key(
        "The students on the clones, all steps: sources that keep some orders or scale couplings, "
        "and clones."
    )
    predicted: list[Seed] = key("Runs that predict; the others are seen.", min_length=2)


def read(inputs, block) -> dict[str, clone_times.Saturation]:
    """Saturation on each clone, from the files of the inputs of figure order."""
    students = inputs.clocks["ladder"][block.ladder[0].label]
    predicted = {run.seed: run.file() for run in students if run.seed in block.clones.predicted}
    losses = {run.seed: run.file("losses") for run in inputs.runs}
    manifests = {one.clone: one.file() for one in inputs.clones}
    trained = {
        name: (manifests[one["clone"]], one["sweep"])
        for name, one in inputs.runs[0].targets.items()
        if "clone" in one
    }
    parts = {name: one.file() for name, one in inputs.parts.items()}
    return clone_times.predicted_and_seen(predicted, losses, inputs.laws, parts, trained)


def covered(clones: Iterable[clone_times.Saturation], trained: bool) -> list[records.Comparison]:
    """The share of clones, of trained generators or not, that saturate in their intervals. Those
    that have no time, neither predicted nor seen, are left out; one of the two alone is a miss."""
    mine = [one for one in clones if one.trained == trained]
    mine = [one for one in mine if math.isfinite(one.told) or math.isfinite(one.seen)]
    if not mine:
        return []
    seen, told, half = np.array([(one.seen, one.told, one.half) for one in mine]).T
    inside = np.abs(seen - told) <= half
    unknown = inside & (half > WIDEST)
    label, mean = f"{inside.sum()} of {len(mine)}", inside.mean()
    return [records.above(label, mean, 0.0, COVERED, half=unknown.mean())]


def draw(axes, drawn: pd.DataFrame) -> None:
    every = drawn[drawn["panel"].str.startswith("d")]
    rows = every.dropna(subset=["x", "y"])
    left, ends = len(every) - len(rows), (rows["x"].min(), rows["x"].max())
    for panel, label, marker, colour in KINDS:
        one = rows[rows["panel"] == panel]
        look = dict(yerr=style.factors(one["y"], one["y_err"]), color=colour, marker=marker)
        if not one.empty:
            style.dots(axes, one["x"], one["y"], label=label, **look)
    axes.legend(loc="lower right")
    axes.axline(*zip(ends, ends, strict=True), **style.EQUAL)
    axes.set(xscale="log", yscale="log", xlabel="predicted step of saturation", ylabel="seen")
    axes.set_title(f"(d) clones ({left} without a time)" if left else "(d) clones")
    for axis in (axes.xaxis, axes.yaxis):
        style.plain_ticks(axis, style.STEPS)
