"""Figure 1: overlaps and prediction error against the samples per dimension; thresholds over c.

(a) overlaps, (b) plug-in errors, (c) overlaps without a regulariser, (d) overlaps of different
layers, (e) thresholds over c, (f) the same against public data.
"""

import math
from dataclasses import replace
from itertools import pairwise

import pandas as pd

from manybody.io import options
from manybody.io.options import key, refers
from manybody.papers import claims as records
from manybody.papers import readings, style
from manybody.papers.claims import Comparison
from manybody.papers.figure import Figure
from manybody.papers.multi_index import curves, public
from manybody.papers.multi_index.curves import BOUND, KIND, LAYERS, Inputs, Tables, channel, sampled
from manybody.papers.readings import Table, Value

RED, BLUE = curves.LAYER[2], curves.LAYER[1]
PHASES = ("0.95", "#FBEADF", "#DFEDF7")  # nothing, the last layer, also the first is learned
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


def tables(inputs: Inputs, block: Block) -> Tables:
    """Curves of state evolution, ends of message passing, thresholds, and their comparisons.

    Stated are starts: alpha_2 and alpha_1 of (a); jump: the largest c at which layer 2 jumps, or 0;
    doubts: identities of a posterior that the averages of (a) to (c) do not keep to.
    """
    found = inputs.read()
    plain, regularised = found["state_evolution"], found["regularised"]
    runs, thresholds = found["gamp"], found["thresholds"]
    drawn = {
        "a": _learning_rows(regularised, runs),
        "b": _error_rows(plain, regularised, runs),
        "c": _overlap_rows(plain, BARE)
        + [
            curves.named(regularised.get("overlap", name), f"{name}, as in (a)")
            for name in ("Q11", "Q22")
        ],
        "d": _across_rows(runs),
        "e": _threshold_rows(thresholds),
        "f": _published_rows(thresholds),
    }
    judged = {
        "last-layer-first": [_first(plain), _first(regularised)],
        "public-overlaps": _public_overlaps(regularised, runs),
        "public-thresholds": _public_thresholds(thresholds),
        "alpha-1-over-c": _alpha_1_over_c(thresholds),
    }
    jumps = thresholds.get("first order")
    stated = {
        "starts": [value.value for value in _starts(regularised) if math.isfinite(value.value)],
        "jump": float(max(jumps.loc[jumps["y"] > 0, "x"], default=0.0)),
        "doubts": _doubts(plain) or _doubts(regularised),
    }
    entries = {role: table.entry for role, table in found.items()}
    return Tables(curves.gathered(drawn), judged, entries, stated)


# --- What is drawn --------------------------------------------------------------------------------


def _overlap_rows(table: Table, note: str) -> list[pd.DataFrame]:
    """Overlaps of state evolution from near 0 and from strong side information."""
    parts = []
    for name in ("Q11", "Q22"):
        near, far = table.get("overlap", name), table.get("overlap informed", name)
        parts += curves.line_rows(near, name + note, table.failed("from 0"))
        parts += curves.line_rows(far, name + note + INFORMED, table.failed("informed"))
    return parts


def _end_rows(runs: Table, quantity: str, name: str) -> list[pd.DataFrame]:
    """Means over runs of message passing at the last iteration, squared if of a cosine, against
    alpha; apart from the others those at which a run did not converge."""
    rows = []
    for series in sorted(runs.series("cosine 1"), key=float):
        values = curves.last(runs, quantity, series)
        value, error, _ = readings.mean(values**2 if quantity.startswith("cosine") else values)
        rows.append((float(series), value, error, len(runs.failed(series)) > 0))
    found = pd.DataFrame(rows, columns=["x", "y", "y_err", "failed"])
    failed = found["failed"].astype(bool)
    return [curves.named(found[~failed], name), curves.named(found[failed], name, failed=True)]


def _learning_rows(table: Table, runs: Table) -> list[pd.DataFrame]:
    parts = _overlap_rows(table, "")
    for layer in LAYERS:
        parts += _end_rows(runs, f"cosine {layer}", f"GAMP cosine² of layer {layer}")
    last = float(table.get("overlap", "Q11")["x"].max())
    return parts + curves.stored_rows(table, public.TWO_LAYERS, public.OVERLAPS, last)


def _error_rows(plain: Table, regularised: Table, runs: Table) -> list[pd.DataFrame]:
    parts = []
    for table, note in ((plain, BARE), (regularised, "")):
        for series in FORCED:
            errors = table.get("error plug-in", series)
            name = f"plug-in error, {series}{note}"
            parts += curves.line_rows(errors, name, table.failed("from 0"))
    return parts + _end_rows(runs, "error plug-in", "GAMP plug-in error")


def _across_rows(runs: Table) -> list[pd.DataFrame]:
    """GAMP's overlaps of different layers, which state evolution keeps at 0, and 1 / sqrt(D)."""
    alphas = sorted(map(float, runs.series("cosine 1")))
    size = 1 / math.sqrt(runs.entry["dimension"])
    lines = {"state evolution, M12, M21, Q12": 0.0, "1 / sqrt(D)": size}
    parts = [curves.points(name, dict.fromkeys(alphas, y)) for name, y in lines.items()]
    for quantity in ACROSS:
        parts += _end_rows(runs, quantity, f"GAMP {quantity}")
    return parts


def _threshold_rows(table: Table) -> list[pd.DataFrame]:
    first, second = table.get("alpha_1", "self-consistent"), table.get("alpha_2", "exact")
    return [
        curves.points("bound 1/6", {float(c): BOUND for c in second["x"]}),
        *curves.line_rows(first, "alpha_1 self-consistent", table.failed("alpha_1")),
        *curves.line_rows(second, "alpha_2", table.failed("alpha_2")),
        curves.named(table.get("alpha_1", "literal"), "alpha_1 literal"),
        *(curves.named(table.get(name), name) for name in JUMPS),
    ]


def _published_rows(table: Table) -> list[pd.DataFrame]:
    """alpha_1 and alpha_2 over c, and what the public repository stores under these names."""
    low, high = _skips(table.get("alpha_2", "exact"))
    parts = []
    for name, series, stored in (
        ("alpha_1", "self-consistent", public.ALPHA_1),
        ("alpha_2", "exact", public.ALPHA_2),
    ):
        inside = {c: value for c, value in stored.items() if low / 1.3 <= c <= high * 1.3}
        parts.append(curves.named(table.get(name, series), f"{name}, as in (e)"))
        parts.append(curves.points(f"{name} public", inside))
    return parts


def _skips(second: pd.DataFrame) -> tuple[float, float]:
    """The least and the largest skip connection that is shown."""
    return float(second["x"][second["x"] > 0].min()), min(float(second["x"].max()), 10.0)


# --- What is judged -------------------------------------------------------------------------------


def _starts(table: Table) -> list[Value]:
    """alpha_2 and alpha_1 of the entry's c, as far as they are in the table."""
    found = (table.at("threshold", name, table.entry["skip"]) for name in ("alpha_2", "alpha_1"))
    return [each for each in found if each is not None]


def _doubts(table: Table) -> str:
    return "; ".join(table.about.get("broken", []))


def _first(table: Table) -> Comparison:
    label = f"alpha_1 - alpha_2, c = {table.entry['skip']:g}, {channel(table.entry)}"
    found = _starts(table)
    if len(found) < 2:
        return curves.unusable(label, "a threshold is missing in the table")
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
        found = curves.from_stored(table, public.OVERLAPS, SAME_OVERLAP, "from 0")
        found = [replace(each, unusable=_doubts(table) or each.unusable) for each in found]
    if not readings.departure(runs.entry, **public.RUNS_SETTING):
        for name, stored in public.MESSAGE_PASSING.items():
            values = {alpha: converged_mean(runs, name, alpha) for alpha in stored}
            given = f"GAMP, D = 1000, {name}", values, stored, SAME_RUNS
            found.append(curves.largest_difference(*given))
    return found or away


def converged_mean(table: Table, quantity: str, alpha: float) -> Value | None:
    """The mean, at the last iteration, over the runs that converged: at finite size some go on
    fluctuating. None where fewer than two of several did."""
    for series in table.series("cosine 1"):
        converged = table.get("converged", series).set_index("seed")["y"] == 1
        enough = converged.sum() >= min(2, len(converged))
        if math.isclose(float(series), alpha) and enough:
            return readings.mean(curves.last(table, quantity, series)[converged].abs())
    return None


def _public_thresholds(table: Table) -> list[Comparison] | str:
    if away := readings.departure(table.entry, activation="softmax", regulariser=0):
        return away
    first = {c: table.at("alpha_1", "self-consistent", c) for c in public.ALPHA_1}
    second = {c: table.at("alpha_2", "exact", c) for c in public.ALPHA_2}
    second = {c: value and Value(value.value, 0.0) for c, value in second.items()}  # has no noise
    return [
        curves.largest_difference("alpha_1", first, public.ALPHA_1, SAME_THRESHOLD, "c"),
        curves.largest_difference("alpha_2", second, public.ALPHA_2, SAME_THRESHOLD, "c"),
    ]


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
    value = Value(float(worst["y"]), float(worst["y_err"]), table.entry["scrambles"])
    return [curves.near(label, value, 0.0, SAME_ALPHA_1)]


def claims(tables: Tables) -> list[records.Claim]:
    """Which layer needs fewer samples, and whether numbers are those of the public repository."""
    entry, over, runs = (tables.entries[role] for role in ("regularised", "thresholds", "gamp"))
    overlaps = f"two layers, c = {entry['skip']:g}, {sampled(entry)}"
    thresholds = f"two layers, {channel(over)}, {len(over['skips'])} values of c, {sampled(over)}"
    rows = {
        "last-layer-first": dict(
            statement="The last layer is learned from fewer samples than the first",
            reference="figure 1, left",
            scope=overlaps,
            rule="the threshold of layer 1 is above that of layer 2, with and without a "
            "regulariser",
        ),
        "public-overlaps": dict(
            statement="State evolution and message passing are those of the public repository",
            reference="figure 1, left",
            scope=f"{overlaps}; GAMP: D = {runs['dimension']}, {curves.runs_of(runs)} at each "
            "alpha",
            rule=f"the largest difference of an overlap is below {SAME_OVERLAP:g}, of what GAMP "
            f"ends with below {SAME_RUNS:g}",
        ),
        "public-thresholds": dict(
            statement="The thresholds are those of the public repository",
            reference="figure 1, right",
            scope=thresholds,
            rule=f"the largest difference over c is below {SAME_THRESHOLD:g}",
        ),
        "alpha-1-over-c": dict(
            statement="The threshold of the first layer does not depend on the skip connection c",
            scope=thresholds,
            rule=f"the largest difference is below {SAME_ALPHA_1:g}",
        ),
    }
    return curves.claims("fig1", tables, rows)


# --- The picture ----------------------------------------------------------------------------------


@style.in_house_style
def draw(tables: Tables):
    """Panels (a) to (d) over alpha, (e) and (f) over c."""
    figure = style.new(2, 5.6)
    figure.get_layout_engine().set(wspace=0.03, h_pad=0.06)
    last = float(style.series(tables.drawn, "a", "Q11")["x"].max())
    panels = _learning, _errors, _regulariser, _across, _thresholds, _published
    for letter, axes, panel in zip("abcdef", figure.subplots(2, 3).flat, panels, strict=True):
        if letter in "abcd":
            axes.set(xlim=(0, last), xlabel="samples α = N / D")
        handles = panel(axes, tables)
        axes.set_title(f"({letter}) {axes.get_title(loc='left')}")
        style.legend_below(axes, handles=handles)
    return figure


def _learning(axes, tables: Tables) -> list:
    drawn, entry, starts = tables.drawn, tables.entries["regularised"], tables.stated["starts"]
    handles = _overlaps(axes, tables, "a", "")
    for layer in LAYERS:
        curves.marks(axes, drawn, "a", f"GAMP cosine² of layer {layer}", curves.LAYER[layer])
    edges = [0.0, *starts, axes.get_xlim()[1]]
    for (low, high), colour in zip(pairwise(edges), PHASES, strict=False):
        axes.axvspan(low, high, color=colour, linewidth=0, zorder=-2)
        axes.axvline(low, color="0.7", linewidth=0.8, zorder=-1)
    axes.set_title(f"overlaps: c = {entry['skip']:g}, {channel(entry)}")
    handles += curves.handles({"from side information": dict(color="0.3", linestyle=":")})
    if starts:
        named = zip(("α₂", "α₁"), starts, strict=False)
        label = ", ".join(f"{name} = {threshold:.3f}" for name, threshold in named)
        handles += curves.handles({label: dict(color="0.7", linewidth=0.8)})
    return handles + _marks(tables, "a") + curves.stored(axes, drawn, "a", LAYERS)


def _errors(axes, tables: Tables) -> list:
    for note, looks in ((BARE, curves.LIGHT), ("", {})):
        for series, (dashes, _) in FORCED.items():
            name = f"plug-in error, {series}{note}"
            dashed = looks | {"linestyle": dashes}
            curves.line(axes, tables.drawn, "b", name, curves.ERROR, **dashed)
    curves.marks(axes, tables.drawn, "b", "GAMP plug-in error", curves.ERROR)
    axes.set_yscale("log", nonpositive="mask")  # nothing is left where both layers are known
    axes.set(ylim=(2e-3, 0.6), ylabel="plug-in error", title="error of the prediction")
    light = f"light: {channel(tables.entries['state_evolution'])}"
    lines = {label: {"color": curves.ERROR, "linestyle": line} for line, label in FORCED.values()}
    lines[light] = {"color": curves.ERROR} | curves.LIGHT
    return curves.handles(lines) + _marks(tables, "b")


def _regulariser(axes, tables: Tables) -> list:
    handles = _overlaps(axes, tables, "c", BARE)
    for layer in LAYERS:
        name = f"Q{layer}{layer}, as in (a)"
        curves.line(axes, tables.drawn, "c", name, curves.LAYER[layer], **curves.LIGHT)
    axes.set_title(f"the same, {channel(tables.entries['state_evolution'])}")
    light = f"light: {channel(tables.entries['regularised'])}"
    return handles + curves.handles({light: {"color": "0.3"} | curves.LIGHT})


def _overlaps(axes, tables: Tables, panel: str, note: str) -> list:
    """Overlaps of both layers, dotted from side information, and the legend's lines of layers."""
    for layer in LAYERS:
        name, colour = f"Q{layer}{layer}{note}", curves.LAYER[layer]
        curves.line(axes, tables.drawn, panel, name, colour)
        curves.line(axes, tables.drawn, panel, name + INFORMED, colour, linestyle=":")
    axes.set(ylim=(-0.03, 1.05), ylabel="overlap Q")
    if doubts := tables.stated["doubts"]:
        looks = dict(transform=axes.transAxes, fontsize=style.SMALL, wrap=True)
        axes.text(0.02, 0.5, f"not to be trusted: {doubts}", **looks)
    return curves.handles({f"layer {k}": {"color": curves.LAYER[k]} for k in reversed(LAYERS)})


def _across(axes, tables: Tables) -> list:
    size = float(style.series(tables.drawn, "d", "1 / sqrt(D)")["y"].iloc[0])
    dotted = dict(color="0.4", linewidth=0.8, linestyle=":")
    axes.axhline(0, color="0.6", linewidth=0.8, zorder=1)
    axes.axhline(size, **dotted, zorder=1)
    for place, (quantity, (marker, colour, _)) in enumerate(ACROSS.items()):
        look = marker, 4.5, (place - 1) * BESIDE
        curves.marks(axes, tables.drawn, "d", f"GAMP {quantity}", colour, *look)
    shown = tables.drawn[tables.drawn["panel"] == "d"]
    highest = float((shown["y"] + shown["y_err"].fillna(0)).max())
    axes.set(ylim=(-0.08 * highest, 1.1 * highest), ylabel="overlap of different layers")
    axes.set_title("different layers")
    lines = {
        label: dict(color=colour, linestyle="", marker=marker)
        for marker, colour, label in ACROSS.values()
    }
    lines[f"1/√D = {size:.3f}"] = dotted
    return curves.handles(lines) + curves.failures(tables.drawn, "d")


def _marks(tables: Tables, panel: str) -> list:
    """The legend's lines of GAMP's marks, and of hollow ones if the panel has any."""
    entry = tables.entries["gamp"]
    label = f"GAMP, D = {entry['dimension']}, {curves.runs_of(entry)}"
    looks = dict(color="0.3", linestyle="", marker="X", markersize=6, markeredgewidth=0)
    return curves.handles({label: looks}) + curves.failures(tables.drawn, panel)


def _thresholds(axes, tables: Tables) -> None:
    axes.axhspan(0, BOUND, color="0.93", linewidth=0, zorder=-2)
    axes.axhline(BOUND, color="0.5", linewidth=0.8, zorder=-1)
    if tables.stated["jump"]:
        axes.axvspan(0, tables.stated["jump"], color=PHASES[1], linewidth=0, zorder=-3)
    dots, no_line = dict(marker="o"), dict(linestyle="", markerfacecolor="none")
    for series, label, colour, looks in (
        ("alpha_1 self-consistent", "α₁, self-consistent", BLUE, dots),
        ("alpha_2", "α₂", RED, dots),
        ("alpha_1 literal", "α₁, layer 2 known", BLUE, dict(marker=".", linestyle=":")),
    ):
        curves.line(axes, tables.drawn, "e", series, colour, label, markersize=3, **looks)
    for series, (marker, colour, label) in JUMPS.items():
        curves.line(axes, tables.drawn, "e", series, colour, label, marker=marker, **no_line)
    place = dict(transform=axes.get_yaxis_transform(), va="top", fontsize=style.SMALL)
    axes.text(0.02, BOUND - 0.01, "below 1/6: 0 is stable", **place)
    _over_skips(axes, tables, "thresholds")


def _published(axes, tables: Tables) -> None:
    for layer, name, marker in ((1, "α₁", "s"), (2, "α₂", "D")):
        drawn, series, colour = tables.drawn, f"alpha_{layer}", curves.LAYER[layer]
        curves.line(axes, drawn, "f", f"{series}, as in (e)", colour, name)
        looks = dict(linestyle="--", linewidth=0.9, marker=marker, markerfacecolor="white")
        curves.line(axes, drawn, "f", f"{series} public", colour, f"{name}, public", **looks)
    _over_skips(axes, tables, "public thresholds")


def _over_skips(axes, tables: Tables, title: str) -> None:
    lowest, highest = _skips(style.series(tables.drawn, "e", "alpha_2"))
    axes.set(xscale="log", xlim=(lowest / 1.15, highest * 1.15), xlabel="skip connection c")
    axes.set(ylim=(0, 1.13), ylabel="threshold α", title=title)
    style.plain_ticks(axes.xaxis, (0.01, 0.03, 0.1, 0.3, 1, 3, 10))


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
        f"{curves.runs_of(runs)}. Hollow: not converged.\n"
    )
