"""Students of known distributions: losses on cuts and clones with exact lines, times, half-times.

In the table panels a, b, ... are curves (y_err: over sequences), lines `exact` and `own law`; of
panel `times` x is the half-time of M_k, y the time at which 5 % of the drop are left, and y_err the
standard error of log(y); of panel `half-times` x is k, y the step and y_err that of log(y).
"""

import itertools
import math

from manybody.io import tables as stored
from manybody.io.options import Block as Part
from manybody.io.options import Text, different, key, refers
from manybody.papers import claims as records
from manybody.papers import inputs as needed
from manybody.papers import style
from manybody.papers.figure import Figure
from manybody.papers.simplicity import known_truths, spectra, students
from manybody.papers.simplicity.comparison import BOUND

COLOURS = (style.ORDERS[2], style.ORDERS[3], style.ORDERS[4], style.UNBOUNDED, style.ORDERS[6])
MARKERS = ("o", "s", "^", "D", "v")
STEPS = [10**power for power in range(7)]
TIMES = [digit * 10**power for power in range(7) for digit in (1, 3)]
LETTERS = "abcdefghijklmnop"  # of panels
LOSSES, TIMED, LEGEND = 1.9, 2.3, 0.9  # inches of a row of losses, of the times, of the legend


class Sets(Part):
    """Sets of sequences that hold more and more of a distribution."""

    label: Text = key("What they are called.")
    targets: different(students.Target, 2) = key("Targets from low to high order.")


class KnownTruth(students.StudentBlock):
    """A student of a source whose conditionals are known."""

    spectrum: refers(
        "spectra", "draws", "enumeration", same=("source", "model", "seeds"), like="evaluation"
    ) = key("Order spectrum of the student.")
    exact: list[Sets] = key(
        "Cuts of the source, or levels of a tree, each series with the source itself at its end.",
        min_length=1,
    )
    clones: list[Sets] = key(
        "Clones of generators that were trained on the source, as many as a series of cuts has.", []
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
    """Students of known distributions on cuts, against the exact conditionals and clones."""

    students: list[KnownTruth] = key("Students, one a row of the figure.", min_length=1)


class StudentInputs(Part):
    """Runs of one student, its spectra, the exact losses on its targets, and what captions say."""

    runs: list[needed.Tested]
    spectra: list[needed.Spectrum]
    exact: needed.ExactLosses
    architecture: str
    source: str


class Inputs(needed.Inputs):
    """Each student's inputs, and all clones that they are tested on."""

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
        return cls(
            students=found, clones=needed.clones_of([run for one in found for run in one.runs])
        )


def tables(inputs: Inputs, block: Block) -> style.Tables:
    """Losses, exact losses, times and half-times of all students."""
    found = []
    for given, part in zip(inputs.students, block.students, strict=True):
        truth, about = stored.read_theory(given.exact.file())
        student = students.read_student(given.runs, inputs.clones)
        (spectrum,) = spectra.read(given.spectra)
        losses = student.losses, student.targets
        found.append(known_truths.student_of(*losses, truth, about["targets"], spectrum, part))
    return tables_of(found)


def tables_of(found: list[known_truths.Student]) -> style.Tables:
    """The tables of these students, which are what was found; of equal ones on one source the
    later have a number."""
    names = [student.name for student in found]
    for place, name in enumerate(names):
        if name in names[:place]:
            found[place] = found[place]._replace(name=f"{name}, {names[: place + 1].count(name)}")
    letters = iter(LETTERS)
    parts = [
        part
        for student in found
        for series in student.series
        for part in known_truths.curves(next(letters), series, student.name)
    ]
    parts += [part for student in found for part in known_truths.times(student)]
    return style.Tables(style.gathered(parts), found)


# --- Claims ---------------------------------------------------------------------------------------


def claims(tables: style.Tables) -> list[records.Claim]:
    """Ends, then order in time by each series and by M_k, then what agrees with what."""
    return [claim for student in tables.found for claim in _claims(student)]


def _claims(student: known_truths.Student) -> list[records.Claim]:
    exact = [one for one in student.series if one.known]
    clones = [one for one in student.series if not one.known]
    both = list(itertools.product(clones, exact))
    # Neighbouring steps, and the first with the last.
    last = len(student.orders) - 1
    pairs = sorted({*itertools.pairwise(range(last + 1)), (0, last)})
    halves = [spectra.half_time_ratio(student.spectrum, low + 1, high + 1) for low, high in pairs]
    in_time = {
        one.label: [
            known_truths.later(one.label, one.steps[low], one.steps[high]) for low, high in pairs
        ]
        for one in student.series
    }
    agreements = [
        known_truths.agreement(
            f"{label} against the half-times of M_k", found, [[part] for part in halves]
        )
        for label, found in in_time.items()
    ]
    agreements += [
        known_truths.agreement(
            f"{one.label} against {other.label}", in_time[one.label], in_time[other.label]
        )
        for one, other in both
    ]
    together = [
        part
        for one, other in both
        for clone, cut in zip(one.steps, other.steps, strict=True)
        for label in [f"log of {clone.label} ({one.label}) over {cut.label} ({other.label})"]
        for part in known_truths.stops(label, clone, cut, (-BOUND, BOUND))
    ]
    given = {
        "ends": (
            "Where a distribution is known, the student ends with the loss of its exact "
            "conditionals",
            [part for one in exact for part in known_truths.ends(one)],
            f"the last loss is within {known_truths.WHOLE} nats of the exact one, on cuts within "
            f"{known_truths.CUT}",
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
            agreements,
            "more than half of the pairs of steps have the same order in both, and none the other",
        ),
        "together": (
            "The loss on a clone stops falling with that on the cut that it stands for",
            together,
            "the times are within a factor of 1.25",
        ),
    }
    shown = {name: one for name, one in given.items() if one[1]}  # of which there are comparisons
    prefix = f"simplicity/truths/{student.name.split(' on ')[-1].replace(', ', '-')}"
    return records.all_judged(prefix, shown, student.name)


# --- Panels ---------------------------------------------------------------------------------------


@style.in_house_style
def draw(tables: style.Tables):
    """A row of losses for each student, a panel a series, and below the times."""
    found = tables.found
    heights = [*[LOSSES] * len(found), TIMED]
    figure = style.new(2, sum(heights) + LEGEND)
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    letters = iter(LETTERS)
    for part, student in zip(parts, found, strict=False):
        part.suptitle(student.name, x=0.01, ha="left")
        panels = part.subplots(1, len(student.series), sharey=True, squeeze=False)[0]
        for axes, letter, series in zip(panels, letters, student.series, strict=False):
            axes.set_title(f"({letter}) {series.label}")
            _draw_losses(axes, tables, letter, series, student.name)
        panels[0].set_ylabel("loss (nats per token)")
    names = dict.fromkeys(series.label for one in found for series in one.series)
    markers = dict(zip(names, itertools.cycle(MARKERS)))
    panels = parts[-1].subplots(1, len(found), squeeze=False)[0]
    for axes, student in zip(panels, found, strict=True):
        axes.set_title(f"({next(letters)}) {student.name}")
        _draw_times(axes, tables, student, markers)
    _draw_legend(figure, found, markers)
    return figure


def _draw_legend(figure, found: list[known_truths.Student], markers: dict[str, str]) -> None:
    """Colours, lines and markers; a colour is a step of every series."""
    steps = itertools.zip_longest(*(series.steps for one in found for series in one.series))
    handles = [
        style.mark(f"$M_{k}$: {', '.join(words)}", color=colour)
        for k, (colour, row) in enumerate(zip(COLOURS, steps, strict=False), 1)
        for words in [dict.fromkeys(step.label for step in row if step)]
    ]
    handles += [
        style.mark("exact, of the whole distribution", color="0.3", linestyle="--", linewidth=0.9),
        style.mark("exact, of the set's own", color="0.3", linestyle=":", linewidth=0.9),
    ]
    handles += [
        style.mark(label, linestyle="", marker=marker, color="0.3")
        for label, marker in markers.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)


def _draw_losses(
    axes, tables: style.Tables, panel: str, series: known_truths.Series, name: str
) -> None:
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


def _draw_times(
    axes, tables: style.Tables, student: known_truths.Student, markers: dict[str, str]
) -> None:
    """The time of each step against the half-time of M_k, by series."""
    halves = style.series(tables.drawn, "half-times", f"{student.name}, M_k")
    shown = []
    for series in student.series:
        for colour, step, beside in zip(COLOURS, series.steps, halves["y_err"], strict=False):
            label = f"{student.name}, {series.label}: {step.label}"
            (row,) = style.series(tables.drawn, "times", label).itertuples()
            if math.isfinite(row.x * row.y):
                style.dots(
                    axes,
                    row.x,
                    row.y,
                    xerr=style.factors(row.x, beside),
                    yerr=style.factors(row.y, row.y_err),
                    color=colour,
                    marker=markers[series.label],
                    markerfacecolor=colour if series.known else "white",
                )
                shown += [row.x, row.y]
    if shown:
        ends = [min(shown) / 1.5, max(shown) * 1.5]
        axes.plot(ends, ends, color="0.8", linewidth=0.8, zorder=0)
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="half-time of $M_k$ (steps)",
        ylabel="loss stops falling (steps)",
    )
    for axis in (axes.xaxis, axes.yaxis):
        style.plain_ticks(axis, TIMES)


def caption(inputs: Inputs, block: Block) -> str:
    """Says what is shown, what the eye sees, how it was made."""
    made = ", ".join(
        f"{one.architecture.upper()} on {one.source} ({len(one.runs)} runs)"
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
