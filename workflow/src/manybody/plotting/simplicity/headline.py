"""Claim 11 with its intervals: does the order of interaction set the time, at equal loss?

For each of the block's `corpora` the student's losses on the clones that are compared, and for
each pair of kinds and definition of saturation d with its 95 % interval (`comparison`). In the
table: panel `loss` (x: step), `times` (x: log t; y: 100 x share) of every student and generator,
`d` (x: d; y: 100 x share; y_err: half width), and `errors`, the standard errors of d over
students, generators and chains (x: d, y: the error).
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from manybody.claims import labels
from manybody.claims.saturation import SATURATION
from manybody.claims.simplicity import comparison
from manybody.claims.simplicity.corpora import Corpus, read
from manybody.io import tables
from manybody.plotting import palette, style
from manybody.plotting.points import Drawing, drawn, points
from manybody.plotting.simplicity.learning import EARLY, LADDER, WIDE

NOISE = {"linestyle": ":", "marker": "s", "markerfacecolor": "white"}
PAIR = 0.6  # inches, of a pair's heading and intervals
MARKS = {0.05: "o", 0.02: "D"}  # by definition of saturation


def draw(files, block: dict, context: dict) -> Drawing:
    """The figure and what is drawn, from files; see the package's docstring."""
    return figure_of(read(files, block, context))


@style.styled(style.RC)
def figure_of(corpora: list[Corpus]) -> Drawing:
    """A panel of losses for each corpus, and all intervals in one panel below."""
    count = sum(len(corpus.compared) for corpus in corpora)
    figure = style.new(2, 3.6 + PAIR * count)
    names = [f"loss {corpus.name}" for corpus in corpora]
    panels = [names, ["d"] * len(names)]
    axes = figure.subplot_mosaic(panels, height_ratios=(2.4, PAIR * count))
    parts, handles = [], {}
    for name, corpus in zip(names, corpora, strict=True):
        parts += [*_draw_losses(axes[name], corpus), *_times(corpus)]
        # What all corpora have in common is said once.
        lines, words = axes[name].get_legend_handles_labels()
        handles |= dict(zip(words, lines, strict=True))
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=3)
    for name in names[1:]:
        axes[name].set_ylabel("")  # that of the first
    parts += _draw_intervals(axes["d"], corpora)
    return figure, drawn(parts)


def _kinds(corpus: Corpus) -> list[list[str]]:
    """Every kind of clone that is compared, once."""
    pairs = [kind for one in corpus.compared for kind in (one.late, one.early)]
    return [list(kind) for kind in dict.fromkeys(map(tuple, pairs))]


def _looks(corpus: Corpus, kind: list[str]) -> dict:
    """Line and marker of a kind: the controls are dashed, as in figure 4."""
    document = corpus.student.targets[kind[0]]
    looks = LADDER
    if document["chain_init"] == "unigram":
        looks = NOISE
    elif _is_bounded(corpus, kind):
        if any(one.late == kind for one in corpus.compared):
            looks = EARLY
        elif any(
            one.early == kind and not _is_bounded(corpus, one.late) for one in corpus.compared
        ):
            looks = WIDE
    return looks | {"color": palette.colour(document)}


def _is_bounded(corpus: Corpus, kind: list[str]) -> bool:
    return labels.bounded(corpus.student.targets[kind[0]]["generator"]["description"])


def _draw_losses(axes: Axes, corpus: Corpus) -> list[pd.DataFrame]:
    """Mean over students of the loss on each clone; a line for each generator."""
    student, parts = corpus.student, []
    curves = tables.learning_curves(student.losses)
    curves = curves[curves["step"] > 0]

    def mean(target: str, series: str, label: str | None, **looks) -> None:
        found = curves[curves["target"] == target].groupby("step")["loss"].agg(["mean", "std"])
        every = max(1, len(found) // 12)
        axes.plot(found.index, found["mean"], label=label, markersize=3, markevery=every, **looks)
        series = f"{corpus.name}: {series}"
        parts.append(points("loss", series, "mean", found.index, found["mean"], found["std"]))

    for kind in _kinds(corpus):
        label = comparison.kind_label(student.targets, kind)
        for place, target in enumerate(kind):
            series = f"{label}, generator {place}"
            mean(target, series, None if place else label, **_looks(corpus, kind))
    original = "original text"
    mean(corpus.part["control"], original, original, color=style.ORIGINAL, linestyle=":")
    axes.set(xscale="log", xlabel="training step", ylabel="test loss (nats per token)")
    axes.set_title(labels.scale(student.about, student.losses["seed"].nunique()))
    axes.set_xlim(left=curves["step"].max() / 100)  # all curves are one before
    return parts


def _times(corpus: Corpus) -> list[pd.DataFrame]:
    """log t of every student and generator."""
    _, losses, targets, _ = corpus.student
    kinds, parts = _kinds(corpus), []
    for share in SATURATION:
        found = comparison.read_kinds(losses, targets, kinds, share, 1)
        for kind, made in zip(kinds, found, strict=True):
            label = f"{corpus.name}: {comparison.kind_label(targets, kind)}"
            for place, times in enumerate(made.times.T):
                series, shares = f"{label}, generator {place}", np.full(len(times), 100 * share)
                parts.append(
                    points("times", series, sorted(losses["seed"].unique()), times, shares)
                )
    return parts


def _draw_intervals(axes: Axes, corpora: list[Corpus]) -> list[pd.DataFrame]:
    """d with its interval for each corpus, pair and definition, and what the answer asks for."""
    axes.axvspan(-comparison.BOUND, comparison.BOUND, color="0.93", linewidth=0, zorder=0)
    parts = []
    every = [(corpus.name, one) for corpus in corpora for one in corpus.compared]
    for place, (name, one) in enumerate(every):
        series = f"{name}: {one.words}"
        for across, side, words in (
            (0.0, "left", series),
            (1.0, "right", f"the order sets the time: {one.claim['holds']}"),
        ):
            axes.text(
                *(across, place + 0.22, words),
                transform=axes.get_yaxis_transform(),
                fontsize=style.SMALL,
                ha=side,
                va="center",
            )
        axes.vlines(0, place + 0.38, place + 0.9, color="0.6", linewidth=0.8, zorder=0.5)
        for row, (share, d) in enumerate(one.found.items()):
            axes.errorbar(
                d.value,
                place + 0.5 + 0.26 * row,
                xerr=d.half if np.isfinite(d.half) else None,
                marker=MARKS[share],
                color="black",
                markerfacecolor="black" if row == 0 else "white",
                capsize=3,
                linestyle="",
                label="" if place else f"{share:.0%} of the drop left",
            )
            parts.append(points("d", series, "all", [d.value], [100 * share], d.half))
            parts += [
                points("errors", f"{series}, {part}, {share:.0%}", "all", [d.value], [error])
                for part, error in (
                    ("students", d.students),
                    ("generators", d.generators),
                    ("chains", d.chains),
                )
            ]
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set(
        ylim=(len(every), 0),
        xlabel="d = log t of the first kind less that of the second; grey: within log 1.25",
    )
    axes.set_title("d, with its 95 % interval")
    axes.legend(
        loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2, ncols=2, fontsize=style.SMALL
    )
    return parts
