"""A student's losses on clones while it learns original text: curves, and what they say.

Losses are nats per predicted token. Tables of curves have the columns of `tables.learning_curves`:
target, seed (of the run), step, loss and accuracy with their errors over sequences.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody.io import tables
from manybody.models import labels
from manybody.papers import claims as records
from manybody.papers import style
from manybody.papers.claims import Claim, Comparison
from manybody.papers.saturation import SATURATION, saturations
from manybody.papers.simplicity.students import Evaluated

OVERLAP = 0.1  # ratio of early loss drops: 1 +- this
SIMILAR = 0.02  # relative difference of losses that count as equal (sweeps, starts)

LADDER = {"linestyle": "-", "marker": "o"}
CONTROL = {"linestyle": ":", "marker": ""}


# --- Curves --------------------------------------------------------------------------------------


class Student(NamedTuple):
    """A student's losses, its curves, and the labels of its targets."""

    tested: Evaluated
    curves: pd.DataFrame
    labels: dict[str, str]

    @classmethod
    def of(cls, tested: Evaluated) -> "Student":
        names = {name: labels.target(document) for name, document in tested.targets.items()}
        return cls(tested, tables.learning_curves(tested.losses), names)

    @property
    def seeds(self) -> int:
        """The number of runs."""
        return int(self.tested.losses["seed"].nunique())

    @property
    def scope(self) -> str:
        """Network, source, |V|, L, and the number of runs."""
        return labels.scale(self.tested.about, self.seeds)


@dataclass(frozen=True)
class Series:
    """A target as figures draw it: name in legends, name on an axis of clones, line and marker."""

    target: str
    label: str
    short: str
    looks: dict

    @classmethod
    def of(
        cls,
        student: Student,
        target: str,
        looks: dict,
        palette: dict[str, str],
        note: str = "",
        rank: bool = False,
    ) -> "Series":
        """palette: colours by target, where they differ from those of the orders."""
        document = student.tested.targets[target]
        colour = palette.get(target, style.colour(document))
        looks = looks | {"color": colour, "markeredgecolor": colour}
        return cls(target, labels.target(document, rank), labels.short(document) + note, looks)

    def curve(
        self, student: Student, panel: str, quantity: str = "loss", unit: float = 1.0
    ) -> pd.DataFrame:
        """Rows of each run, y_err over sequences, then of the mean over runs, y_err one sd.

        quantity: loss or accuracy. unit: of x, in steps.
        """
        curves = student.curves
        mine = curves[curves["target"] == self.target]
        means = mine.groupby("step")[quantity].agg(["mean", "std"])
        runs = mine["seed"], mine["step"] * unit, mine[quantity], mine[f"{quantity}_se"]
        return pd.concat(
            [
                style.points(panel, self.label, *runs),
                style.points(
                    panel, self.label, "mean", means.index * unit, means["mean"], means["std"]
                ),
            ],
            ignore_index=True,
        )


def ladder(student: Student, block) -> list[Series]:
    """The clones of a block's ladder from low to high order, then original text."""
    named = [*((name, LADDER) for name in block.ladder), (block.control, CONTROL)]
    return [Series.of(student, name, looks, block.palette) for name, looks in named]


def draw_curve(axes, curve: pd.DataFrame, series: Series, **looks) -> None:
    """The mean over runs with a band of one sd, of a curve that `Series.curve` made."""
    curve = curve[curve["seed"] == "mean"]
    axes.plot(curve["x"], curve["y"], label=series.label, **(series.looks | looks))
    style.band(axes, curve, series.looks["color"])


def band(seeds: int) -> str:
    """What the band of a curve is."""
    return f"mean and sd of {seeds} runs" if seeds > 1 else "one run: no band"


# --- The plateau ---------------------------------------------------------------------------------


def plateau_end(curves: pd.DataFrame, control: str) -> float:
    """Last checkpoint of the initial plateau: the loss on original text, averaged over seeds, has
    not yet made half of its total drop. NaN when the drop is not resolved by checkpoints."""
    curve = mean_curve(curves, control)
    halfway = (curve.iloc[0] + curve.min()) / 2
    late = np.flatnonzero(curve.to_numpy() < halfway)
    return float(curve.index[late[0] - 1]) if len(late) and late[0] > 1 else math.nan


def mean_curve(curves: pd.DataFrame, target: str) -> pd.Series:
    """Loss of a target averaged over seeds, indexed by step."""
    return curves[curves["target"] == target].groupby("step")["loss"].mean()


def _losses(curves: pd.DataFrame, target: str) -> pd.DataFrame:
    """Losses of a target, steps x seeds."""
    mine = curves[curves["target"] == target]
    return mine.pivot(index="step", columns="seed", values="loss").sort_index()


# --- Comparisons ---------------------------------------------------------------------------------


def later(label: str, curves: pd.DataFrame, early: str, late: str, share: float) -> Comparison:
    """Steps by which target `late` saturates after target `early`, seed by seed."""
    first, second = (saturations(curves, target, share) for target in (early, late))
    # A time known to lie in an interval of width w has the sd w / sqrt(12).
    widths = first["spacing"] ** 2 + second["spacing"] ** 2
    resolution = math.sqrt(widths.mean() / 12) if len(widths) else math.nan
    differences = (second["step"] - first["step"]).to_numpy()
    return records.over_seeds(label, differences, resolution=resolution)


def ordered(
    curves: pd.DataFrame, ladder: Sequence[str], labels: dict[str, str]
) -> list[Comparison]:
    """Times between each target of the ladder, low to high order, and the next; first and last."""
    steps = list(pairwise(ladder))
    if len(ladder) > 2:
        steps.append((ladder[0], ladder[-1]))
    return [
        later(
            f"steps from saturation on {labels[low]} to that on {labels[high]} ({share:.0%} of "
            f"the drop left)",
            *(curves, low, high, share),
        )
        for share in SATURATION
        for low, high in steps
    ]


def late_changes(
    curves: pd.DataFrame, ladder: Sequence[str], labels: dict[str, str], steps: tuple[int, int]
) -> list[Comparison]:
    """Late in training the lowest order has stopped to fall (by less than 5 % of its drop), the
    highest goes on falling, and by more than all others."""
    when = f"from step {steps[0]} to {steps[1]}"
    change = {target: _change(curves, target, *steps) for target in ladder}
    lowest, highest = ladder[0], ladder[-1]
    curve = mean_curve(curves, lowest)
    least = -SATURATION[0] * float(curve.iloc[0] - curve.min())
    label = f"change of the loss on {labels[lowest]} {when}"
    found = [records.above(label, *_mean(change[lowest]), least, runs=len(change[lowest]))]
    label = f"fall of the loss on {labels[highest]} {when}"
    found.append(records.over_seeds(label, -change[highest]))
    for low in ladder[:-1]:
        more = f"{label}, less that on {labels[low]}"
        found.append(records.over_seeds(more, change[low] - change[highest]))
    return found


def _change(curves: pd.DataFrame, target: str, early: int, late: int) -> pd.Series:
    """Change of the loss between two checkpoints for each seed; NaN where one is missing."""
    losses = _losses(curves, target).reindex([early, late])
    return losses.loc[late] - losses.loc[early]


def _mean(values: pd.Series) -> tuple[float, float]:
    """Mean over seeds and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))


def overlap(
    curves: pd.DataFrame, ladder: Sequence[str], labels: dict[str, str], control: str
) -> list[Comparison]:
    """Drops of the losses up to the plateau's end, over the drop of the highest order."""
    end = plateau_end(curves, control)
    highest, found = ladder[-1], []
    for low in ladder[:-1]:
        label = f"drop of the loss on {labels[low]} over that on {labels[highest]}"
        if math.isnan(end):
            reason = "checkpoints do not resolve the plateau's end"
            found.append(Comparison(label, math.nan, unusable=reason))
            continue
        losses = (_losses(curves, target) for target in (low, highest))
        one, two = (loss.iloc[0] - loss.loc[end] for loss in losses)
        label = f"{label} up to step {end:.0f}"
        found.append(records.near(label, *_mean(one / two), 1.0, OVERLAP, runs=len(one)))
    return found


def still_falling(curves: pd.DataFrame, control: str) -> Comparison:
    """The last loss on original text, less the lowest of all earlier checkpoints."""
    label, losses = "last loss on original text less the lowest before", _losses(curves, control)
    if len(losses) < 3:
        return Comparison(label, math.nan, unusable="there are fewer than three checkpoints")
    rise = losses.iloc[-1] - losses.iloc[:-1].min()
    return records.below(label, *_mean(rise), 0.0, runs=len(rise))


def similar_losses(
    label: str, student: Student, first: str, second: str, control: str, paired: bool
) -> list[Comparison]:
    """second / first - 1 of two targets' losses at each checkpoint after the plateau.

    Losses are averaged over seeds. Errors are over sequences: within pairs if row i of both targets
    is the same chain, else as of two independent sets.
    """
    losses, curves = student.tested.losses, student.curves
    end = plateau_end(curves, control)
    steps = mean_curve(curves, first).index.intersection(mean_curve(curves, second).index)
    found = []
    for step in steps[steps > end]:
        one, two = (tables.select(losses, target, step) for target in (first, second))
        (loss, error), (other, other_error) = (
            tables.ratio(sums["loss_sum"].to_numpy(float), sums["predictions"].to_numpy(float))
            for sums in (one, two)
        )
        error = tables.paired_difference(one, two)[1] if paired else math.hypot(error, other_error)
        where = f"{label}, step {step}: relative difference"
        found.append(records.near(where, other / loss - 1, error / loss, 0.0, SIMILAR))
    return found


# --- Claims --------------------------------------------------------------------------------------


def in_order(figure: str, where: str, parts: Sequence[Comparison], scope: str) -> Claim:
    """The claim that low orders are learned first; `where` names the figure in the paper."""
    return records.judged(
        f"simplicity/{figure}/order-of-learning",
        f"A student's losses on the clones saturate in the order of their interactions ({where})",
        parts,
        scope,
        "the loss on the clone of higher order saturates later, over runs",
    )


def together_at_first(figure: str, where: str, parts: Sequence[Comparison], scope: str) -> Claim:
    """The claim that all losses fall alike up to the end of the plateau."""
    return records.judged(
        f"simplicity/{figure}/early-overlap",
        f"While the lowest order is learned, the losses on all clones fall alike ({where})",
        parts,
        scope,
        f"the ratio of two drops is 1 within {OVERLAP:g}",
    )


def late_in_training(figure: str, where: str, parts: Sequence[Comparison], scope: str) -> Claim:
    """The claim that only the losses on high orders go on falling."""
    return records.judged(
        f"simplicity/{figure}/late-losses",
        f"Later the loss on the lowest order rests or rises, on the highest it falls on ({where})",
        parts,
        scope,
        f"the lowest falls by less than {SATURATION[0]:.0%} of its drop, the highest falls, and by "
        f"more than any other",
    )
