"""The one look of all figures, and how they are written: the same bytes for the same numbers."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from manybody.files.atomic import atomic
from manybody.files.tables import write_csv

RC = {
    "font.family": "DejaVu Sans",  # ships with matplotlib: the same glyphs everywhere
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4,
    "savefig.dpi": 160,
    "pdf.fonttype": 42,
}
styled = matplotlib.rc_context  # `@styled(RC)` over a function that draws

# Okabe and Ito's colours, which colour-blind readers tell apart, from low order to high.
ORDERS = {2: "#0072B2", 3: "#56B4E9", 4: "#009E73", 5: "#B9C400", 6: "#E69F00"}
UNBOUNDED = "#D55E00"
ORIGINAL = "#444444"
# Times, early to late: distinct from the orders' colours, and of falling lightness.
TIMES = ("#C9B3DA", "#8E63AE", "#4B1D6B", "#1F0A30")

BAND = {"alpha": 0.2, "linewidth": 0}  # of an error around a line: seaborn's `err_kws`

FIGURE_COLUMNS = ["panel", "series", "seed", "x", "y", "y_err"]
TEXT_COLUMNS = ["series", "text"]


def new(width: float, height: float) -> Figure:
    """An empty figure of `width` x `height` inches whose parts keep clear of each other."""
    return Figure(figsize=(width, height), layout="constrained")


def band(axes: Axes, frame: pd.DataFrame, colour: str) -> None:
    """One error to either side of a curve (x, y, y_err); none where it is not known."""
    errors = frame["y_err"].fillna(0)
    axes.fill_between(frame["x"], frame["y"] - errors, frame["y"] + errors, color=colour, **BAND)


def plain_ticks(axis: Axis, places: Sequence[float] = ()) -> None:
    """Plain numbers at the ticks of a logarithmic axis; at `places` alone, if any are named."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if places:
        axis.set_major_locator(FixedLocator(places))
        axis.set_minor_locator(NullLocator())


def save(figure: Figure, drawn: pd.DataFrame, stem: str | Path) -> None:
    """Writes `stem`.pdf, `stem`.png and what is drawn, `stem`.csv, each whole or not at all.

    Neither picture carries a date, and numbers are written with seven significant digits.
    """
    stem = Path(stem)
    undated = {"pdf": {"CreationDate": None}, "png": None}
    with matplotlib.rc_context(RC):
        for kind, metadata in undated.items():
            with atomic(stem.with_name(f"{stem.name}.{kind}")) as temporary:
                figure.savefig(temporary, format=kind, metadata=metadata)
            figure.set_layout_engine("none")  # found once, for both
    write_csv(drawn, stem.with_name(f"{stem.name}.csv"))
