"""Clones of a code law: when students of the law saturate on them follows from its terms."""

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody.io import tables as stored
from manybody.io.manifest import Manifest
from manybody.io.options import Block, Seed, key, refers
from manybody.io.sequences import Sequences
from manybody.measure import intervals
from manybody.measure.intervals import margin
from manybody.measure.saturation import SATURATION, log_times
from manybody.papers import claims as records, inputs as needed, style

STEPS = [digit * 10**power for power in range(7) for digit in (1, 2, 5)]
COVERED = 0.9  # share of the clones that lie in their intervals where the prediction holds
WIDEST = math.log(2)  # half width of an interval that still tells whether a prediction holds
KINDS = (  # panels, what they show, and how
    ("d", "parts of the law", "o", style.ORDERS[4]),
    ("d, trained", "trained generators", "s", style.ORDERS[6]),
)


class Clones(Block):
    """Parts of a law with weaker or fewer terms, and clones of models trained on it, on which its
    students are tested."""

    evaluation: refers("evaluations") = key(
        "The students on the clones, all steps: sources that keep some orders or scale couplings, "
        "and clones."
    )
    predicted: list[Seed] = key("Runs that predict; the others are seen.", min_length=2)


class Saturation(NamedTuple):
    """Saturation of the losses on a clone.

    told, seen: log t as predicted and as seen. half: half width of the interval of their
    difference. trained: true of a clone of a model, false of a part of the law. kappa: the mean
    order of the clone's own information, NaN where that is not known.
    """

    told: float
    half: float
    seen: float
    trained: bool
    kappa: float


def kappa(information: Mapping) -> float:
    """The mean order k of information c_k by order: sum_k k c_k / sum_k c_k."""
    total = sum(information.values())
    return sum(int(k) * c for k, c in information.items()) / total if total else math.nan


def predicted_and_seen(
    clocks: Sequence[needed.Clock],
    runs: Sequence[needed.Tested],
    laws: Mapping[str, dict],
    clones: Sequence[needed.Clone],
    predicted: Collection[int],
) -> dict[str, Saturation]:
    """Times of saturation on each clone, by the half-logits of some students and in the others.

    clocks, runs: of all students. laws: the entry of the law, called '', and of the clones that are
    parts of it. clones: manifests of those of trained generators. predicted: the students that
    predict.
    The interval is that of the difference of two means, with the spread of those that predict.
    Drops count from ln 2, the loss of equal chances, below which a clone may never come (NaN):
    random initial weights start higher, and that they lose this first says nothing of the law.
    """
    from manybody.data import code

    parts = {name: code.of(entry) for name, entry in laws.items()}
    means = {name: law.means for name, law in parts.items()}
    orders = {name: kappa(law.information()) for name, law in parts.items()}
    drawn = {one.clone: Manifest.read(one.file(), "clones") for one in clones}
    trained = {name: one for name, one in runs[0].targets.items() if "clone" in one}
    for name, target in trained.items():
        made = drawn[target["clone"]]
        path = made.file(f"sweep-{target['sweep']}.parquet")
        orders[name] = kappa(made.about.get("information", {}))
        means[name] = parts[""].means_in(Sequences.open(path).tokens)
    halves = {}
    for run in clocks:
        if run.seed in predicted:
            table = stored.CLOCKS.read(run.file())[0].query("step > 0")
            halves[run.seed] = table.pivot(index="step", columns="term", values="own_share")
    losses = stored.read_losses({run.seed: run.file("losses") for run in runs})
    curves, found = stored.learning_curves(losses).query("step > 0"), {}
    for name, mine in curves.groupby("target", sort=False):
        seen = mine.pivot(index="step", columns="seed", values="loss")
        others = [_time(seen.index, seen[seed]) for seed in seen if seed not in halves]
        told = [
            _time(shares.index, clone_losses(parts[""], means[name], shares.to_numpy()))
            for shares in halves.values()
        ]
        mean, error, count = intervals.mean(told)
        half = margin(error * math.sqrt(1 + count / len(others)), count)
        found[name] = Saturation(mean, half, float(np.mean(others)), name in trained, orders[name])
    return found


def clone_losses(law, means: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Losses on a clone, in nats a token, of students with half-logits shares (steps, terms) x J:

    sum_e |e| 1/2 [(1 + t'_e) z(-2 a_e) + (1 - t'_e) z(2 a_e)] + ln 2 at free sites, z the softplus,
    t' = `means` (terms,) those of the law's terms in the clone.
    """
    logits = 2 * shares * law.couplings
    up, down = np.logaddexp(0, -logits), np.logaddexp(0, logits)
    each = ((1 + means) * up + (1 - means) * down) / 2
    free = law.length - law.orders.sum()
    return (each @ law.orders + free * math.log(2)) / law.length


def _time(steps: pd.Index, losses: Sequence[float]) -> float:
    below = np.minimum(losses, math.log(2))
    return float(log_times(steps.to_numpy(), below, SATURATION[0])[0])


def covered(clones: Iterable[Saturation], trained: bool) -> list[records.Comparison]:
    """The share of clones, of trained generators or not, that saturate in their intervals."""
    told = [one for one in clones if one.trained == trained and math.isfinite(one.told)]
    if not told:
        return []
    inside = np.array([abs(one.seen - one.told) <= one.half for one in told])
    unknown = inside & np.array([one.half > WIDEST for one in told])
    label, mean = f"{inside.sum()} of {len(told)}", inside.mean()
    return [records.above(label, mean, 0.0, COVERED, half=unknown.mean())]


def draw(axes, drawn: pd.DataFrame) -> None:
    """Times seen against those predicted."""
    every = drawn[drawn["panel"].str.startswith("d")]
    rows = every.dropna(subset=["x", "y"])
    left, ends = len(every) - len(rows), (rows["x"].min(), rows["x"].max())
    for panel, label, marker, colour in KINDS:
        one = rows[rows["panel"] == panel]
        look = dict(yerr=style.factors(one["y"], one["y_err"]), color=colour, marker=marker)
        if len(one):
            style.dots(axes, one["x"], one["y"], label=label, **look)
    axes.legend(loc="lower right")
    looks = dict(color="0.7", linewidth=0.8, linestyle="--", gid="guide")
    axes.axline(*zip(ends, ends, strict=True), **looks)
    axes.set(xscale="log", yscale="log", xlabel="predicted step of saturation", ylabel="seen")
    axes.set(title=f"(d) clones{f' ({left} without a time)' if left else ''}")
    for axis in (axes.xaxis, axes.yaxis):
        style.plain_ticks(axis, STEPS)
