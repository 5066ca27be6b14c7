"""Students of known distributions: losses on cuts and clones with exact lines, times, half-times.

In the table panels a, b, ... are curves (y_err: over sequences), lines `exact` and `own law`; of
panel `times` x is the half-time of M_k, y the time at which 5 % of the drop are left, and y_err the
standard error of log(y); of panel `half-times` x is k, y the step and y_err that of log(y).
"""

import itertools
import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from manybody.io import tables as stored
from manybody.io.options import Block as Part
from manybody.io.options import Text, different, key, refers
from manybody.papers import claims as records
from manybody.papers import inputs as needed
from manybody.papers import style
from manybody.papers.figure import Figure
from manybody.papers.inputs import Clone, ExactLosses, Tested, clones_of, runs_of, spectra_of
from manybody.papers.saturation import SATURATION
from manybody.papers.simplicity import comparison, known_truths, spectra, students
from manybody.papers.simplicity.comparison import BOUND, RESOLVED, Interval
from manybody.papers.simplicity.known_truths import Series, Step, Student, log_ratios
from manybody.papers.simplicity.spectra import HalfTime
from manybody.papers.simplicity.students import StudentBlock, Target
from manybody.papers.style import points

CUT = 0.02  # nats per token from the exact loss on a cut
WHOLE = 0.01  # and on the distribution that the student is trained on
COLOURS = (style.ORDERS[2], style.ORDERS[3], style.ORDERS[4], style.UNBOUNDED, style.ORDERS[6])
MARKERS = ("o", "s", "^", "D", "v")
STEPS = [10**power for power in range(7)]
TIMES = [digit * 10**power for power in range(7) for digit in (1, 3)]
LOSSES, TIMED, LEGEND = 1.9, 2.3, 0.9  # inches of a row of losses, of the times, of the legend


class Ladder(Part):
    """Sets of sequences that hold more and more of a law."""

    label: Text = key("What they are called.")
    targets: different(Target, 2) = key("Targets from low to high order.")


class KnownTruth(StudentBlock):
    """A student of a source whose conditionals are known."""

    spectrum: refers(
        "spectra", "draws", "enumeration", same=("source", "model", "seeds"), like="evaluation"
    ) = key("Order spectrum of the student.")
    exact: list[Ladder] = key(
        "Cuts of the source, or levels of a tree, each ladder with the source itself at its end.",
        min_length=1,
    )
    clones: list[Ladder] = key(
        "Clones of generators that were trained on the source, as many as a ladder of cuts has.", []
    )

    def misfits(self, path, config):
        evaluation = config.evaluations[self.evaluation]
        if config.sources[evaluation.source].conditionals is None:
            yield (
                f"{path}.evaluation: found {self.evaluation}, of source {evaluation.source}; "
                f"expected a Hamiltonian or a tree, whose conditionals are known; take one"
            )
        if evaluation.positions != "all" or config.models[evaluation.model].about.causal:
            yield (
                f"{path}.evaluation: found {self.evaluation}, of some positions or of the next "
                f"token; expected every position masked in turn; set positions to all"
            )
        count = len(self.exact[0].targets)
        for name in ("exact", "clones"):
            for number, one in enumerate(getattr(self, name)):
                if len(one.targets) != count:
                    yield (
                        f"{path}.{name}[{number}].targets: found {len(one.targets)}; expected "
                        f"{count}, as {path}.exact[0] has, since they are compared one by one; add "
                        f"or take away some"
                    )


class Block(Figure):
    """Students of known laws on cuts of these, against the exact conditionals and clones."""

    students: list[KnownTruth] = key("Students, one a row of the figure.", min_length=1)


class StudentInputs(Part):
    """Runs of one student, its spectra, and the exact losses on its targets."""

    runs: list[Tested]
    spectra: list[needed.Spectrum]
    exact: ExactLosses
    model: dict
    source: str


class Inputs(needed.Inputs):
    """Each student's inputs, and all clones that they are tested on."""

    students: list[StudentInputs]
    clones: list[Clone]

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        found = []
        for one in block.students:
            evaluation = config["evaluations"][one.evaluation]
            found.append(
                StudentInputs(
                    runs=runs_of([one.evaluation], config, None),
                    spectra=spectra_of([one.spectrum], config),
                    exact=ExactLosses(evaluation=one.evaluation),
                    model=config["models"][evaluation["model"]],
                    source=evaluation["source"],
                )
            )
        clones = clones_of([run for one in found for run in one.runs])
        return cls(students=found, clones=clones)


@dataclass(frozen=True)
class Tables:
    """The students, and what is drawn."""

    drawn: pd.DataFrame
    students: list[Student]


def tables(inputs: Inputs, block: Block) -> Tables:
    """Losses, exact losses, times and half-times of all students."""
    found = []
    for given, part in zip(inputs.students, block.students, strict=True):
        truth, about = stored.read_theory(given.exact.file())
        runs = students.read_evaluated(given.runs, inputs.clones)
        losses = pd.concat([run.losses for run in runs], ignore_index=True)
        (spectrum,) = spectra.read(given.spectra)
        found.append(
            known_truths.student_of(
                losses, runs[0].targets, truth, about["targets"], spectrum, part
            )
        )
    return tables_of(found)


def tables_of(found: list[Student]) -> Tables:
    """The tables of these students; of equal ones on one source the later have a number."""
    names = [student.name for student in found]
    for place, name in enumerate(names):
        if name in names[:place]:
            found[place] = found[place]._replace(name=f"{name}, {names[: place + 1].count(name)}")
    letters, parts = iter("abcdefghijklmnop"), []
    for student in found:
        for series in student.series:
            parts += _curves(next(letters), series, student.name)
    for student in found:
        parts += _times(student)
    return Tables(style.gathered(parts), found)


def _curves(panel: str, series: Series, name: str) -> list[pd.DataFrame]:
    """The loss of each run, the exact loss, and the least that is possible."""
    found = []
    for step in series.steps:
        label = f"{name}, {series.label}: {step.label}"
        for seed, curve in step.curves.groupby("seed"):
            curve = curve[curve["step"] > 0].sort_values("step")
            found.append(points(panel, label, seed, curve["step"], curve["loss"], curve["loss_se"]))
        lines = {"exact": step.exact}
        # Of the whole distribution both are the same.
        if not math.isclose(step.own, step.exact, abs_tol=1e-9):
            lines["own law"] = step.own
        for said, height in lines.items():
            if math.isfinite(height):
                found.append(points(panel, f"{label}, {said}", said, [math.nan], [height]))
    return found


def _times(student: Student) -> list[pd.DataFrame]:
    """Half-times of M_k, and the time of each step of each series against them."""
    halves = [_half(found) for found in student.halves]
    name = f"{student.name}, M_k"
    found = [
        points("half-times", name, "mean", [k], [half], error)
        for k, (half, error) in enumerate(halves, 1)
    ]
    for series in student.series:
        for place, step in enumerate(series.steps[: len(COLOURS)]):
            log, error = step.time()
            label = f"{student.name}, {series.label}: {step.label}"
            given = f"M_{place + 1}", [halves[place][0]], [math.exp(log)], error
            found.append(points("times", label, *given))
    return found


def _half(found: dict[int, HalfTime]) -> tuple[float, float]:
    """The half-time of all runs, and the standard error of its log, by runs and contexts."""
    logs = np.log([one.step for one in found.values()])
    runs = logs.std(ddof=1) / math.sqrt(len(logs)) if len(logs) > 1 else 0.0
    return math.exp(logs.mean()), math.hypot(runs, max(one.error for one in found.values()))


# --- Claims ---------------------------------------------------------------------------------------


def claims(tables: Tables) -> list[records.Claim]:
    """Ends, then order in time by each series and by M_k, then what agrees with what."""
    return [claim for student in tables.students for claim in _claims(student)]


def _claims(student: Student) -> list[records.Claim]:
    exact = [one for one in student.series if one.known]
    clones = [one for one in student.series if not one.known]
    pairs = _pairs(student)
    halves = [_half_times(student, low, high) for low, high in pairs]
    in_time = {
        one.label: [_in_time(one, low, high) for low, high in pairs] for one in student.series
    }
    agreements = [
        (f"{one.label} against the half-times of M_k", in_time[one.label], halves)
        for one in student.series
    ]
    agreements += [
        (f"{one.label} against {other.label}", in_time[one.label], in_time[other.label])
        for one in clones
        for other in exact
    ]
    together = [
        part
        for one in clones
        for other in exact
        for place in range(len(other.steps))
        for part in _together(one, other, place)
    ]
    id_ = f"simplicity/truths/{student.name.split(' on ')[-1].replace(', ', '-')}"
    scope = student.name
    given = {
        "ends": (
            "Where a distribution is known, the student ends with the loss of its exact "
            "conditionals",
            [part for one in exact for part in _ends(one)],
            f"the last loss is within {WHOLE} nats of the exact one, on cuts within {CUT}",
        ),
        "losses": (
            "The student's losses on cuts and clones stop falling from low to high order",
            [part for parts in in_time.values() for pair in parts for part in pair],
            "the loss on the higher order stops falling later, at 5 and at 2 % of its drop",
        ),
        "half-times": (
            "M_k comes to half of its end from low to high order",
            halves,
            "the half-time of the higher order is later",
        ),
        "agreement": (
            "Cuts, clones and M_k put the orders in the same order",
            [_agreement(*one) for one in agreements],
            "more than half of the pairs of steps have the same order in both, and none the other",
        ),
        "together": (
            "The loss on a clone stops falling with that on the cut that it stands for",
            together,
            "the times are within a factor of 1.25",
        ),
    }
    return [
        records.judged(f"{id_}/{name}", statement, parts, scope, rule, beyond=True)
        for name, (statement, parts, rule) in given.items()
        if parts
    ]


def _pairs(student: Student) -> list[tuple[int, int]]:
    """Neighbouring steps, and the first with the last."""
    count = len(student.halves)
    return [*pairwise(range(count)), *([(0, count - 1)] if count > 2 else [])]


def _ends(series: Series) -> list[records.Comparison]:
    """Last losses less those of the exact conditionals, by runs and by sequences."""
    found = []
    for place, step in enumerate(series.steps):
        whole = place == len(series.steps) - 1
        runs = len(step.apart)
        by_run = step.apart.std(ddof=1) / math.sqrt(runs) if runs > 1 else math.nan
        half = math.hypot(records.margin(by_run, runs), records.margin(step.apart_error))
        label = f"{series.label}, {step.label}: last loss less the exact one"
        value, error = float(step.apart.mean()), math.hypot(by_run, step.apart_error)
        bound = WHOLE if whole else CUT
        found.append(records.near(label, value, error, 0.0, bound, half=half))
    return found


def _half_times(student: Student, low: int, high: int) -> records.Comparison:
    """M_k comes to half its end before M_l."""
    later, error = log_ratios(student.halves[low], student.halves[high])
    label = f"log of half-time of M_{high + 1} over that of M_{low + 1}"
    return records.over_seeds(label, later, resolution=error)


def _interval(late: Step, early: Step, share: float) -> Interval:
    """log t of one step less that of another, over runs and sequences."""
    return comparison.interval(late.kinds[share], early.kinds[share], (math.nan, 0))


def _unresolved(*steps: Step) -> float:
    """How far apart (log) checkpoints lie that are too far apart where the losses stop falling,
    of all steps together; 0 where they are near enough."""
    widths = [np.max([kind.width for kind in step.kinds.values()]) for step in steps]
    return 0.0 if all(width <= RESOLVED for width in widths) else float(sum(widths))


def _in_time(series: Series, low: int, high: int) -> list[records.Comparison]:
    """The loss on a step stops falling before that on a higher one, by both definitions.

    Where checkpoints are far apart, the times have to differ by more than lies between these.
    """
    early, late = series.steps[low], series.steps[high]
    slack = _unresolved(early, late)
    label = f"{series.label}: log of the time of {late.label} over that of {early.label}"
    return [
        records.above(f"{label}, {share:.0%} left", one.value, one.error, half=one.half + slack)
        for share in SATURATION
        for one in [_interval(late, early, share)]
    ]


def _together(clones: Series, exact: Series, place: int) -> list[records.Comparison]:
    """The losses on a clone and on the cut that it stands for stop falling at one time."""
    clone, cut = clones.steps[place], exact.steps[place]
    slack = _unresolved(clone, cut)
    label = f"{clone.label} ({clones.label}) over {cut.label} ({exact.label})"
    return [
        records.near(f"{label}, {share:.0%} left: log", one.value, one.error, 0.0, BOUND, half=half)
        for share in SATURATION
        for one in [_interval(clone, cut, share)]
        for half in [one.half + slack]
    ]


def _agreement(label: str, one: list, other: list) -> records.Comparison:
    """The share of pairs of steps that both put in the same order less that put the other way."""
    answers = [(_answer(first), _answer(second)) for first, second in zip(one, other, strict=True)]
    same = sum(pair in (("yes", "yes"), ("no", "no")) for pair in answers)
    against = sum({*pair} == {"yes", "no"} for pair in answers)
    label = f"{label}: {same} pairs the same, {against} not, of {len(answers)}"
    # What is undecided can fall either way.
    half = (len(answers) - same - against) / len(answers)
    value = (same - against) / len(answers)
    return records.above(label, value, 0.0, 0.0, half=half)


def _answer(parts: records.Comparison | list[records.Comparison]) -> str:
    """The answer on which all definitions agree, else undecided."""
    parts = parts if isinstance(parts, list) else [parts]
    answers = {part.verdict() for part in parts}
    return answers.pop() if len(answers) == 1 else "undecided"


# --- Panels ---------------------------------------------------------------------------------------


@style.in_house_style
def draw(tables: Tables):
    """A row of losses for each student, a panel a series, and below the times."""
    found = tables.students
    heights = [*[LOSSES] * len(found), TIMED]
    figure = style.new(2, sum(heights) + LEGEND)
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    letters = iter("abcdefghijklmnop")
    for part, student in zip(parts, found, strict=False):
        part.suptitle(student.name, x=0.01, ha="left")
        panels = part.subplots(1, len(student.series), sharey=True, squeeze=False)[0]
        for axes, series in zip(panels, student.series, strict=True):
            letter = next(letters)
            axes.set_title(f"({letter}) {series.label}")
            _draw_losses(axes, tables, letter, series, student.name)
        panels[0].set_ylabel("loss (nats per token)")
    panels = parts[-1].subplots(1, len(found), squeeze=False)[0]
    for axes, student in zip(panels, found, strict=True):
        axes.set_title(f"({next(letters)}) {student.name}")
        _draw_times(axes, tables, student)
    figure.legend(handles=_handles(found), loc="outside lower center", ncols=3)
    return figure


def _handles(found: list[Student]) -> list:
    """Legend entries of colours, lines and markers; a colour is a step of every series."""
    from matplotlib.lines import Line2D

    made = []
    every = [series.steps for one in found for series in one.series]
    labels = [
        [steps[place].label for steps in every if place < len(steps)]
        for place in range(max(map(len, every)))
    ]
    for colour, place, words in zip(COLOURS, itertools.count(1), labels, strict=False):
        label = f"$M_{place}$: {', '.join(dict.fromkeys(words))}"
        made.append(Line2D([], [], color=colour, label=label))
    looks = dict(color="0.3", linewidth=0.9)
    made.append(Line2D([], [], linestyle="--", label="exact, of the whole law", **looks))
    made.append(Line2D([], [], linestyle=":", label="exact, of the set's own law", **looks))
    for label, marker in _markers(found).items():
        made.append(Line2D([], [], linestyle="", marker=marker, color="0.3", label=label))
    return made


def _markers(found: list[Student]) -> dict[str, str]:
    labels = dict.fromkeys(series.label for one in found for series in one.series)
    return dict(zip(labels, itertools.cycle(MARKERS)))


def _draw_losses(axes, tables: Tables, panel: str, series: Series, name: str) -> None:
    """A curve for each run, dashed the exact loss, dotted the least that is possible."""
    for colour, step in zip(COLOURS, series.steps, strict=False):
        label = f"{name}, {series.label}: {step.label}"
        for _, curve in style.series(tables.drawn, panel, label).groupby("seed"):
            axes.plot(curve["x"], curve["y"], color=colour, linewidth=0.8)
        for said, line in (("exact", "--"), ("own law", ":")):
            for height in style.series(tables.drawn, panel, f"{label}, {said}")["y"]:
                axes.axhline(height, color=colour, linestyle=line, linewidth=0.8, zorder=1)
    axes.set(xscale="log", xlabel="training step")
    style.plain_ticks(axes.xaxis, STEPS)


def _bar(value: float, error: float) -> list[list[float]]:
    """Below and above a value whose logarithm has this standard error."""
    return [[value * (1 - math.exp(-error))], [value * (math.exp(error) - 1)]]


def _draw_times(axes, tables: Tables, student: Student) -> None:
    """The time of each step against the half-time of M_k, by series."""
    halves = style.series(tables.drawn, "half-times", f"{student.name}, M_k")
    markers, shown = _markers(tables.students), []
    for series in student.series:
        steps = zip(COLOURS, series.steps, halves["y_err"], strict=False)
        for colour, step, beside in steps:
            label = f"{student.name}, {series.label}: {step.label}"
            (row,) = style.series(tables.drawn, "times", label).itertuples()
            if math.isfinite(row.x * row.y):
                looks = dict(color=colour, marker=markers[series.label], elinewidth=0.7)
                looks["markerfacecolor"] = colour if series.known else "white"
                bars = dict(xerr=_bar(row.x, beside), yerr=_bar(row.y, row.y_err))
                axes.errorbar(row.x, row.y, **bars, **looks)
                shown += [row.x, row.y]
    if shown:
        ends = [min(shown) / 1.5, max(shown) * 1.5]
        axes.plot(ends, ends, color="0.8", linewidth=0.8, zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="half-time of $M_k$ (steps)")
    axes.set_ylabel("loss stops falling (steps)")
    style.plain_ticks(axes.xaxis, TIMES)
    style.plain_ticks(axes.yaxis, TIMES)


def caption(inputs: Inputs, block: Block) -> str:
    """Says what is shown, what the eye sees, how it was made."""
    made = ", ".join(
        f"{one.model['architecture'].upper()} on {one.source} ({len(one.runs)} runs)"
        for one in inputs.students
    )
    return (
        "Students of distributions that are known exactly.\n\n"
        "**Above**: the loss on sets of sequences that hold more and more of the distribution: "
        "cuts of a Hamiltonian at an order, trees filtered at a level, clones of generators of "
        "growing order. Dashed: the loss of the whole distribution's conditionals, which a student "
        "that has learned everything ends with; dotted: the least that is possible on a cut. "
        "**Below**: the step at which 5 % of the fall are left against the student's half-time of "
        r"M\ :sub:`k`; grey: both are the same; open: clones. Bars: standard errors."
        "\n\n"
        f"{made}, every position masked in turn.\n"
    )
