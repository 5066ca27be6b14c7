"""Students of known distributions: losses on cuts and clones, exact losses, times, half-times.

A series is a list of sets of sequences that hold more and more of a distribution: cuts at a growing
order or trees filtered at a falling level, and the distribution itself last; or clones of
generators of growing order. Its step k = 1, 2, ... is compared with step k of other series, and
with M_k, which sees the orders above k.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody.io import tables
from manybody.models import labels
from manybody.papers.claims import Comparison, above, margin, near
from manybody.papers.readings import mean
from manybody.papers.saturation import SATURATION, Kind, read_kinds
from manybody.papers.simplicity import comparison
from manybody.papers.simplicity.spectra import Spectra
from manybody.papers.style import points

CUT = 0.02  # nats per token from the exact loss on a cut
WHOLE = 0.01  # and on the distribution that the student is trained on
SHOWN = 5  # steps whose times are drawn
HALVES = "half-times, M_k"  # the row of the student's own spectrum


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

    def time(self) -> tuple[float, float]:
        """Mean of log t over runs at 5 %, and its standard error by runs and sequences."""
        kind = self.kinds[SATURATION[0]]
        log, error, _ = mean(kind.times[:, 0])
        return log, math.hypot(error, float(kind.resampled.mean(axis=1).std(ddof=1)))


class Series(NamedTuple):
    """Steps from low to high; `known` where they are sets of known distributions, not clones."""

    label: str
    known: bool
    steps: list[Step]


class Student(NamedTuple):
    """Its name, its series, and the spectra of its runs."""

    name: str
    series: list[Series]
    spectrum: Spectra

    @property
    def orders(self) -> range:
        """The k = 1, 2, ... of the M_k that steps are compared with."""
        return range(1, len(self.series[0].steps) + 1)


def student_of(
    losses: pd.DataFrame,
    targets: dict,
    truth: pd.DataFrame,
    distributions: dict,
    spectrum: Spectra,
    part,
) -> Student:
    """A student of a block `KnownTruth`.

    losses, targets: of an evaluation. truth, distributions: as `measure.truths` makes them.
    """
    given = losses, targets, truth, distributions
    series = [
        Series(one.label, known, [_step(name, *given) for name in one.targets])
        for sets, known in ((part.exact, True), (part.clones, False))
        for one in sets
    ]
    about = spectrum.about
    name = f"{labels.network(about['description'])} on {about['source']}"
    return Student(name, series, spectrum)


def _step(name: str, losses, targets: dict, truth: pd.DataFrame, distributions: dict) -> Step:
    mine, true = losses[losses["target"] == name], truth[truth["series"] == name]
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
    return Step(
        _label(targets[name], distributions[name]),
        tables.learning_curves(mine),
        float(exact.mean()),
        float(own.iloc[0]) if len(own) else math.nan,
        differences.mean().to_numpy(),
        float(differences.mean(axis=1).std(ddof=1) / math.sqrt(len(differences))),
        {share: read_kinds(mine, targets, [[name]], share)[0] for share in SATURATION},
    )


def _label(document: dict, distribution: dict) -> str:
    """`order ≤ 2` of a cut, `level 3` of a tree, `order 3` of a clone, `whole`."""
    if "at" in distribution:
        return f"order ≤ {distribution['at']}"
    if distribution.get("level"):
        return f"level {distribution['level']}"
    if "generator" in document:
        short = labels.short(document).replace("\n", " ")
        return f"order {short}" if short[0].isdigit() else short
    return "whole"


def curves(panel: str, series: Series) -> Iterator[pd.DataFrame]:
    """The loss of each run, the exact loss, and the least that is possible."""
    for step in series.steps:
        for seed, curve in step.curves.groupby("seed"):
            curve = curve[curve["step"] > 0].sort_values("step")
            given = curve["step"], curve["loss"], curve["loss_se"]
            yield points(panel, step.label, seed, *given)
        lines = {"exact": step.exact}
        # Of the whole distribution both are the same.
        if not math.isclose(step.own, step.exact, abs_tol=1e-9):
            lines["own"] = step.own
        for said, height in lines.items():
            if math.isfinite(height):
                yield points(panel, f"{step.label}, {said}", said, [math.nan], [height])


def times(panel: str, student: Student) -> Iterator[pd.DataFrame]:
    """By k half-times of M_k and times of step k of each series, errors of the logarithms."""
    for k in student.orders:
        step, error = half(student.spectrum, k)
        yield points(panel, HALVES, "mean", [k], [step], error)
    for series in student.series:
        for k, step in enumerate(series.steps[:SHOWN], 1):
            log, error = step.time()
            yield points(panel, series.label, "mean", [k], [math.exp(log)], error)


def half(spectrum: Spectra, k: int) -> tuple[float, float]:
    """The half-time of all runs, and the standard error of its log, by runs and contexts."""
    found = [spectrum.half_time(seed, k) for seed in spectrum.runs]
    log, runs, count = mean(np.log([one.step for one in found]))
    error = math.hypot(runs if count > 1 else 0.0, max(one.error for one in found))
    return math.exp(log), error


# --- Comparisons ----------------------------------------------------------------------------------


def ends(series: Series) -> Iterator[Comparison]:
    """Last losses less those of the exact conditionals, by runs and by sequences."""
    for step in series.steps:
        value, by_run, runs = mean(step.apart)
        half = math.hypot(margin(by_run, runs), margin(step.apart_error))
        label = f"{series.label}, {step.label}: last loss less the exact one"
        error = math.hypot(by_run, step.apart_error)
        bound = WHOLE if step is series.steps[-1] else CUT
        yield near(label, value, error, 0.0, bound, half=half)


def later(label: str, early: Step, late: Step) -> list[Comparison]:
    """The loss on a step stops falling before that on a higher one."""
    label = f"{label}: log of the time of {late.label} over that of {early.label}"
    return [*stops(label, late, early, (0.0, math.inf))]


def stops(label: str, late: Step, early: Step, region: tuple[float, float]) -> Iterator[Comparison]:
    """log t of one step less that of another, over runs and sequences, by both definitions.

    Where checkpoints are too far apart where the losses stop falling, the times have to differ by
    more than lies between these.
    """
    widths = [np.max([kind.width for kind in step.kinds.values()]) for step in (late, early)]
    slack = 0.0 if all(width <= comparison.RESOLVED for width in widths) else float(sum(widths))
    for share in SATURATION:
        one = comparison.interval(late.kinds[share], early.kinds[share], (math.nan, 0))
        given = f"{label}, {share:.0%} left", one.value, one.error, region
        yield Comparison(*given, half=one.half + slack)


def agreement(label: str, one: list, other: list) -> Comparison:
    """The share of pairs of steps that both put in the same order less that put the other way."""
    answers = [(_answer(first), _answer(second)) for first, second in zip(one, other, strict=True)]
    same = sum(pair in (("yes", "yes"), ("no", "no")) for pair in answers)
    against = sum({*pair} == {"yes", "no"} for pair in answers)
    label = f"{label}: {same} pairs the same, {against} not, of {len(answers)}"
    # What is undecided can fall either way.
    half = (len(answers) - same - against) / len(answers)
    return above(label, (same - against) / len(answers), 0.0, half=half)


def _answer(parts: list[Comparison]) -> str:
    """The answer on which all definitions agree, else undecided."""
    answers = {part.verdict() for part in parts}
    return answers.pop() if len(answers) == 1 else "undecided"
