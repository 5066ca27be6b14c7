"""A student's losses on clones while it learns original text: curves, and what they say.

Losses are nats per predicted token. `curves` are those of `students.Evaluated`.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import pandas as pd

from manybody.io import tables
from manybody.measure.intervals import mean
from manybody.measure.saturation import SATURATION, later, plateau_end, saturations
from manybody.models import labels
from manybody.papers import style
from manybody.papers.claims import Claim, Comparison, all_judged, below, near, over_seeds, unusable
from manybody.papers.simplicity.students import Evaluated

OVERLAP = 0.1  # ratio of early loss drops: 1 +- this
SIMILAR = 0.02  # relative difference of losses that count as equal

LADDER = {"linestyle": "-", "marker": "o"}
CONTROL = {"linestyle": ":", "marker": ""}

STATEMENTS = {  # by name: the statement, and what its comparisons must show
    "order-of-learning": (
        "A student's losses on the clones saturate in the order of their interactions",
        "the loss on the clone of higher order saturates later, over runs",
    ),
    "early-overlap": (
        "While the lowest order is learned, the losses on all clones fall alike",
        f"the ratio of two drops is 1 within {OVERLAP:g}",
    ),
    "late-losses": (
        "Later the loss on the lowest order rests or rises, on the highest it falls on",
        f"the lowest falls by less than {SATURATION[0]:.0%} of its drop, the highest falls, and by "
        f"more than any other",
    ),
    "original-text": (
        "The loss on original text falls to the end of training",
        "the last loss is below all before it",
    ),
    "norm-score": (
        "With clones by the norm score low orders are learned first too",
        "higher orders saturate later, and fall on while the lowest rests",
    ),
}


def claims(
    figure: str, compared: Mapping[str, Sequence[Comparison]], scope: str, reference: str = ""
) -> list[Claim]:
    """A claim for each of the `STATEMENTS` whose comparisons are given."""
    given = {}
    for name, parts in compared.items():
        statement, rule = STATEMENTS[name]
        given[name] = statement, parts, rule
    return all_judged(f"simplicity/{figure}", given, scope, reference)


class Series(NamedTuple):
    """A target as figures draw it: name in legends, name on an axis of clones, line and marker."""

    target: str
    label: str
    short: str
    looks: dict

    @classmethod
    def of(
        cls, student: Evaluated, target: str, looks: dict, note: str = "", rank: bool = False
    ) -> "Series":
        document = student.targets[target]
        colour = style.colour(document)
        looks = looks | {"color": colour, "markeredgecolor": colour}
        return cls(target, labels.target(document, rank), labels.short(document) + note, looks)

    def curve(self, student: Evaluated, quantity: str = "loss", unit: float = 1.0) -> pd.DataFrame:
        """Rows of each run, y_err over sequences, then of the mean over runs, y_err one sd.
        quantity: loss or accuracy, which is the panel too. unit: of x, in steps."""
        mine = student.curves[student.curves["target"] == self.target]
        runs = mine["seed"], mine["step"], mine[quantity], mine[f"{quantity}_se"]
        found = mine.groupby("step")[quantity].agg(["mean", "std"])
        means = "mean", found.index, found["mean"], found["std"]
        rows = pd.concat([style.points(quantity, self.label, *one) for one in (runs, means)])
        return rows.assign(x=rows["x"] * unit).reset_index(drop=True)


def ladder(student: Evaluated, block) -> list[Series]:
    """The clones of a block's ladder from low to high order, then original text."""
    named = [Series.of(student, name, LADDER) for name in block.ladder]
    return [*named, Series.of(student, block.control, CONTROL)]


def draw_curve(axes, curve: pd.DataFrame, series: Series, **looks) -> None:
    """The mean over runs with a band of one sd, of a curve that `Series.curve` made."""
    curve = curve[curve["seed"] == "mean"]
    axes.plot(curve["x"], curve["y"], label=series.label, **series.looks, **looks)
    style.band(axes, curve, series.looks["color"])


def saturated(student: Evaluated, target: str, share: float = SATURATION[0]) -> pd.DataFrame:
    """Saturation of the loss on a target by seed, as of `saturations`."""
    return saturations(student.curves[student.curves["target"] == target].groupby("seed"), share)


def _losses(curves: pd.DataFrame, target: str) -> pd.DataFrame:
    """Steps x seeds."""
    mine = curves[curves["target"] == target]
    return mine.pivot(index="step", columns="seed", values="loss").sort_index()


def ordered(student: Evaluated, ladder: Sequence[str]) -> Iterator[Comparison]:
    """Steps, seed by seed, from the saturation of each target to the next one's; first and last."""
    names = student.labels
    pairs = list(pairwise(ladder)) + ([(ladder[0], ladder[-1])] if len(ladder) > 2 else [])
    for share in SATURATION:
        times = {target: saturated(student, target, share) for target in ladder}
        for low, high in pairs:
            label = f"steps from saturation on {names[low]} to that on {names[high]}"
            label += f" ({share:.0%} of the drop left)"
            steps, resolution = later(times[low], times[high])
            yield over_seeds(label, steps, resolution=resolution)


def late_changes(
    student: Evaluated, ladder: Sequence[str], steps: tuple[int, int]
) -> Iterator[Comparison]:
    """Late in training the loss of the lowest order falls by less than 5 % of its drop, that of the
    highest falls on, by more than all others; unknown where a step is no checkpoint."""
    *others, highest = ladder
    losses = {name: _losses(student.curves, name).reindex(steps) for name in ladder}
    change = {name: one.diff().iloc[-1] for name, one in losses.items()}
    curve = _losses(student.curves, ladder[0]).mean(axis=1)
    least = -SATURATION[0] * float(curve.iloc[0] - curve.min())
    when = f"from step {steps[0]} to {steps[1]}"
    label = f"change of the loss on {student.labels[ladder[0]]} {when}"
    yield over_seeds(label, change[ladder[0]], least)
    label = f"fall of the loss on {student.labels[highest]} {when}"
    yield over_seeds(label, -change[highest])
    for low in others:
        more = f"{label}, less that on {student.labels[low]}"
        yield over_seeds(more, change[low] - change[highest])


def overlap(student: Evaluated, ladder: Sequence[str], control: str) -> Iterator[Comparison]:
    """Drops of the losses up to the plateau's end, over the drop of the highest order."""
    end = plateau_end(_losses(student.curves, control).mean(axis=1))
    *others, highest = ladder
    names = student.labels
    for low in others:
        label = f"drop of the loss on {names[low]} over that on {names[highest]}"
        if math.isnan(end):
            yield unusable(label, "checkpoints do not resolve the plateau's end")
            continue
        losses = (_losses(student.curves, target) for target in (low, highest))
        one, two = (loss.iloc[0] - loss.loc[end] for loss in losses)
        ratio, error, runs = mean(one / two)
        yield near(f"{label} up to step {end:.0f}", ratio, error, 1.0, OVERLAP, runs=runs)


def still_falling(student: Evaluated, control: str) -> list[Comparison]:
    """The last loss on original text, less the lowest of all earlier checkpoints."""
    label = "last loss on original text less the lowest before"
    losses = _losses(student.curves, control)
    if len(losses) < 3:
        return [unusable(label, "there are fewer than three checkpoints")]
    rise, error, runs = mean(losses.iloc[-1] - losses.iloc[:-1].min())
    return [below(label, rise, error, 0.0, runs=runs)]


def similar_losses(
    label: str, student: Evaluated, first: str, second: str, control: str
) -> Iterator[Comparison]:
    """second / first - 1 of two targets' losses, averaged over seeds, at each checkpoint after the
    plateau. Row i of both targets is the same chain: errors are over sequences within pairs."""
    curves = student.curves
    end = plateau_end(_losses(curves, control).mean(axis=1))
    steps = _losses(curves, first).index.intersection(_losses(curves, second).index)
    for step in steps[steps > end]:
        both = [tables.select(student.losses, target, step) for target in (first, second)]
        loss, other = (tables.ratio(one["loss_sum"], one["predictions"])[0] for one in both)
        error = tables.paired_difference(*both)[1]
        where = f"{label}, step {step}: relative difference"
        yield near(where, other / loss - 1, error / loss, 0.0, SIMILAR)
