"""The one look of all figures, and how they are written: the same bytes for the same numbers."""

from collections.abc import Sequence
from pathlib import Path

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from matplotlib.transforms import ScaledTranslation

from manybody.io.atomic import atomic
from manybody.io.tables import write_csv

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
styled = matplotlib.rc_context  # `@styled(RC)` over a function that draws
COLUMNS = {1: 3.4, 2: 7.0}  # inches: the width of one and of two columns of a journal
SMALL = 7  # points, of notes inside a panel; ticks of insets and maps have 6

# Okabe and Ito's colours, which colour-blind readers tell apart, from low order to high.
ORDERS = {2: "#0072B2", 3: "#56B4E9", 4: "#009E73", 5: "#B9C400", 6: "#E69F00"}
UNBOUNDED = "#D55E00"
ORIGINAL = "#444444"
# Times, early to late: distinct from the orders' colours, and of falling lightness.
TIMES = ("#C9B3DA", "#8E63AE", "#4B1D6B", "#1F0A30")

BAND = {"alpha": 0.2, "linewidth": 0}  # of an error around a line: seaborn's `err_kws`

FIGURE_COLUMNS = ["panel", "series", "seed", "x", "y", "y_err"]
TEXT_COLUMNS = ["series", "text"]


def new(columns: int, height: float) -> Figure:
    """An empty figure, one or two `columns` wide and `height` inches high, to be printed as it is.

    Its parts keep clear of each other.
    """
    return Figure(figsize=(COLUMNS[columns], height), layout="constrained")


def legend_below(axes: Axes, columns: int = 1, drop: float = 0.4, **looks) -> None:
    """A legend under the axis label, where no curve is: `drop` inches below the axes."""
    looks = dict(columnspacing=1.2, handletextpad=0.5, handlelength=1.8, borderaxespad=0) | looks
    down = ScaledTranslation(0, -drop, axes.get_figure(root=True).dpi_scale_trans)
    place = dict(bbox_to_anchor=(0, 0), bbox_transform=axes.transAxes + down)
    axes.legend(loc="upper left", **place, ncols=columns, **looks)


def label_right(axes: Axes, labels: Sequence[tuple[str, float, str]], apart: float) -> None:
    """Names (text, y, colour) at the right edge of the axes, each joined to its height y.

    They are moved up where they would be less than `apart` of the axes' height from each other.
    """
    low, high = axes.get_ylim()
    lowest = -1.0
    for text, value, colour in sorted(labels, key=lambda label: label[1]):
        height = (value - low) / (high - low)
        lowest = max(height, lowest + apart)
        line = dict(arrowstyle="-", color=colour, linewidth=0.6, shrinkA=0, shrinkB=0)
        axes.annotate(
            text,
            xy=(1.0, height),
            xytext=(1.06, lowest),
            xycoords="axes fraction",
            textcoords="axes fraction",
            va="center",
            fontsize=SMALL,
            arrowprops=line,
            annotation_clip=False,
        )


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
