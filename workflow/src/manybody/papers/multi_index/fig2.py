"""Figure 2: how the layers are learned, by message passing and by stochastic gradient descent.

Left: a table of `theory.multi_index.gamp`; right: one of `theory.multi_index.sgd`.
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
from manybody.papers.multi_index import message_passing as gamp
from manybody.papers.multi_index.theories import KIND, LAYERS, LEARNED, Inputs, runs_of
from manybody.papers.readings import Table, Value

EPOCH_SHARE = 0.25  # of a public epoch: a difference that counts as none


class MultiIndexFig2Theory(options.Block):
    """Theory of figure 2."""

    gamp: refers("theory", f"{KIND}gamp") = key("Theory of kind multi-index-gamp.")
    sgd: refers("theory", f"{KIND}sgd") = key("Theory of kind multi-index-sgd.")


class Block(Figure):
    """Message passing and gradient descent in time."""

    theory: MultiIndexFig2Theory = key("What is drawn.")


@dataclass(frozen=True)
class Tables:
    """Rows drawn; comparisons by claim, or the cause why there are none; the entries by role;
    the alpha whose runs of message passing are shown."""

    drawn: pd.DataFrame
    judged: dict[str, list[Comparison] | str]
    entries: dict[str, dict]
    alpha: str


def tables(inputs: Inputs, block: Block) -> Tables:
    """Cosines of all runs, their medians, and when they pass levels."""
    found = inputs.read()
    runs, descent = found["gamp"], found["sgd"]
    alpha = gamp.shown_series(runs)
    drawn = {"left": _message_rows(runs, alpha), "right": _descent_rows(descent)}
    first = [theories.later("SGD: epochs from layer 2 to layer 1", descent, "cosine 2", "cosine 1")]
    if not gamp.informed(runs.entry):  # a start that knows both layers does not tell
        label = "GAMP: iterations from layer 2 to layer 1"
        first.append(theories.later(label, runs, "cosine 2", "cosine 1", alpha))
    away = readings.departure(descent.entry, **public.SGD_SETTING)
    times = [*_public_messages(runs, alpha), *([] if away else _public_descent(descent))]
    judged = {"last-layer-first": first, "public-times": times or away}
    return Tables(
        curves.gathered(drawn), judged, {role: table.entry for role, table in found.items()}, alpha
    )


# --- What is drawn --------------------------------------------------------------------------------


def _message_rows(table: Table, alpha: str) -> list[pd.DataFrame]:
    """Cosines of every run, their median, and those of the same iteration at D -> infinity; the
    start, iteration 0, has no room on a logarithmic axis."""
    parts = []
    flags = table.get("converged", alpha)
    failed = flags.loc[flags["y"] < 1, "seed"]
    for layer in reversed(LAYERS):
        name = f"cosine {layer}"
        found = table.get(name, alpha)
        found = gamp.extended(found[found["x"] >= 1])
        parts += _run_rows(found, f"GAMP, {name}")
        ends = found[found["seed"].isin(failed)].groupby("seed").tail(1)
        if len(ends):
            parts.append(curves.named(ends, f"GAMP, {name}", failed=True))
        theory = gamp.predicted(table, layer, alpha)
        theory = theory[theory["x"] >= 1]
        if len(theory):
            parts.append(curves.named(theory, f"D -> infinity, {name}"))
    return parts


def _descent_rows(table: Table) -> list[pd.DataFrame]:
    names = (f"cosine {layer}" for layer in reversed(LAYERS))
    return [part for name in names for part in _run_rows(table.get(name), f"SGD, {name}")]


def _run_rows(frame: pd.DataFrame, name: str) -> list[pd.DataFrame]:
    """Every run, and the median over runs."""
    median = frame.groupby("x")["y"].median().reset_index().assign(y_err=math.nan)
    return [curves.named(frame, name), curves.named(median, f"{name}, median")]


# --- What is judged -------------------------------------------------------------------------------


def _near(label: str, found: Value, expected: float, tolerance: float) -> Comparison:
    return records.near(label, found.value, found.error, expected, tolerance, runs=found.runs)


def _public_messages(table: Table, alpha: str) -> list[Comparison]:
    """Landmarks of the public run; none at other parameters or from an informed start."""
    away = readings.departure(table.entry, **public.RUNS_SETTING)
    if away or not math.isclose(float(alpha), gamp.ALPHA) or gamp.informed(table.entry):
        return []
    found = []
    for layer, (level, expected) in public.PASSES.items():
        times = readings.crossings(table.get(f"cosine {layer}", alpha), level).dropna()
        label = f"GAMP: iteration at which cosine {layer} passes {level:g}, {len(times)} runs"
        none = Comparison(label, math.nan, unusable="no run does")
        found.append(_near(label, readings.median(times), *expected) if len(times) else none)
    ends = gamp.last(table, "cosine 1", alpha)
    learned = ends.index[ends > LEARNED]
    count = f"{len(learned)} of {runs_of(table.entry)}"
    # With one more run of either kind: a share of 0 or 1 in few runs is not exact.
    around = (len(learned) + 1) / (len(ends) + 2)
    noise = math.sqrt(around * (1 - around) / len(ends))
    label = f"GAMP: share of random starts that learn layer 1, {count}"
    found.append(records.near(label, len(learned) / len(ends), noise, *public.RECOVERED))
    if not len(learned):
        reason = "no run learned layer 1"
        return [*found, Comparison("GAMP: final overlaps", math.nan, unusable=reason)]
    sizes = {name: gamp.last(table, name, alpha).abs() for name in ("M11", "M22", "Q11", "Q22")}
    ends = sizes | {"|M22| / Q22": sizes["M22"] / sizes["Q22"]}
    values = {f"final {name}": (ends[name][learned], near) for name, near in public.ENDS.items()}
    for when, errors in _plug_in_errors(table, alpha, learned).items():
        values[f"plug-in error {when}"] = errors, public.ERRORS[when]
    for name, (each, near) in values.items():
        found.append(_near(f"GAMP: {name}, {count}", readings.mean(each), *near))
    return found


def _plug_in_errors(table: Table, alpha: str, learned: pd.Index) -> dict[str, pd.Series]:
    """The plug-in error of each run that learned both layers, at three times."""
    errors = table.get("error plug-in", alpha)
    errors = gamp.extended(errors[errors["seed"].isin(learned)])
    between = errors[errors["x"].between(*public.PLATEAU)]
    return {
        "at first": errors.groupby("seed")["y"].first(),
        "plateau": between.groupby("seed")["y"].median(),
        "at the end": errors.groupby("seed")["y"].last(),
    }


def _public_descent(table: Table) -> list[Comparison]:
    """Public medians, of one teacher; levels are brought to the true cosine by its norm."""
    found = []
    for layer, places in public.EPOCHS.items():
        for level, epoch in places.items():
            true = level / public.NORMS[layer]
            label = f"SGD: median epoch at which cosine {layer} passes {true:.3f}"
            times = readings.crossings(table.get(f"cosine {layer}"), true).fillna(math.inf)
            if np.isinf(np.median(times)):
                reason = "half of the runs or fewer pass it"
                found.append(Comparison(label, math.nan, unusable=reason))
                continue
            error = readings.median(times[np.isfinite(times)])
            median = error._replace(value=float(np.median(times)))
            found.append(_near(label, median, epoch, EPOCH_SHARE * epoch))
    return found


def claims(tables: Tables) -> list[records.Claim]:
    """Which layer is learned first, and whether times are those of the public runs."""
    runs, descent = tables.entries["gamp"], tables.entries["sgd"]
    left = f"GAMP: D = {runs['dimension']}, {runs_of(runs)}, {runs['init']} start"
    right = f"SGD: D = {descent['dimension']}, {runs_of(descent)}"
    return [
        theories.claim(
            "multi-index/fig2/last-layer-first",
            "The last layer is learned first, by message passing and by gradient descent (fig. 2)",
            tables.judged["last-layer-first"],
            right if gamp.informed(runs) else f"{left}; {right}",
            f"run by run the cosine of layer 2 passes {LEARNED:g} before that of layer 1",
        ),
        theories.claim(
            "multi-index/fig2/public-times",
            "Layers are learned when those of the public runs are (fig. 2)",
            tables.judged["public-times"],
            f"{left}; {right}",
            f"times and ends are near the public ones, epochs within {EPOCH_SHARE:.0%}",
        ),
    ]


# --- The picture ----------------------------------------------------------------------------------


@style.in_house_style
def draw(tables: Tables):
    """Panel (a) message passing over iterations, (b) gradient descent over epochs."""
    figure = style.new(2, 3.4)
    for axes, panel in zip(figure.subplots(1, 2), (_messages, _descent), strict=True):
        panel(axes, tables)
        axes.set(xscale="log", ylabel="cosine with the teacher", ylim=(-0.03, 1.04))
        style.plain_ticks(axes.xaxis)
        style.legend_below(axes, 4, title="thin: runs, thick: their median", alignment="left")
    return figure


def _messages(axes, tables: Tables) -> None:
    for layer in reversed(LAYERS):
        name = f"GAMP, cosine {layer}"
        _runs(axes, tables.drawn, "left", name, layer)
        curves.hollow(axes, tables.drawn, "left", name, curves.LAYER[layer])
        if layer == 1 and curves.failures(tables.drawn, "left"):
            axes.lines[-1].set_label("not converged")
        theory = style.series(tables.drawn, "left", f"D -> infinity, cosine {layer}")
        if len(theory):
            looks = dict(color="black", linestyle="--", linewidth=1)
            label = "D → ∞" if layer == 1 else ""
            axes.plot(theory["x"], theory["y"], **looks, label=label)
    entry = tables.entries["gamp"]
    axes.set(xlabel="iteration")
    axes.set_title(
        f"(a) GAMP: D = {entry['dimension']}, α = {tables.alpha}, {runs_of(entry)}, "
        f"{entry['init']} start"
    )


def _descent(axes, tables: Tables) -> None:
    for layer in reversed(LAYERS):
        _runs(axes, tables.drawn, "right", f"SGD, cosine {layer}", layer)
    first = style.series(tables.drawn, "right", "SGD, cosine 2")["x"]
    axes.set(xlabel="epoch", xlim=(float(first[first > 0].min()), float(first.max())))
    entry = tables.entries["sgd"]
    axes.set_title(f"(b) SGD: D = {entry['dimension']}, α = {entry['alpha']:g}, {runs_of(entry)}")


def _runs(axes, drawn: pd.DataFrame, panel: str, name: str, layer: int) -> None:
    """A thin line for each run, a thick one for the median."""
    colour = curves.LAYER[layer]
    for _, run in style.series(drawn, panel, name).groupby("seed"):
        axes.plot(run["x"], run["y"], color=colour, linewidth=0.7, alpha=0.45)
    median = style.series(drawn, panel, f"{name}, median")
    axes.plot(median["x"], median["y"], color=colour, linewidth=1.8, label=f"layer {layer}")


def caption(inputs: Inputs, block: Block) -> str:
    """Says what is shown, what the eye sees, how it was made."""
    runs, descent = inputs.entries["gamp"], inputs.entries["sgd"]
    start = "the published random one"
    if gamp.informed(runs):
        start = "overlaps {:g} and {:g} with the teacher".format(*runs["overlaps"])
    dashed = " Dashed: the same iteration at D → ∞." if runs["points"] else ""
    shared = "one teacher and start" if descent["same_teacher"] else "teachers of their own"
    return (
        "Cosines of the layers with the teacher in time: the last layer rises first.\n\n"
        f"**(a)** GAMP at c = {runs['skip']:g}, {theories.channel(runs)} in its channel, noise "
        f"{runs['noise']:g} in the data, damping weight {runs['damping']:g}; the start: "
        f"{start}.{dashed} **(b)** SGD in batches of {descent['batch']}, {descent['repeats']} "
        f"updates on each, learning rate {descent['learning_rate']:g}, weight decay "
        f"{descent['weight_decay']:g}/D, loss summed over the batch over D; runs have {shared} and "
        "data of their own.\n\nThe published cosine lacks the teacher's norm, and its epochs are "
        "20 batches where an epoch has 38; (a) was one run there.\n"
    )
