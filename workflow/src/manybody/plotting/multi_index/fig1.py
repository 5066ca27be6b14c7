"""Figure 1: overlaps and prediction error against the samples per dimension; thresholds over c.

Left, with the overlaps of different layers below: `state_evolution` and `regularised` are tables of
`theory.multi_index.state_evolution` without and with a regulariser, `gamp` one of
`theory.multi_index.gamp`; right: `thresholds`, of the module of this name. Their docstrings name
the quantities.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from manybody.claims import reading
from manybody.claims.multi_index import public, runs
from manybody.claims.reading import BOUND, Table
from manybody.plotting import style
from manybody.plotting.multi_index import drawing

FORCED = {"both layers": "-", "layer 2 only": "--"}
# Overlaps of different layers, in the colour of the estimate's: marker, colour and name of each.
ACROSS = {
    "M12": ("<", drawing.LAYER[1], "GAMP |M₁₂|"),
    "M21": (">", drawing.LAYER[2], "|M₂₁|"),
    "Q12": ("d", drawing.ERROR, "|Q₁₂|"),
}
BESIDE = 0.015  # of alpha: they are drawn beside each other
TICKS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10)  # of c


@style.styled(style.RC)
def draw(files, block: dict, context: dict) -> tuple[Figure, pd.DataFrame]:
    """The figure and what is drawn, from files; see the package's docstring."""
    found = reading.read(files, block, context)
    plain, regularised = found["state_evolution"], found["regularised"]
    figure = style.new(9.6, 4.8)
    figure.get_layout_engine().set(wspace=0.05, h_pad=0.02)
    places = [["left", "right"], ["below", "right"]]
    axes = figure.subplot_mosaic(places, width_ratios=(1.25, 1), height_ratios=(5, 1.1))
    drawn = {
        "left": draw_learning(axes["left"], plain, regularised, found["gamp"]),
        "left, below": draw_across(axes["below"], axes["left"], found["gamp"]),
        "right": draw_thresholds(axes["right"], found["thresholds"]),
    }
    return figure, drawing.gather(drawn)


# --- Left ----------------------------------------------------------------------------------------


def draw_learning(axes: Axes, plain: Table, regularised: Table, gamp: Table) -> list[pd.DataFrame]:
    """Overlaps with GAMP's, and, on a logarithmic axis at the right, plug-in errors."""
    errors = axes.twinx()
    last = float(regularised.get("overlap", "Q11")["x"].max())
    parts = _theory(axes, errors, plain, ", no regulariser", alpha=drawing.LIGHT, linewidth=1.0)
    parts += _theory(axes, errors, regularised, "")
    found = runs.final(gamp)
    failed = runs.failed(gamp)
    for layer in reading.LAYERS:
        name = f"GAMP cosine² of layer {layer}"
        parts += drawing.crosses(axes, found[f"cosine {layer}"], drawing.LAYER[layer], name, failed)
    frame = found["error plug-in"]
    parts += drawing.crosses(errors, frame, drawing.ERROR, "GAMP plug-in error", failed)
    needed = {**public.STANDARD, "regulariser": public.REGULARISER}
    parts += drawing.public(axes, regularised, needed, public.OVERLAPS, last)
    drawing.phases(axes, _thresholds(regularised), last)
    axes.set(xlim=(0, last), ylim=(-0.02, 1.04), ylabel="overlap Q")
    axes.tick_params(labelbottom=False)  # that of the panel below
    errors.set_yscale("log", nonpositive="mask")  # nothing is left where both layers are known
    errors.set(ylim=(2e-3, 0.6), ylabel="plug-in error")
    errors.spines["right"].set_visible(True)
    for name, threshold in zip(("α₂", "α₁"), _thresholds(regularised), strict=False):
        axes.annotate(
            f"{name} = {threshold:.3f}",
            (threshold, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(2, -2),
            textcoords="offset points",
            va="top",
            fontsize=7,
            color="0.35",
        )
    entry = regularised.entry
    channels = (reading.channel(table.entry) for table in (regularised, plain))
    axes.set_title(f"two layers, c = {entry['skip']:g}; {'; light: '.join(channels)}")
    axes.get_figure().legend(handles=_key(gamp), loc="outside lower center", ncols=7, fontsize=7)
    return parts


def draw_across(axes: Axes, above: Axes, gamp: Table) -> list[pd.DataFrame]:
    """GAMP's overlaps of different layers, which state evolution keeps at 0, and 1 / sqrt(D)."""
    found, failed = runs.final(gamp), runs.failed(gamp)
    size = 1 / np.sqrt(gamp.entry["dimension"])
    axes.axhline(0, color="0.6", linewidth=0.8, zorder=1)
    axes.axhline(size, color="0.6", linewidth=0.8, linestyle=":", zorder=1)
    places = {alpha: 0.0 for alpha in found["M12"]["x"]}
    parts = [drawing.points("state evolution, M12, M21, Q12", places)]
    parts.append(drawing.points("1 / sqrt(D)", dict.fromkeys(places, size)))
    highest = size
    for place, (quantity, (marker, colour, label)) in enumerate(ACROSS.items()):
        aside = (place - 1) * BESIDE
        frame = found[quantity].assign(x=found[quantity]["x"] + aside)
        highest = max(highest, float((frame["y"] + frame["y_err"].fillna(0)).max()))
        bad = [alpha + aside for alpha in failed]
        series = f"GAMP {quantity}"
        shown = drawing.crosses(axes, frame, colour, series, bad, label, marker, 4.5)
        parts += [part.assign(x=part["x"] - aside) for part in shown]
    axes.set(xlim=above.get_xlim(), ylim=(-0.12 * highest, 1.45 * highest))
    axes.set(xlabel="samples per dimension α = N / D", ylabel="different\nlayers")
    axes.annotate(
        f"1/√D = {size:.3f}",
        (1, size),
        xycoords=("axes fraction", "data"),
        xytext=(3, 0),
        textcoords="offset points",
        va="center",
        fontsize=7,
        color="0.35",
        annotation_clip=False,
    )
    axes.legend(loc="upper left", ncols=3, fontsize=7, handletextpad=0.2, borderaxespad=0)
    return parts


def _theory(axes: Axes, errors: Axes, table: Table, note: str, **looks) -> list[pd.DataFrame]:
    """Overlaps from near 0 and (dotted) from strong side information, and plug-in errors."""
    near, far = ({"failed": table.failed(start), **looks} for start in ("from 0", "informed"))
    parts = []
    for layer in reading.LAYERS:
        name, colour = f"Q{layer}{layer}", drawing.LAYER[layer]
        parts += drawing.curve(axes, table.get("overlap", name), colour, name + note, **near)
        found = table.get("overlap informed", name)
        dotted = {**far, "linestyle": ":"}
        parts += drawing.curve(
            axes, found, colour, f"{name}{note}, from side information", **dotted
        )
    for series, line in FORCED.items():
        found = table.get("error plug-in", series)
        dashed = {**near, "linestyle": line}
        name = f"plug-in error, {series}{note}"
        parts += drawing.curve(errors, found, drawing.ERROR, name, **dashed)
    return parts


def _thresholds(table: Table) -> list[float]:
    """alpha_2 and alpha_1 of the entry's c, as far as they are in the table."""
    found = (table.at("threshold", name, table.entry["skip"]) for name in ("alpha_2", "alpha_1"))
    return [each.value for each in found if each is not None and np.isfinite(each.value)]


def _key(gamp: Table) -> list[Line2D]:
    """What lines and symbols mean: colours are quantities, shapes what computed them."""
    palette = [(f"layer {layer}", drawing.LAYER[layer]) for layer in reversed(reading.LAYERS)]
    return [
        *(
            Line2D([], [], color=colour, label=name)
            for name, colour in [*palette, ("plug-in error (right)", drawing.ERROR)]
        ),
        Line2D([], [], color=drawing.ERROR, linestyle="--", label="Q₁₁ forced to 0"),
        Line2D(
            [],
            [],
            color="0.3",
            linestyle="",
            marker="X",
            markersize=6,
            markeredgewidth=0,
            label=f"GAMP, D = {gamp.entry['dimension']}, {runs.number(gamp)}",
        ),
        Line2D(
            [],
            [],
            linestyle="",
            marker="o",
            markersize=5,
            markerfacecolor="white",
            markeredgecolor="0.3",
            label="hollow: not converged",
        ),
        Line2D([], [], **drawing.STORED, label="public data"),
    ]


# --- Right ---------------------------------------------------------------------------------------


def draw_thresholds(axes: Axes, table: Table) -> list[pd.DataFrame]:
    """alpha_2 and alpha_1 over c with error bands, the literal alpha_1, the bound, public data."""
    first, second = table.get("alpha_1", "self-consistent"), table.get("alpha_2", "exact")
    jump = table.get("first order")
    jumps = jump.loc[jump["y"] > 0, "x"]
    axes.axhspan(0, BOUND, color="0.93", linewidth=0, zorder=-2)
    axes.axhline(BOUND, color="0.5", linewidth=0.8, zorder=-1)
    parts = [drawing.points("bound 1/6", {float(x): BOUND for x in second["x"]})]
    looks = dict(marker="o", markersize=3)
    blue, red = drawing.LAYER[1], drawing.LAYER[2]
    for series, label, found, colour, name in (
        ("alpha_1 self-consistent", "α₁, self-consistent", first, blue, "alpha_1"),
        ("alpha_2", "α₂", second, red, "alpha_2"),
    ):
        parts += drawing.curve(axes, found, colour, series, label, table.failed(name), **looks)
    looks = dict(linestyle=":", marker=".", markersize=3)
    literal = table.get("alpha_1", "literal")
    parts += drawing.curve(axes, literal, blue, "alpha_1 literal", "α₁, layer 2 known", **looks)
    for quantity, marker, colour, label in (
        ("transition", "v", red, "first-order jump of layer 2"),
        ("spinodal", "^", red, "its spinodal"),
        ("alpha_1 jump", "*", blue, "jump that takes layer 1 along"),
    ):
        found = table.get(quantity)
        if len(found):
            looks = dict(color=colour, markerfacecolor="none", label=label)
            axes.plot(found["x"], found["y"], marker, **looks)
            parts.append(drawing.named(found, quantity))
    if len(jumps):
        axes.axvspan(0, float(jumps.max()), color=drawing.PHASES[1], linewidth=0, zorder=-3)
    lowest = float(second["x"][second["x"] > 0].min())
    highest = min(float(second["x"].max()), 10.0)
    for name, stored, marker in (
        ("alpha_1", public.ALPHA_1, "s"),
        ("alpha_2", public.ALPHA_2, "D"),
    ):
        inside = {c: value for c, value in stored.items() if lowest / 1.3 <= c <= highest * 1.3}
        axes.plot(
            list(inside),
            list(inside.values()),
            color=drawing.PUBLIC,
            linestyle="--",
            linewidth=0.9,
            marker=marker,
            markersize=3.5,
            markerfacecolor="white",
            label=f"{'α₁' if name == 'alpha_1' else 'α₂'}, public data",
            zorder=1,
        )
        parts.append(drawing.points(f"{name} public", inside))
    axes.set(xscale="log", xlim=(lowest / 1.15, highest * 1.15), xlabel="skip connection c")
    style.plain_ticks(axes.xaxis, TICKS)
    axes.set(ylim=(0, 1.13), ylabel="threshold α")
    axes.annotate(
        "1/6: an overlap of 0 is stable below",
        (0.02, BOUND),
        xycoords=("axes fraction", "data"),
        xytext=(0, -3),
        textcoords="offset points",
        va="top",
        fontsize=7,
        color="0.4",
    )
    axes.set_title("thresholds of either layer")
    axes.legend(loc="upper right", ncols=2, fontsize=6.5, handlelength=1.8)
    return parts
