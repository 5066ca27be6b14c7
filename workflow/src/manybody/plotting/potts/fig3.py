"""Figure 3: generalisation loss against the number of samples, square and logistic."""

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from manybody.claims.potts import curves as given
from manybody.claims.potts.curves import Logistic
from manybody.claims.reading import Table, matrix
from manybody.plotting import style
from manybody.plotting.statistical import seaborn

LIMIT = "black"
THEORY = style.ORDERS[6]
SIMULATION = style.ORDERS[2]
RIDGES = (style.UNBOUNDED, "#CC79A7", style.ORDERS[4], style.ORDERS[3])  # the lowest ridge first


@style.styled(style.RC)
def draw(files, block: dict, context: dict) -> tuple[Figure, pd.DataFrame]:
    """The figure and what is drawn, from files; see the package's docstring."""
    square, logistic = given.read(files)
    figure = style.new(2, 3.5)
    left, right = figure.subplots(1, 2)
    drawn = [draw_square(left, square), draw_logistic(right, logistic)]
    return figure, pd.concat(drawn)[style.FIGURE_COLUMNS]


def over_realisations(runs: pd.DataFrame) -> pd.DataFrame:
    """Columns x, y and y_err: means over the rows with their standard errors."""
    error = runs.std(ddof=1) / math.sqrt(len(runs))
    return pd.DataFrame({"x": runs.columns, "y": runs.mean(), "y_err": error})


def draw_square(axes: Axes, square: Table) -> pd.DataFrame:
    """Simulation, finite-L theory of the same G, and the closed form at L -> infinity."""
    entry = square.entry
    shown = {
        name: over_realisations(matrix(square.get("loss", series)))
        for name, series in (("simulation", "simulation"), ("theory, finite L", "finite L"))
    }
    curves = {
        "theory, L → ∞": square.get("curve", "conditional"),
        "independent teacher": square.get("curve", "independent teacher"),
    }
    inset = axes.inset_axes([0.12, 0.53, 0.32, 0.38])
    for place in (axes, inset):
        for (name, found), looks in zip(
            curves.items(),
            (dict(color=LIMIT), dict(color="0.55", linestyle="--", linewidth=1.0)),
            strict=True,
        ):
            place.plot(found["x"], found["y"], label=name, zorder=2, **looks)
        theory, simulation = shown["theory, finite L"], shown["simulation"]
        place.plot(
            theory["x"],
            theory["y"],
            linestyle="",
            marker="D",
            markersize=6,
            markerfacecolor="none",
            markeredgecolor=THEORY,
            markeredgewidth=1.2,
            label=f"theory, L = {entry['length']}",
            zorder=3,
        )
        place.errorbar(
            *(simulation[column] for column in ("x", "y", "y_err")),
            color=SIMULATION,
            linestyle="",
            marker="o",
            markersize=3,
            capsize=2,
            elinewidth=1.0,
            label=f"simulation, {entry['realisations']} runs",
            zorder=4,
        )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="samples per site α = M / L",
        ylabel="generalisation loss E (y − ŷ)²",
    )
    alphas = simulation["x"].to_numpy()
    axes.set_xlim(alphas[0] / 1.5, alphas[-1] * 1.5)
    seen = curves["theory, L → ∞"]
    seen = seen[(seen["x"] >= alphas[0] / 1.5) & (seen["x"] <= alphas[-1] * 1.5)]
    axes.set_ylim(0.8 * seen["y"].min(), 1.4 * max(seen["y"].max(), simulation["y"].max()))
    axes.axvline(1.0, color="0.85", linewidth=0.8, zorder=0)
    axes.set_title(f"(a) square loss, γ = {entry['gamma']:g}, ridge λ = {entry['ridge']:g}")
    _plain_ticks(axes)
    _zoom(inset, curves, alphas[0])
    style.legend_below(axes, 2)
    parts = [found.assign(series=name, seed="all") for name, found in shown.items()]
    parts += [found.assign(series=name, seed="") for name, found in curves.items()]
    return pd.concat(parts).assign(panel="left")


def _zoom(inset: Axes, curves: dict[str, pd.DataFrame], first: float) -> None:
    """Where the two teachers' curves differ: small alphas."""
    found = pd.concat(curves.values())
    found = found[(found["x"] <= given.SMALL) & (found["x"] >= first / 1.5)]
    if not len(found):
        inset.remove()
        return
    low, high = found["y"].min(), found["y"].max()
    pad = 0.08 * (high - low)
    inset.set(xlim=(first / 1.5, given.SMALL), ylim=(low - pad, high + pad))
    inset.tick_params(labelsize=6)
    inset.set_title("small α", fontsize=style.SMALL, pad=2)


def draw_logistic(axes: Axes, logistic: Logistic) -> pd.DataFrame:
    """Test losses with their standard errors, peaks marked; training loss of the lowest ridge."""
    parts = []
    for fits, colour in zip(logistic.fits, RIDGES * len(logistic.fits), strict=False):
        name = f"ridge {fits.ridge:g}"
        test = over_realisations(fits.test)
        top = test.loc[test["y"].idxmax()]
        label = f"λ = {fits.ridge:g}, peak at M/L = {top['x'] / logistic.length:.2g}"
        looks = dict(color=colour, label=label, err_kws=style.BAND, ax=axes, marker="o")
        looks |= dict(markeredgewidth=0, markersize=3)
        seaborn.lineplot(fits.test.melt(value_name="y"), x="x", y="y", errorbar="se", **looks)
        axes.plot(top["x"], top["y"], color=colour, marker="v", markersize=6, zorder=4)
        parts.append(test.assign(series=f"{name}, test", seed="all"))
        parts.append(over_realisations(fits.train).assign(series=f"{name}, training", seed="all"))
    lowest = logistic.fits[0]
    looks = dict(color=RIDGES[0], linestyle="--", linewidth=1.0, errorbar=None, ax=axes)
    label = f"training, λ = {lowest.ridge:g}"
    seaborn.lineplot(lowest.train.melt(value_name="y"), x="x", y="y", label=label, **looks)
    axes.axhline(logistic.optimum, color="black", linestyle=":", linewidth=1.0, label="optimum")
    window = "M/L from {:g} to {:g}".format(*given.WINDOW)
    axes.axvspan(*given.window(logistic), color="0.93", linewidth=0, zorder=0, label=window)
    optimum = {"series": ["optimum"], "seed": "", "x": math.nan, "y": logistic.optimum}
    parts.append(pd.DataFrame({**optimum, "y_err": math.nan}))
    axes.set(
        xscale="log", yscale="log", xlabel="sequences M", ylabel="cross-entropy (nats per site)"
    )
    count = len(logistic.fits[0].test)
    axes.set_title(f"(b) logistic loss, L = {logistic.length}, {count} realisations")
    _plain_ticks(axes)
    axes.yaxis.set_major_locator(LogLocator())  # of many decades
    style.legend_below(axes, 2)
    return pd.concat(parts).assign(panel="right")


def _plain_ticks(axes: Axes) -> None:
    """1, 2, 5, 10 ... in figures on both logarithmic axes."""
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        style.plain_ticks(axis)
        axis.set_minor_formatter(NullFormatter())
