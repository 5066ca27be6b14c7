"""Figure 3: three layers; how two layers of a classifier of questions are learned.

Left: tables of `theory.multi_index.deep`, without and with a regulariser; right: one of
`theory.multi_index.trec`, or two where TREC's questions are given. Between them, beyond the paper:
thresholds over c of three tied layers, and of untied ones, a table of `theory.multi_index.untied`.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from manybody.io import options
from manybody.io.options import key, refers
from manybody.papers import claims as records
from manybody.papers import readings, style
from manybody.papers.claims import Comparison
from manybody.papers.figure import Figure
from manybody.papers.multi_index import curves, public, theories
from manybody.papers.multi_index.theories import BOUND, KIND, LAYERS, LEARNED, Inputs, channel
from manybody.papers.readings import Table

ORDER = (3, 1, 2)  # in which the layers are learned
ERRORS = {"all layers": "-", "last layer only": "--"}
UNTIED = {
    "L = 1": ("D", "0.35", "L = 1, untied"),
    "L = 2 last": ("s", curves.LAYER[2], "L = 2, untied, last"),
    "L = 2 first": ("^", curves.LAYER[1], "L = 2, untied, first"),
}
SAME_OVERLAP = 0.05  # difference from a stored overlap that counts as none
SHARED = 0.05  # relative gap of two thresholds that count as one
SAME_START, STEP_SHARE = 0.02, 0.2  # the same of similarities at first, and of steps


class MultiIndexFig3Theory(options.Block):
    """Theory of figure 3."""

    deep: refers("theory", f"{KIND}deep") = key("Theory of kind multi-index-deep.")
    deep_regularised: refers("theory", f"{KIND}deep") = key(
        "The same kind with a regulariser, as the public code has one."
    )
    trec: refers("theory", f"{KIND}trec") = key("Theory of kind multi-index-trec.")
    docstrings: refers("theory", f"{KIND}trec") = key("The same kind with other questions.")
    untied: refers("theory", f"{KIND}untied") = key("Theory of kind multi-index-untied.")


class Block(Figure):
    """Three layers, and a classifier of questions."""

    theory: MultiIndexFig3Theory = key("What is drawn.")


@dataclass(frozen=True)
class Tables:
    """Rows drawn; comparisons by claim, or the cause why there are none; the entries by role;
    what is classified in each panel at the right."""

    drawn: pd.DataFrame
    judged: dict[str, list[Comparison] | str]
    entries: dict[str, dict]
    classified: dict[str, str]


def tables(inputs: Inputs, block: Block) -> Tables:
    """Overlaps and thresholds of three layers, similarities of classifiers, and comparisons."""
    found = inputs.read()
    deep, regularised, untied = found["deep"], found["deep_regularised"], found["untied"]
    classifiers = {"right": found["docstrings"]}
    if found["trec"].series("similarity 1"):
        classifiers["right, TREC"] = found["trec"]
    drawn = {
        "left": [*_deep_rows(deep), *_deep_rows(regularised), *_stored_rows(deep, regularised)],
        "phase diagram": _phase_rows(deep, untied),
        **{panel: _similarity_rows(table) for panel, table in classifiers.items()},
    }
    judged = {
        "public-overlaps": readings.departure(regularised.entry, **public.DEEP_SETTING)
        or theories.from_stored(regularised, public.DEEP, SAME_OVERLAP, ""),
        "shared-threshold": [_shared(deep), _shared(regularised)],
        "last-layer-first": [
            _gap("L = 3, layer 1 less the last", deep, "alpha_3", "alpha_1"),
            _gap("L = 2, untied, the first less the last", untied, "L = 2 last", "L = 2 first"),
        ],
        # The two change places between c = 1 and 2.
        "first-before-middle": [_gap("L = 3, layer 2 less layer 1", deep, "alpha_1", "alpha_2", 1)],
        "classifier-first-layer-first": [
            theories.later(_classified(table), table, "similarity 1", "similarity 2")
            for table in classifiers.values()
        ],
        "public-similarities": _public_similarities(found["trec"]),
    }
    return Tables(
        curves.gathered(drawn),
        judged,
        {role: table.entry for role, table in found.items()},
        {panel: _classified(table) for panel, table in classifiers.items()},
    )


def _classified(table: Table) -> str:
    """The texts that a classifier tells apart."""
    return "docstrings by package" if isinstance(table.entry["questions"], dict) else "TREC"


# --- What is drawn --------------------------------------------------------------------------------


def _deep_rows(table: Table) -> list[pd.DataFrame]:
    """Curves and thresholds of one table."""
    note, failed, last = f", {channel(table.entry)}", table.failed(""), _last(table)
    parts = []
    for layer in ORDER:
        name = f"Q{layer}{layer}"
        parts += curves.line_rows(table.get("overlap", name), name + note, failed)
        start = table.at("threshold", f"alpha_{layer}", table.entry["skip"])
        if start is not None and start.value < last:
            parts.append(curves.points(f"alpha_{layer}{note}", {start.value: 0.0}))
    for series in ERRORS:
        errors = table.get("error plug-in", series)
        parts += curves.line_rows(errors, f"plug-in error, {series}{note}", failed)
    return parts


def _stored_rows(plain: Table, regularised: Table) -> list[pd.DataFrame]:
    last = max(_last(plain), _last(regularised))
    stored = {f"Q{layer}{layer}": public.DEEP[f"Q{layer}{layer}"] for layer in ORDER}
    return curves.stored_rows(regularised, public.DEEP_SETTING, stored, last)


def _last(table: Table) -> float:
    return float(table.get("overlap", "Q33")["x"].max())


def _phase_rows(deep: Table, untied: Table) -> list[pd.DataFrame]:
    parts = []
    for layer in ORDER:
        found = deep.get("threshold", f"alpha_{layer}").dropna(subset=["y"])
        parts += curves.line_rows(found, f"three layers, alpha_{layer}")
    for series in UNTIED:
        found = untied.get("threshold", series)
        parts += curves.line_rows(found, f"untied, {series}", untied.failed(series))
    return parts


def _similarity_rows(table: Table) -> list[pd.DataFrame]:
    """Mean and standard deviation over runs, and all runs."""
    parts = []
    for layer in LAYERS:
        name, found = f"similarity {layer}", table.get(f"similarity {layer}")
        runs = readings.matrix(found)
        shown = pd.DataFrame({"y": runs.mean(), "y_err": runs.std(ddof=1)}).reset_index()
        parts += [curves.named(shown, f"{name}, mean and sd of runs"), curves.named(found, name)]
    return parts


# --- What is judged -------------------------------------------------------------------------------


def _shared(table: Table) -> Comparison:
    """The gap of the thresholds of layers 1 and 2, with the error of independent ones, over the
    smaller one."""
    label = f"alpha_2 / alpha_1 - 1, {channel(table.entry)}"
    found = [table.at("threshold", f"alpha_{layer}", table.entry["skip"]) for layer in LAYERS]
    if any(value is None or math.isnan(value.value) for value in found):
        return Comparison(label, math.nan, unusable="not both were found")
    first, second = found
    ratio = second.value / first.value
    error = ratio * math.hypot(first.error / first.value, second.error / second.value)
    return records.near(label, ratio - 1, error, 0.0, SHARED, runs=first.runs)


def _gap(text: str, table: Table, first: str, second: str, most: float = math.inf) -> Comparison:
    """The gap of two thresholds at the c, up to `most`, where it is smallest, of those c at which
    both were found and their iterations converged."""
    both = table.get("threshold", first).merge(
        table.get("threshold", second), on="x", suffixes=("", "_second")
    )
    both = both[both["y"].notna() & both["y_second"].notna() & (both["x"] <= most)]
    failed = [*table.failed(first), *table.failed(second)]
    both = both[~readings.is_in(both["x"], failed)] if failed else both
    if not len(both):
        return Comparison(text, math.nan, unusable="no c at which both were found")
    gaps = both["y_second"] - both["y"]
    at = gaps.idxmin()
    error = np.hypot(both["y_err"], both["y_err_second"])[at]
    label = f"{text}, smallest at c = {both.loc[at, 'x']:g} of {len(both)}"
    rule = dict(runs=table.entry["scrambles"], deviations=records.STRICT)
    return records.above(label, float(gaps[at]), float(error), **rule)


def _public_similarities(table: Table) -> list[Comparison] | str:
    """Published means of 8 runs on TREC by BERT's tokeniser."""
    if not table.series("similarity 1"):
        return "TREC was not run: set `questions` of its entry to the file of labelled questions"
    words = table.about["tokenizer"]
    if words["from"] != "file" or words["vocabulary"] != public.VOCABULARY:
        return "BERT's tokeniser is needed: set `tokenizer` of TREC's entry to its vocabulary"
    if away := readings.departure(table.entry, **public.TREC_SETTING):
        return away
    runs = {layer: readings.matrix(table.get(f"similarity {layer}")) for layer in LAYERS}
    steps = table.about["steps"] / table.entry["epochs"]
    found = []
    for layer, value in public.STARTS.items():
        start = readings.mean(runs[layer].iloc[:, 0])
        given = f"layer {layer} at first", start.value, start.error, value, SAME_START
        found.append(records.near(*given, runs=start.runs))
    for layer, places in public.STEPS.items():
        for level, step in places.items():
            value, error, count = _mean_crossing(runs[layer], level)
            label = f"step at which layer {layer} is at {level:g}"
            tolerance = STEP_SHARE * step
            found.append(records.near(label, value, error, step, tolerance, runs=count))
    for layer, (epoch, bound) in public.LATE.items():
        after = runs[layer].loc[:, runs[layer].columns >= epoch * steps].mean()
        label = f"layer {layer} after epoch {epoch:g}, the least mean"
        found.append(records.above(label, float(after.min()), 0.0, bound))
    step, bound = public.QUIET
    before = runs[2].loc[:, runs[2].columns <= step].mean()
    label = f"layer 2 until step {step}, the largest mean"
    return [*found, records.below(label, float(before.max()), 0.0, bound)]


def _mean_crossing(runs: pd.DataFrame, level: float) -> readings.Value:
    """Where the mean over runs passes a level; error: that of the runs' own crossings."""
    found = readings.first_crossing(runs.columns, runs.mean(), level)
    own = [readings.first_crossing(runs.columns, run, level) for run in runs.to_numpy()]
    return readings.mean(place for place in own if not math.isnan(place))._replace(value=found)


def claims(tables: Tables) -> list[records.Claim]:
    """In which order layers of three, and of a classifier, are learned; the public numbers."""
    deep, untied = tables.entries["deep"], tables.entries["untied"]
    left = f"three layers, c = {deep['skip']:g}, {theories.sampled(deep)}"
    over_c = f"c = {', '.join(f'{c:g}' for c in sorted({deep['skip'], *deep['skips']}))}"
    texts = "; ".join(
        f"{text}, {theories.runs_of(tables.entries[role])}"
        for role, text in (("docstrings", "docstrings by package"), ("trec", "TREC"))
        if text in tables.classified.values()
    )
    judged, name = tables.judged, "multi-index/fig3"
    return [
        theories.claim(
            f"{name}/public-overlaps",
            "Three layers: the overlaps are those of the public repository (fig. 3 left)",
            judged["public-overlaps"],
            f"{left}, {channel(tables.entries['deep_regularised'])}",
            f"the largest difference over alpha is below {SAME_OVERLAP:g}",
        ),
        theories.claim(
            f"{name}/shared-threshold",
            "Three layers: the two shallow layers share a threshold (fig. 3 left)",
            judged["shared-threshold"],
            left,
            f"their relative gap is below {SHARED:.0%}; no if it is larger with either channel",
            share=1.0,
        ),
        theories.claim(
            f"{name}/last-layer-first",
            "The last layer is learned before the first at every c (fig. 3)",
            judged["last-layer-first"],
            f"three tied layers at {over_c}; two untied layers at {len(untied['skips'])} c",
            "the smallest gap over c is above 0 by three standard errors",
        ),
        theories.claim(
            f"{name}/first-before-middle",
            "Of three layers the first is learned before the middle one where c is at most 1",
            judged["first-before-middle"],
            f"three tied layers at {over_c}, {theories.sampled(deep)}",
            "the smallest gap over c is above 0 by three standard errors",
            beyond=True,
        ),
        theories.claim(
            f"{name}/classifier-first-layer-first",
            "In a classifier of questions the first layer settles first (fig. 3 right)",
            judged["classifier-first-layer-first"],
            texts,
            f"run by run layer 1 passes a similarity of {LEARNED:g} before layer 2, in steps",
        ),
        theories.claim(
            f"{name}/public-similarities",
            "The layers of the classifier settle when those of the public runs do (fig. 3 right)",
            judged["public-similarities"],
            "TREC, BERT's tokeniser",
            f"starts, steps within {STEP_SHARE:.0%} and ends are near the public ones",
        ),
    ]


# --- The picture ----------------------------------------------------------------------------------


@style.in_house_style
def draw(tables: Tables):
    """Panel (a) over alpha, (b) over c, (c) and with TREC's questions (d) over steps."""
    figure = style.new(2, 6.0)
    figure.get_layout_engine().set(wspace=0.05, h_pad=0.06)
    both = len(tables.classified) > 1
    places = [["a", "b"], ["c", "d"]] if both else [["a", "a"], ["b", "c"]]
    left, middle, *right = (axes for _, axes in sorted(figure.subplot_mosaic(places).items()))
    _learning(left, tables, columns=2 if both else 4)
    _phases(middle, tables)
    for letter, axes, (panel, text) in zip("cd", right, tables.classified.items(), strict=False):
        _similarities(axes, tables, panel)
        axes.set_title(f"({letter}) {text}, two layers")
    return figure


def _learning(axes, tables: Tables, columns: int) -> None:
    """Overlaps, thresholds, and plug-in errors on the axis at the right; light: of the channel
    without a regulariser. Squares: the stored public overlaps, which are with one."""
    drawn, errors = tables.drawn, axes.twinx()
    channels = {role: channel(tables.entries[role]) for role in ("deep", "deep_regularised")}
    for role, looks in (("deep", curves.LIGHT), ("deep_regularised", {})):
        note = f", {channels[role]}"
        for layer in ORDER:
            colour = curves.LAYER[layer]
            curves.line(axes, drawn, "left", f"Q{layer}{layer}{note}", colour, **looks)
            for start in style.series(drawn, "left", f"alpha_{layer}{note}")["x"]:
                dotted = {"linewidth": 0.9} | looks | {"linestyle": ":"}
                axes.axvline(start, color=colour, **dotted)
        for series, dashes in ERRORS.items():
            name = f"plug-in error, {series}{note}"
            dashed = looks | {"linestyle": dashes}
            curves.line(errors, drawn, "left", name, curves.ERROR, **dashed)
    palette = {f"Q{layer}{layer}": curves.LAYER[layer] for layer in ORDER}
    stored = curves.stored(axes, drawn, "left", palette)
    overlaps = drawn[(drawn["panel"] == "left") & drawn["series"].str.startswith("Q33, ")]
    axes.set(xlim=(0, float(overlaps["x"].max())), ylim=(-0.02, 1.04), ylabel="overlap Q")
    axes.set_xlabel("samples per dimension α = N / D")
    errors.set(yscale="log", ylabel="plug-in error")
    errors.spines["right"].set_visible(True)
    light = f"{channels['deep_regularised']}; light: {channels['deep']}"
    axes.set_title(f"(a) three layers, c = {tables.entries['deep']['skip']:g}; {light}")
    handles = [curves.handle(f"layer {k}", color=curves.LAYER[k]) for k in ORDER]
    handles += [
        curves.handle(f"error, {series} (right)", color=curves.ERROR, linestyle=dashes)
        for series, dashes in ERRORS.items()
    ]
    handles.append(curves.handle("thresholds", color="0.4", linestyle=":", linewidth=0.9))
    if stored:
        handles.append(curves.handle("public data", **curves.STORED))
    if curves.failures(drawn, "left"):
        looks = dict(linestyle="", marker="o", markerfacecolor="white", markeredgecolor="0.3")
        handles.append(curves.handle("hollow: not converged", **looks))
    style.legend_below(axes, columns, handles=handles)


def _phases(axes, tables: Tables) -> None:
    """Thresholds over c: three tied layers as lines, untied ones as symbols."""
    drawn = tables.drawn
    for layer in ORDER:
        name, label = f"three layers, alpha_{layer}", f"L = 3, layer {layer}"
        looks = dict(marker="o", markersize=3)
        curves.line(axes, drawn, "phase diagram", name, curves.LAYER[layer], label, **looks)
    for series, (marker, colour, label) in UNTIED.items():
        looks = dict(linestyle="--", linewidth=0.9, marker=marker, markersize=4)
        curves.line(axes, drawn, "phase diagram", f"untied, {series}", colour, label, **looks)
    axes.axhspan(0, BOUND, color="0.93", linewidth=0, zorder=-2)
    axes.axhline(BOUND, color="0.5", linewidth=0.8, zorder=-1, label="1/6")
    axes.set(xlabel="skip connection c", ylabel="threshold α", ylim=(0, None))
    if (drawn.loc[drawn["panel"] == "phase diagram", "x"] > 0).any():
        axes.set_xscale("log")
        style.plain_ticks(axes.xaxis, (0.03, 0.1, 0.25, 0.5, 1, 2, 4))
    axes.set_title("(b) beyond the paper: thresholds over c")
    style.legend_below(axes, 2)


def _similarities(axes, tables: Tables, panel: str) -> None:
    """Similarity of each layer to its last state: mean over runs with the spread of runs."""
    for layer in LAYERS:
        shown = style.series(tables.drawn, panel, f"similarity {layer}, mean and sd of runs")
        axes.plot(shown["x"], shown["y"], color=curves.LAYER[layer], label=f"layer {layer}")
        style.band(axes, shown, curves.LAYER[layer])
    runs = style.series(tables.drawn, panel, "similarity 1")
    steps, count = runs["x"], runs["seed"].nunique()
    axes.set(
        xscale="log",
        xlim=(max(1, steps[steps > 0].min()), steps.max()),
        xlabel="step",
        ylabel="similarity to the last state",
        ylim=(0, 1.04),
    )
    title = f"{count} run{'s' if count > 1 else ''}, mean ± sd"
    style.legend_below(axes, 2, title=title, alignment="left")


def caption(inputs: Inputs, block: Block) -> str:
    """Says what is shown, what the eye sees, how it was made."""
    deep, trec = inputs.entries["deep"], inputs.entries["trec"]
    texts = inputs.entries["docstrings"]
    packages = f"{texts['questions']['of_each']} sentences of each package"
    panels = "**(c)**" if trec.get("questions") is None else "**(c)**, **(d)**"
    return (
        "Three tied layers are learned from the last on; a classifier's first layer settles "
        "first.\n\n"
        "**(a)** Overlaps by state evolution from near 0 and, grey, plug-in errors; dotted: "
        "thresholds; squares: public overlaps, with a regulariser. **(b)** Thresholds over c; "
        "none of tied weights is below 1/6 (grey). "
        f"{panels} Similarity tr(K K') / (\\|K\\| \\|K'\\|) of each layer's W Wᵀ to its last "
        f"state, under AdamW at {texts['learning_rate']:g} from W of scale "
        f"{texts['init_scale']:g} (chosen so that layers settle as in the public curves); "
        f"docstrings: {packages}, {theories.runs_of(texts)} of {texts['epochs']} epochs.\n\n"
        f"Curves: {theories.sampled(deep)}; bands: standard errors. Hollow: not converged.\n"
    )
