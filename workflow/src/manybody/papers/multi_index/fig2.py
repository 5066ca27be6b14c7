"""Figure 2: how the layers are learned, by message passing and by stochastic gradient descent.

Left: a table of `theory.multi_index.gamp`; right: one of `theory.multi_index.sgd`.
"""

import math

import pandas as pd

from manybody.io.options import Block as Part, key, refers
from manybody.measure import crossings
from manybody.measure.intervals import MEDIAN, mean
from manybody.papers import claims as records, readings, style
from manybody.papers.figure import Figure
from manybody.papers.multi_index import curves, public
from manybody.papers.multi_index.curves import KIND, LAYERS, LEARNED, Inputs, runs_of

ALPHA = 1.2  # of the runs of message passing that are shown, or the nearest
EPOCH_SHARE = 0.25  # of a public epoch: a difference that counts as none
COSINES = tuple(f"cosine {layer}" for layer in reversed(LAYERS))


class MultiIndexFig2Theory(Part):
    """Theory of figure 2."""

    gamp: refers("theory", f"{KIND}gamp") = key("Theory of kind multi-index-gamp.")
    sgd: refers("theory", f"{KIND}sgd") = key("Theory of kind multi-index-sgd.")


class Block(Figure):
    """Message passing and gradient descent in time."""

    theory: MultiIndexFig2Theory = key("What is drawn.")


def tables(inputs: Inputs, block: Block) -> style.Tables:
    found, drawn = inputs.read(), {"left": [], "right": []}
    for name in COSINES:
        drawn["left"] += _message_rows(found["gamp"], _shown(found["gamp"]), name)
        drawn["right"] += curves.run_rows(found["sgd"].get(name), f"SGD, {name}")
    return style.Tables(curves.gathered(drawn), found)


def _shown(runs: readings.Table) -> str:
    return min(runs.series("cosine 1"), key=lambda series: abs(float(series) - ALPHA))


def _message_rows(table: readings.Table, alpha: str, name: str) -> list[pd.DataFrame]:
    """A cosine of every run, their median, where runs end that did not converge, and the cosine
    M / sqrt(Q) of the same iteration at D -> infinity, if the entry asks for it; the start,
    iteration 0, has no room on a logarithmic axis."""
    flags, layer = table.get("converged", alpha), name[-1]
    cosines = table.get(name, alpha).query("x >= 1")
    failed = cosines["seed"].isin(flags.loc[flags["y"] < 1, "seed"])
    m, q = (table.get(f"SE {part}{layer}{layer}", alpha) for part in "MQ")
    theory = m.merge(q, on="x", suffixes=("", "_q")).query("y_q > 0 and x >= 1")
    squared = theory["y"] ** 2 / theory["y_q"]
    theory = pd.DataFrame({"x": theory["x"], "y": squared.clip(0) ** 0.5, "y_err": math.nan})
    return [
        *curves.run_rows(extended(cosines), f"GAMP, {name}"),
        curves.failures(cosines[failed].groupby("seed")["x"].last()),
        curves.named(theory, f"D -> infinity, {name}"),
    ]


def extended(frame: pd.DataFrame) -> pd.DataFrame:
    """A run that has converged stays where it is: its last row at all later iterations."""
    found = readings.matrix(frame).ffill(axis="columns").stack().rename("y").reset_index()
    return found.assign(y_err=math.nan)


def _public_descent(table: readings.Table) -> list[records.Comparison]:
    """Public medians, of one teacher; levels are brought to the true cosine by its norm."""
    found = []
    for layer, places in public.EPOCHS.items():
        for level, epoch in places.items():
            true = level / public.NORMS[layer]
            label = f"SGD: median epoch at which cosine {layer} passes {true:.3f}"
            times = crossings.of_runs(table.get(f"cosine {layer}"), true)
            median = float(times.fillna(math.inf).median())
            if math.isinf(median):
                found.append(records.unusable(label, "half of the runs or fewer pass it"))
                continue
            _, error, runs = mean(times.dropna())
            given = median, MEDIAN * error, epoch, EPOCH_SHARE * epoch
            found.append(records.near(label, *given, runs=runs))
    return found


def claims(tables: style.Tables) -> list[records.Claim]:
    runs, descent = tables.found["gamp"], tables.found["sgd"]
    left, right = runs.entry, descent.entry
    scope = both = "SGD: D = {dimension}, α = {alpha:g}, ".format(**right) + runs_of(right)
    first = [curves.later("SGD: epochs from layer 2 to layer 1", descent, *COSINES)]
    methods = "by gradient descent"
    rule = f"run by run the cosine of layer 2 passes {LEARNED:g} before that of layer 1"
    if left["init"] == "informed":  # a start that knows both layers does not tell
        rule += "; message passing starts informed of both layers, so it is not counted"
    else:
        label = "GAMP: iterations from layer 2 to layer 1"
        first.append(curves.later(label, runs, *COSINES, _shown(runs)))
        methods = f"by message passing and {methods}"
        both = f"GAMP: D = {left['dimension']}, {runs_of(left)}, random start; {scope}"
    return [
        curves.claim(
            "fig2/last-layer-first",
            f"The last layer is learned first, {methods}",
            first,
            both,
            rule,
            "figure 2",
        ),
        curves.claim(
            "fig2/public-times",
            "Layers are learned when those of the public runs are",
            readings.departure(right, **public.SGD_SETTING) or _public_descent(descent),
            scope,
            f"median epochs are within {EPOCH_SHARE:.0%} of the public ones",
            "figure 2",
        ),
    ]


@style.in_house_style
def draw(tables: style.Tables):
    figure = style.new(2, 3.1)
    runs, descent = (tables.found[role].entry for role in ("gamp", "sgd"))
    panels = (
        ("left", "a", "GAMP", "iteration", f"{runs_of(runs)}, {runs['init']} start"),
        ("right", "b", "SGD", "epoch", runs_of(descent)),
    )
    places = figure.subplots(1, 2, sharey=True)
    for axes, (panel, letter, method, time, words) in zip(places, panels, strict=True):
        names = {layer: f"{method}, cosine {layer}" for layer in reversed(LAYERS)}
        curves.in_time(axes, tables.drawn, panel, names, time)
        for layer in LAYERS:
            theory = f"D -> infinity, cosine {layer}"
            curves.line(axes, tables.drawn, panel, theory, "black", linestyle="--", linewidth=1)
        curves.mark_failures(axes, tables.drawn, panel)
        axes.set(title=f"({letter}) {method}: {words}", ylabel="cosine with the teacher")
        axes.label_outer()
    looks = {"median of the runs (thin)": dict(color="0.3", linewidth=1.8)}
    if tables.drawn["series"].str.startswith("D -> infinity").any():
        looks["D → ∞"] = dict(color="black", linestyle="--", linewidth=1)
    curves.legend(figure, tables.drawn, reversed(LAYERS), looks, 5)
    return figure


def caption(inputs: Inputs, block: Block) -> str:
    runs, descent = inputs.entries["gamp"], inputs.entries["sgd"]
    start = "the published random one"
    if runs["init"] == "informed":
        start = "overlaps {:g} and {:g} with the teacher".format(*runs["overlaps"])
    dashed = " Dashed: the same iteration at D → ∞." if runs["points"] else ""
    passed = (
        "D = {dimension}, α = {shown:g}, c = {skip:g}, {channel} in its channel, noise {noise:g} "
        "in the data, damping weight {damping:g}"
    ).format(**runs, shown=ALPHA, channel=curves.channel(runs))
    descended = (
        "D = {dimension}, α = {alpha:g}, batches of {batch}, {repeats} updates on each, learning "
        "rate {learning_rate:g}, weight decay {weight_decay:g}/D"
    ).format(**descent)
    shared = "one teacher and start" if descent["same_teacher"] else "teachers of their own"
    return (
        "Cosines of the layers with the teacher in time: the last layer rises first.\n\n"
        f"**(a)** GAMP, {passed}; the start: {start}.{dashed} **(b)** SGD, {descended}, loss "
        f"summed over the batch over D; runs have {shared} and data of their own.\n\nThe paper's "
        "cosine is not divided by the teacher's norm, its epoch is 20 of 38 batches, its (a) one "
        "run.\n"
    )
