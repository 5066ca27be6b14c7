"""Figure 1: overlaps and prediction error against the samples per dimension; thresholds over c.

(a) overlaps, (b) plug-in errors, (c) overlaps without a regulariser, (d) overlaps of different
layers, (e) thresholds over c, (f) the same against public data. `state_evolution` and `regularised`
are tables of `theory.multi_index.state_evolution` without and with a regulariser, `gamp` one of
`theory.multi_index.gamp`, `thresholds` of the module of this name. Their docstrings name the
quantities.
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

FORCED = {"both layers": ("-", "both layers"), "layer 2 only": ("--", "Q₁₁ forced to 0")}
# Overlaps of different layers, in the colour of the estimate's: marker, colour and name of each.
ACROSS = {
    "M12": ("<", drawing.LAYER[1], "GAMP |M₁₂|"),
    "M21": (">", drawing.LAYER[2], "|M₂₁|"),
    "Q12": ("d", drawing.ERROR, "|Q₁₂|"),
}
BESIDE = 0.03  # of alpha: they are drawn beside each other
TICKS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10)  # of c


@style.styled(style.RC)
def draw(files, block: dict, context: dict) -> tuple[Figure, pd.DataFrame]:
    """The figure and what is drawn, from files; see the package's docstring."""
    found = reading.read(files, block, context)
    plain, regularised = found["state_evolution"], found["regularised"]
    figure = style.new(2, 5.6)
    figure.get_layout_engine().set(wspace=0.03, h_pad=0.06)
    a, b, c, d, e, f = figure.subplots(2, 3).flat
    gamp, thresholds = found["gamp"], found["thresholds"]
    drawn = {
        "a": draw_learning(a, regularised, gamp),
        "b": draw_errors(b, plain, regularised, gamp),
        "c": draw_regulariser(c, plain, regularised),
        "d": draw_across(d, gamp),
        "e": draw_thresholds(e, thresholds),
        "f": draw_published(f, thresholds),
    }
    for axes in (a, b, c, d):
        last = float(regularised.get("overlap", "Q11")["x"].max())
        axes.set(xlim=(0, last), xlabel="samples α = N / D")
    for letter, axes in zip("abcdef", (a, b, c, d, e, f), strict=True):
        axes.set_title(f"({letter}) {axes.get_title(loc='left')}")
    return figure, drawing.gather(drawn)


# --- Over the samples per dimension --------------------------------------------------------------


def draw_learning(axes: Axes, table: Table, gamp: Table) -> list[pd.DataFrame]:
    """Overlaps by state evolution, by GAMP and of the public data; between them the thresholds."""
    last = float(table.get("overlap", "Q11")["x"].max())
    parts, handles = _overlaps(axes, table, ""), _layers()
    found, failed = runs.final(gamp), runs.failed(gamp)
    for layer in reading.LAYERS:
        name = f"GAMP cosine² of layer {layer}"
        parts += drawing.crosses(axes, found[f"cosine {layer}"], drawing.LAYER[layer], name, failed)
    needed = {**public.STANDARD, "regulariser": public.REGULARISER}
    stored = drawing.public(axes, table, needed, public.OVERLAPS, last)
    thresholds = _thresholds(table)
    drawing.phases(axes, thresholds, last)
    axes.set(ylim=(-0.03, 1.05), ylabel="overlap Q")
    axes.set_title(f"layer 2 first: c = {table.entry['skip']:g}, {reading.channel(table.entry)}")
    handles.append(Line2D([], [], color="0.3", linestyle=":", label="from side information"))
    if thresholds:
        named = zip(("α₂", "α₁"), thresholds, strict=False)
        label = ", ".join(f"{name} = {threshold:.3f}" for name, threshold in named)
        handles.append(Line2D([], [], color="0.7", linewidth=0.8, label=label))
    handles += _crosses(gamp, axes)
    if stored:
        handles.append(Line2D([], [], **drawing.STORED, label="public data"))
    style.legend_below(axes, handles=handles)
    return parts + stored


def draw_errors(axes: Axes, plain: Table, regularised: Table, gamp: Table) -> list[pd.DataFrame]:
    """Plug-in errors on a logarithmic axis, of both layers and with Q11 forced to 0."""
    light = {"alpha": drawing.LIGHT, "linewidth": 1.0}
    parts = []
    for table, note, looks in ((plain, ", no regulariser", light), (regularised, "", {})):
        for series, (line, _) in FORCED.items():
            dashed = {"failed": table.failed("from 0"), **looks, "linestyle": line}
            name = f"plug-in error, {series}{note}"
            found = table.get("error plug-in", series)
            parts += drawing.curve(axes, found, drawing.ERROR, name, **dashed)
    frame = runs.final(gamp)["error plug-in"]
    name = "GAMP plug-in error"
    parts += drawing.crosses(axes, frame, drawing.ERROR, name, runs.failed(gamp))
    axes.set_yscale("log", nonpositive="mask")  # nothing is left where both layers are known
    axes.set(ylim=(2e-3, 0.6), ylabel="plug-in error")
    axes.set_title("error of the prediction")
    handles = [
        Line2D([], [], color=drawing.ERROR, linestyle=line, label=label)
        for line, label in FORCED.values()
    ]
    label = f"light: {reading.channel(plain.entry)}"
    handles.append(Line2D([], [], color=drawing.ERROR, **light, label=label))
    style.legend_below(axes, handles=handles + _crosses(gamp, axes))
    return parts


def draw_regulariser(axes: Axes, plain: Table, regularised: Table) -> list[pd.DataFrame]:
    """Overlaps by state evolution without a regulariser, over (light) those with one."""
    light = {"alpha": drawing.LIGHT, "linewidth": 1.0}
    parts = _overlaps(axes, plain, ", no regulariser")
    for layer in reading.LAYERS:
        found = regularised.get("overlap", f"Q{layer}{layer}")
        name = f"Q{layer}{layer}, as in (a)"
        parts += drawing.curve(axes, found, drawing.LAYER[layer], name, **light)
    axes.set(ylim=(-0.03, 1.05), ylabel="overlap Q")
    axes.set_title(f"the same, {reading.channel(plain.entry)}")
    label = f"light: {reading.channel(regularised.entry)}"
    handles = [*_layers(), Line2D([], [], color="0.3", **light, label=label)]
    style.legend_below(axes, handles=handles)
    return parts


def draw_across(axes: Axes, gamp: Table) -> list[pd.DataFrame]:
    """GAMP's overlaps of different layers, which state evolution keeps at 0, and 1 / sqrt(D)."""
    found, failed = runs.final(gamp), runs.failed(gamp)
    size = 1 / np.sqrt(gamp.entry["dimension"])
    axes.axhline(0, color="0.6", linewidth=0.8, zorder=1)
    axes.axhline(size, color="0.4", linewidth=0.8, linestyle=":", zorder=1)
    places = {alpha: 0.0 for alpha in found["M12"]["x"]}
    parts = [drawing.points("state evolution, M12, M21, Q12", places)]
    parts.append(drawing.points("1 / sqrt(D)", dict.fromkeys(places, size)))
    handles, highest = [], size
    for place, (quantity, (marker, colour, label)) in enumerate(ACROSS.items()):
        aside = (place - 1) * BESIDE
        frame = found[quantity].assign(x=found[quantity]["x"] + aside)
        highest = max(highest, float((frame["y"] + frame["y_err"].fillna(0)).max()))
        bad = [alpha + aside for alpha in failed]
        series = f"GAMP {quantity}"
        shown = drawing.crosses(axes, frame, colour, series, bad, "", marker, 4.5)
        parts += [part.assign(x=part["x"] - aside) for part in shown]
        handles.append(Line2D([], [], color=colour, linestyle="", marker=marker, label=label))
    axes.set(ylim=(-0.08 * highest, 1.1 * highest), ylabel="overlap of different layers")
    axes.set_title("different layers")
    label = f"1/√D = {size:.3f}"
    handles.append(Line2D([], [], color="0.4", linewidth=0.8, linestyle=":", label=label))
    style.legend_below(axes, handles=handles + _crosses(gamp, axes, hollow_only=True))
    return parts


def _overlaps(axes: Axes, table: Table, note: str, **looks) -> list[pd.DataFrame]:
    """Overlaps of state evolution from near 0 and (dotted) from strong side information."""
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
    return parts


def _layers() -> list[Line2D]:
    return [
        Line2D([], [], color=drawing.LAYER[layer], label=f"layer {layer}")
        for layer in reversed(reading.LAYERS)
    ]


def _crosses(gamp: Table, axes: Axes, hollow_only: bool = False) -> list[Line2D]:
    """GAMP's marks, and those that are hollow if the axes have any."""
    looks = dict(color="0.3", linestyle="", marker="X", markersize=6)
    label = f"GAMP, D = {gamp.entry['dimension']}, {runs.number(gamp)}"
    handles = [] if hollow_only else [Line2D([], [], **looks, markeredgewidth=0, label=label)]
    hollow = {line.get_marker() for line in axes.lines if line.get_markerfacecolor() == "white"}
    if hollow:
        looks |= dict(marker="X" if "X" in hollow else "d" if hollow_only else "o")
        label = "a run did not converge" if runs.failed(gamp) else "not converged"
        handles.append(Line2D([], [], **looks, markerfacecolor="white", label=label))
    return handles


def _thresholds(table: Table) -> list[float]:
    """alpha_2 and alpha_1 of the entry's c, as far as they are in the table."""
    found = (table.at("threshold", name, table.entry["skip"]) for name in ("alpha_2", "alpha_1"))
    return [each.value for each in found if each is not None and np.isfinite(each.value)]


# --- Over the skip connection --------------------------------------------------------------------


def draw_thresholds(axes: Axes, table: Table) -> list[pd.DataFrame]:
    """alpha_2 and alpha_1 over c with error bands, the literal alpha_1, the bound."""
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
    _over_skips(axes, second)
    axes.annotate(
        "below 1/6: 0 is stable",
        (0.02, BOUND),
        xycoords=("axes fraction", "data"),
        xytext=(0, -3),
        textcoords="offset points",
        va="top",
        fontsize=style.SMALL,
    )
    axes.set_title("thresholds")
    style.legend_below(axes)
    return parts


def draw_published(axes: Axes, table: Table) -> list[pd.DataFrame]:
    """alpha_2 and alpha_1 over c, and what the public repository stores under these names."""
    second, parts = table.get("alpha_2", "exact"), []
    for layer, found, stored, marker in (
        (1, table.get("alpha_1", "self-consistent"), public.ALPHA_1, "s"),
        (2, second, public.ALPHA_2, "D"),
    ):
        colour, name = drawing.LAYER[layer], "α₁" if layer == 1 else "α₂"
        parts += drawing.curve(axes, found, colour, f"alpha_{layer}, as in (e)", name)
        low, high = _skips(second)
        inside = {c: value for c, value in stored.items() if low / 1.3 <= c <= high * 1.3}
        looks = dict(linestyle="--", linewidth=0.9, marker=marker, markerfacecolor="white")
        axes.plot(
            *(list(inside), list(inside.values())), color=colour, label=f"{name}, public", **looks
        )
        parts.append(drawing.points(f"alpha_{layer} public", inside))
    _over_skips(axes, second)
    axes.set_title("public thresholds")
    style.legend_below(axes, 2)
    return parts


def _skips(second: pd.DataFrame) -> tuple[float, float]:
    """The least and the largest skip connection that is shown."""
    return float(second["x"][second["x"] > 0].min()), min(float(second["x"].max()), 10.0)


def _over_skips(axes: Axes, second: pd.DataFrame) -> None:
    lowest, highest = _skips(second)
    axes.set(xscale="log", xlim=(lowest / 1.15, highest * 1.15), xlabel="skip connection c")
    style.plain_ticks(axes.xaxis, TICKS)
    axes.set(ylim=(0, 1.13), ylabel="threshold α")
