"""Figure 3: generalisation loss against the number of samples, square and logistic.

Square loss: a table of `theory.replica.compute`; logistic: one of `training.learning_curves`, of
kind `separability`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

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
STATEMENTS = {
    "square-peak": "The square loss peaks at as many samples as unknowns",
    "square-start": "The square loss does not decay at first",
    "logistic-peak": "The logistic test loss has a maximum at M / L between 1.4 and 3",
    "logistic-rise": "The logistic test loss rises to its peak and falls after it",
    "logistic-training": "The peak is where the training loss passes a tenth of the optimum",
    "logistic-decay": "More weight decay lowers the peak",
}
above_zero = partial(records.over_seeds, deviations=records.STRICT)


class Block(Figure):
    """Generalisation: replica theory of the square loss, and the logistic curve."""

    theory: refers("theory", "replica") = key("Theory of kind replica.")
    curve: refers("curves", "separability") = key("Curve of kind separability.")


class Inputs(needed.Inputs):
    """Both tables, and their entries of the config."""

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


@dataclass(frozen=True)
class Fits:
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


@dataclass(frozen=True)
class Tables:
    """The square loss; fits by ridge, the lowest first; the optimal logistic loss; L of the fits;
    what is drawn."""

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
    """Losses against the number of samples, by simulation and theory, and of fits."""
    return tables_of(*(stored.THEORY.read(key.file()) for key in (inputs.theory, inputs.curve)))


def tables_of(square: tuple[pd.DataFrame, dict], logistic: tuple[pd.DataFrame, dict]) -> Tables:
    """The tables of a theory and of a curve, each a frame and its document."""
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
    error = runs.std(ddof=1) / math.sqrt(len(runs))
    return pd.DataFrame({"x": runs.columns, "y": runs.mean(), "y_err": error, "seed": "all"})


def claims(tables: Tables) -> list[records.Claim]:
    """The loss rises and peaks at as many samples as unknowns, for both losses."""
    entry = tables.square.entry
    square = (
        f"square loss, L = {entry['length']}, gamma = {entry['gamma']:g}, ridge "
        f"{entry['ridge']:g}, {entry['realisations']} realisations"
    )
    logistic = f"logistic loss, L = {tables.length}, {len(tables.fits[0].test)} realisations"
    above = "the mean difference over realisations is above 0 by three standard errors"
    inside = "M lies between {:g} and {:g}".format(*tables.window)
    return [
        records.judged(
            f"potts/fig3/{name}",
            STATEMENTS[name],
            parts,
            square if name.startswith("square") else logistic,
            inside if name in ("logistic-peak", "logistic-training") else above,
            reference=f"figure 3, {'left' if name.startswith('square') else 'right'}",
        )
        for name, parts in _comparisons(tables).items()
    ]


def _comparisons(tables: Tables) -> dict[str, list[records.Comparison]]:
    """By claim: differences of square losses; places and heights of the peaks of the test loss."""
    simulated = matrix(tables.square.get("loss", "simulation"))
    start = tables.square.get("start").set_index("seed")["y"]
    means, first = simulated.mean(), simulated.columns[0]
    highest = min(range(len(means)), key=lambda place: abs(means.index[place] - 1))
    beside = means.drop(means.index[highest]).iloc[max(highest - 1, 0) : highest + 1].idxmax()
    top = means.index[highest]
    square_peak = above_zero(
        f"loss at alpha = {top:g} less that at {beside:g}", simulated[top] - simulated[beside]
    )
    square_start = above_zero(f"loss at alpha = {first:g} less that at 0", simulated[first] - start)
    weak = [fits for fits in tables.fits if fits.ridge <= RIDGE]
    places, edges = [], []
    for fits in weak:
        label = f"{fits.name}: M of the peak"
        places.append(_placed(label, fits.test, crossings.peak, tables.window))
        for edge in fits.test.columns[[0, -1]]:
            label = f"{fits.name}: loss of the peak less that at M = {edge:g}"
            edges.append(above_zero(label, fits.heights - fits.test[edge]))
    level = LEFT_ZERO * tables.optimum
    passed = partial(crossings.last_crossing, threshold=level)
    label = f"M at which the training loss passes {level:.3g}, {LEFT_ZERO:.0%} of the optimum"
    left = [
        _placed(f"{fits.name}: {label}", fits.train, passed, tables.window) for fits in weak[:1]
    ]
    falls = [
        above_zero(
            f"height of the peak, {weaker.name} less {stronger.ridge:g}",
            weaker.heights - stronger.heights,
        )
        for weaker, stronger in pairwise(tables.fits)
    ]
    return {
        "square-peak": [square_peak],
        "square-start": [square_start],
        "logistic-peak": places,
        "logistic-rise": edges,
        "logistic-training": left,
        "logistic-decay": falls,
    }


def _placed(
    label: str, losses: pd.DataFrame, place: Callable, window: tuple[float, float]
) -> records.Comparison:
    """A place on the curve of mean losses; infinite, outside of the window, where it is not."""
    found = crossings.of_mean(losses, place)
    return records.Comparison(label, found.value, found.error, window, runs=found.runs)


@style.in_house_style
def draw(tables: Tables):
    """(a) square loss with theory, (b) logistic loss."""
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
    simulation, theory, limit, independent = (
        style.series(tables.drawn, "left", name)
        for name in ("simulation", "theory, finite L", "theory, L → ∞", "independent teacher")
    )
    hollow = dict(linestyle="", marker="D", markersize=6, markerfacecolor="none", zorder=3)
    hollow |= dict(markeredgecolor=THEORY, markeredgewidth=1.2)
    dots = dict(color=SIMULATION, linestyle="", marker="o", markersize=3, zorder=4)
    dots |= dict(elinewidth=1.0, label=f"simulation, {entry['realisations']} runs")
    dashed = dict(color="0.55", linestyle="--", linewidth=1.0, zorder=2)
    first, last = simulation["x"].iloc[0] / 1.5, simulation["x"].iloc[-1] * 1.5
    seen = limit[(limit["x"] >= first) & (limit["x"] <= last)]
    axes.set_ylim(0.8 * seen["y"].min(), 1.4 * max(seen["y"].max(), simulation["y"].max()))
    axes.set(xlim=(first, last), xlabel="samples per site α = M / L")
    axes.set(ylabel="generalisation loss E (y − ŷ)²")
    axes.axvline(1.0, color="0.85", linewidth=0.8, zorder=0, gid="guide")
    axes.set_title(f"(a) square loss, γ = {entry['gamma']:g}, ridge λ = {entry['ridge']:g}")
    axes.plot(limit["x"], limit["y"], label="theory, L → ∞", color="black", zorder=2)
    axes.plot(independent["x"], independent["y"], label="independent teacher", **dashed)
    axes.plot(theory["x"], theory["y"], label=f"theory, L = {entry['length']}", **hollow)
    axes.errorbar(simulation["x"], simulation["y"], simulation["y_err"], **dots)


def _draw_logistic(axes, tables: Tables) -> None:
    """Test losses with their standard errors, peaks marked; training loss of the lowest ridge."""
    for fits, colour in zip(tables.fits, RIDGES * len(tables.fits), strict=False):
        test = style.series(tables.drawn, "right", f"{fits.name}, test")
        top = test.loc[test["y"].idxmax()]
        looks = dict(color=colour, marker="o", markeredgewidth=0, markersize=3)
        axes.plot(test["x"], test["y"], label=f"test, λ = {fits.ridge:g}", **looks)
        style.band(axes, test, colour)
        axes.plot(top["x"], top["y"], color=colour, marker="v", markersize=6, zorder=4)
    lowest = tables.fits[0]
    training = style.series(tables.drawn, "right", f"{lowest.name}, training")
    looks = dict(color=RIDGES[0], linestyle="--", linewidth=1.0)
    axes.plot(training["x"], training["y"], label=f"training, λ = {lowest.ridge:g}", **looks)
    axes.axhline(tables.optimum, color="black", linestyle=":", linewidth=1.0)
    place = dict(xytext=(2, -9), textcoords="offset points", fontsize=style.SMALL)
    axes.annotate("optimum", (training["x"].iloc[0], tables.optimum), **place)
    axes.axvspan(*tables.window, color="0.93", linewidth=0, zorder=0)
    axes.set(xlabel="sequences M", ylabel="cross-entropy (nats per site)")
    axes.set_title(f"(b) logistic loss, L = {tables.length}, {len(lowest.test)} realisations")


def caption(inputs: Inputs, block: Block) -> str:
    square, logistic = inputs.square, inputs.logistic
    return (
        "The generalisation loss rises, peaks and decays with the number of samples.\n\n"
        "**(a)** Square loss of ridge regression on one site of Gaussian data: "
        f"{square['realisations']} realisations at L = {square['length']} with one standard error; "
        "diamonds: replica theory of the same couplings; line: its closed form; dashed: a teacher "
        f"independent of the inputs. γ = {square['gamma']:g} and λ = {square['ridge']:g} are ours: "
        "the paper gives none.\n\n"
        f"**(b)** Cross-entropy of factored attention fitted to M sequences of "
        f"{logistic['source']}, mean and standard error of {logistic['realisations']} "
        "realisations; triangles: peaks; dashed: training loss; dotted: loss of the true "
        "conditionals; grey: where the peak is expected.\n"
    )
