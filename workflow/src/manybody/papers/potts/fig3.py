"""Figure 3: generalisation loss against the number of samples, square and logistic.

Square loss: a table of `theory.replica.compute`; logistic: one of `training.learning_curves`, of
kind `separability`.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody.io import tables as stored
from manybody.io.options import key, refers
from manybody.measure import crossings
from manybody.papers import claims as records, inputs as needed, style
from manybody.papers.figure import Figure
from manybody.papers.readings import Table, matrix

THEORY = style.ORDERS[6]
SIMULATION = style.ORDERS[2]
RIDGES = (style.UNBOUNDED, "#CC79A7", style.ORDERS[4], style.ORDERS[3])  # the lowest ridge first
WINDOW = (1.4, 3.0)  # M / L between which the logistic loss has its maximum
RIDGE = 1e-2  # up to which it must
LEFT_ZERO = 0.1  # share of the optimal loss at which the training loss counts as above 0
above_zero = partial(records.over_seeds, deviations=records.STRICT)


class Block(Figure):
    """Generalisation: replica theory of the square loss, and the logistic curve."""

    theory: refers("theory", "replica") = key("Theory of kind replica.")
    curve: refers("curves", "separability") = key("Curve of kind separability.")


class Inputs(needed.Inputs):
    theory: needed.Theory
    curve: needed.Curve
    square: dict
    logistic: dict

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        return cls(
            theory=needed.Theory(theory=block.theory),
            curve=needed.Curve(curve=block.curve),
            square=config["theory"][block.theory],
            logistic=config["curves"][block.curve],
        )


class Fits(NamedTuple):
    """Fits with one ridge: losses, realisations x numbers of samples M."""

    ridge: float
    test: pd.DataFrame
    train: pd.DataFrame

    @property
    def name(self) -> str:
        return f"ridge {self.ridge:g}"

    @property
    def heights(self) -> pd.Series:
        """Test loss of each realisation at the M at which the mean is highest."""
        return self.test[self.test.mean().idxmax()]


class Tables(NamedTuple):
    """What is drawn; the square loss; fits, lowest ridge first; the optimal logistic loss; L."""

    drawn: pd.DataFrame
    square: Table
    fits: list[Fits]
    optimum: float
    length: int

    @property
    def window(self) -> tuple[float, float]:
        """Numbers of samples between which the test loss is expected to peak."""
        return WINDOW[0] * self.length, WINDOW[1] * self.length


def tables(inputs: Inputs, block: Block) -> Tables:
    return tables_of(*(stored.THEORY.read(key.file()) for key in (inputs.theory, inputs.curve)))


def tables_of(square: tuple[pd.DataFrame, dict], logistic: tuple[pd.DataFrame, dict]) -> Tables:
    table, curve = Table(*square), Table(*logistic)
    fits = [
        Fits(
            float(name), *(matrix(curve.get(f"{kind} loss", name)) for kind in ("test", "training"))
        )
        for name in sorted(curve.series("test loss"), key=float)
    ]
    optimum = float(np.mean([curve.y("optimum", name) for name in curve.series("optimum")]))
    left = {
        "simulation": _means(matrix(table.get("loss", "simulation"))),
        "theory, finite L": _means(matrix(table.get("loss", "finite L"))),
        "theory, L → ∞": table.get("curve", "conditional").assign(seed=""),
        "independent teacher": table.get("curve", "independent teacher").assign(seed=""),
    }
    right = {
        f"{one.name}, {words}": _means(losses)
        for one in fits
        for words, losses in (("test", one.test), ("training", one.train))
    }
    right["optimum"] = pd.DataFrame({"seed": [""], "x": math.nan, "y": optimum, "y_err": math.nan})
    parts = [
        part.assign(panel=panel, series=name)
        for panel, named in (("left", left), ("right", right))
        for name, part in named.items()
    ]
    return Tables(style.gathered(parts), table, fits, optimum, curve.about["length"])


def _means(runs: pd.DataFrame) -> pd.DataFrame:
    """Columns x, y and y_err: means over the rows with their standard errors."""
    error = runs.std() / math.sqrt(len(runs))
    return pd.DataFrame({"x": runs.columns, "y": runs.mean(), "y_err": error, "seed": "all"})


def claims(tables: Tables) -> list[records.Claim]:
    scope = (
        "square loss, L = {length}, gamma = {gamma:g}, ridge {ridge:g}, {realisations} realisations"
    ).format(**tables.square.entry)
    above = "the mean difference over realisations is above 0 by three standard errors"
    inside = "M lies between {:g} and {:g}".format(*tables.window)
    peak, start = _of_square(tables.square)
    square = {
        "square-peak": ("The square loss peaks at as many samples as unknowns", [peak], above),
        "square-start": ("The square loss does not decay at first", [start], above),
    }
    weak = [fits for fits in tables.fits if fits.ridge <= RIDGE]
    level = LEFT_ZERO * tables.optimum
    passed = partial(crossings.last_crossing, threshold=level)
    label = f"M at which the training loss passes {level:.3g}, {LEFT_ZERO:.0%} of the optimum"
    logistic = {
        "logistic-peak": (
            "The logistic test loss has a maximum at M / L between 1.4 and 3",
            [_placed(tables, one, "test", "M of the peak", crossings.peak) for one in weak],
            inside,
        ),
        "logistic-rise": (
            "The logistic test loss rises to its peak and falls after it",
            _edges(weak),
            above,
        ),
        "logistic-training": (
            "The peak is where the training loss passes a tenth of the optimum",
            [_placed(tables, one, "train", label, passed) for one in weak[:1]],
            inside,
        ),
        "logistic-decay": ("More weight decay lowers the peak", _falls(tables.fits), above),
    }
    found = records.all_judged("potts/fig3", square, scope, "figure 3, left")
    scope = f"logistic loss, L = {tables.length}, {len(tables.fits[0].test)} realisations"
    return found + records.all_judged("potts/fig3", logistic, scope, "figure 3, right")


def _of_square(table: Table) -> Iterator[records.Comparison]:
    """The square loss at as many samples as unknowns, less that beside; at the first less at 0."""
    losses = matrix(table.get("loss", "simulation"))
    means, first = losses.mean(), losses.columns[0]
    highest = np.abs(means.index - 1).argmin()
    beside = means.drop(means.index[highest]).iloc[max(highest - 1, 0) : highest + 1].idxmax()
    top = means.index[highest]
    label = f"loss at alpha = {top:g} less that at {beside:g}"
    yield above_zero(label, losses[top] - losses[beside])
    start = table.get("start").set_index("seed")["y"]
    yield above_zero(f"loss at alpha = {first:g} less that at 0", losses[first] - start)


def _edges(weak: list[Fits]) -> Iterator[records.Comparison]:
    for fits in weak:
        for edge in fits.test.columns[[0, -1]]:
            label = f"{fits.name}: loss of the peak less that at M = {edge:g}"
            yield above_zero(label, fits.heights - fits.test[edge])


def _falls(every: list[Fits]) -> Iterator[records.Comparison]:
    for weaker, stronger in pairwise(every):
        label = f"height of the peak, {weaker.name} less {stronger.ridge:g}"
        yield above_zero(label, weaker.heights - stronger.heights)


def _placed(tables: Tables, fits: Fits, kind: str, label: str, place: Callable):
    """A place on the curve of mean losses; infinite, outside of the window, where it is not."""
    value, error, runs = crossings.of_mean(getattr(fits, kind), place)
    return records.Comparison(f"{fits.name}: {label}", value, error, tables.window, runs=runs)


@style.in_house_style
def draw(tables: Tables):
    from matplotlib.ticker import LogLocator, NullFormatter

    figure = style.new(2, 3.5)
    for axes, panel in zip(figure.subplots(1, 2), (_draw_square, _draw_logistic), strict=True):
        axes.set(xscale="log", yscale="log")
        panel(axes, tables)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            style.plain_ticks(axis)
            axis.set_minor_formatter(NullFormatter())
        style.legend_below(axes, 2)
    axes.yaxis.set_major_locator(LogLocator())  # of many decades
    return figure


def _draw_square(axes, tables: Tables) -> None:
    entry = tables.square.entry
    simulation, limit = (
        style.series(tables.drawn, "left", name) for name in ("simulation", "theory, L → ∞")
    )
    first, last = simulation["x"].iloc[0] / 1.5, simulation["x"].iloc[-1] * 1.5
    seen = limit[(limit["x"] >= first) & (limit["x"] <= last)]
    axes.set_ylim(0.8 * seen["y"].min(), 1.4 * max(seen["y"].max(), simulation["y"].max()))
    axes.set(xlim=(first, last), xlabel="samples per site α = M / L")
    axes.set(ylabel="generalisation loss E (y − ŷ)²")
    axes.axvline(1.0, color="0.85", linewidth=0.8, zorder=0, gid="guide")
    axes.set_title("(a) square loss, γ = {gamma:g}, ridge λ = {ridge:g}".format(**entry))
    draw = partial(style.line, axes, tables.drawn, "left")
    draw("theory, L → ∞", label="theory, L → ∞", color="black", zorder=2)
    dashed = dict(color="0.55", linestyle="--", linewidth=1.0, zorder=2)
    draw("independent teacher", label="independent teacher", **dashed)
    hollow = dict(linestyle="", marker="D", markersize=6, markerfacecolor="none", zorder=3)
    hollow |= dict(markeredgecolor=THEORY, markeredgewidth=1.2)
    draw("theory, finite L", label=f"theory, L = {entry['length']}", **hollow)
    dots = dict(color=SIMULATION, linestyle="", marker="o", markersize=3, elinewidth=1.0, zorder=4)
    dots["label"] = f"simulation, {entry['realisations']} runs"
    axes.errorbar(simulation["x"], simulation["y"], simulation["y_err"], **dots)


def _draw_logistic(axes, tables: Tables) -> None:
    for fits, colour in zip(tables.fits, RIDGES * len(tables.fits), strict=False):
        looks = dict(color=colour, marker="o", markeredgewidth=0, markersize=3)
        looks["label"] = f"test, λ = {fits.ridge:g}"
        test = style.line(axes, tables.drawn, "right", f"{fits.name}, test", **looks)
        style.band(axes, test, colour)
        top = test.loc[test["y"].idxmax()]
        axes.plot(top["x"], top["y"], color=colour, marker="v", markersize=6, zorder=4)
    lowest = tables.fits[0]
    looks = dict(color=RIDGES[0], linestyle="--", linewidth=1.0)
    looks["label"] = f"training, λ = {lowest.ridge:g}"
    training = style.line(axes, tables.drawn, "right", f"{lowest.name}, training", **looks)
    axes.axhline(tables.optimum, color="black", linestyle=":", linewidth=1.0)
    place = dict(xytext=(2, -9), textcoords="offset points", fontsize=style.SMALL)
    axes.annotate("optimum", (training["x"].iloc[0], tables.optimum), **place)
    axes.axvspan(*tables.window, color="0.93", linewidth=0, zorder=0)
    axes.set(xlabel="sequences M", ylabel="cross-entropy (nats per site)")
    axes.set_title(f"(b) logistic loss, L = {tables.length}, {len(lowest.test)} realisations")


def caption(inputs: Inputs, block: Block) -> str:
    return (
        "The generalisation loss rises, peaks and decays with the number of samples.\n\n"
        "**(a)** Square loss of ridge regression on one site of Gaussian data: {realisations} "
        "realisations at L = {length} with one standard error; diamonds: replica theory of the "
        "same couplings; line: its closed form; dashed: a teacher independent of the inputs. "
        "γ = {gamma:g} and λ = {ridge:g} are ours: the paper gives none.\n\n"
    ).format(**inputs.square) + (
        "**(b)** Cross-entropy of factored attention fitted to M sequences of {source}, mean and "
        "standard error of {realisations} realisations; triangles: peaks; dashed: training loss; "
        "dotted: loss of the true conditionals; grey: where the peak is expected.\n"
    ).format(**inputs.logistic)
