"""Students of known distributions: losses on cuts and clones, exact losses, times, half-times.

A series is a list of sets of sequences that hold more and more of a distribution: cuts at a
growing order or trees filtered at a falling level, and the distribution itself last; or clones of
generators of growing order. Its step k = 1, 2, ... is compared with step k of other series, and
with M_k, which sees the orders above k.
"""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody.io import tables
from manybody.models import labels
from manybody.papers.saturation import SATURATION, Kind, read_kinds
from manybody.papers.simplicity.spectra import HalfTime, Spectra


class Step(NamedTuple):
    """A set of sequences.

    curves: target, seed, step, loss, loss_se. exact: the mean loss of the source's own
    conditionals on it, own: that of its own distribution, NaN where it is not known. apart: of
    each run the last loss less the exact one, (runs,), and its standard error over sequences.
    kinds: log t of the loss by definition of saturation.
    """

    label: str
    curves: pd.DataFrame
    exact: float
    own: float
    apart: np.ndarray
    apart_error: float
    kinds: dict[float, Kind]

    def time(self, share: float = SATURATION[0]) -> tuple[float, float]:
        """Mean of log t over runs, and its standard error by runs and sequences."""
        kind = self.kinds[share]
        means = kind.times[:, 0]
        runs = means.std(ddof=1) / math.sqrt(len(means)) if len(means) > 1 else math.nan
        return float(means.mean()), math.hypot(runs, float(kind.resampled.mean(axis=1).std(ddof=1)))


class Series(NamedTuple):
    """Steps from low to high; `known` where they are sets of known distributions, not clones."""

    label: str
    known: bool
    steps: list[Step]


class Student(NamedTuple):
    """Name, series, and of each k = 1, 2, ... the half-times of M_k by run."""

    name: str
    series: list[Series]
    halves: list[dict[int, HalfTime]]


def student_of(
    losses: pd.DataFrame,
    targets: dict,
    truth: pd.DataFrame,
    laws: dict,
    spectrum: Spectra,
    part,
) -> Student:
    """A student of a block `KnownTruth`. losses, targets: of an evaluation. truth, laws: as
    `measure.truths` makes them."""
    wanted = [("exact", True), ("clones", False)]
    series = [
        Series(one.label, known, [_step(name, losses, targets, truth, laws) for name in names])
        for key, known in wanted
        for one in getattr(part, key)
        for names in [one.targets]
    ]
    halves = [
        {seed: spectrum.half_time(seed, k) for seed in spectrum.runs}
        for k in range(1, len(series[0].steps) + 1)
    ]
    about = spectrum.about
    name = f"{labels.network(about['description'])} on {about['source']}"
    return Student(name, series, halves)


def _step(name: str, losses: pd.DataFrame, targets: dict, truth: pd.DataFrame, laws: dict) -> Step:
    mine = losses[losses["target"] == name]
    true = truth[truth["series"] == name]
    exact = true[true["quantity"] == "truth"].set_index("x")["y"].sort_index()
    own = true.loc[true["quantity"] == "own", "y"]
    last = mine[mine["step"] == mine["step"].max()]
    each = last.assign(loss=last["loss_sum"] / last["predictions"]).pivot(
        index="sequence", columns="seed", values="loss"
    )
    if not np.array_equal(each.index, exact.index):
        raise ValueError(
            f"target {name}: the student has losses of {len(each)} sequences, the truth of "
            f"{len(exact)}; expected the same ones. Delete the table of truths and run again"
        )
    differences = each.sub(exact.to_numpy(), axis=0)
    kinds = {share: read_kinds(mine, targets, [[name]], share)[0] for share in SATURATION}
    return Step(
        _label(targets[name], laws[name]),
        tables.learning_curves(mine),
        float(exact.mean()),
        float(own.iloc[0]) if len(own) else math.nan,
        differences.mean().to_numpy(),
        float(differences.mean(axis=1).std(ddof=1) / math.sqrt(len(differences))),
        kinds,
    )


def _label(document: dict, law: dict) -> str:
    """`orders up to 2`, `level 3`, `clone of order 3`."""
    if "at" in law:
        return f"orders up to {law['at']}"
    if law.get("level"):
        return f"filtered at level {law['level']}"
    if "generator" in document:
        short = labels.short(document).replace("\n", " ")
        return f"clone of {'order ' if short[0].isdigit() else ''}{short}"
    return "the whole law"


def log_ratios(low: dict[int, HalfTime], high: dict[int, HalfTime]) -> tuple[list, float]:
    """The log of the ratio of two half-times of each run, and the largest error of one."""
    later = [math.log(high[seed].step / low[seed].step) for seed in low]
    return later, max(math.hypot(low[seed].error, high[seed].error) for seed in low)
