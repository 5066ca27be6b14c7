"""Figure 3: three layers; how two layers of a classifier of questions are learned.

(a) overlaps and (b) plug-in errors of tables of `theory.multi_index.deep`, without and with a
regulariser; beyond the paper (c), thresholds over c; (d) and, where TREC's questions are given,
(e): classifiers of `theory.multi_index.trec`.
"""

import math

import pandas as pd

from manybody.io.options import Block as Part, key, refers
from manybody.papers import claims as records, readings, style
from manybody.papers.figure import Figure
from manybody.papers.multi_index import curves, public
from manybody.papers.multi_index.curves import KIND, LAYERS, LEARNED, Inputs, channel

ORDER = (3, 1, 2)  # in which the layers are learned
CHANNELS = {"deep_regularised": {}, "deep": curves.LIGHT}
FORCED = ("all layers", "last layer only")
SIMILARITIES = {layer: f"similarity {layer}" for layer in LAYERS}
SAME_OVERLAP = 0.05  # difference from a stored overlap that counts as none
SHARED = 0.05  # relative gap of two thresholds that count as one


class MultiIndexFig3Theory(Part):
    """Theory of figure 3."""

    deep: refers("theory", f"{KIND}deep") = key("Theory of kind multi-index-deep.")
    deep_regularised: refers("theory", f"{KIND}deep") = key(
        "The same kind with a regulariser, as the public code has one."
    )
    trec: refers("theory", f"{KIND}trec") = key("Theory of kind multi-index-trec.")
    docstrings: refers("theory", f"{KIND}trec") = key("The same kind with other questions.")


class Block(Figure):
    """Three layers, and a classifier of questions."""

    theory: MultiIndexFig3Theory = key("What is drawn.")


def tables(inputs: Inputs, block: Block) -> style.Tables:
    found = inputs.read()
    deep, regularised = found["deep"], found["deep_regularised"]
    last = max(table.get("overlap", "Q33")["x"].max() for table in (deep, regularised))
    drawn = {"a": curves.stored_rows(regularised, public.DEEP_SETTING, public.DEEP, last), "b": []}
    for table in (deep, regularised):
        drawn["a"] += curves.overlap_rows(table, ORDER, "")
        drawn["b"] += curves.error_rows(table, FORCED, "")
    drawn["c"] = _threshold_rows(deep)
    for panel, table in _classifiers(found).items():
        drawn[panel] = []
        for name in SIMILARITIES.values():
            drawn[panel] += curves.run_rows(table.get(name), name)
    return style.Tables(curves.gathered(drawn), found)


def _classifiers(found: dict[str, readings.Table]) -> dict[str, readings.Table]:
    """The tables of the panels (d) and, where TREC's questions are given, (e)."""
    asked = found["trec"].series("similarity 1")
    return {"d": found["docstrings"]} | ({"e": found["trec"]} if asked else {})


def _classified(table: readings.Table) -> str:
    return "docstrings by package" if isinstance(table.entry["questions"], dict) else "TREC"


def _threshold_rows(deep: readings.Table) -> list[pd.DataFrame]:
    parts = [
        curves.named(_thresholds(deep, layer), f"three layers, alpha_{layer}") for layer in ORDER
    ]
    skips = deep.get("threshold", "alpha_3")["x"]
    return [*parts, curves.points("bound 1/6", dict.fromkeys(skips, curves.BOUND))]


def _thresholds(table: readings.Table, layer: int) -> pd.DataFrame:
    return table.get("threshold", f"alpha_{layer}").dropna(subset=["y"])


def _shared(table: readings.Table) -> records.Comparison:
    """The gap of the thresholds of layers 1 and 2 over that of 1, as of independent ones."""
    label = f"alpha_2 / alpha_1 - 1, {channel(table.entry)}"
    first, second = (curves.threshold(table, layer) for layer in LAYERS)
    if any(value is None or math.isnan(value.value) for value in (first, second)):
        return records.unusable(label, "not both were found")
    ratio = second.value / first.value
    error = ratio * math.hypot(first.error / first.value, second.error / second.value)
    return records.near(label, ratio - 1, error, 0.0, SHARED, runs=first.runs)


def _last_layer_first(table: readings.Table) -> records.Comparison:
    """The gap of the thresholds of layer 1 and of the last at the c where it is smallest."""
    label = "layer 1 less the last"
    both = _thresholds(table, 3).merge(_thresholds(table, 1), on="x", suffixes=("", "_late"))
    if both.empty:
        return records.unusable(label, "no c at which both were found")
    gaps = both["y_late"] - both["y"]
    at = gaps.idxmin()
    error = math.hypot(both["y_err"][at], both["y_err_late"][at])
    label += f", smallest at c = {both['x'][at]:g} of {len(both)}"
    rule = dict(runs=table.entry["scrambles"], deviations=records.STRICT)
    return records.above(label, gaps[at], error, **rule)


def claims(tables: style.Tables) -> list[records.Claim]:
    deep, regularised = tables.found["deep"], tables.found["deep_regularised"]
    classifiers = {_classified(table): table for table in _classifiers(tables.found).values()}
    left = f"three layers, c = {deep.entry['skip']:g}, {curves.sampled(deep.entry)}"
    over_c = ", ".join(f"{c:g}" for c in sorted({deep.entry["skip"], *deep.entry["skips"]}))
    return [
        curves.claim(
            "fig3/public-overlaps",
            "Three layers: the overlaps are those of the public repository",
            readings.departure(regularised.entry, **public.DEEP_SETTING)
            or curves.from_stored(regularised, public.DEEP, SAME_OVERLAP, ""),
            f"{left}, {channel(regularised.entry)}",
            f"the largest difference over alpha is below {SAME_OVERLAP:g}",
            "figure 3, left",
        ),
        curves.claim(
            "fig3/shared-threshold",
            "Three layers: the two shallow layers share a threshold",
            [_shared(deep), _shared(regularised)],
            left,
            f"their relative gap is below {SHARED:.0%}; no if it is larger with either channel",
            "figure 3, left",
            unanimous=True,
        ),
        curves.claim(
            "fig3/last-layer-first",
            "The last layer is learned before the first at every c",
            [_last_layer_first(deep)],
            f"three tied layers at c = {over_c}, {curves.sampled(deep.entry)}",
            "the smallest gap over c is above 0 by three standard errors",
            "figure 3",
        ),
        curves.claim(
            "fig3/classifier-first-layer-first",
            f"In a classifier ({', '.join(classifiers)}) the first layer settles first",
            [curves.later(*one, *SIMILARITIES.values()) for one in classifiers.items()],
            "; ".join(f"{text}, {curves.runs_of(one.entry)}" for text, one in classifiers.items()),
            f"run by run layer 1 passes a similarity of {LEARNED:g} before layer 2, in steps",
            "figure 3, right",
        ),
    ]


@style.in_house_style
def draw(tables: style.Tables):
    figure, drawn, deep = style.new(2, 5.3), tables.drawn, tables.found["deep"].entry
    classifiers = _classifiers(tables.found)
    figure.get_layout_engine().set(wspace=0.04, h_pad=0.06)
    panels = figure.subplot_mosaic("ab\ncd" if len(classifiers) == 1 else "aaabbb\nccddee")
    curves.overlaps(panels["a"], tables, CHANNELS, ORDER)
    panels["a"].set_title(f"(a) overlaps of three layers, c = {deep['skip']:g}")
    curves.errors(panels["b"], tables, CHANNELS, FORCED, "Q₁₁, Q₂₂ forced to 0")
    panels["b"].set_title("(b) error of the prediction")
    _draw_thresholds(panels["c"], drawn)
    for panel, table in classifiers.items():
        curves.in_time(panels[panel], drawn, panel, SIMILARITIES, "training step")
        runs = style.series(drawn, panel, SIMILARITIES[1])["seed"].nunique()
        panels[panel].set_title(f"({panel}) {_classified(table)}: {runs} runs (thin), median")
        panels[panel].set_ylabel("similarity to the last state")
    for letter, axes in panels.items():
        curves.mark_failures(axes, drawn, letter)
    marks = {
        f"light: {channel(deep)}": {"color": "0.2"} | curves.LIGHT,
        "thresholds": curves.START | {"color": "0.3"},
    }
    curves.legend(figure, drawn, ORDER, marks, 5)
    return figure


def _draw_thresholds(axes, drawn: pd.DataFrame) -> None:
    for layer in ORDER:
        name, dots = f"three layers, alpha_{layer}", dict(marker="o", markersize=3)
        curves.line(axes, drawn, "c", name, curves.LAYER[layer], **dots)
    curves.bound(axes)
    axes.set(xlabel="skip connection c", ylabel="threshold α", ylim=(0, None))
    axes.set_title("(c) thresholds over c")
    if (drawn.loc[drawn["panel"] == "c", "x"] > 0).any():
        axes.set_xscale("log")
        style.plain_ticks(axes.xaxis, (0.03, 0.1, 0.25, 0.5, 1, 2, 4))


def caption(inputs: Inputs, block: Block) -> str:
    deep, trec = inputs.entries["deep"], inputs.entries["trec"]
    regularised = channel(inputs.entries["deep_regularised"])
    texts = inputs.entries["docstrings"]
    trained = (
        "under AdamW at {learning_rate:g} from W of scale {init_scale:g} (chosen so that layers "
        "settle as in the public curves); docstrings: {questions[of_each]} sentences of each "
        "package"
    ).format(**texts)
    panels = "**(d)**" if trec.get("questions") is None else "**(d)**, **(e)**"
    return (
        "Of three tied layers the last is learned first; a classifier's first layer settles "
        "first.\n\n"
        f"**(a)** Overlaps by state evolution from near 0, {regularised} in channel "
        f"and data; light: {channel(deep)}; squares: public overlaps. **(b)** Plug-in "
        "errors. **(c)** Thresholds over c; none of tied weights is below 1/6 (grey). "
        f"{panels} Similarity tr(K K') / (\\|K\\| \\|K'\\|) of each layer's W Wᵀ to its last "
        f"state, {trained}, {curves.runs_of(texts)} of {texts['epochs']} epochs.\n\n"
        f"Curves: {curves.sampled(deep)}; bands: standard errors.\n"
    )
