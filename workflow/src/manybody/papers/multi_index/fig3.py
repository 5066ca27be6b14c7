"""Figure 3: three layers; how two layers of a classifier of questions are learned.

Left: tables of `theory.multi_index.deep`, without and with a regulariser; right: one of
`theory.multi_index.trec`, or two where TREC's questions are given. Between them, beyond the paper:
thresholds over c of three tied layers, and of untied ones, a table of `theory.multi_index.untied`.
"""

import math

import pandas as pd

from manybody.io import options
from manybody.io.options import key, refers
from manybody.papers import claims as records
from manybody.papers import readings, style
from manybody.papers.claims import Comparison
from manybody.papers.figure import Figure
from manybody.papers.multi_index import curves, public
from manybody.papers.multi_index.curves import KIND, LAYERS, LEARNED, Inputs, Tables, channel
from manybody.papers.readings import Table

ORDER = (3, 1, 2)  # in which the layers are learned
ERRORS = {"all layers": "-", "last layer only": "--"}
DOTTED = {"linestyle": ":"}  # of thresholds
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


def tables(inputs: Inputs, block: Block) -> Tables:
    """Overlaps and thresholds of three layers, similarities of classifiers, and comparisons. Stated
    is what is classified in each panel at the right."""
    found = inputs.read()
    deep, regularised, untied = found["deep"], found["deep_regularised"], found["untied"]
    classifiers = {"right": found["docstrings"]}
    if found["trec"].series("similarity 1"):
        classifiers["right, TREC"] = found["trec"]
    last = max(table.get("overlap", "Q33")["x"].max() for table in (deep, regularised))
    stored = {f"Q{layer}{layer}": public.DEEP[f"Q{layer}{layer}"] for layer in ORDER}
    drawn = {
        "left": _deep_rows(deep)
        + _deep_rows(regularised)
        + curves.stored_rows(regularised, public.DEEP_SETTING, stored, last),
        "phase diagram": _phase_rows(deep, untied),
        **{panel: _similarity_rows(table) for panel, table in classifiers.items()},
    }
    judged = {
        "public-overlaps": readings.departure(regularised.entry, **public.DEEP_SETTING)
        or curves.from_stored(regularised, public.DEEP, SAME_OVERLAP, ""),
        "shared-threshold": [_shared(deep), _shared(regularised)],
        "last-layer-first": [
            _gap("L = 3, layer 1 less the last", deep, "alpha_3", "alpha_1"),
            _gap("L = 2, untied, the first less the last", untied, "L = 2 last", "L = 2 first"),
        ],
        # The two change places between c = 1 and 2.
        "first-before-middle": [_gap("L = 3, layer 2 less layer 1", deep, "alpha_1", "alpha_2", 1)],
        "classifier-first-layer-first": [
            curves.later(_classified(table), table, "similarity 1", "similarity 2")
            for table in classifiers.values()
        ],
        "public-similarities": _public_similarities(found["trec"]),
    }
    entries = {role: table.entry for role, table in found.items()}
    classified = {panel: _classified(table) for panel, table in classifiers.items()}
    return Tables(curves.gathered(drawn), judged, entries, classified)


def _classified(table: Table) -> str:
    """The texts that a classifier tells apart."""
    return "docstrings by package" if isinstance(table.entry["questions"], dict) else "TREC"


# --- What is drawn --------------------------------------------------------------------------------


def _deep_rows(table: Table) -> list[pd.DataFrame]:
    """Curves and thresholds of one table."""
    note, failed, parts = f", {channel(table.entry)}", table.failed(""), []
    last = table.get("overlap", "Q33")["x"].max()
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


def _phase_rows(deep: Table, untied: Table) -> list[pd.DataFrame]:
    parts = []
    for layer in ORDER:
        found = deep.get("threshold", f"alpha_{layer}").dropna(subset=["y"])
        parts.append(curves.named(found, f"three layers, alpha_{layer}"))
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
        return curves.unusable(label, "not both were found")
    first, second = found
    ratio = second.value / first.value
    error = ratio * math.hypot(first.error / first.value, second.error / second.value)
    return records.near(label, ratio - 1, error, 0.0, SHARED, runs=first.runs)


def _gap(text: str, table: Table, first: str, second: str, most: float = math.inf) -> Comparison:
    """The gap of two thresholds at the c, up to `most`, where it is smallest, of those c at which
    both were found and their iterations converged."""
    early, late = (table.get("threshold", name).dropna(subset=["y"]) for name in (first, second))
    both = early.merge(late, on="x", suffixes=("", "_late"))
    failed = readings.is_in(both["x"], [*table.failed(first), *table.failed(second)])
    both = both[~failed & (both["x"] <= most)]
    if not len(both):
        return curves.unusable(text, "no c at which both were found")
    gaps = both["y_late"] - both["y"]
    at = gaps.idxmin()
    error = math.hypot(both["y_err"][at], both["y_err_late"][at])
    label = f"{text}, smallest at c = {both['x'][at]:g} of {len(both)}"
    rule = dict(runs=table.entry["scrambles"], deviations=records.STRICT)
    return records.above(label, float(gaps[at]), error, **rule)


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
        found.append(curves.near(f"layer {layer} at first", start, value, SAME_START))
    for layer, places in public.STEPS.items():
        for level, step in places.items():
            label = f"step at which layer {layer} is at {level:g}"
            passed = _mean_crossing(runs[layer], level)
            found.append(curves.near(label, passed, step, STEP_SHARE * step))
    for layer, (epoch, bound) in public.LATE.items():
        least = float(runs[layer].mean().loc[epoch * steps :].min())
        label = f"layer {layer} after epoch {epoch:g}, the least mean"
        found.append(records.above(label, least, 0.0, bound))
    step, bound = public.QUIET
    most = float(runs[2].mean().loc[:step].max())
    return [*found, records.below(f"layer 2 until step {step}, the largest mean", most, 0.0, bound)]


def _mean_crossing(runs: pd.DataFrame, level: float) -> readings.Value:
    """Where the mean over runs passes a level; error: that of the runs' own crossings."""
    found = readings.first_crossing(runs.columns, runs.mean(), level)
    own = [readings.first_crossing(runs.columns, run, level) for run in runs.to_numpy()]
    return readings.mean(place for place in own if not math.isnan(place))._replace(value=found)


def claims(tables: Tables) -> list[records.Claim]:
    """In which order layers of three, and of a classifier, are learned; the public numbers."""
    deep, untied = tables.entries["deep"], tables.entries["untied"]
    left = f"three layers, c = {deep['skip']:g}, {curves.sampled(deep)}"
    over_c = f"c = {', '.join(f'{c:g}' for c in sorted({deep['skip'], *deep['skips']}))}"
    texts = {
        text: curves.runs_of(tables.entries[role])
        for role, text in (("docstrings", "docstrings by package"), ("trec", "TREC"))
        if text in tables.stated.values()
    }
    no_if = "; no if it is larger with either channel"
    smallest = "the smallest gap over c is above 0 by three standard errors"
    rows = {
        "public-overlaps": dict(
            statement="Three layers: the overlaps are those of the public repository",
            reference="figure 3, left",
            scope=f"{left}, {channel(tables.entries['deep_regularised'])}",
            rule=f"the largest difference over alpha is below {SAME_OVERLAP:g}",
        ),
        "shared-threshold": dict(
            statement="Three layers: the two shallow layers share a threshold",
            reference="figure 3, left",
            scope=left,
            rule=f"their relative gap is below {SHARED:.0%}{no_if}",
            share=1.0,
        ),
        "last-layer-first": dict(
            statement="The last layer is learned before the first at every c",
            reference="figure 3",
            scope=f"three tied layers at {over_c}; two untied layers at {len(untied['skips'])} c",
            rule=smallest,
        ),
        "first-before-middle": dict(
            statement="Of three layers the first is learned before the middle one where c is at "
            "most 1",
            scope=f"three tied layers at {over_c}, {curves.sampled(deep)}",
            rule=smallest,
        ),
        "classifier-first-layer-first": dict(
            statement=f"In a classifier ({', '.join(texts)}) the first layer settles first",
            reference="figure 3, right",
            scope="; ".join(f"{text}, {runs}" for text, runs in texts.items()),
            rule=f"run by run layer 1 passes a similarity of {LEARNED:g} before layer 2, in steps",
        ),
        "public-similarities": dict(
            statement="The layers of the classifier settle when those of the public runs do",
            reference="figure 3, right",
            scope="TREC, BERT's tokeniser",
            rule=f"starts, steps within {STEP_SHARE:.0%} and ends are near the public ones",
        ),
    }
    return curves.claims("fig3", tables, rows)


# --- The picture ----------------------------------------------------------------------------------


@style.in_house_style
def draw(tables: Tables):
    """Panel (a) over alpha, (b) over c, (c) and with TREC's questions (d) over steps."""
    figure = style.new(2, 6.0)
    figure.get_layout_engine().set(wspace=0.05, h_pad=0.06)
    both = len(tables.stated) > 1
    places = [["a", "b"], ["c", "d"]] if both else [["a", "a"], ["b", "c"]]
    left, middle, *right = (axes for _, axes in sorted(figure.subplot_mosaic(places).items()))
    _learning(left, tables, columns=2 if both else 4)
    _phases(middle, tables)
    for letter, axes, (panel, text) in zip("cd", right, tables.stated.items(), strict=False):
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
                axes.axvline(start, **{"linewidth": 0.9} | looks | DOTTED, color=colour)
        for series, dashes in ERRORS.items():
            name = f"plug-in error, {series}{note}"
            dashed = looks | {"linestyle": dashes}
            curves.line(errors, drawn, "left", name, curves.ERROR, **dashed)
    handles = curves.handles(
        {f"layer {k}": dict(color=curves.LAYER[k]) for k in ORDER}
        | {
            f"error, {series} (right)": dict(color=curves.ERROR, linestyle=dashes)
            for series, dashes in ERRORS.items()
        }
        | {"thresholds": dict(color="0.4", linewidth=0.9, **DOTTED)}
    )
    handles += curves.stored(axes, drawn, "left", ORDER) + curves.failures(drawn, "left")
    overlaps = drawn[(drawn["panel"] == "left") & drawn["series"].str.startswith("Q33, ")]
    axes.set(xlim=(0, float(overlaps["x"].max())), xlabel="samples per dimension α = N / D")
    axes.set(ylim=(-0.02, 1.04), ylabel="overlap Q")
    errors.set(yscale="log", ylabel="plug-in error")
    errors.spines["right"].set_visible(True)
    light = f"{channels['deep_regularised']}; light: {channels['deep']}"
    axes.set_title(f"(a) three layers, c = {tables.entries['deep']['skip']:g}; {light}")
    style.legend_below(axes, columns, handles=handles)


def _phases(axes, tables: Tables) -> None:
    """Thresholds over c: three tied layers as lines, untied ones as symbols."""
    drawn = tables.drawn
    dots, dashes = dict(marker="o", markersize=3), dict(linestyle="--", linewidth=0.9, markersize=4)
    for layer in ORDER:
        name, label = f"three layers, alpha_{layer}", f"L = 3, layer {layer}"
        curves.line(axes, drawn, "phase diagram", name, curves.LAYER[layer], label, **dots)
    for series, (marker, colour, label) in UNTIED.items():
        name, looks = f"untied, {series}", dashes | {"marker": marker}
        curves.line(axes, drawn, "phase diagram", name, colour, label, **looks)
    axes.axhspan(0, curves.BOUND, color="0.93", linewidth=0, zorder=-2)
    axes.axhline(curves.BOUND, color="0.5", linewidth=0.8, zorder=-1, label="1/6")
    axes.set(xlabel="skip connection c", ylabel="threshold α", ylim=(0, None))
    if (drawn.loc[drawn["panel"] == "phase diagram", "x"] > 0).any():
        axes.set_xscale("log")
        style.plain_ticks(axes.xaxis, (0.03, 0.1, 0.25, 0.5, 1, 2, 4))
    axes.set_title("(b) beyond the paper: thresholds over c")
    style.legend_below(axes, 2)


def _similarities(axes, tables: Tables, panel: str) -> None:
    """Similarity of each layer to its last state: mean over runs with the spread of runs."""
    for layer in LAYERS:
        name, label = f"similarity {layer}, mean and sd of runs", f"layer {layer}"
        curves.line(axes, tables.drawn, panel, name, curves.LAYER[layer], label)
    runs = style.series(tables.drawn, panel, "similarity 1")
    steps, count = runs["x"], runs["seed"].nunique()
    axes.set(xscale="log", xlim=(max(1, steps[steps > 0].min()), steps.max()), xlabel="step")
    axes.set(ylim=(0, 1.04), ylabel="similarity to the last state")
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
        f"docstrings: {packages}, {curves.runs_of(texts)} of {texts['epochs']} epochs.\n\n"
        f"Curves: {curves.sampled(deep)}; bands: standard errors. Hollow: not converged.\n"
    )
