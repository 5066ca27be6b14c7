"""Figure 2: how the layers are learned, by message passing and by stochastic gradient descent.

Left: a table of `theory.multi_index.gamp`; right: one of `theory.multi_index.sgd`. Their
docstrings name the quantities.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from manybody.claims import reading
from manybody.claims.multi_index import runs
from manybody.claims.reading import Table
from manybody.plotting import style
from manybody.plotting.multi_index import drawing
from manybody.plotting.statistical import seaborn


@style.styled(style.RC)
def draw(files, block: dict, context: dict) -> tuple[Figure, pd.DataFrame]:
    """The figure and what is drawn, from files; see the package's docstring."""
    found = reading.read(files, block, context)
    figure = style.new(2, 3.4)
    left, right = figure.subplots(1, 2)
    drawn = {
        "left": draw_messages(left, found["gamp"]),
        "right": draw_descent(right, found["sgd"]),
    }
    return figure, drawing.gather(drawn)


def draw_messages(axes: Axes, table: Table) -> list[pd.DataFrame]:
    """Cosines of every run, their median, and those of the same iteration at D -> infinity.

    The start, iteration 0, has no room on a logarithmic axis. Of several alphas the one nearest
    1.2 is shown.
    """
    series = runs.shown_series(table)
    parts = []
    failed = table.get("converged", series)
    failed = failed.loc[failed["y"] < 1, "seed"]
    for layer in reversed(reading.LAYERS):
        name, colour = f"cosine {layer}", drawing.LAYER[layer]
        found = table.get(name, series)
        found = runs.extended(found[found["x"] >= 1])
        parts += _runs(axes, found, layer, f"GAMP, {name}")
        ends = found[found["seed"].isin(failed)].groupby("seed").tail(1)
        shown = drawing.hollow(axes, ends, colour, f"GAMP, {name}", ends["x"].unique())
        parts += shown
        if shown and layer == 1:
            axes.lines[-1].set_label("not converged")
        theory = runs.predicted(table, layer, series)
        theory = theory[theory["x"] >= 1]
        theory = theory.assign(y=theory["y"].clip(0) ** 0.5, y_err=float("nan"))
        if len(theory):
            label = {"label": "D → ∞"} if layer == 1 else {}
            axes.plot(theory["x"], theory["y"], color="black", linestyle="--", linewidth=1, **label)
            parts.append(drawing.named(theory, f"D -> infinity, {name}"))
    axes.set(xscale="log", xlabel="iteration", ylabel="cosine with the teacher", ylim=(-0.03, 1.04))
    style.plain_ticks(axes.xaxis)
    entry = table.entry
    axes.set_title(
        f"(a) GAMP: D = {entry['dimension']}, α = {series}, {runs.number(table)}, "
        f"{'informed' if runs.overlaps(table.entry) else 'random'} start"
    )
    _legend(axes)
    return parts


def draw_descent(axes: Axes, table: Table) -> list[pd.DataFrame]:
    """Cosines of every run and their median."""
    parts = []
    for layer in reversed(reading.LAYERS):
        name = f"cosine {layer}"
        parts += _runs(axes, table.get(name), layer, f"SGD, {name}")
    axes.set(xlabel="epoch", ylabel="cosine with the teacher", ylim=(-0.03, 1.04))
    first = table.get("cosine 2")["x"]
    axes.set(xscale="log", xlim=(float(first[first > 0].min()), float(first.max())))
    style.plain_ticks(axes.xaxis)
    entry = table.entry
    axes.set_title(
        f"(b) SGD: D = {entry['dimension']}, α = {entry['alpha']:g}, {runs.number(table)}"
    )
    _legend(axes)
    return parts


def _runs(axes: Axes, frame: pd.DataFrame, layer: int, name: str) -> list[pd.DataFrame]:
    """A thin line for each run, a thick one for the median."""
    looks = dict(data=frame, x="x", y="y", color=drawing.LAYER[layer], ax=axes)
    seaborn.lineplot(**looks, units="seed", estimator=None, linewidth=0.7, alpha=0.45)
    label = f"layer {layer}"
    seaborn.lineplot(**looks, estimator="median", errorbar=None, linewidth=1.8, label=label)
    middle = frame.groupby("x")["y"].median().reset_index()
    middle = drawing.named(middle.assign(y_err=float("nan")), f"{name}, median")
    return [drawing.named(frame, name), middle]


def _legend(axes: Axes) -> None:
    style.legend_below(axes, 4, title="thin: runs, thick: their median", alignment="left")
