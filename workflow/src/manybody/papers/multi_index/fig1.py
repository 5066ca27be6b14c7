"""Figure 1: overlaps (a), plug-in errors (b) over samples per dimension; thresholds over c (c)."""

import math
from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from manybody.io.options import Block as Part, key, refers
from manybody.measure.intervals import Value, mean
from manybody.papers import claims as records, readings, style
from manybody.papers.figure import Figure
from manybody.papers.multi_index import curves, public
from manybody.papers.multi_index.curves import BOUND, KIND, LAYERS, Inputs, channel, sampled

CHANNELS = {"regularised": {}, "state_evolution": curves.LIGHT}
FORCED = ("both layers", "layer 2 only")
# Differences that count as none: of stored overlaps of state evolution and of message passing, of
# stored thresholds, of alpha_1 at two c.
SAME_OVERLAP, SAME_RUNS, SAME_THRESHOLD, SAME_ALPHA_1 = 0.02, 0.05, 0.01, 0.002


class MultiIndexFig1Theory(Part):
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


def tables(inputs: Inputs, block: Block) -> style.Tables:
    found = inputs.read()
    regularised, runs = found["regularised"], found["gamp"]
    last = regularised.get("overlap", "Q11")["x"].max()
    drawn = {"a": [], "b": [*_end_rows(runs, "error plug-in", "GAMP plug-in error")]}
    for table in (found["state_evolution"], regularised):
        drawn["a"] += curves.overlap_rows(table, LAYERS, "from 0", "informed")
        drawn["b"] += curves.error_rows(table, FORCED, "from 0")
    for layer in LAYERS:
        drawn["a"] += _end_rows(runs, f"cosine {layer}", f"GAMP cosine² of layer {layer}")
    drawn["a"] += curves.stored_rows(regularised, public.TWO_LAYERS, public.OVERLAPS, last)
    drawn["c"] = _threshold_rows(found["thresholds"])
    return style.Tables(curves.gathered(drawn), found)


def _end_rows(runs: readings.Table, quantity: str, name: str) -> Iterator[pd.DataFrame]:
    """Means over runs of message passing at the last iteration, squared if of a cosine, against
    alpha; apart from the others those at which a run did not converge."""
    for series in sorted(runs.series("cosine 1"), key=float):
        values = curves.last(runs, quantity, series)
        value, error, _ = mean(values**2 if quantity.startswith("cosine") else values)
        of = f"{name}, {curves.FAILED}" if len(runs.failed(series)) else name
        yield style.points("", of, 0, float(series), value, error)


def _threshold_rows(table: readings.Table) -> list[pd.DataFrame]:
    first, second = table.get("alpha_1", "self-consistent"), table.get("alpha_2", "exact")
    low, high = _skips(second)
    parts = [
        curves.points("bound 1/6", dict.fromkeys(second["x"], BOUND)),
        curves.named(first, "alpha_1 self-consistent"),
        curves.named(second, "alpha_2"),
        curves.named(table.get("alpha_1", "literal"), "alpha_1 literal"),
        curves.failures([*table.failed("alpha_1"), *table.failed("alpha_2")]),
    ]
    for name, stored in (("alpha_1", public.ALPHA_1), ("alpha_2", public.ALPHA_2)):
        inside = {c: value for c, value in stored.items() if low / 1.3 <= c <= high * 1.3}
        parts.append(curves.points(f"{name} public", inside))
    return parts


def _skips(second: pd.DataFrame) -> tuple[float, float]:
    """The least and the largest skip connection that is shown."""
    return second["x"][second["x"] > 0].min(), min(second["x"].max(), 10.0)


def _doubts(table: readings.Table) -> str:
    """The identities of a posterior that its averages do not keep to."""
    return "; ".join(table.about.get("broken", []))


def _first(table: readings.Table) -> records.Comparison:
    label = f"alpha_1 - alpha_2, c = {table.entry['skip']:g}, {channel(table.entry)}"
    first, last = (curves.threshold(table, layer) for layer in LAYERS)
    if first is None or last is None:
        return records.unusable(label, "a threshold is missing in the table")
    # That of the layer that is learned first is exact and has no error.
    errors = [each.error for each in (last, first) if math.isfinite(each.error)]
    error = math.hypot(*errors) if errors else math.nan
    gap, doubts = first.value - last.value, _doubts(table)
    return records.above(label, gap, error, runs=first.runs, unusable=doubts)


def _public_overlaps(table: readings.Table, runs: readings.Table) -> list[records.Comparison] | str:
    found, away = [], readings.departure(table.entry, **public.TWO_LAYERS)
    if not away:
        found = curves.from_stored(table, public.OVERLAPS, SAME_OVERLAP, "from 0")
        found = [replace(each, unusable=_doubts(table) or each.unusable) for each in found]
    if not readings.departure(runs.entry, **public.RUNS_SETTING):
        for name, stored in public.MESSAGE_PASSING.items():
            label = f"GAMP, D = 1000, {name}"
            values = {alpha: converged_mean(runs, name, alpha) for alpha in stored}
            found.append(curves.largest_difference(label, values, stored, SAME_RUNS))
    return found or away


def converged_mean(table: readings.Table, quantity: str, alpha: float) -> Value | None:
    """The mean, at the last iteration, over the runs that converged: at finite size some go on
    fluctuating. None where fewer than two of several did."""
    for series in table.series("cosine 1"):
        converged = table.get("converged", series).set_index("seed")["y"] == 1
        if math.isclose(float(series), alpha) and converged.sum() >= min(2, len(converged)):
            return mean(curves.last(table, quantity, series)[converged].abs())
    return None


def _public_thresholds(table: readings.Table) -> list[records.Comparison] | str:
    if away := readings.departure(table.entry, activation="softmax", regulariser=0):
        return away
    first = {c: table.at("alpha_1", "self-consistent", c) for c in public.ALPHA_1}
    second = {c: table.at("alpha_2", "exact", c) for c in public.ALPHA_2}
    second = {c: value and Value(value.value, 0.0) for c, value in second.items()}  # has no noise
    return [
        curves.largest_difference("alpha_1", first, public.ALPHA_1, SAME_THRESHOLD, "c"),
        curves.largest_difference("alpha_2", second, public.ALPHA_2, SAME_THRESHOLD, "c"),
    ]


def _alpha_1_over_c(table: readings.Table) -> list[records.Comparison] | str:
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
    runs = table.entry["scrambles"]
    return [records.near(label, *worst[["y", "y_err"]], 0.0, SAME_ALPHA_1, runs=runs)]


def claims(tables: style.Tables) -> list[records.Claim]:
    plain, regularised = tables.found["state_evolution"], tables.found["regularised"]
    runs, over_c = tables.found["gamp"].entry, tables.found["thresholds"]
    overlaps = f"two layers, c = {regularised.entry['skip']:g}, {sampled(regularised.entry)}"
    over = over_c.entry
    thresholds = f"two layers, {channel(over)}, {len(over['skips'])} values of c, {sampled(over)}"
    return [
        curves.claim(
            "fig1/last-layer-first",
            "The last layer is learned from fewer samples than the first",
            [_first(plain), _first(regularised)],
            overlaps,
            "the threshold of layer 1 is above that of layer 2, with and without a regulariser",
            "figure 1, left",
        ),
        curves.claim(
            "fig1/public-overlaps",
            "State evolution and message passing are those of the public repository",
            _public_overlaps(regularised, tables.found["gamp"]),
            f"{overlaps}; GAMP: D = {runs['dimension']}, {curves.runs_of(runs)} at each alpha",
            f"the largest difference of an overlap is below {SAME_OVERLAP:g}, of what GAMP ends "
            f"with below {SAME_RUNS:g}",
            "figure 1, left",
        ),
        curves.claim(
            "fig1/public-thresholds",
            "The thresholds are those of the public repository",
            _public_thresholds(over_c),
            thresholds,
            f"the largest difference over c is below {SAME_THRESHOLD:g}",
            "figure 1, right",
        ),
        curves.claim(
            "fig1/alpha-1-over-c",
            "The threshold of the first layer does not depend on the skip connection c",
            _alpha_1_over_c(over_c),
            thresholds,
            f"the largest difference is below {SAME_ALPHA_1:g}",
        ),
    ]


@style.in_house_style
def draw(tables: style.Tables):
    figure = style.new(2, 5.0)
    figure.get_layout_engine().set(wspace=0.04, h_pad=0.06)
    panels = {"a": _draw_overlaps, "b": _draw_errors, "c": _draw_thresholds}
    for letter, axes in figure.subplot_mosaic("ab\nac", width_ratios=(1.2, 1)).items():
        panels[letter](axes, tables)
        curves.mark_failures(axes, tables.drawn, letter)
    runs, plain = (tables.found[role].entry for role in ("gamp", "state_evolution"))
    label = f"GAMP, D = {runs['dimension']}, {curves.runs_of(runs)}"
    marks = {
        f"light: {channel(plain)}": {"color": "0.2"} | curves.LIGHT,
        "thresholds": curves.START | {"color": "0.3"},
        label: dict(color="0.3", linestyle="", marker="X", markersize=6, markeredgewidth=0),
    }
    curves.legend(figure, tables.drawn, reversed(LAYERS), marks, 4)
    return figure


def _draw_overlaps(axes, tables: style.Tables) -> None:
    curves.overlaps(axes, tables, CHANNELS, LAYERS)
    for layer in LAYERS:
        _marks(axes, tables.drawn, "a", f"GAMP cosine² of layer {layer}", curves.LAYER[layer])
    plain, regularised = tables.found["state_evolution"], tables.found["regularised"]
    axes.set_title(f"(a) overlaps, c = {regularised.entry['skip']:g}")
    if doubts := _doubts(plain) or _doubts(regularised):
        looks = dict(transform=axes.transAxes, fontsize=style.SMALL, wrap=True)
        axes.text(0.02, 0.5, f"not to be trusted: {doubts}", **looks)


def _draw_errors(axes, tables: style.Tables) -> None:
    curves.errors(axes, tables, CHANNELS, FORCED, "Q₁₁ forced to 0")
    _marks(axes, tables.drawn, "b", "GAMP plug-in error", curves.ERROR)
    axes.set(ylim=(2e-3, 0.6), title="(b) error of the prediction")


def _draw_thresholds(axes, tables: style.Tables) -> None:
    drawn = tables.drawn
    for layer, series in ((1, "alpha_1 self-consistent"), (2, "alpha_2")):
        colour = curves.LAYER[layer]
        curves.line(axes, drawn, "c", series, colour, marker="o", markersize=3)
        dashed = dict(linestyle="--", linewidth=0.9, markeredgecolor=colour)
        curves.line(axes, drawn, "c", f"alpha_{layer} public", colour, **curves.PUBLIC | dashed)
    curves.line(axes, drawn, "c", "alpha_1 literal", curves.LAYER[1], linestyle=":")
    curves.bound(axes)
    low, high = _skips(style.series(drawn, "c", "alpha_2"))
    axes.set(xscale="log", xlim=(low / 1.15, high * 1.15), xlabel="skip connection c")
    axes.set(ylim=(0, None), ylabel="threshold α")
    axes.set_title(f"(c) thresholds, {channel(tables.found['thresholds'].entry)}")
    style.plain_ticks(axes.xaxis, (0.01, 0.03, 0.1, 0.3, 1, 3, 10))


def _marks(axes, drawn: pd.DataFrame, panel: str, series: str, colour: str) -> None:
    """Marks with error bars; hollow where a run did not converge."""
    failed = f"{series}, {curves.FAILED}"
    looks = dict(color=colour, marker="X", markersize=6, markeredgewidth=0.6, linestyle="")
    for name, face, edge in (series, colour, "white"), (failed, "white", colour):
        shown = style.series(drawn, panel, name)
        looks |= dict(zorder=5, markerfacecolor=face, markeredgecolor=edge)
        axes.errorbar(shown["x"], shown["y"], shown["y_err"].fillna(0), **looks)


def caption(inputs: Inputs, block: Block) -> str:
    entry, runs = inputs.entries["regularised"], inputs.entries["gamp"]
    return (
        "Two tied layers of attention: the last is learned from fewer samples per dimension.\n\n"
        f"**(a)** Overlaps by state evolution, {channel(entry)} in channel and data, light: "
        "without; dotted, hidden where equal: from side information; triangles: thresholds; "
        f"crosses: squared cosines of GAMP, {runs['init']} start; squares: public data. **(b)** "
        "Plug-in errors. **(c)** Thresholds over c; dotted: α₁ if layer 2 is known; the "
        "public α₂ goes below the bound of 1/6.\n\n"
        f"{sampled(entry)}; bands: standard errors. Crosses: mean and standard error of "
        f"{curves.runs_of(runs)}, hollow: not all converged.\n"
    )
