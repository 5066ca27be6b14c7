"""Students of known distributions: losses on cuts with exact lines, times, half-times.

A series is a list of sets of sequences that hold more and more of a distribution, which is the last
one. Its step k = 1, 2, ... is compared with M_k, which sees the orders above k.

In the table panels a, b, ... are curves (y_err: over sequences) and lines `exact` and `own`; then
a panel of each student's times: x is k, y a step, y_err the standard error of log(y).
"""

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody import models
from manybody.io import tables as stored
from manybody.io.options import Block as Part, Text, different, key, refers
from manybody.measure.half_times import Spectra
from manybody.measure.intervals import mean
from manybody.measure.saturation import SATURATION, Times, read_times
from manybody.papers import claims as records, inputs as needed, style
from manybody.papers.figure import Figure
from manybody.papers.simplicity import comparison, spectra, students

LETTERS = "abcdefghijklmnop"  # of panels
LOSSES, TIMED, LEGEND = 2.1, 2.7, 0.4  # inches of a row of losses, of the times, of the legend
CUT = 0.02  # nats per token from the exact loss on a cut
WHOLE = 0.01  # and on the distribution that the student is trained on
SHOWN = 5  # steps whose times are drawn
HALVES = "half-times, M_k"  # the row of the student's own spectrum


class Sets(Part):
    """Sets of sequences that hold more and more of a distribution."""

    label: Text = key("What they are called.")
    targets: different(
        refers("targets", wanted="a split of a source", fits=lambda one, _: hasattr(one, "split")),
        2,
    ) = key("Targets from low to high order.")


class KnownTruth(students.StudentBlock):
    """A student of a source whose conditionals are known."""

    spectrum: refers(
        "spectra", "draws", "enumeration", same=("source", "model", "seeds"), like="evaluation"
    ) = key("Order spectrum of the student.")
    exact: list[Sets] = key(
        "Cuts of the source, or levels of a tree, each series with the source itself at its end.",
        min_length=1,
    )

    def misfits(self, config):
        evaluation = config.evaluations[self.evaluation]
        if config.sources[evaluation.source].conditionals is None:
            yield self.refused(
                "evaluation",
                "a Hamiltonian or a tree, whose conditionals are known",
                "take one",
                f", of source {evaluation.source}",
            )
        if evaluation.positions != "all" or config.models[evaluation.model].about.causal:
            yield self.refused(
                "evaluation",
                "every position masked in turn",
                "set positions to all",
                ", of some positions or of the next token",
            )
        count = len(self.exact[0].targets)
        for number, one in enumerate(self.exact):
            if one.label in [other.label for other in self.exact[:number]]:
                yield (
                    f"exact[{number}].label",
                    f"found {one.label!r}, as of a series before it; expected another; change it",
                )
            if len(one.targets) != count:
                yield (
                    f"exact[{number}].targets",
                    f"found {len(one.targets)}; expected {count}, as exact[0] has, since each "
                    f"has its M_k; add or take away some",
                )


class Block(Figure):
    """Students of known distributions on cuts, against the exact conditionals."""

    students: list[KnownTruth] = key("Students, one a row of the figure.", min_length=1)


class StudentInputs(Part):
    """Runs of one student, its spectra, the exact losses on its targets, and what captions say."""

    runs: list[needed.Tested]
    spectra: list[needed.Spectrum]
    exact: needed.ExactLosses
    architecture: str
    source: str


class Inputs(needed.Inputs):
    students: list[StudentInputs]
    clones: list[needed.Clone]

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        entries = [config["evaluations"][one.evaluation] for one in block.students]
        found = [
            StudentInputs(
                runs=needed.runs_of([one.evaluation], config),
                spectra=needed.spectra_of([one.spectrum], config),
                exact=needed.ExactLosses(evaluation=one.evaluation),
                architecture=config["models"][entry["model"]]["architecture"],
                source=entry["source"],
            )
            for one, entry in zip(block.students, entries, strict=True)
        ]
        runs = [run for one in found for run in one.runs]
        return cls(students=found, clones=needed.clones_of(runs))


class Step(NamedTuple):
    """A set of sequences.

    curves: target, seed, step, loss, loss_se. exact: the mean loss of the source's own
    conditionals on it, own: that of its own distribution, NaN where it is not known. apart: of
    each run the last loss less the exact one, (runs,), and its standard error over sequences.
    logs: log t of the loss by definition of saturation.
    """

    label: str
    curves: pd.DataFrame
    exact: float
    own: float
    apart: np.ndarray
    apart_error: float
    logs: dict[float, Times]

    def time(self) -> tuple[float, float]:
        """Mean of log t over runs at 5 %, and its standard error by runs and sequences."""
        found = self.logs[SATURATION[0]]
        log, error, _ = mean(found.times)
        return log, math.hypot(error, float(found.resampled.mean(axis=1).std(ddof=1)))


class Student(NamedTuple):
    """Its name; the steps of each series, from low to high; the k of the M_k that they are compared
    with; the spectra of its runs."""

    name: str
    series: dict[str, list[Step]]
    orders: range
    spectrum: Spectra


def student_of(
    losses: pd.DataFrame, truth: pd.DataFrame, distributions: dict, spectrum: Spectra, part
) -> Student:
    """A student of a block `KnownTruth`. losses: of an evaluation. truth, distributions: as
    `measure.truths` makes them."""
    series = {
        one.label: [_step(name, losses, truth, distributions) for name in one.targets]
        for one in part.exact
    }
    name = f"{models.about(spectrum.about['description']).label} on {spectrum.about['source']}"
    return Student(name, series, range(1, len(part.exact[0].targets) + 1), spectrum)


def _step(name: str, losses, truth: pd.DataFrame, distributions: dict) -> Step:
    mine, true = losses[losses["target"] == name], truth[truth["series"] == name]
    exact = true[true["quantity"] == "truth"].set_index("x")["y"].sort_index()
    own = true.loc[true["quantity"] == "own", "y"]
    last = mine[mine["step"] == mine["step"].max()].set_index(["sequence", "seed"])
    each = (last["loss_sum"] / last["predictions"]).unstack()
    if not np.array_equal(each.index, exact.index):
        raise ValueError(
            f"target {name}: the student has losses of {len(each)} sequences, the truth of "
            f"{len(exact)}; expected the same ones. Delete the table of truths and run again"
        )
    differences = each.sub(exact.to_numpy(), axis=0)
    return Step(
        _label(distributions[name]),
        stored.learning_curves(mine),
        float(exact.mean()),
        float(own.iloc[0]) if len(own) else math.nan,
        differences.mean().to_numpy(),
        float(differences.mean(axis=1).std(ddof=1) / math.sqrt(len(differences))),
        {share: read_times(mine, {name: {}}, [name], share)[name] for share in SATURATION},
    )


def _label(distribution: dict) -> str:
    """`order ≤ 2` of a cut, `level 3` of a tree, `whole`."""
    if "at" in distribution:
        return f"order ≤ {distribution['at']}"
    return f"level {distribution['level']}" if distribution.get("level") else "whole"


def curves(panel: str, steps: list[Step]) -> Iterator[pd.DataFrame]:
    """The loss of each run, the exact loss, and the least that is possible."""
    for step in steps:
        for seed, curve in step.curves[step.curves["step"] > 0].groupby("seed"):
            rows = (curve.sort_values("step")[name] for name in ("step", "loss", "loss_se"))
            yield style.points(panel, step.label, seed, *rows)
        for said, height in (("exact", step.exact), ("own", step.own)):
            # Of the whole distribution both are the same.
            same = said == "own" and math.isclose(step.own, step.exact, abs_tol=1e-9)
            if math.isfinite(height) and not same:
                yield style.points(panel, f"{step.label}, {said}", said, math.nan, height)


def times(panel: str, student: Student) -> Iterator[pd.DataFrame]:
    """By k half-times of M_k and times of step k of each series, errors of the logarithms."""
    for k in student.orders:
        step, error = student.spectrum.mean_half_time(k)
        yield style.points(panel, HALVES, "mean", k, step, error)
    for label, steps in student.series.items():
        for k, step in enumerate(steps[:SHOWN], 1):
            log, error = step.time()
            yield style.points(panel, label, "mean", k, math.exp(log), error)


def tables(inputs: Inputs, block: Block) -> style.Tables:
    found = []
    for given, part in zip(inputs.students, block.students, strict=True):
        truth, about = stored.THEORY.read(given.exact.file())
        run = students.read_student(given.runs, inputs.clones)
        (spectrum,) = spectra.read(given.spectra)
        found.append(student_of(run.losses, truth, about["targets"], spectrum, part))
    return tables_of(found)


def tables_of(found: list[Student]) -> style.Tables:
    """The tables of these students; of equal ones on one source the later have a number."""
    names = [student.name for student in found]
    for place, name in enumerate(names):
        if name in names[:place]:
            found[place] = found[place]._replace(name=f"{name}, {names[: place + 1].count(name)}")
    letters = iter(LETTERS)
    series = [steps for student in found for steps in student.series.values()]
    parts = [part for steps in series for part in curves(next(letters), steps)]
    parts += [part for student in found for part in times(next(letters), student)]
    return style.Tables(style.gathered(parts), found)


def ends(label: str, steps: list[Step]) -> Iterator[records.Comparison]:
    """Last losses less those of the exact conditionals, by runs and by sequences."""
    for step in steps:
        value, by_run, runs = mean(step.apart)
        half = math.hypot(records.margin(by_run, runs), records.margin(step.apart_error))
        error = math.hypot(by_run, step.apart_error)
        said = f"{label}, {step.label}: last loss less the exact one"
        bound = WHOLE if step is steps[-1] else CUT
        yield records.near(said, value, error, 0.0, bound, half=half)


def later(label: str, early: Step, late: Step) -> list[records.Comparison]:
    """Differences of log t, of a higher step less a lower one, by both definitions: above 0.
    Checkpoints farther apart than `RESOLVED` add their distance to the interval."""
    label = f"{label}: log of the time of {late.label} over that of {early.label}"
    widths = [np.max([one.width for one in step.logs.values()]) for step in (late, early)]
    slack = 0.0 if all(width <= comparison.RESOLVED for width in widths) else float(sum(widths))
    return [
        comparison.difference(
            f"{label}, {share:.0%} left", late.logs[share], early.logs[share], 0.0, slack
        )
        for share in SATURATION
    ]


def agreement(label: str, one: list, other: list) -> records.Comparison:
    """The share of pairs of steps that both put in the same order less that put the other way."""
    products = [_sign(first) * _sign(second) for first, second in zip(one, other, strict=True)]
    same, against, open_ = (products.count(sign) for sign in (1, -1, 0))
    label = f"{label}: {same} pairs the same, {against} not, of {len(products)}"
    # What is undecided can fall either way.
    return records.above(label, (same - against) / len(products), 0.0, half=open_ / len(products))


def _sign(parts: list[records.Comparison]) -> int:
    """1 where all definitions say yes, -1 where all say no, else 0."""
    answers = {part.verdict() for part in parts}
    return (answers == {"yes"}) - (answers == {"no"})


def claims(tables: style.Tables) -> list[records.Claim]:
    return [claim for student in tables.found for claim in _claims(student)]


def _claims(student: Student) -> list[records.Claim]:
    orders = student.orders
    pairs = sorted({*itertools.pairwise(orders), (orders[0], orders[-1])})
    halves = [spectra.half_time_ratio(student.spectrum, *pair) for pair in pairs]
    in_time = {
        label: [later(label, steps[low - 1], steps[high - 1]) for low, high in pairs]
        for label, steps in student.series.items()
    }
    given = {
        "ends": (
            "Where a distribution is known, the student ends with the loss of its exact "
            "conditionals",
            [part for series in student.series.items() for part in ends(*series)],
            f"the last loss is within {WHOLE} nats of the exact one, on cuts within {CUT}",
        ),
        "losses": (
            "The student's losses on cuts stop falling from low to high order",
            [part for parts in in_time.values() for pair in parts for part in pair],
            "the loss on the higher order stops falling later, at 5 and at 2 % of its drop",
        ),
        "half-times": (
            "M_k comes to half of its end from low to high order",
            halves,
            "the half-time of the higher order is later",
        ),
        "agreement": (
            "Cuts and M_k put the orders in the same order",
            [
                agreement(f"{label} against the half-times of M_k", parts, [[x] for x in halves])
                for label, parts in in_time.items()
            ],
            "more than half of the pairs of steps have the same order in both, and none the other",
        ),
    }
    prefix = f"simplicity/truths/{student.name.split(' on ')[-1].replace(', ', '-')}"
    return records.all_judged(prefix, given, student.name)


@style.in_house_style
def draw(tables: style.Tables):
    found, letters = tables.found, iter(LETTERS)
    heights = [*[LOSSES] * len(found), TIMED]
    figure = style.new(2, sum(heights) + LEGEND)
    *parts, last = figure.subfigures(len(heights), 1, height_ratios=heights)
    for part, student in zip(parts, found, strict=True):
        part.suptitle(student.name, x=0.01, ha="left")
        panels = part.subplots(1, len(student.series), sharey=True, squeeze=False)[0]
        for axes, series in zip(panels, student.series.items(), strict=True):
            _draw_losses(axes, tables.drawn, next(letters), *series)
        panels[0].set_ylabel("loss (nats per token)")
    panels = last.subplots(1, len(found), squeeze=False)[0]
    for axes, letter, student in zip(panels, letters, found, strict=False):
        spectra.draw_rows(axes, tables.drawn, letter, [HALVES, *student.series], logs=True)
        axes.set(xscale="log", xlabel="training step", title=f"({letter}) times, {student.name}")
        style.plain_ticks(axes.xaxis, spectra.STEPS)
    most = max((student.orders for student in found), key=len)
    marks = [(f"set {k}, $M_{k}$", dict(color=spectra.COLOURS[k])) for k in most[:SHOWN]]
    for said, line in (("whole distribution", "--"), ("the set's own", ":")):
        marks.append((f"exact, {said}", dict(color="0.3", linestyle=line, linewidth=0.9)))
    style.legend(figure, marks)
    return figure


def _draw_losses(axes, drawn, panel: str, label: str, steps: list[Step]) -> None:
    handles = []
    for colour, step in zip(spectra.COLOURS.values(), steps, strict=False):
        handles.append(style.mark(step.label, color=colour))
        for _, curve in style.series(drawn, panel, step.label).groupby("seed"):
            axes.plot(curve["x"], curve["y"], color=colour, linewidth=0.8)
        for said, line in (("exact", "--"), ("own", ":")):
            for height in style.series(drawn, panel, f"{step.label}, {said}")["y"]:
                axes.axhline(height, color=colour, linestyle=line, linewidth=0.8, zorder=1)
    axes.set(xscale="log", xlabel="training step", title=f"({panel}) {label}")
    style.plain_ticks(axes.xaxis, spectra.STEPS[::2])
    style.legend_below(axes, columns=2, handles=handles)


def caption(inputs: Inputs, block: Block) -> str:
    made = ", ".join(
        f"{one.architecture.upper()} on {one.source} ({len(one.runs)} runs)"
        for one in inputs.students
    )
    return (
        "Students of distributions that are known exactly.\n\n"
        "**Above**: the loss on sets of sequences that hold more and more of the distribution: "
        "cuts of a Hamiltonian at an order, trees filtered at a level. Dashed: the loss of the "
        "whole distribution's conditionals, where a perfect student ends; "
        "dotted: the least possible on a set. "
        r"**Below**: half-times of M\ :sub:`k`, and the steps at which 5 % of the fall of the loss "
        "on set k are left: they grow with k if low orders are learned first. Bars: standard "
        "errors.\n\n"
        f"{made}, every position masked in turn.\n"
    )
