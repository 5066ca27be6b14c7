"""Figure 3: three layers; how two layers of a classifier of questions are learned.

Left: tables of `theory.multi_index.deep`, without and with a regulariser; right: one of
`theory.multi_index.trec`, or two where TREC's questions are given. Between them, beyond the paper:
thresholds over c of three tied layers, and of untied ones, a table of `theory.multi_index.untied`.
Their docstrings name the quantities.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from manybody.claims import reading
from manybody.claims.multi_index import public
from manybody.claims.reading import BOUND, Table, channel
from manybody.plotting import style
from manybody.plotting.multi_index import drawing
from manybody.plotting.statistical import seaborn

ORDER = (3, 1, 2)  # in which the layers are learned
ERRORS = {"all layers": "-", "last layer only": "--"}
UNTIED = {
    "L = 1": ("D", "0.35", "L = 1, untied"),
    "L = 2 last": ("s", drawing.LAYER[2], "L = 2, untied, last"),
    "L = 2 first": ("^", drawing.LAYER[1], "L = 2, untied, first"),
}


@style.styled(style.RC)
def draw(files, block: dict, context: dict) -> tuple[Figure, pd.DataFrame]:
    """The figure and what is drawn, from files; see the package's docstring."""
    found = reading.read(files, block, context)
    deep = found["deep"]
    classified = {"right": found["docstrings"]}
    if found["trec"].series("similarity 1"):
        classified["right, TREC"] = found["trec"]
    figure = style.new(2, 6.0)
    figure.get_layout_engine().set(wspace=0.05, h_pad=0.06)
    places = [["a", "b"], ["c", "d"]] if len(classified) > 1 else [["a", "a"], ["b", "c"]]
    left, middle, *right = (axes for _, axes in sorted(figure.subplot_mosaic(places).items()))
    drawn = {
        "left": draw_learning(left, deep, found["deep_regularised"], 6 - 2 * len(classified)),
        "phase diagram": draw_phases(middle, deep, found["untied"]),
    }
    for letter, axes, (panel, table) in zip("cd", right, classified.items(), strict=False):
        drawn[panel] = draw_questions(axes, table)
        axes.set_title(f"({letter}) {axes.get_title(loc='left')}")
    return figure, drawing.gather(drawn)


def draw_learning(axes: Axes, plain: Table, regularised: Table, columns: int) -> list[pd.DataFrame]:
    """Overlaps of three layers, thresholds, plug-in errors on the axis at the right; light: of the
    channel without a regulariser. Squares: the stored public overlaps, which are with one."""
    errors = axes.twinx()
    parts, failed, last = [], [], 0.0
    for table, light in ((plain, True), (regularised, False)):
        parts += _overlaps(axes, errors, table, light)
        failed += [*table.failed("")]
        last = max(last, float(table.get("overlap", "Q33")["x"].max()))
    coloured = {f"Q{layer}{layer}": drawing.LAYER[layer] for layer in ORDER}
    given = axes, regularised, public.DEEP_SETTING, public.DEEP, last
    stored = drawing.public(*given, coloured)
    axes.set(
        xlim=(0, last),
        ylim=(-0.02, 1.04),
        xlabel="samples per dimension α = N / D",
        ylabel="overlap Q",
    )
    errors.set(yscale="log", ylabel="plug-in error")
    errors.spines["right"].set_visible(True)
    channels = (channel(table.entry) for table in (regularised, plain))
    axes.set_title(f"(a) three layers, c = {plain.entry['skip']:g}; {'; light: '.join(channels)}")
    handles = [
        Line2D([], [], color=drawing.LAYER[layer], label=f"layer {layer}") for layer in ORDER
    ]
    handles += [
        Line2D([], [], color=drawing.ERROR, linestyle=line, label=f"error, {series} (right)")
        for series, line in ERRORS.items()
    ]
    handles.append(Line2D([], [], color="0.4", linestyle=":", linewidth=0.9, label="thresholds"))
    if stored:
        handles.append(Line2D([], [], **drawing.STORED, label="public data"))
    if failed:
        looks = dict(linestyle="", marker="o", markerfacecolor="white", markeredgecolor="0.3")
        handles.append(Line2D([], [], **looks, label="hollow: not converged"))
    style.legend_below(axes, columns, handles=handles)
    return parts + stored


def _overlaps(axes: Axes, errors: Axes, table: Table, light: bool) -> list[pd.DataFrame]:
    """Curves and thresholds of one table."""
    note = ", " + channel(table.entry)
    failed = table.failed("")
    looks = dict(alpha=drawing.LIGHT, linewidth=1.0) if light else {}
    skip = table.entry["skip"]
    last = float(table.get("overlap", "Q33")["x"].max())
    parts = []
    for layer in ORDER:
        name, colour = f"Q{layer}{layer}", drawing.LAYER[layer]
        found = table.get("overlap", name)
        parts += drawing.curve(axes, found, colour, name + note, failed=failed, **looks)
        start = table.at("threshold", f"alpha_{layer}", skip)
        if start is not None and start.value < last:
            dotted = {"linewidth": 0.9, **looks, "linestyle": ":"}
            axes.axvline(start.value, color=colour, **dotted)
            parts.append(drawing.points(f"alpha_{layer}{note}", {start.value: 0.0}))
    for series, line in ERRORS.items():
        found = table.get("error plug-in", series)
        dashed = {**looks, "failed": failed, "linestyle": line}
        name = f"plug-in error, {series}{note}"
        parts += drawing.curve(errors, found, drawing.ERROR, name, **dashed)
    return parts


def draw_phases(axes: Axes, deep: Table, untied: Table) -> list[pd.DataFrame]:
    """Thresholds over c: three tied layers as lines, untied ones as symbols."""
    parts = []
    for layer in ORDER:
        found = deep.get("threshold", f"alpha_{layer}").dropna(subset=["y"])
        looks = dict(label=f"L = 3, layer {layer}", marker="o", markersize=3)
        name = f"three layers, alpha_{layer}"
        parts += drawing.curve(axes, found, drawing.LAYER[layer], name, **looks)
    for series, (marker, colour, label) in UNTIED.items():
        found = untied.get("threshold", series)
        looks = dict(linestyle="--", linewidth=0.9, marker=marker, markersize=4)
        failed = untied.failed(series)
        parts += drawing.curve(axes, found, colour, f"untied, {series}", label, failed, **looks)
    axes.axhspan(0, BOUND, color="0.93", linewidth=0, zorder=-2)
    axes.axhline(BOUND, color="0.5", linewidth=0.8, zorder=-1, label="1/6")
    axes.set(xlabel="skip connection c", ylabel="threshold α", ylim=(0, None))
    if any((part["x"] > 0).any() for part in parts):
        axes.set_xscale("log")
        style.plain_ticks(axes.xaxis, (0.03, 0.1, 0.25, 0.5, 1, 2, 4))
    axes.set_title("(b) beyond the paper: thresholds over c")
    style.legend_below(axes, 2)
    return parts


def draw_questions(axes: Axes, table: Table) -> list[pd.DataFrame]:
    """Similarity of each layer to its last state: mean over runs with the spread of runs."""
    axes.set_title(f"{reading.classified(table)}, two layers")
    parts = []
    for layer in reading.LAYERS:
        name, label = f"similarity {layer}", f"layer {layer}"
        found = table.get(name)
        looks = dict(color=drawing.LAYER[layer], label=label, err_kws=style.BAND, ax=axes)
        seaborn.lineplot(found, x="x", y="y", errorbar="sd", **looks)
        runs = reading.matrix(found)
        shown = pd.DataFrame({"y": runs.mean(), "y_err": runs.std(ddof=1)}).reset_index()
        parts.append(drawing.named(shown, f"{name}, mean and sd of runs"))
        parts.append(drawing.named(found, name))
    steps = table.get("similarity 1")["x"]
    axes.set(
        xscale="log",
        xlim=(max(1, steps[steps > 0].min()), steps.max()),
        xlabel="step",
        ylabel="similarity to the last state",
        ylim=(0, 1.04),
    )
    count = table.get("similarity 1")["seed"].nunique()
    title = f"{count} run{'s' if count > 1 else ''}, mean ± sd"
    style.legend_below(axes, 2, title=title, alignment="left")
    return parts
