"""The one look of all figures, the tables of what is drawn, and how figures are written.

Equal numbers give equal bytes. matplotlib is imported where it is used.
"""

import logging
import math
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from manybody import models
from manybody.io.atomic import atomic

log = logging.getLogger(__name__)

RC = {
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same glyphs everywhere
    "font.size": 8,
    "axes.titlesize": 8,
    "figure.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 3.5,
    "savefig.dpi": 200,
    "pdf.fonttype": 42,
}
WIDTHS = {1: 3.4, 2: 7.0}  # inches of one and of two columns of a journal
SMALL = 7  # points, of notes inside a panel; ticks of insets and maps have 6

# Okabe and Ito's colours, which colour-blind readers tell apart, from low order to high.
ORDERS = {2: "#0072B2", 3: "#56B4E9", 4: "#009E73", 5: "#B9C400", 6: "#E69F00"}
UNBOUNDED = "#D55E00"
ORIGINAL = "#444444"
# Times, early to late: distinct from the orders' colours, and of falling lightness.
TIMES = ("#C9B3DA", "#8E63AE", "#4B1D6B", "#1F0A30")

STEPS = [digit * 10**power for power in range(7) for digit in (1, 2, 5)]  # ticks of axes of steps
COLUMNS = ["panel", "series", "seed", "x", "y", "y_err"]  # of what is drawn
GUIDE = dict(color="0.8", linewidth=0.8, zorder=0, gid="guide")  # a line that marks a limit
EQUAL = dict(color="0.7", linewidth=0.8, linestyle="--", gid="guide")  # and where two are equal


def in_house_style(function: Callable) -> Callable:
    """Decorates a function that draws: it runs under the settings `RC` and matplotlib's own,
    whatever a matplotlibrc of the user's says."""

    @wraps(function)
    def drawn(*arguments, **options):
        import matplotlib.style

        with matplotlib.style.context(["default", RC]):
            return function(*arguments, **options)

    return drawn


def new(columns: int, height: float):
    """An empty figure, one or two `columns` wide and `height` inches high; its parts keep apart."""
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTHS[columns], height), layout="constrained")


def legend_below(axes, columns: int = 1, drop: float = 0.4, **looks) -> None:
    """A legend under the axis label, where no curve is: `drop` inches below the axes."""
    from matplotlib.transforms import ScaledTranslation

    looks = dict(columnspacing=1.2, handletextpad=0.5, handlelength=1.8, borderaxespad=0) | looks
    down = ScaledTranslation(0, -drop, axes.get_figure(root=True).dpi_scale_trans)
    place = dict(bbox_to_anchor=(0, 0), bbox_transform=axes.transAxes + down)
    axes.legend(loc="upper left", **place, ncols=columns, **looks)


def label_right(axes, labels: Sequence[tuple[str, float, str]], apart: float) -> None:
    """Names (text, y, colour) at the right edge of the axes, each joined to its height y; moved up
    where they would be less than `apart` of the axes' height from each other."""
    place = axes.yaxis.get_transform().transform  # of a log axis: the logarithm
    low, high = place(axes.get_ylim())
    lowest = -1.0
    for text, value, colour in sorted(labels, key=lambda label: label[1]):
        height = (place(value) - low) / (high - low)
        lowest = max(height, lowest + apart)
        axes.annotate(
            text,
            xy=(1.0, height),
            xytext=(1.06, lowest),
            xycoords="axes fraction",
            va="center",
            fontsize=SMALL,
            arrowprops=dict(arrowstyle="-", color=colour, linewidth=0.6, shrinkA=0, shrinkB=0),
            annotation_clip=False,
        )


def mark(label: str, **looks):
    """An entry of a legend: a line, or its marker alone where its `linestyle` is empty."""
    from matplotlib.lines import Line2D

    return Line2D([], [], label=label, **looks)


def legend(figure, marks: Iterable[tuple[str, dict]], columns: int | None = None, **looks) -> None:
    """One legend below all panels: labels and looks, in one row by default."""
    handles = [mark(label, **look) for label, look in marks]
    looks = dict(loc="outside lower center", ncols=columns or len(handles)) | looks
    figure.legend(handles=handles, **looks)


def factors(values, errors) -> list[np.ndarray]:
    """Error bars below and above values whose logarithms have these standard errors."""
    values, errors = np.atleast_1d(values), np.atleast_1d(errors)
    return [values * (1 - np.exp(-errors)), values * (np.exp(errors) - 1)]


def band(axes, frame: pd.DataFrame, colour: str) -> None:
    """One error to either side of a curve (x, y, y_err); none where it is not known."""
    errors = frame["y_err"].fillna(0)
    axes.fill_between(
        frame["x"], frame["y"] - errors, frame["y"] + errors, color=colour, alpha=0.2, linewidth=0
    )


def dots(axes, x, y, gid: str | None = None, **looks) -> None:
    """Points with thin error bars, `xerr` or `yerr`; gid: `moved` where they are not in place."""
    made = axes.errorbar(x, y, **(dict(marker="o", linestyle="", elinewidth=0.8) | looks))
    for part in made.get_children():
        part.set_gid(gid)


def name_rows(axes, names: Sequence[str]) -> None:
    """A row for each name, from the top down at 0, 1, ..."""
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def plain_ticks(axis, places: Sequence[float] = ()) -> None:
    """Plain numbers at the ticks of a logarithmic axis; at `places` alone, if any are named."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if places:
        axis.set_major_locator(FixedLocator(places))
        axis.set_minor_locator(NullLocator())


def colour(document: dict) -> str:
    """The colour of a clone: blue to red from low to high order, grey for text and the like."""
    made = document.get("generator")
    return generator_colour(made["description"]) if made else ORIGINAL


def generator_colour(description: dict) -> str:
    """The colour of a model: by its depth if that sets its order."""
    depth = models.about(description).depth
    return UNBOUNDED if depth is None else ORDERS.get(depth, ORDERS[6])


def points(panel: str, series: str, seed, x, y, errors=math.nan) -> pd.DataFrame:
    """Rows of what is drawn: points (x, y) of one series, with one seed and error, or one each."""
    x, y = np.atleast_1d(np.asarray(x, float), np.asarray(y, float))
    seeds = np.broadcast_to(seed, x.shape).astype(str)
    errors = np.broadcast_to(np.asarray(errors, float), x.shape)
    return pd.DataFrame(dict(panel=panel, series=series, seed=seeds, x=x, y=y, y_err=errors))


def gathered(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    return pd.concat(parts, ignore_index=True)[COLUMNS]


class Tables(NamedTuple):
    """The rows that are drawn, and what was found, from which they are made."""

    drawn: pd.DataFrame
    found: Any


def series(drawn: pd.DataFrame, panel: str, name: str) -> pd.DataFrame:
    return drawn[(drawn["panel"] == panel) & (drawn["series"] == name)]


def line(axes, drawn: pd.DataFrame, panel: str, name: str, *marks: str, **looks) -> pd.DataFrame:
    """Draws a series by `axes.plot`; its rows."""
    found = series(drawn, panel, name)
    axes.plot(found["x"], found["y"], *marks, **looks)
    return found


@in_house_style
def save(figure, stem: str | Path) -> None:
    """Writes `stem`.pdf and `stem`.png, each whole or not at all, without a date. A sentence tells
    of characters that the figure's fonts lack, which are boxes."""
    stem = Path(stem)
    undated = {"pdf": {"CreationDate": None}, "png": None}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for kind, metadata in undated.items():
            with atomic(stem.with_name(f"{stem.name}.{kind}")) as temporary:
                figure.savefig(temporary, format=kind, metadata=metadata)
            figure.set_layout_engine("none")  # found once, for both
    lacking = set()
    for message in {str(one.message) for one in caught}:
        if glyph := re.match(r"Glyph (\d+) ", message):
            lacking.add(chr(int(glyph[1])))
        else:
            log.warning("%s", message)
    if lacking:
        shown = "".join(sorted(lacking)[:20])
        log.warning(
            f"{stem.name}: {len(lacking)} characters ({shown}) are drawn as boxes, since "
            f"{RC['font.family']} lacks them; {stem.name}.csv has them as they are"
        )
