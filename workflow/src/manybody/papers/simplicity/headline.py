"""Claim 11 with its intervals: does the order of interaction set the time, at equal loss?

For each of the block's `corpora` the student's losses on the clones that are compared, and for
each pair of kinds and definition of saturation d with its 95 % interval (`comparison`). In the
table: panel `loss` (x: step), `times` (x: log t; y: 100 x share) of every student and generator,
`d` (x: d; y: 100 x share; y_err: half width), and `errors`, the standard errors of d over
students, generators and chains (x: d, y: the error).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from manybody.io.options import Block as Part, key
from manybody.models import labels
from manybody.papers import claims as records, inputs as needed, style
from manybody.papers.figure import Figure
from manybody.papers.saturation import BOOTSTRAPS, SATURATION, read_kinds
from manybody.papers.simplicity import comparison, learning, students

LINES = {
    "generators": {"linestyle": "-", "marker": "o"},
    "stopped": {"linestyle": "--", "marker": "D", "markerfacecolor": "white"},
    "wide": {"linestyle": "--", "marker": "s", "markerfacecolor": "white"},
    "noise": {"linestyle": ":", "marker": "s", "markerfacecolor": "white"},
}
PAIR = 0.6  # inches, of a pair's heading and intervals
MARKS = {0.05: "o", 0.02: "D"}  # by definition of saturation


class Comparison(Part):
    """Clones that saturate later if the order sets the time, and the others."""

    late: students.Kinds = key("Targets of the higher order, one for each run of the generator.")
    early: students.Kinds = key("Targets of the lower order, one for each run of the generator.")


class HeadlineCorpus(students.StudentBlock):
    """A student of one corpus."""

    generators: list[students.Evaluation] = key(
        "Evaluations of the generators, whose losses must be equal where orders are compared."
    )
    test: students.Test = key("Target of test text in the generators' evaluations.")
    comparisons: list[Comparison] = key(
        "Pairs of kinds of clones: the one that saturates later if the order sets the time, and "
        "the other.",
        min_length=1,
    )


class Block(Figure):
    """Does the order of interaction set the time? Clones of generators of equal loss and different
    order, with intervals."""

    corpora: list[HeadlineCorpus] = key("A student of each corpus.", min_length=1)


class Inputs(needed.Inputs):
    """The students of all corpora, with their generators and clones."""

    students: list[students.StudentInputs]

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        return cls(students=[students.StudentInputs.of(part, config) for part in block.corpora])


@dataclass(frozen=True)
class Corpus:
    """A student on one corpus, the target of its text, and the kinds compared on it."""

    student: students.Evaluated
    control: str
    compared: list[comparison.Compared]

    @property
    def name(self) -> str:
        """The source of the student's text."""
        return self.student.about["source"]

    @property
    def kinds(self) -> list[tuple[str, list[str]]]:
        """Every kind of clone that is compared, once: its label and its targets."""
        kinds = dict.fromkeys(tuple(k) for one in self.compared for k in (one.late, one.early))
        return [(comparison.kind_label(self.student.targets, kind), list(kind)) for kind in kinds]


def tables(inputs: Inputs, block: Block) -> style.Tables:
    """Losses, times and d of all corpora."""
    return tables_of(
        [
            compare(
                students.read_student(given.runs, given.clones, corpus=given.corpus),
                part,
                students.read_evaluated(given.generators, given.clones),
            )
            for given, part in zip(inputs.students, block.corpora, strict=True)
        ]
    )


def compare(
    student: students.Evaluated,
    part: HeadlineCorpus,
    generators: Sequence[students.Evaluated],
    bootstraps: int = BOOTSTRAPS,
) -> Corpus:
    """Compares every pair of kinds that a part of the block names."""
    pairs = [(pair.late, pair.early) for pair in part.comparisons]
    return Corpus(
        student,
        part.control,
        comparison.compare(student, generators, part.test, pairs, bootstraps),
    )


def tables_of(corpora: list[Corpus]) -> style.Tables:
    """The tables of these corpora, which are what was found."""
    parts = [part for one in corpora for part in (*_losses(one), *_times(one))]
    parts += [part for one in corpora for part in _intervals(one)]
    return style.Tables(style.gathered(parts), corpora)


def _losses(corpus: Corpus) -> Iterator[pd.DataFrame]:
    """Mean and sd over students of the loss on each clone, and on original text."""
    curves = corpus.student.curves[corpus.student.curves["step"] > 0]
    named = [
        (target, f"{label}, generator {place}")
        for label, kind in corpus.kinds
        for place, target in enumerate(kind)
    ]
    for target, words in [*named, (corpus.control, "original text")]:
        yield learning.mean_over_runs(curves, target, "loss", f"{corpus.name}: {words}")


def _times(corpus: Corpus) -> Iterator[pd.DataFrame]:
    """log t of every student and generator."""
    student, kinds = corpus.student, [kind for _, kind in corpus.kinds]
    for share in SATURATION:
        found = read_kinds(student.losses, student.targets, kinds, share, 1)
        for (label, _), made in zip(corpus.kinds, found, strict=True):
            for place, times in enumerate(made.times.T):
                series = f"{corpus.name}: {label}, generator {place}"
                yield style.points(
                    "times", series, student.runs, times, np.full(len(times), 100 * share)
                )


def _intervals(corpus: Corpus) -> Iterator[pd.DataFrame]:
    """d with its interval and the parts of its error, for each pair and definition."""
    for one in corpus.compared:
        series = f"{corpus.name}: {one.words}"
        for share, d in one.found.items():
            yield style.points("d", series, "all", [d.value], [100 * share], d.half)
            for part, error in d.parts.items():
                yield style.points(
                    "errors", f"{series}, {part}, {share:.0%}", "all", [d.value], [error]
                )


def claims(tables: style.Tables) -> list[records.Claim]:
    """Each pair's answer; whether a second corpus gives the same is asked of two corpora only."""
    id_ = "simplicity/headline"
    found = [
        comparison.claim(f"{id_}/{corpus.name}-{number}", one.words, [one], corpus.student.scope)
        for corpus in tables.found
        for number, one in enumerate(corpus.compared, 1)
    ]
    if len(tables.found) == 1:
        found.append(
            records.not_run(
                f"{id_}/second-corpus",
                "The same answer on a second corpus",
                "its text is given by path: config/headline-second.yaml",
            )
        )
    return found


@style.in_house_style
def draw(tables: style.Tables):
    """A panel of losses for each corpus, and all intervals in one panel below."""
    corpora = tables.found
    count = sum(len(corpus.compared) for corpus in corpora)
    figure = style.new(2, 3.6 + PAIR * count)
    names = [f"loss {corpus.name}" for corpus in corpora]
    axes = figure.subplot_mosaic([names, ["d"] * len(names)], height_ratios=(2.4, PAIR * count))
    handles = {}
    for name, corpus in zip(names, corpora, strict=True):
        _draw_losses(axes[name], tables, corpus)
        # What all corpora have in common is said once.
        lines, words = axes[name].get_legend_handles_labels()
        handles |= dict(zip(words, lines, strict=True))
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=3)
    for name in names[1:]:
        axes[name].set_ylabel("")  # that of the first
    _draw_intervals(axes["d"], tables)
    return figure


def _looks(corpus: Corpus, kind: list[str]) -> dict:
    """Line and marker of a kind: the controls are dashed, as in figure 4."""

    def bounded(names):
        made = corpus.student.targets[names[0]]["generator"]
        return labels.bounded(made["description"])

    document = corpus.student.targets[kind[0]]
    role = "generators"
    if document["chain_init"] == "unigram":
        role = "noise"
    elif bounded(kind):
        if any(one.late == kind for one in corpus.compared):
            role = "stopped"
        elif any(one.early == kind and not bounded(one.late) for one in corpus.compared):
            role = "wide"
    return LINES[role] | {"color": style.colour(document)}


def _draw_losses(axes, tables: style.Tables, corpus: Corpus) -> None:
    """Mean over students of the loss on each clone; a line for each generator."""
    lines = [
        (f"{label}, generator {place}", None if place else label, _looks(corpus, kind))
        for label, kind in corpus.kinds
        for place in range(len(kind))
    ]
    text = "original text"
    for series, label, looks in [*lines, (text, text, {"color": style.ORIGINAL, "linestyle": ":"})]:
        found = style.series(tables.drawn, "loss", f"{corpus.name}: {series}")
        every = max(1, len(found) // 12)
        axes.plot(found["x"], found["y"], label=label, markersize=3, markevery=every, **looks)
    axes.set(
        xscale="log",
        xlim=(found["x"].max() / 100, None),  # all curves are one before
        xlabel="training step",
        ylabel="test loss (nats per token)",
        title=corpus.student.scope,
    )


def _draw_intervals(axes, tables: style.Tables) -> None:
    """d with its interval for each corpus, pair and definition, and what the answer asks for."""
    axes.axvspan(-comparison.BOUND, comparison.BOUND, color="0.93", linewidth=0, zorder=0)
    names = [f"{corpus.name}: {one.words}" for corpus in tables.found for one in corpus.compared]
    for place, name in enumerate(names):
        words = dict(transform=axes.get_yaxis_transform(), fontsize=style.SMALL, va="center")
        axes.text(0.0, place + 0.22, name, ha="left", **words)
        axes.vlines(0, place + 0.38, place + 0.9, color="0.6", linewidth=0.8, zorder=0.5)
        for row, d in enumerate(style.series(tables.drawn, "d", name).itertuples()):
            style.dots(
                axes,
                d.x,
                place + 0.5 + 0.26 * row,
                xerr=d.y_err if np.isfinite(d.y_err) else None,
                marker=MARKS[d.y / 100],
                color="black",
                markerfacecolor="black" if row == 0 else "white",
                capsize=3,
                label="" if place else f"{d.y:.0f}% of the drop left",
            )
    axes.spines["left"].set_visible(False)
    axes.set(
        yticks=[],
        ylim=(len(names), 0),
        xlabel="d = log t of the first kind less that of the second; grey: within log 1.25",
        title="d, with its 95 % interval",
    )
    axes.legend(
        loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2, ncols=2, fontsize=style.SMALL
    )


def caption(inputs: Inputs, block: Block) -> str:
    first, *others = inputs.students
    made = first.made() + "".join(
        f" On {needed.sized(one.corpus, one.source)}: {len(one.runs)} runs." for one in others
    )
    return (
        "Does the order of a clone's generator set the time at which a student's loss on it "
        "saturates?\n\n"
        "**Above**: mean loss on each clone, a line for each generator; pairs have "
        "generators of one test loss and different orders. "
        "**Below**: d, the mean of log t of the first kind less that of the second, with its 95 % "
        "interval over students, generators and chains; t is where 5 (disc) or 2 (diamond) % of "
        "the drop are left; grey: within log 1.25.\n\n"
        f"{made}\n"
    )
