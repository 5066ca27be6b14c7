"""Figure 1: overlaps and prediction error against the samples per dimension; thresholds over c.

(a) overlaps, (b) plug-in errors, (c) overlaps without a regulariser, (d) overlaps of different
layers, (e) thresholds over c, (f) the same against public data.
"""

import math
from dataclasses import dataclass, replace

import pandas as pd

from manybody.io import options
from manybody.io.options import key, refers
from manybody.papers import claims as records
from manybody.papers import readings, style
from manybody.papers.claims import Comparison
from manybody.papers.figure import Figure
from manybody.papers.multi_index import curves, public, theories
from manybody.papers.multi_index import message_passing as gamp
from manybody.papers.multi_index.theories import BOUND, KIND, LAYERS, Inputs, channel, sampled
from manybody.papers.readings import Table

RED, BLUE = curves.LAYER[2], curves.LAYER[1]
FORCED = {"both layers": ("-", "both layers"), "layer 2 only": ("--", "Q₁₁ forced to 0")}
BARE = ", no regulariser"  # ends the names of series of the channel without one
INFORMED = ", from side information"
# Overlaps of different layers, in the colour of the estimate's: marker, colour and name of each.
ACROSS = {
    "M12": ("<", BLUE, "GAMP |M₁₂|"),
    "M21": (">", RED, "|M₂₁|"),
    "Q12": ("d", curves.ERROR, "|Q₁₂|"),
}
BESIDE = 0.03  # of alpha: they are drawn beside each other
JUMPS = {
    "transition": ("v", RED, "first-order jump of layer 2"),
    "spinodal": ("^", RED, "its spinodal"),
    "alpha_1 jump": ("*", BLUE, "jump that takes layer 1 along"),
}
TICKS = (0.01, 0.03, 0.1, 0.3, 1, 3, 10)  # of c
# Differences that count as none: of stored overlaps of state evolution and of message passing, of
# stored thresholds, of alpha_1 at two c.
SAME_OVERLAP, SAME_RUNS, SAME_THRESHOLD, SAME_ALPHA_1 = 0.02, 0.05, 0.01, 0.002


class MultiIndexFig1Theory(options.Block):
    """Theory of figure 1."""

    state_evolution: refers("theory", f"{KIND}state-evolution") = key(
        "Theory of kind multi-index-state-evolution."
    )
    regularised: refers("theory", f"{KIND}state-evolution") = key("The same with a regulariser.")
    gamp: refers("theory", f"{KIND}gamp") = key("Theory of kind multi-index-gamp.")
    thresholds: refers("theory", f"{KIND}thresholds") = key(
        "Theory of kind multi-index-thresholds."
    )


class Block(Figure):
    """Overlaps and error against alpha, and the phase diagram."""

    theory: MultiIndexFig1Theory = key("What is drawn.")


@dataclass(frozen=True)
class Tables:
    """Rows drawn; comparisons by claim, or the cause why there are none; the entries by role.

    starts: alpha_2 and alpha_1 of (a); jump: the largest c at which layer 2 jumps, or 0; doubts:
    identities of a posterior that the averages of (a) to (c) do not keep to.
    """

    drawn: pd.DataFrame
    judged: dict[str, list[Comparison] | str]
    entries: dict[str, dict]
    starts: list[float]
    jump: float
    doubts: str


def tables(inputs: Inputs, block: Block) -> Tables:
    """Curves of state evolution, ends of message passing, thresholds, and their comparisons."""
    found = inputs.read()
    plain, regularised = found["state_evolution"], found["regularised"]
    runs, thresholds = found["gamp"], found["thresholds"]
    drawn = {
        "a": _learning_rows(regularised, runs),
        "b": _error_rows(plain, regularised, runs),
        "c": _regulariser_rows(plain, regularised),
        "d": _across_rows(runs),
        "e": _threshold_rows(thresholds),
        "f": _published_rows(thresholds),
    }
    judged = {
        "last-layer-first": [_first(plain), _first(regularised)],
        "public-overlaps": _public_overlaps(regularised, runs),
        "alpha-1-over-c": _alpha_1_over_c(thresholds),
        "public-thresholds": _public_thresholds(thresholds),
    }
    jumps = thresholds.get("first order")
    return Tables(
        curves.gathered(drawn),
        judged,
        {role: table.entry for role, table in found.items()},
        [value.value for value in _starts(regularised) if math.isfinite(value.value)],
        float(jumps.loc[jumps["y"] > 0, "x"].max()) if (jumps["y"] > 0).any() else 0.0,
        _doubts(plain) or _doubts(regularised),
    )


# --- What is drawn --------------------------------------------------------------------------------


def _overlap_rows(table: Table, note: str) -> list[pd.DataFrame]:
    """Overlaps of state evolution from near 0 and from strong side information."""
    parts = []
    for layer in LAYERS:
        name = f"Q{layer}{layer}"
        near, far = table.get("overlap", name), table.get("overlap informed", name)
        parts += curves.line_rows(near, name + note, table.failed("from 0"))
        parts += curves.line_rows(far, name + note + INFORMED, table.failed("informed"))
    return parts


def _learning_rows(table: Table, runs: Table) -> list[pd.DataFrame]:
    parts, ends = _overlap_rows(table, ""), gamp.final(runs)
    for layer in LAYERS:
        name = f"GAMP cosine² of layer {layer}"
        parts += curves.mark_rows(ends[f"cosine {layer}"], name, gamp.failed(runs))
    last = float(table.get("overlap", "Q11")["x"].max())
    return parts + curves.stored_rows(table, public.TWO_LAYERS, public.OVERLAPS, last)


def _error_rows(plain: Table, regularised: Table, runs: Table) -> list[pd.DataFrame]:
    parts = []
    for table, note in ((plain, BARE), (regularised, "")):
        for series in FORCED:
            errors = table.get("error plug-in", series)
            name = f"plug-in error, {series}{note}"
            parts += curves.line_rows(errors, name, table.failed("from 0"))
    ends = gamp.final(runs)["error plug-in"]
    return parts + curves.mark_rows(ends, "GAMP plug-in error", gamp.failed(runs))


def _regulariser_rows(plain: Table, regularised: Table) -> list[pd.DataFrame]:
    parts = _overlap_rows(plain, BARE)
    for name in ("Q11", "Q22"):
        parts += curves.line_rows(regularised.get("overlap", name), f"{name}, as in (a)")
    return parts


def _across_rows(runs: Table) -> list[pd.DataFrame]:
    """GAMP's overlaps of different layers, which state evolution keeps at 0, and 1 / sqrt(D)."""
    ends, places = gamp.final(runs), sorted(gamp.alphas(runs))
    size = 1 / math.sqrt(runs.entry["dimension"])
    parts = [
        curves.points("state evolution, M12, M21, Q12", dict.fromkeys(places, 0.0)),
        curves.points("1 / sqrt(D)", dict.fromkeys(places, size)),
    ]
    for quantity in ACROSS:
        parts += curves.mark_rows(ends[quantity], f"GAMP {quantity}", gamp.failed(runs))
    return parts


def _threshold_rows(table: Table) -> list[pd.DataFrame]:
    first, second = table.get("alpha_1", "self-consistent"), table.get("alpha_2", "exact")
    return [
        curves.points("bound 1/6", {float(c): BOUND for c in second["x"]}),
        *curves.line_rows(first, "alpha_1 self-consistent", table.failed("alpha_1")),
        *curves.line_rows(second, "alpha_2", table.failed("alpha_2")),
        *curves.line_rows(table.get("alpha_1", "literal"), "alpha_1 literal"),
        *(curves.named(table.get(name), name) for name in JUMPS if len(table.get(name))),
    ]


def _published_rows(table: Table) -> list[pd.DataFrame]:
    """alpha_1 and alpha_2 over c, and what the public repository stores under these names."""
    second, parts = table.get("alpha_2", "exact"), []
    for name, found, stored in (
        ("alpha_1", table.get("alpha_1", "self-consistent"), public.ALPHA_1),
        ("alpha_2", second, public.ALPHA_2),
    ):
        low, high = _skips(second)
        inside = {c: value for c, value in stored.items() if low / 1.3 <= c <= high * 1.3}
        parts += curves.line_rows(found, f"{name}, as in (e)")
        parts.append(curves.points(f"{name} public", inside))
    return parts


def _skips(second: pd.DataFrame) -> tuple[float, float]:
    """The least and the largest skip connection that is shown."""
    return float(second["x"][second["x"] > 0].min()), min(float(second["x"].max()), 10.0)


# --- What is judged -------------------------------------------------------------------------------


def _starts(table: Table) -> list[readings.Value]:
    """alpha_2 and alpha_1 of the entry's c, as far as they are in the table."""
    found = (table.at("threshold", name, table.entry["skip"]) for name in ("alpha_2", "alpha_1"))
    return [each for each in found if each is not None]


def _doubts(table: Table) -> str:
    return "; ".join(table.about.get("broken", []))


def _first(table: Table) -> Comparison:
    label = f"alpha_1 - alpha_2, c = {table.entry['skip']:g}, {channel(table.entry)}"
    found = _starts(table)
    if len(found) < 2:
        return Comparison(label, math.nan, unusable="a threshold is missing in the table")
    last, first = found
    # That of the layer that is learned first is exact and has no error.
    errors = [each.error for each in found if math.isfinite(each.error)]
    error = math.hypot(*errors) if errors else math.nan
    gap = records.above(label, first.value - last.value, error, runs=first.runs)
    return replace(gap, unusable=_doubts(table))


def _public_overlaps(table: Table, runs: Table) -> list[Comparison] | str:
    """Overlaps of state evolution at the public parameters, and ends of runs at theirs."""
    found, away = [], readings.departure(table.entry, **public.TWO_LAYERS)
    if not away:
        found = theories.from_stored(table, public.OVERLAPS, SAME_OVERLAP, "from 0")
        found = [replace(each, unusable=_doubts(table) or each.unusable) for each in found]
    if not readings.departure(runs.entry, **public.RUNS_SETTING):
        for name, stored in public.MESSAGE_PASSING.items():
            values = {alpha: gamp.converged_mean(runs, name, alpha) for alpha in stored}
            given = f"GAMP, D = 1000, {name}", values, stored, SAME_RUNS
            found.append(theories.largest_difference(*given))
    return found or away


def _alpha_1_over_c(table: Table) -> list[Comparison] | str:
    """Differences are over the same samples, so that their errors are smaller than alpha_1's."""
    series = table.series("alpha_1 difference")
    found = table.get("alpha_1 difference", series[0] if series else "").dropna(subset=["y"])
    if len(found) < 2:
        return "thresholds are known at fewer than two c"
    worst = found.loc[found["y"].abs().idxmax()]
    label = (
        f"largest difference from alpha_1 at {series[0]}, at c = {worst['x']:g} of {len(found)} "
        f"from {found['x'].min():g} to {found['x'].max():g}"
    )
    given = label, float(worst["y"]), float(worst["y_err"]), 0.0, SAME_ALPHA_1
    return [records.near(*given, runs=table.entry["scrambles"])]


def _public_thresholds(table: Table) -> list[Comparison] | str:
    if away := readings.departure(table.entry, activation="softmax", regulariser=0):
        return away
    first = {c: table.at("alpha_1", "self-consistent", c) for c in public.ALPHA_1}
    second = {c: table.at("alpha_2", "exact", c) for c in public.ALPHA_2}
    # An integral without noise.
    second = {c: value and readings.Value(value.value, 0.0) for c, value in second.items()}
    return [
        theories.largest_difference(name, found, stored, SAME_THRESHOLD, "c")
        for name, found, stored in (
            ("alpha_1", first, public.ALPHA_1),
            ("alpha_2", second, public.ALPHA_2),
        )
    ]


def claims(tables: Tables) -> list[records.Claim]:
    """Which layer needs fewer samples, and whether numbers are those of the public repository."""
    entry, over = tables.entries["regularised"], tables.entries["thresholds"]
    overlaps = f"two layers, c = {entry['skip']:g}, {sampled(entry)}"
    thresholds = f"two layers, {channel(over)}, {len(over['skips'])} values of c, {sampled(over)}"
    return [
        theories.claim(
            "multi-index/fig1/last-layer-first",
            "The last layer is learned from fewer samples than the first (fig. 1 left)",
            tables.judged["last-layer-first"],
            overlaps,
            "the threshold of layer 1 is above that of layer 2, with and without a regulariser",
        ),
        theories.claim(
            "multi-index/fig1/public-overlaps",
            "State evolution and message passing are those of the public repository (fig. 1 left)",
            tables.judged["public-overlaps"],
            f"{overlaps}; GAMP: D = {tables.entries['gamp']['dimension']}, "
            f"{theories.runs_of(tables.entries['gamp'])} at each alpha",
            f"the largest difference of an overlap is below {SAME_OVERLAP:g}, of what GAMP ends "
            f"with below {SAME_RUNS:g}",
        ),
        theories.claim(
            "multi-index/fig1/public-thresholds",
            "The thresholds are those of the public repository (fig. 1 right)",
            tables.judged["public-thresholds"],
            thresholds,
            f"the largest difference over c is below {SAME_THRESHOLD:g}",
        ),
        theories.claim(
            "multi-index/fig1/alpha-1-over-c",
            "The threshold of the first layer does not depend on the skip connection c",
            tables.judged["alpha-1-over-c"],
            thresholds,
            f"the largest difference is below {SAME_ALPHA_1:g}",
            beyond=True,
        ),
    ]


# --- The picture ----------------------------------------------------------------------------------


@style.in_house_style
def draw(tables: Tables):
    """Panels (a) to (d) over alpha, (e) and (f) over c."""
    figure = style.new(2, 5.6)
    figure.get_layout_engine().set(wspace=0.03, h_pad=0.06)
    last = float(style.series(tables.drawn, "a", "Q11")["x"].max())
    panels = _learning, _errors, _regulariser, _across, _thresholds, _published
    for letter, axes, panel in zip("abcdef", figure.subplots(2, 3).flat, panels, strict=True):
        panel(axes, tables)
        if letter in "abcd":
            axes.set(xlim=(0, last), xlabel="samples α = N / D")
        axes.set_title(f"({letter}) {axes.get_title(loc='left')}")
    return figure


def _learning(axes, tables: Tables) -> None:
    drawn, entry = tables.drawn, tables.entries["regularised"]
    handles = _overlaps(axes, tables, "a", "")
    for layer in LAYERS:
        curves.marks(axes, drawn, "a", f"GAMP cosine² of layer {layer}", curves.LAYER[layer])
    edges = dict.fromkeys(public.OVERLAPS, curves.STORED["markeredgecolor"])
    stored = curves.stored(axes, drawn, "a", edges)
    curves.phases(axes, tables.starts, float(style.series(drawn, "a", "Q11")["x"].max()))
    axes.set(ylim=(-0.03, 1.05), ylabel="overlap Q")
    axes.set_title(f"overlaps: c = {entry['skip']:g}, {channel(entry)}")
    handles.append(curves.handle("from side information", color="0.3", linestyle=":"))
    if tables.starts:
        named = zip(("α₂", "α₁"), tables.starts, strict=False)
        label = ", ".join(f"{name} = {threshold:.3f}" for name, threshold in named)
        handles.append(curves.handle(label, color="0.7", linewidth=0.8))
    handles += _marks(tables, "a")
    if stored:
        handles.append(curves.handle("public data", **curves.STORED))
    style.legend_below(axes, handles=handles)


def _errors(axes, tables: Tables) -> None:
    for note, looks in ((BARE, curves.LIGHT), ("", {})):
        for series, (dashes, _) in FORCED.items():
            name = f"plug-in error, {series}{note}"
            dashed = looks | {"linestyle": dashes}
            curves.line(axes, tables.drawn, "b", name, curves.ERROR, **dashed)
    curves.marks(axes, tables.drawn, "b", "GAMP plug-in error", curves.ERROR)
    axes.set_yscale("log", nonpositive="mask")  # nothing is left where both layers are known
    axes.set(ylim=(2e-3, 0.6), ylabel="plug-in error", title="error of the prediction")
    handles = [
        curves.handle(label, color=curves.ERROR, linestyle=dashes)
        for dashes, label in FORCED.values()
    ]
    light = f"light: {channel(tables.entries['state_evolution'])}"
    handles.append(curves.handle(light, color=curves.ERROR, **curves.LIGHT))
    style.legend_below(axes, handles=handles + _marks(tables, "b"))


def _regulariser(axes, tables: Tables) -> None:
    handles = _overlaps(axes, tables, "c", BARE)
    for layer in LAYERS:
        name = f"Q{layer}{layer}, as in (a)"
        curves.line(axes, tables.drawn, "c", name, curves.LAYER[layer], **curves.LIGHT)
    axes.set(ylim=(-0.03, 1.05), ylabel="overlap Q")
    axes.set_title(f"the same, {channel(tables.entries['state_evolution'])}")
    light = f"light: {channel(tables.entries['regularised'])}"
    style.legend_below(axes, handles=[*handles, curves.handle(light, color="0.3", **curves.LIGHT)])


def _overlaps(axes, tables: Tables, panel: str, note: str) -> list:
    """Overlaps of both layers, dotted from side information, and the legend's lines of layers."""
    for layer in LAYERS:
        name, colour = f"Q{layer}{layer}{note}", curves.LAYER[layer]
        curves.line(axes, tables.drawn, panel, name, colour)
        curves.line(axes, tables.drawn, panel, name + INFORMED, colour, linestyle=":")
    if tables.doubts:
        text = f"not to be trusted: {tables.doubts}"
        axes.text(0.02, 0.5, text, transform=axes.transAxes, fontsize=style.SMALL, wrap=True)
    return [
        curves.handle(f"layer {layer}", color=curves.LAYER[layer]) for layer in reversed(LAYERS)
    ]


def _across(axes, tables: Tables) -> None:
    size = float(style.series(tables.drawn, "d", "1 / sqrt(D)")["y"].iloc[0])
    axes.axhline(0, color="0.6", linewidth=0.8, zorder=1)
    axes.axhline(size, color="0.4", linewidth=0.8, linestyle=":", zorder=1)
    for place, (quantity, (marker, colour, _)) in enumerate(ACROSS.items()):
        look = marker, 4.5, (place - 1) * BESIDE
        curves.marks(axes, tables.drawn, "d", f"GAMP {quantity}", colour, *look)
    shown = tables.drawn[tables.drawn["panel"] == "d"]
    highest = float((shown["y"] + shown["y_err"].fillna(0)).max())
    axes.set(ylim=(-0.08 * highest, 1.1 * highest), ylabel="overlap of different layers")
    axes.set_title("different layers")
    handles = [
        curves.handle(label, color=colour, linestyle="", marker=marker)
        for marker, colour, label in ACROSS.values()
    ]
    handles.append(curves.handle(f"1/√D = {size:.3f}", color="0.4", linewidth=0.8, linestyle=":"))
    style.legend_below(axes, handles=handles + _marks(tables, "d", "d")[1:])


def _marks(tables: Tables, panel: str, hollow: str = "X") -> list:
    """GAMP's marks, and hollow ones if the panel has any: of `hollow`, or circles on curves."""
    entry, shown = tables.entries["gamp"], tables.drawn[tables.drawn["panel"] == panel]
    looks = dict(color="0.3", linestyle="", markersize=6)
    label = f"GAMP, D = {entry['dimension']}, {theories.runs_of(entry)}"
    handles = [curves.handle(label, **looks, marker="X", markeredgewidth=0)]
    failed = shown["series"].str.endswith(curves.FAILED)
    runs = (failed & shown["series"].str.startswith("GAMP")).any()
    if failed.any():
        looks |= dict(marker=hollow if runs else "o", markerfacecolor="white")
        handles.append(
            curves.handle("a run did not converge" if runs else "not converged", **looks)
        )
    return handles


def _thresholds(axes, tables: Tables) -> None:
    axes.axhspan(0, BOUND, color="0.93", linewidth=0, zorder=-2)
    axes.axhline(BOUND, color="0.5", linewidth=0.8, zorder=-1)
    for series, label, colour, looks in (
        ("alpha_1 self-consistent", "α₁, self-consistent", BLUE, dict(marker="o")),
        ("alpha_2", "α₂", RED, dict(marker="o")),
        ("alpha_1 literal", "α₁, layer 2 known", BLUE, dict(marker=".", linestyle=":")),
    ):
        curves.line(axes, tables.drawn, "e", series, colour, label, markersize=3, **looks)
    for quantity, (marker, colour, label) in JUMPS.items():
        found = style.series(tables.drawn, "e", quantity)
        if len(found):
            looks = dict(color=colour, markerfacecolor="none", label=label)
            axes.plot(found["x"], found["y"], marker, **looks)
    if tables.jump:
        axes.axvspan(0, tables.jump, color=curves.PHASES[1], linewidth=0, zorder=-3)
    _over_skips(axes, tables)
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


def _published(axes, tables: Tables) -> None:
    for layer, name, marker in ((1, "α₁", "s"), (2, "α₂", "D")):
        colour = curves.LAYER[layer]
        curves.line(axes, tables.drawn, "f", f"alpha_{layer}, as in (e)", colour, name)
        found = style.series(tables.drawn, "f", f"alpha_{layer} public")
        looks = dict(linestyle="--", linewidth=0.9, marker=marker, markerfacecolor="white")
        axes.plot(found["x"], found["y"], color=colour, label=f"{name}, public", **looks)
    _over_skips(axes, tables)
    axes.set_title("public thresholds")
    style.legend_below(axes, 2)


def _over_skips(axes, tables: Tables) -> None:
    lowest, highest = _skips(style.series(tables.drawn, "e", "alpha_2"))
    axes.set(xscale="log", xlim=(lowest / 1.15, highest * 1.15), xlabel="skip connection c")
    style.plain_ticks(axes.xaxis, TICKS)
    axes.set(ylim=(0, 1.13), ylabel="threshold α")


def caption(inputs: Inputs, block: Block) -> str:
    """Says what is shown, what the eye sees, how it was made."""
    entry, runs = inputs.entries["regularised"], inputs.entries["gamp"]
    return (
        "Two tied layers of attention: the last is learned from fewer samples per dimension.\n\n"
        f"**(a)** Overlaps by state evolution, {channel(entry)} in channel and data (dotted: from "
        "side information, hidden where equal); background: cut at α₂ and α₁; crosses: squared "
        f"cosines of GAMP, {runs['init']} start; squares: public data. **(b)** Plug-in errors. "
        "**(c)** The same without a regulariser. **(d)** GAMP's overlaps of different layers, "
        "which vanish as 1/√D. **(e)** Thresholds over c; in linear stability none is below 1/6 "
        "(grey). **(f)** Thresholds that the public repository stores.\n\n"
        f"{sampled(entry)}; bands: standard errors. Crosses: mean and standard error of "
        f"{theories.runs_of(runs)}. Hollow: not converged.\n"
    )
