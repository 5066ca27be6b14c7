"""Curves of theory in this paper's figures: rows of the CSV, lines with bands, hollow marks of what
did not converge."""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from manybody.papers import style
from manybody.papers.readings import Table, departure, is_in

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

LAYER = {1: style.ORDERS[2], 2: style.UNBOUNDED, 3: style.ORDERS[4]}
ERROR = style.ORIGINAL
PHASES = ("0.95", "#FBEADF", "#DFEDF7")  # nothing, the last layer, also the first is learned
LIGHT = {"alpha": 0.45, "linewidth": 1.0}  # of the theory of the other channel
FAILED = ", not converged"  # ends the name of a series of points that did not converge
STORED = dict(linestyle="", marker="s", markersize=3.5, markerfacecolor="none")
STORED |= dict(markeredgecolor="0.35", zorder=6)
UNSEEN = 1e-3  # of the largest value: a band as thin as this is drawn as stray lines


# --- Rows of what is drawn ------------------------------------------------------------------------


def named(frame: pd.DataFrame, series: str, failed: bool = False) -> pd.DataFrame:
    """A frame under the name of its series in the CSV, which says if its points failed."""
    names = series + FAILED if failed else series
    seed = frame.get("seed", 0)
    return frame.assign(series=names, seed=seed)[["series", "seed", "x", "y", "y_err"]]


def points(series: str, values: Mapping[float, float]) -> pd.DataFrame:
    """Numbers without errors as rows of the CSV."""
    places = {"x": list(values), "y": list(values.values())}
    return pd.DataFrame({"series": series, "seed": 0, **places, "y_err": math.nan})


def line_rows(frame: pd.DataFrame, series: str, failed: Iterable[float] = ()) -> list[pd.DataFrame]:
    """All points of a curve, and once more those whose iteration did not converge."""
    bad = frame[is_in(frame["x"], failed)] if len(failed) else frame.iloc[:0]
    return _not_empty(named(frame, series), named(bad, series, failed=True))


def mark_rows(frame: pd.DataFrame, series: str, failed: Iterable[float]) -> list[pd.DataFrame]:
    """Points that converged, and apart from them those at which a run did not."""
    bad = is_in(frame["x"], failed) if len(failed) else np.zeros(len(frame), bool)
    return _not_empty(named(frame[~bad], series), named(frame[bad], series, failed=True))


def stored_rows(
    table: Table, needed: dict, stored: dict[str, dict[float, float]], last: float
) -> list[pd.DataFrame]:
    """Stored public overlaps up to alpha `last`; none where the entry is not at `needed`."""
    if departure(table.entry, **needed):
        return []
    return [
        points(f"{name} public", {alpha: q for alpha, q in values.items() if alpha <= last})
        for name, values in stored.items()
    ]


def gathered(panels: Mapping[str, list[pd.DataFrame]]) -> pd.DataFrame:
    """The rows of all panels, as the figure's CSV has them."""
    return style.gathered(
        [part.assign(panel=panel) for panel, parts in panels.items() for part in parts]
    )


def _not_empty(*frames: pd.DataFrame) -> list[pd.DataFrame]:
    return [frame for frame in frames if len(frame)]


# --- Looks ----------------------------------------------------------------------------------------


def line(
    axes: "Axes", drawn: pd.DataFrame, panel: str, series: str, colour: str, label="", **looks
) -> None:
    """A series as a line with a band of one standard error; points that failed are hollow."""
    frame = style.series(drawn, panel, series)
    if not len(frame):
        return
    axes.plot(frame["x"], frame["y"], color=colour, label=label, **looks)
    errors = frame["y_err"].fillna(0)
    if errors.max() > UNSEEN * frame["y"].abs().max():
        style.band(axes, frame, colour)
    hollow(axes, drawn, panel, series, colour)


def hollow(axes: "Axes", drawn: pd.DataFrame, panel: str, series: str, colour: str) -> None:
    """Hollow markers where a series did not converge; on the axis where it left no number."""
    shown = style.series(drawn, panel, series + FAILED)
    looks = dict(linestyle="", marker="o", markersize=5, markerfacecolor="white")
    looks |= dict(markeredgecolor=colour, zorder=4)
    numbers = shown["y"].notna()
    if numbers.any():
        axes.plot(shown.loc[numbers, "x"], shown.loc[numbers, "y"], **looks)
    if not numbers.all():
        rest = shown.loc[~numbers, "x"]
        looks |= dict(transform=axes.get_xaxis_transform(), clip_on=False)
        axes.plot(rest, np.zeros(len(rest)), **looks)


def marks(
    axes: "Axes",
    drawn: pd.DataFrame,
    panel: str,
    series: str,
    colour: str,
    marker: str = "X",
    size: float = 6,
    aside: float = 0.0,
) -> None:
    """Marks with error bars, moved `aside` along x; hollow where a run did not converge."""
    for name, face, edge, width in (
        (series, colour, "white", 0.4),
        (series + FAILED, "white", colour, 0.8),
    ):
        shown = style.series(drawn, panel, name)
        looks = dict(color=colour, linestyle="", marker=marker, markersize=size)
        looks |= dict(markerfacecolor=face, markeredgecolor=edge, markeredgewidth=width)
        looks |= dict(capsize=2, elinewidth=1.0, zorder=5)
        if len(shown):
            axes.errorbar(shown["x"] + aside, shown["y"], shown["y_err"].fillna(0), **looks)


def stored(axes: "Axes", drawn: pd.DataFrame, panel: str, palette: Mapping[str, str]) -> bool:
    """Squares at the stored public overlaps, with edges by name; says if there are any."""
    any_stored = False
    for name, edge in palette.items():
        shown = style.series(drawn, panel, f"{name} public")
        axes.plot(shown["x"], shown["y"], **STORED | {"markeredgecolor": edge})
        any_stored |= len(shown) > 0
    return any_stored


def failures(drawn: pd.DataFrame, panel: str) -> bool:
    """Says whether a panel has points that did not converge."""
    return drawn.loc[drawn["panel"] == panel, "series"].str.endswith(FAILED).any()


def phases(axes: "Axes", thresholds: list[float], last: float) -> None:
    """Bands of the horizontal axis between thresholds in rising order."""
    edges = [0.0, *thresholds, last]
    for low, high, colour in zip(edges[:-1], edges[1:], PHASES, strict=False):
        axes.axvspan(low, high, color=colour, linewidth=0, zorder=-2)
    for threshold in thresholds:
        axes.axvline(threshold, color="0.7", linewidth=0.8, zorder=-1)


def handle(label: str, **looks) -> "Line2D":
    """A line of a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **looks)
