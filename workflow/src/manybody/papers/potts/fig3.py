"""Figure 3: generalisation loss against the number of samples, square and logistic.

Square loss: a table of `theory.replica.compute`; logistic: one of `training.learning_curves`, of
kind `separability`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from manybody.io import tables as stored
from manybody.io.options import key, refers
from manybody.papers import claims as records
from manybody.papers import inputs as needed
from manybody.papers import style
from manybody.papers.figure import Figure
from manybody.papers.inputs import Curve, Theory
from manybody.papers.readings import Table, matrix, mean

LIMIT = "black"
THEORY = style.ORDERS[6]
SIMULATION = style.ORDERS[2]
RIDGES = (style.UNBOUNDED, "#CC79A7", style.ORDERS[4], style.ORDERS[3])  # the lowest ridge first
SMALL = 0.3  # alpha below which the independent teacher's curve is told from the true one
WINDOW = (1.4, 3.0)  # M / L between which the logistic loss has its maximum
RIDGE = 1e-2  # up to which it must
LEFT_ZERO = 0.1  # share of the optimal loss at which the training loss counts as above 0
RESAMPLES = 1000  # of the realisations, for errors of places


class Block(Figure):
    """Generalisation: replica theory of the square loss, and the logistic curve."""

    theory: refers("theory", "replica") = key("Theory of kind replica.")
    curve: refers("curves", "separability") = key("Curve of kind separability.")


class Inputs(needed.Inputs):
    """Both tables, and their entries of the config."""

    theory: Theory
    curve: Curve
    square: dict
    logistic: dict

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        return cls(
            theory=Theory(theory=block.theory),
            curve=Curve(curve=block.curve),
            square=config["theory"][block.theory],
            logistic=config["curves"][block.curve],
        )


@dataclass(frozen=True)
class Fits:
    """Fits with one ridge: losses, realisations x numbers of samples M."""

    ridge: float
    test: pd.DataFrame
    train: pd.DataFrame


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
    return tables_of(
        stored.read_theory(inputs.theory.file()), stored.read_theory(inputs.curve.file())
    )


def tables_of(square: tuple[pd.DataFrame, dict], logistic: tuple[pd.DataFrame, dict]) -> Tables:
    """The tables of a theory and of a curve, each a frame and its document."""
    frame, about = logistic
    optimum = float(frame.loc[frame["quantity"] == "optimum", "y"].mean())
    test, training = (
        dict(tuple(frame[frame["quantity"] == quantity].groupby("series")))
        for quantity in ("test loss", "training loss")
    )
    fits = [
        Fits(float(series), matrix(test[series]), matrix(training[series]))
        for series in sorted(test, key=float)
    ]
    table = Table(*square)
    parts = [part.assign(panel="left") for part in _square(table)]
    parts += [part.assign(panel="right") for part in _logistic(fits, optimum)]
    return Tables(style.gathered(parts), table, fits, optimum, about["length"])


def over_realisations(runs: pd.DataFrame) -> pd.DataFrame:
    """Columns x, y and y_err: means over the rows with their standard errors."""
    error = runs.std(ddof=1) / math.sqrt(len(runs))
    return pd.DataFrame({"x": runs.columns, "y": runs.mean(), "y_err": error})


def _square(square: Table) -> list[pd.DataFrame]:
    """Simulation, finite-L theory of the same G, and the closed form at L -> infinity."""
    means = {"simulation": "simulation", "theory, finite L": "finite L"}
    curves = {"theory, L → ∞": "conditional", "independent teacher": "independent teacher"}
    found = [
        over_realisations(matrix(square.get("loss", series))).assign(series=name, seed="all")
        for name, series in means.items()
    ]
    return found + [
        square.get("curve", series).assign(series=name, seed="") for name, series in curves.items()
    ]


def _logistic(fits: list[Fits], optimum: float) -> list[pd.DataFrame]:
    """Test and training losses with their standard errors, and the optimum."""
    found = []
    for one in fits:
        for words, losses in (("test", one.test), ("training", one.train)):
            name = f"ridge {one.ridge:g}, {words}"
            found.append(over_realisations(losses).assign(series=name, seed="all"))
    row = {"series": ["optimum"], "seed": "", "x": math.nan, "y": optimum, "y_err": math.nan}
    return [*found, pd.DataFrame(row)]


def claims(tables: Tables) -> list[records.Claim]:
    """The loss rises and peaks at as many samples as unknowns, for both losses."""
    return [*_square_claims(tables.square), *_logistic_claims(tables)]


def _square_claims(square: Table) -> list[records.Claim]:
    """Section 6 of the specification, left panel."""
    entry = square.entry
    simulated = matrix(square.get("loss", "simulation"))
    start = square.get("start", "").set_index("seed")["y"]
    means, runs, first = simulated.mean(), len(simulated), simulated.columns[0]
    highest = min(range(len(means)), key=lambda place: abs(means.index[place] - 1))
    beside = [place for place in (highest - 1, highest + 1) if 0 <= place < len(means)]
    next_best = max(beside, key=lambda place: means.iloc[place])
    scope = (
        f"square loss, L = {entry['length']}, gamma = {entry['gamma']:g}, ridge "
        f"{entry['ridge']:g}, {runs} realisations"
    )
    rule = "the mean difference over realisations is above 0 by three standard errors"
    return [
        records.judged(
            "potts/fig3/square-peak",
            "The square loss peaks at as many samples as unknowns (fig. 3 left)",
            _above(
                f"loss at alpha = {means.index[highest]:g} less that at {means.index[next_best]:g}",
                simulated.iloc[:, highest] - simulated.iloc[:, next_best],
            ),
            scope,
            rule,
        ),
        records.judged(
            "potts/fig3/square-start",
            "The square loss does not decay at first (fig. 3 left)",
            _above(f"loss at alpha = {first:g} less that at 0", simulated[first] - start),
            scope,
            rule,
        ),
    ]


def _above(label: str, differences: pd.Series) -> records.Comparison:
    """A mean over realisations above 0 by three standard errors."""
    value, error, runs = mean(differences)
    return records.above(label, value, error, runs=runs, deviations=records.STRICT)


def _logistic_claims(tables: Tables) -> list[records.Claim]:
    """Places and heights of the peaks of the test loss; right panel."""
    low, high = tables.window
    weak = [fits for fits in tables.fits if fits.ridge <= RIDGE]
    scope = f"logistic loss, L = {tables.length}, {len(tables.fits[0].test)} realisations"
    places, edges = [], []
    for fits in weak:
        name = f"ridge {fits.ridge:g}"
        places.append(_placed(f"{name}: M of the peak", fits.test, peak, tables.window))
        heights = fits.test[_highest(fits)]
        for end in (0, -1):
            edge = fits.test.columns[end]
            edges.append(
                _above(
                    f"{name}: loss of the peak less that at M = {edge:g}", heights - fits.test[edge]
                )
            )
    left = []
    if weak:
        threshold = LEFT_ZERO * tables.optimum
        label = f"ridge {weak[0].ridge:g}: M at which the training loss passes {threshold:.3g}"
        left.append(
            _placed(
                label,
                weak[0].train,
                lambda *curve: crossing(*curve, threshold),
                tables.window,
            )
        )
    falls = [
        _above(
            f"height of the peak, ridge {weaker.ridge:g} less {stronger.ridge:g}",
            weaker.test[_highest(weaker)] - stronger.test[_highest(stronger)],
        )
        for weaker, stronger in zip(tables.fits[:-1], tables.fits[1:], strict=True)
    ]
    above_zero = "the mean difference over realisations is above 0 by three standard errors"
    inside = f"M lies between {low:g} and {high:g}"
    id_ = "potts/fig3"
    return [
        records.judged(
            f"{id_}/logistic-peak",
            "The logistic test loss has a maximum at M / L between 1.4 and 3 (fig. 3 right)",
            places,
            scope,
            inside,
        ),
        records.judged(
            f"{id_}/logistic-rise",
            "The logistic test loss rises to its peak and falls after it (fig. 3 right)",
            edges,
            scope,
            above_zero,
        ),
        records.judged(
            f"{id_}/logistic-training",
            "The peak is where the training loss leaves 0 (fig. 3 right)",
            left,
            scope,
            inside,
        ),
        records.judged(
            f"{id_}/logistic-decay",
            "More weight decay lowers the peak (fig. 3 right)",
            falls,
            scope,
            above_zero,
        ),
    ]


def _highest(fits: Fits) -> float:
    """M at which the mean test loss is highest."""
    return fits.test.columns[fits.test.mean().argmax()]


def _placed(
    label: str, losses: pd.DataFrame, place: Callable, window: tuple[float, float]
) -> records.Comparison:
    """A place on the curve of mean losses, with its error: realisations drawn with repetition.

    A place that is not there is infinite, which lies outside of the window.
    """
    generator = np.random.default_rng(0)
    sizes, values = losses.columns.to_numpy(float), losses.to_numpy()
    found = place(sizes, values.mean(axis=0))
    if math.isnan(found):
        return records.Comparison(label, math.inf, 0.0, window)
    draws = generator.integers(len(values), size=(RESAMPLES, len(values)))
    places = [place(sizes, drawn) for drawn in values[draws].mean(axis=1)]
    error = float(np.std(places, ddof=1))
    return records.Comparison(label, found, error, window, runs=len(values))


def peak(sizes: np.ndarray, losses: np.ndarray) -> float:
    """M of the highest mean loss; NaN at either end of the grid.

    It is that of the parabola, in logarithms, through the highest point and its neighbours.
    """
    place = int(losses.argmax())
    if not 0 < place < len(losses) - 1:
        return math.nan
    near = slice(place - 1, place + 2)
    centre = math.log(sizes[place])
    bend, slope, _ = np.polyfit(np.log(sizes[near]) - centre, np.log(losses[near]), 2)
    return math.exp(centre - slope / (2 * bend))


def crossing(sizes: np.ndarray, losses: np.ndarray, threshold: float) -> float:
    """M from which the mean loss stays above a threshold, between points linear in log M."""
    below = np.flatnonzero(losses <= threshold)
    if not len(below) or below[-1] == len(losses) - 1:
        return math.nan
    pair = slice(below[-1], below[-1] + 2)
    return math.exp(np.interp(threshold, losses[pair], np.log(sizes[pair])))


@style.in_house_style
def draw(tables: Tables):
    """(a) square loss with theory, (b) logistic loss."""
    figure = style.new(2, 3.5)
    left, right = figure.subplots(1, 2)
    _draw_square(left, tables)
    _draw_logistic(right, tables)
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
    dots |= dict(capsize=2, elinewidth=1.0, label=f"simulation, {entry['realisations']} runs")
    inset = axes.inset_axes([0.12, 0.53, 0.32, 0.38])
    for place in (axes, inset):
        place.plot(limit["x"], limit["y"], label="theory, L → ∞", color=LIMIT, zorder=2)
        looks = dict(color="0.55", linestyle="--", linewidth=1.0, zorder=2)
        place.plot(independent["x"], independent["y"], label="independent teacher", **looks)
        place.plot(theory["x"], theory["y"], label=f"theory, L = {entry['length']}", **hollow)
        place.errorbar(simulation["x"], simulation["y"], simulation["y_err"], **dots)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="samples per site α = M / L",
        ylabel="generalisation loss E (y − ŷ)²",
    )
    alphas = simulation["x"].to_numpy()
    first, last = alphas[0] / 1.5, alphas[-1] * 1.5
    axes.set_xlim(first, last)
    seen = limit[(limit["x"] >= first) & (limit["x"] <= last)]
    axes.set_ylim(0.8 * seen["y"].min(), 1.4 * max(seen["y"].max(), simulation["y"].max()))
    axes.axvline(1.0, color="0.85", linewidth=0.8, zorder=0)
    axes.set_title(f"(a) square loss, γ = {entry['gamma']:g}, ridge λ = {entry['ridge']:g}")
    _plain_ticks(axes)
    _zoom(inset, pd.concat([limit, independent]), first)
    style.legend_below(axes, 2)


def _zoom(inset, found: pd.DataFrame, first: float) -> None:
    """Small alphas, where the two teachers' curves differ."""
    found = found[(found["x"] <= SMALL) & (found["x"] >= first)]
    if not len(found):
        inset.remove()
        return
    low, high = found["y"].min(), found["y"].max()
    pad = 0.08 * (high - low)
    inset.set(xlim=(first, SMALL), ylim=(low - pad, high + pad))
    inset.tick_params(labelsize=6)
    inset.set_title("small α", fontsize=style.SMALL, pad=2)


def _draw_logistic(axes, tables: Tables) -> None:
    """Test losses with their standard errors, peaks marked; training loss of the lowest ridge."""
    from matplotlib.ticker import LogLocator

    for fits, colour in zip(tables.fits, RIDGES * len(tables.fits), strict=False):
        test = style.series(tables.drawn, "right", f"ridge {fits.ridge:g}, test")
        top = test.loc[test["y"].idxmax()]
        label = f"λ = {fits.ridge:g}, peak at M/L = {top['x'] / tables.length:.2g}"
        looks = dict(color=colour, marker="o", markeredgewidth=0, markersize=3)
        axes.plot(test["x"], test["y"], label=label, **looks)
        style.band(axes, test, colour)
        axes.plot(top["x"], top["y"], color=colour, marker="v", markersize=6, zorder=4)
    lowest = f"ridge {tables.fits[0].ridge:g}, training"
    training = style.series(tables.drawn, "right", lowest)
    looks = dict(color=RIDGES[0], linestyle="--", linewidth=1.0)
    label = f"training, λ = {tables.fits[0].ridge:g}"
    axes.plot(training["x"], training["y"], label=label, **looks)
    axes.axhline(tables.optimum, color="black", linestyle=":", linewidth=1.0, label="optimum")
    window = "M/L from {:g} to {:g}".format(*WINDOW)
    axes.axvspan(*tables.window, color="0.93", linewidth=0, zorder=0, label=window)
    axes.set(xscale="log", yscale="log", xlabel="sequences M")
    axes.set_ylabel("cross-entropy (nats per site)")
    count = len(tables.fits[0].test)
    axes.set_title(f"(b) logistic loss, L = {tables.length}, {count} realisations")
    _plain_ticks(axes)
    axes.yaxis.set_major_locator(LogLocator())  # of many decades
    style.legend_below(axes, 2)


def _plain_ticks(axes) -> None:
    """1, 2, 5, 10 ... in figures on both logarithmic axes."""
    from matplotlib.ticker import LogLocator, NullFormatter

    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        style.plain_ticks(axis)
        axis.set_minor_formatter(NullFormatter())


def caption(inputs: Inputs, block: Block) -> str:
    """Says what is shown, what the eye sees, how it was made."""
    square, logistic = inputs.square, inputs.logistic
    return (
        "The generalisation loss rises, peaks and decays with the number of samples.\n\n"
        "**(a)** Square loss of ridge regression on one site of Gaussian data: "
        f"{square['realisations']} realisations at L = {square['length']} with one standard error; "
        "diamonds: replica theory of the same couplings; line: its closed form; dashed: a teacher "
        f"independent of the inputs. γ = {square['gamma']:g} and λ = {square['ridge']:g} are ours: "
        "the paper does not say.\n\n"
        f"**(b)** Cross-entropy of factored attention fitted to M sequences of "
        f"{logistic['source']}, mean and standard error of {logistic['realisations']} "
        "realisations; triangles: peaks; dashed: training loss; dotted: loss of the true "
        "conditionals; grey: where the peak is expected.\n"
    )
