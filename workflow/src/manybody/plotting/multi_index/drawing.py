"""What this paper's figures draw alike: curves with bands, points that did not converge, layers."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from manybody.claims import reading
from manybody.claims.reading import Table
from manybody.plotting import style
from manybody.plotting.points import drawn

LAYER = {1: style.ORDERS[2], 2: style.UNBOUNDED, 3: style.ORDERS[4]}
ERROR = style.ORIGINAL
PUBLIC = "0.55"  # stored numbers of the public repository
PHASES = ("0.95", "#FBEADF", "#DFEDF7")  # nothing, the last layer, also the first is learned

LIGHT = 0.45  # opacity of the theory without a regulariser
FAILED = ", not converged"
STORED = dict(linestyle="", marker="s", markersize=3.5, markerfacecolor="none")
STORED |= dict(markeredgecolor="0.35", zorder=6)
UNSEEN = 1e-3  # of the largest value: a band as thin as this is drawn as stray lines


def curve(
    axes: Axes, frame: pd.DataFrame, colour: str, series: str, label: str = "", failed=(), **looks
) -> list[pd.DataFrame]:
    """A line with a band of one standard error; points in `failed` are hollow. What is drawn, as
    `series` of the CSV."""
    if not len(frame):
        return []
    axes.plot(frame["x"], frame["y"], color=colour, label=label, **looks)
    errors = frame["y_err"].fillna(0)
    if errors.max() > UNSEEN * frame["y"].abs().max():
        style.band(axes, frame, colour)
    return [named(frame, series), *hollow(axes, frame, colour, series, failed)]


def hollow(axes: Axes, frame: pd.DataFrame, colour: str, series: str, failed) -> list[pd.DataFrame]:
    """Hollow markers where the iteration did not converge; on the axis where it left no number."""
    shown = frame[reading.is_in(frame["x"], failed)] if len(failed) else frame.iloc[:0]
    if not len(shown):
        return []
    looks = dict(linestyle="", marker="o", markersize=5, markerfacecolor="white")
    looks |= dict(markeredgecolor=colour, zorder=4)
    numbers = shown["y"].notna()
    axes.plot(shown.loc[numbers, "x"], shown.loc[numbers, "y"], **looks)
    rest = shown.loc[~numbers, "x"]
    looks |= dict(transform=axes.get_xaxis_transform(), clip_on=False)
    if len(rest):
        axes.plot(rest, np.zeros(len(rest)), **looks)
    return [named(shown, series, failed=True)]


def crosses(
    axes: Axes, frame: pd.DataFrame, colour: str, series: str, failed, label="", marker="X", size=6
) -> list[pd.DataFrame]:
    """Crosses with error bars, hollow where a run did not converge. What is drawn."""
    parts = []
    bad = reading.is_in(frame["x"], failed) if len(failed) else np.zeros(len(frame), bool)
    for shown, face in ((frame[~bad], colour), (frame[bad], "white")):
        if not len(shown):
            continue
        axes.errorbar(
            shown["x"],
            shown["y"],
            shown["y_err"].fillna(0),
            color=colour,
            linestyle="",
            marker=marker,
            markersize=size,
            markerfacecolor=face,
            markeredgecolor=colour if face == "white" else "white",
            markeredgewidth=0.8 if face == "white" else 0.4,
            capsize=2,
            elinewidth=1.0,
            label=label,
            zorder=5,
        )
        parts.append(named(shown, series, failed=face == "white"))
        label = ""
    return parts


def phases(axes: Axes, thresholds: list[float], last: float) -> None:
    """Bands of the horizontal axis between thresholds in rising order."""
    edges = [0.0, *thresholds, last]
    for low, high, colour in zip(edges[:-1], edges[1:], PHASES, strict=False):
        axes.axvspan(low, high, color=colour, linewidth=0, zorder=-2)
    for threshold in thresholds:
        axes.axvline(threshold, color="0.7", linewidth=0.8, zorder=-1)


def named(frame: pd.DataFrame, series: str, failed: bool = False) -> pd.DataFrame:
    """A frame under the name of its series in the CSV, which says if its points failed."""
    names = series + FAILED if failed else series
    seed = frame.get("seed", 0)
    return frame.assign(series=names, seed=seed)[["series", "seed", "x", "y", "y_err"]]


def points(series: str, values: dict[float, float]) -> pd.DataFrame:
    """Numbers without errors as rows of the CSV."""
    places = {"x": list(values), "y": list(values.values())}
    return pd.DataFrame({"series": series, "seed": 0, **places, "y_err": math.nan})


def public(
    axes: Axes, table: Table, needed: dict, stored: dict, last: float, palette: dict | None = None
) -> list[pd.DataFrame]:
    """Stored public overlaps up to alpha `last`, where the entry is at their parameters `needed`.

    colours: of the edges of their squares, by name, in the order in which they are drawn.
    """
    if reading.departure(table.entry, **needed):
        return []
    parts = []
    for name, edge in (palette or dict.fromkeys(stored, STORED["markeredgecolor"])).items():
        inside = {alpha: value for alpha, value in stored[name].items() if alpha <= last}
        looks = {**STORED, "markeredgecolor": edge}
        axes.plot(list(inside), list(inside.values()), **looks)
        parts.append(points(f"{name} public", inside))
    return parts


def gather(panels: dict[str, list[pd.DataFrame]]) -> pd.DataFrame:
    """What is drawn in all panels, as the figure's CSV has it."""
    parts = [part.assign(panel=panel) for panel, found in panels.items() for part in found]
    return drawn(parts)
