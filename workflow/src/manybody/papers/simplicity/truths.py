"""Students of known distributions: losses on cuts and clones with exact lines, times, half-times.

In the table panels a, b, ... are curves (y_err: over sequences) and lines `exact` and `own`; then
a panel of each student's times: x is k, y a step, y_err the standard error of log(y).
"""

import itertools

from manybody.io import tables as stored
from manybody.io.options import Block as Part, Text, different, key, refers
from manybody.papers import claims as records, inputs as needed, style
from manybody.papers.figure import Figure
from manybody.papers.simplicity import known_truths, spectra, students
from manybody.papers.simplicity.comparison import BOUND

STEPS = [10**power for power in range(7)]
LETTERS = "abcdefghijklmnop"  # of panels
LOSSES, TIMED, LEGEND = 2.1, 2.7, 0.4  # inches of a row of losses, of the times, of the legend


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
    series = [one for student in found for one in student.series]
    parts = [part for one in series for part in known_truths.curves(next(letters), one)]
    parts += [part for student in found for part in known_truths.times(next(letters), student)]
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
    times = "the half-times of M_k"
    answers = in_time | {times: [[part] for part in halves]}
    pairings = [(label, times) for label in in_time]
    pairings += [(one.label, other.label) for one, other in both]
    agreements = [
        known_truths.agreement(f"{one} against {other}", answers[one], answers[other])
        for one, other in pairings
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
    found, letters = tables.found, iter(LETTERS)
    heights = [*[LOSSES] * len(found), TIMED]
    figure = style.new(2, sum(heights) + LEGEND)
    *parts, last = figure.subfigures(len(heights), 1, height_ratios=heights)
    for part, student in zip(parts, found, strict=True):
        part.suptitle(student.name, x=0.01, ha="left")
        panels = part.subplots(1, len(student.series), sharey=True, squeeze=False)[0]
        for axes, series in zip(panels, student.series, strict=True):
            _draw_losses(axes, tables.drawn, next(letters), series)
        panels[0].set_ylabel("loss (nats per token)")
    for axes, student in zip(last.subplots(1, len(found), squeeze=False)[0], found, strict=True):
        letter, names = next(letters), [series.label for series in student.series]
        spectra.draw_rows(axes, tables.drawn, letter, [known_truths.HALVES, *names], logs=True)
        axes.set(xscale="log", xlabel="training step", title=f"({letter}) times, {student.name}")
        style.plain_ticks(axes.xaxis, spectra.STEPS)
    count = max(len(student.orders) for student in found)
    handles = [
        style.mark(f"set {k}, $M_{k}$", color=spectra.COLOURS[k])
        for k in range(1, 1 + min(count, known_truths.SHOWN))
    ]
    handles += [
        style.mark(f"exact, {said}", color="0.3", linestyle=line, linewidth=0.9)
        for said, line in (("whole distribution", "--"), ("the set's own", ":"))
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _draw_losses(axes, drawn, panel: str, series: known_truths.Series) -> None:
    """A curve for each run, dashed the exact loss, dotted the least that is possible."""
    handles = []
    for colour, step in zip(spectra.COLOURS.values(), series.steps, strict=False):
        handles.append(style.mark(step.label, color=colour))
        for _, curve in style.series(drawn, panel, step.label).groupby("seed"):
            axes.plot(curve["x"], curve["y"], color=colour, linewidth=0.8)
        for said, line in (("exact", "--"), ("own", ":")):
            for height in style.series(drawn, panel, f"{step.label}, {said}")["y"]:
                axes.axhline(height, color=colour, linestyle=line, linewidth=0.8, zorder=1)
    axes.set(xscale="log", xlabel="training step", title=f"({panel}) {series.label}")
    style.plain_ticks(axes.xaxis, STEPS)
    style.legend_below(axes, columns=2, handles=handles)


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
        "that has learned everything ends with; dotted: the least that is possible on a set. "
        r"**Below**: half-times of M\ :sub:`k`, and the steps at which 5 % of the fall of the loss "
        "on set k are left: orders come one after the other where the colours do. Bars: standard "
        "errors.\n\n"
        f"{made}, every position masked in turn.\n"
    )
