"""Recovery of the couplings: errors of factored attention against the number of sequences M."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from manybody.claims.potts import curves
from manybody.claims.reading import Table
from manybody.io import tables
from manybody.plotting import style
from manybody.plotting.statistical import seaborn

POINTS, LINE, THEORY = style.ORDERS[2], "0.4", style.UNBOUNDED
SCORES = style.ORDERS[4]
CORRELATIONS = {
    "pearson": "A$_{ij}$ with J$_{ij}$",
    "score correlation": "|A$_{ij}$ + A$_{ji}$| / 2 with |J$_{ij}$|",
}


@style.styled(style.RC)
def draw(files, block: dict, context: dict) -> tuple[Figure, pd.DataFrame]:
    """The figure and what is drawn, from files; see the package's docstring."""
    table = curves.recovery(*tables.read_theory(files["curves"][0]))
    figure = style.new(2, 2.9)
    drawn = []
    for letter, axes, panel in zip(
        "abc", figure.subplots(1, 3), (_errors, _correlations, _excess), strict=True
    ):
        drawn += [part.assign(panel=letter) for part in panel(axes, table)]
        axes.set(xscale="log", xlabel="sequences M")
        axes.set_title(f"({letter}) {axes.get_title(loc='left')}")
        sizes = sorted(set(table.get("coupling error")["x"]))
        axes.set_xticks(sizes, [f"{size:g}" for size in sizes], rotation=45)
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.minorticks_off()
    return figure, pd.concat(drawn)[style.FIGURE_COLUMNS]


def _named(table: Table, quantity: str) -> pd.DataFrame:
    return table.get(quantity).assign(series=quantity)


def _errors(axes: Axes, table: Table) -> list[pd.DataFrame]:
    found = _named(table, "coupling error")
    power, error = curves.slope(table)
    x = np.array(sorted(found["x"].unique()))
    level = np.log(found["y"]).mean() - power * np.log(found["x"]).mean()
    law = pd.DataFrame({"x": x, "y": np.exp(level) * x**power, "series": "fit", "seed": "all"})
    label = f"$M^{{s}}$, s = {power:.3f} ± {error:.3f}"
    seaborn.lineplot(law, x="x", y="y", color=LINE, label=label, ax=axes)
    label = f"{found['seed'].nunique()} samples"
    seaborn.scatterplot(found, x="x", y="y", color=POINTS, alpha=0.7, label=label, ax=axes)
    axes.set(
        yscale="log",
        ylabel="err$_J$ = |cA − J|² / |J|²",
        title=f"error of the couplings, L = {table.about['length']}",
    )
    style.legend_below(axes, drop=0.62)
    return [found, law]


def _correlations(axes: Axes, table: Table) -> list[pd.DataFrame]:
    found = [_named(table, name) for name in CORRELATIONS]
    shown = pd.concat(found).replace({"series": CORRELATIONS})
    looks = dict(hue="series", style="series", markers=["o", "D"], palette=[POINTS, SCORES])
    seaborn.scatterplot(shown, x="x", y="y", ax=axes, **looks)
    axes.set(ylabel="Pearson r", ylim=(None, 1.0), title="correlation with the true J")
    style.legend_below(axes, drop=0.62)
    return found


def _excess(axes: Axes, table: Table) -> list[pd.DataFrame]:
    found, expected = _named(table, "excess loss"), _named(table, "expected excess")
    axes.plot(expected["x"], expected["y"], color=THEORY, label="p / (2ML)")
    axes.errorbar(
        found["x"],
        found["y"],
        found["y_err"],
        color=POINTS,
        linestyle="",
        marker="o",
        markersize=3,
        elinewidth=0.8,
        label="fits",
    )
    axes.set(yscale="log", ylabel="test loss − optimum (nats per site)", title="excess test loss")
    style.legend_below(axes, drop=0.62)
    return [found, expected]
