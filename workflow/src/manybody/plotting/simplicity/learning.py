"""Curves of a student's test loss on clones, as figures 1 and 4 draw them.

Means over seeds are rows with the seed "mean", whose y_err is one sd over seeds; rows of a seed
carry the standard error over sequences.
"""

import pandas as pd
from matplotlib.axes import Axes

from manybody.claims import labels
from manybody.claims.saturation import SATURATION, saturations
from manybody.claims.simplicity.learning import Student
from manybody.plotting import palette
from manybody.plotting.points import points
from manybody.plotting.statistical import seaborn

LADDER = {"linestyle": "-", "marker": "o"}
CONTROL = {"linestyle": ":", "marker": ""}
EARLY = {"linestyle": "--", "marker": "D", "markerfacecolor": "white"}
WIDE = {"linestyle": "--", "marker": "s", "markerfacecolor": "white"}


class Series:
    """One target: its label, looks and numbers."""

    def __init__(self, student: Student, target: str, looks: dict, rank: bool = False):
        self.student, self.target = student, target
        document = student.targets[target]
        self.label = labels.target(document, rank)
        self.short = labels.short(document)
        colour = student.block.get("palette", {}).get(target, palette.colour(document))
        self.looks = looks | {"color": colour, "markeredgecolor": colour}

    def curve(self, panel: str, quantity: str, unit: float = 1.0) -> pd.DataFrame:
        """The target's `loss` or `accuracy` at each checkpoint; x is the step times `unit`."""
        curves = self.student.curves
        mine = curves[curves["target"] == self.target]
        means = mine.groupby("step")[quantity].agg(["mean", "std"])
        errors = mine[f"{quantity}_se"]
        return pd.concat(
            [
                points(
                    panel, self.label, mine["seed"], mine["step"] * unit, mine[quantity], errors
                ),
                points(panel, self.label, "mean", means.index * unit, means["mean"], means["std"]),
            ],
            ignore_index=True,
        )

    def between(self) -> pd.DataFrame:
        """The checkpoints between which the losses of all seeds saturate, as x of two rows."""
        found = saturations(self.student.curves, self.target)
        ends = [(found["step"] - found["spacing"]).min(), found["step"].max()]
        return points("between", self.label, "all", ends, [100 * SATURATION[0]] * 2)

    def saturation(self) -> pd.DataFrame:
        """Mean saturation step, its sd over seeds as y_err; x is the step, y the share in %."""
        steps = saturations(self.student.curves, self.target)["step"]
        share = 100 * SATURATION[0]
        return points("saturation", self.label, "mean", [steps.mean()], [share], steps.std(ddof=1))


def ladder(student: Student) -> list[Series]:
    """The ladder of clones and the control."""
    rungs = [Series(student, target, LADDER) for target in student.block["ladder"]]
    return [*rungs, Series(student, student.block["control"], CONTROL)]


def draw_curve(axes: Axes, curve: pd.DataFrame, series: Series, **looks) -> None:
    """The mean over seeds, with a band of one sd."""
    runs = curve[curve["seed"] != "mean"]
    looks = {"errorbar": "sd", "err_kws": {"linewidth": 0}, "label": series.label} | looks
    seaborn.lineplot(runs, x="x", y="y", ax=axes, legend=False, **(series.looks | looks))


def band(seeds: int) -> str:
    """What the band of a curve is."""
    return f"mean and sd of {seeds} runs" if seeds > 1 else "one run: no band"
