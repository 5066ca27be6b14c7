"""Is a saturation time set by the order of a clone's generator, by its quality, or by neither?

In the table: panels `loss` and `order` (x: what is said; y: t in steps where 5 % of the drop are
left; y_err: standard deviation over students of log t), a row a clone, and `times` with each
student's; `shares` (x: R^2 or its difference; y_err: half width of the 95 % interval) for each
measure of each series; `d` the same for logs of ratios of times; `noise` curves of the loss, and
`half-times` those of the students' own spectrum (y_err: standard error of log(step)).
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from manybody.io.options import Block as Part, Text, different, key, refers
from manybody.io.sequences import Sequences as StoredSequences
from manybody.papers import claims as records, inputs as needed, style
from manybody.papers.figure import Figure
from manybody.papers.saturation import SATURATION
from manybody.papers.simplicity import crossed, learning, spectra, students
from manybody.papers.simplicity.comparison import BOUND, Interval

TRIPLED = math.log2(3)  # doublings from order 3 to order 9
MARKERS = ("o", "s", "D", "^", "v")
COLOURS = {1: style.ORIGINAL, 2: style.ORDERS[2], 3: style.ORDERS[3], 4: style.ORDERS[4]}
COLOURS |= {5: style.ORDERS[5], 9: style.ORDERS[6]}
SHARES = {
    "order": "order alone",
    "loss": "loss alone",
    "unique to order": "unique to order",
    "unique to loss": "unique to loss",
}
RATIOS = {
    "doubling": "order 9 to 3, regression",
    "order at equal loss": "order, pairs of equal loss",
    "quality at equal order": "quality, pairs of one order",
}
FACTOR = ("the factor is above 1.25", BOUND)
ASKED = {  # of the estimates: the statement, what would be yes, and the bound
    "doubling alone": (
        "Without a control: saturation follows the order of the generator",
        "log t grows with the order",
        0.0,
    ),
    "order less loss": (
        "The generator's order accounts for more of the times than its quality",
        "R² of the order is above that of the loss",
        0.0,
    ),
    "doubling": (
        "At equal loss, by regression, order 9 saturates later than order 3",
        *FACTOR,
    ),
    "order at equal loss": ("At equal loss, in pairs, the higher order saturates later", *FACTOR),
    "quality at equal order": (
        "At equal order the better generator's clone saturates later",
        *FACTOR,
    ),
}
NOISES = ("#8C8C8C", "#B0743C", "#7A3E9D", "#C2185B")
STEPS = [digit * 10**power for power in range(7) for digit in (1, 1.5, 2, 3, 5, 7)]


def _of_kind(kind: str) -> Callable[..., bool]:
    """A function that is true of a target of another source, of this kind."""
    return lambda target, config: (
        getattr(target, "source", None) is not None and config.sources[target.source].kind == kind
    )


class Series(Part):
    """Clones of several generators that are drawn in one way."""

    label: Text = key("What they are called.")
    targets: different(
        refers(
            "targets",
            wanted="a clone, or a target of a source of kind n-gram-clone, whose order is known",
            fits=lambda target, config: (
                hasattr(target, "clone") or _of_kind("n-gram-clone")(target, config)
            ),
        )
    ) = key("Targets, each of a generator of its own.")


class Block(students.StudentBlock, Figure):
    """Is a time set by the order of a generator, or by its quality? Clones of many generators."""

    generators: list[students.Evaluation] = key(
        "Evaluations of the generators at all their checkpoints."
    )
    test: students.Test = key("Target of test text in the generators' evaluations.")
    series: list[Series] = key(
        "Clones by the way they are drawn: each is a regression of its own.", min_length=1
    )
    twins: list[students.Pair] = key(
        "Pairs of targets of one generator, from text and from noise.", []
    )
    noise: list[
        refers("targets", wanted="a target of a source of kind noisy", fits=_of_kind("noisy"))
    ] = key("Targets of text with noise.", [])
    spectrum: refers("spectra", "draws", same=("source", "model"), like="evaluation") = key(
        "Spectrum of the student along its training."
    )
    late: Annotated[list[students.Kept], Field(min_length=2, max_length=2)] = key(
        "Two checkpoints of the student, between which a loss rises or falls late."
    )

    def misfits(self, config):
        targets = config.evaluations[self.evaluation].targets
        shown = [name for one in self.series for name in one.targets]
        clones = {name: targets[name].clone for name in shown if hasattr(targets[name], "clone")}
        found = [config.evaluations[name] for name in self.generators]
        tested = {(one.model, seed) for one in found if one.steps == "all" for seed in one.seeds}
        for name, drawn in clones.items():
            clone = config.clones[drawn]
            if (clone.model, clone.seed) not in tested:
                yield (
                    "series",
                    f"found {name}, a clone of run {clone.seed} of {clone.model}; expected runs "
                    f"that one of generators tests at all steps; add an evaluation there",
                )
        for name, _ in self.twins:
            if getattr(targets[name], "clone", None) not in clones.values():
                yield (
                    "twins",
                    f"found {name}; expected first a target of a clone that one of the series has; "
                    f"take another, or add it there",
                )


class Inputs(students.StudentInputs):
    """The student with its generators and clones, its spectrum, and sources drawn exactly."""

    spectra: list[needed.Spectrum]
    drawn: list[needed.Sequences]

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        targets = config["evaluations"][block.evaluation]["targets"].values()
        names = dict.fromkeys(target["source"] for target in targets if "source" in target)
        return super().of(
            block,
            config,
            spectra=needed.spectra_of([block.spectrum], config),
            drawn=[needed.Sequences(source=name) for name in names],
        )


def tables(inputs: Inputs, block: Block) -> style.Tables:
    """Times against quality and order, what a regression and pairs say, noise, and the spectrum."""
    student = students.read_student(inputs.runs, inputs.clones, corpus=inputs.corpus)
    generators = students.read_evaluated(inputs.generators, inputs.clones)
    drawn = {one.source: StoredSequences.open(one.file()).about for one in inputs.drawn}
    (spectrum,) = spectra.read(inputs.spectra)
    return tables_of(crossed.crossed(student, generators, drawn, spectrum, block))


def tables_of(design: crossed.Crossed) -> style.Tables:
    """The tables of a design, which is what was found."""
    student, spectrum, block = design.student, design.spectrum, design.block
    parts = [part for one in design.series for part in _times(one, student.runs)]
    parts += _shares(design)
    curves = student.curves[student.curves["step"] > 0]
    for name, words in zip([block.control, *block.noise], design.changes, strict=False):
        parts.append(learning.mean_over_runs(curves, name, "noise", words))
    for row, (words, found) in enumerate(ratios(design).items()):
        for share, one in found.items():
            parts.append(
                style.points("d", f"{words}, {share:.0%}", "all", [one.value], [row], one.half)
            )
    for k, seed in itertools.product(spectrum.orders, spectrum.runs):
        half = spectrum.half_time(seed, k)
        parts.append(style.points("half-times", f"M_{k}", seed, [k], [half.step], half.error))
    return style.Tables(style.gathered(parts), design)


def _times(one: crossed.Drawn, runs: Sequence[int]) -> Iterator[pd.DataFrame]:
    """t of each clone against the loss and the order of its generator."""
    logs = one.measured[SATURATION[0]]
    means, spread = logs.mean(axis=0), logs.std(axis=0, ddof=1)
    for number, series in enumerate(one.names):
        for panel in ("loss", "order"):
            x = [getattr(one.design, panel)[number]]
            yield style.points(panel, series, "mean", x, [math.exp(means[number])], spread[number])
        for definition in SATURATION:
            steps = np.exp(one.measured[definition][:, number])
            share = np.full(len(steps), 100 * definition)
            yield style.points("times", series, runs, steps, share)


def _shares(design: crossed.Crossed) -> Iterator[pd.DataFrame]:
    """R^2 of each series and measure, with its interval."""
    rows = [(one, name) for one in design.series if one.interval("both") for name in SHARES]
    for row, (one, name) in enumerate(rows):
        for measure in crossed.MEASURES:
            share = one.found[measure][name]
            said = measure if isinstance(measure, str) else f"{measure:.0%}"
            series = f"{one.label}, {said}: {SHARES[name]}"
            yield style.points("shares", series, "all", [share.value], [row], share.half)


def estimates(one: crossed.Drawn, name: str) -> dict[float, Interval]:
    """An estimate by definition of saturation, for three times the order instead of twice."""
    scale = TRIPLED if name == "doubling" else 1.0
    found = {share: one.found[share][name][:3] for share in SATURATION}
    return {share: Interval(*(scale * part for part in each)) for share, each in found.items()}


def ratios(design: crossed.Crossed) -> dict[str, dict[float, Interval]]:
    """Logs of ratios of times by name and definition of saturation: at equal loss, at equal order,
    and of paired chains."""
    found = {
        f"{one.label}: {label}": estimates(one, name)
        for one in design.series
        for name, label in RATIOS.items()
        if one.interval(name)
    }
    return found | {_brief(words): pairs for words, pairs in design.twins.items()}


def _brief(words: str) -> str:
    """The name of paired chains without what its colour would say."""
    series, _, label = words.partition(": ")
    kept = [part for part in label.split(", ") if not part.startswith(("order", "any order"))]
    return f"{series}: noise to text, {', '.join(kept).replace('stopped at ', '')}"


def claims(tables: style.Tables) -> list[records.Claim]:
    """Comparisons of clones that are drawn in one way, under each control; paired chains, noise."""
    design, given = tables.found, {}
    for name, (statement, rule, bound) in ASKED.items():
        shown = {
            f"{one.label}, {len(one.names)} clones": estimates(one, name)
            for one in design.series
            if one.interval(name)
        }
        given[name.replace(" ", "-")] = statement, _parts(shown, records.above, bound), rule
    first, last = design.block.late
    given |= {
        "start": (
            "Times do not depend on what chains start from",
            _parts(design.twins, records.near, 0.0, BOUND),
            "times from noise and from text are within a factor of 1.25",
        ),
        "noise-early": (
            "Text with noise saturates no earlier than text",
            _parts(design.noise, records.below, BOUND),
            "text saturates later by less than a factor of 1.25",
        ),
        "noise-late": (
            f"The loss on text with noise falls from step {first} to {last}",
            [
                records.over_seeds(f"fall of the loss on {words}", -design.changes[words])
                for words in design.noise
            ],
            "the mean fall over students is above 0",
        ),
        "half-times": (
            "Without clones: each order of interaction is learned before the next",
            spectra.later(design.spectrum),
            "the half-time of the next order is later",
        ),
    }
    return records.all_judged("simplicity/controls", given, design.student.scope)


def _parts(
    found: dict[str, dict[float, Interval]], compare: Callable, *bounds: float
) -> list[records.Comparison]:
    """Every number by both definitions of saturation, against the bounds."""
    return [
        compare(f"{words}, {share:.0%} left", one.value, one.error, *bounds, half=one.half)
        for words, by_share in found.items()
        for share, one in by_share.items()
    ]


@style.in_house_style
def draw(tables: style.Tables):
    """Times against quality and order, what a regression and pairs say, noise, and the spectrum."""
    design = tables.found
    rows = len(design.series) * len(RATIOS) + len(design.twins)
    heights = (2.1, 2.1, max(2.0, 0.15 * rows + 0.5))
    figure = style.new(2, sum(heights) + 0.5)
    # Rows of their own, as names beside intervals take more room than those of an axis.
    first, second, third = figure.subfigures(3, height_ratios=heights)
    left, right = first.subplots(1, 2)
    shares, noise = second.subplots(1, 2)
    below, halves = third.subplots(1, 2, width_ratios=(1.4, 1))
    _draw_times(left, right, tables)
    _draw_shares(shares, tables)
    _draw_noise(noise, tables)
    _draw_ratios(below, tables)
    _draw_half_times(halves, tables)
    figure.legend(handles=_handles(design), loc="outside upper center", ncols=4)
    return figure


def _handles(design: crossed.Crossed) -> list:
    """Legend entries of the markers and colours of panels a and b."""
    length = design.student.about["description"]["length"]
    orders = sorted({int(order) for one in design.series for order in one.design.order})
    handles = [
        style.mark(one.label, color="0.3", marker=marker, linestyle="")
        for marker, one in zip(MARKERS, design.series, strict=False)
    ]
    for order in orders:
        label = "any order" if order == length else f"order {order}"
        colour = COLOURS.get(order, style.UNBOUNDED)
        handles.append(style.mark(label, color=colour, marker="o", linestyle=""))
    return handles


def _draw_times(left, right, tables: style.Tables) -> None:
    series = tables.found.series
    for place, (marker, one) in enumerate(zip(MARKERS, series, strict=False)):
        shift = 2 ** (0.06 * (place - (len(series) - 1) / 2))
        looks = dict(marker=marker, markersize=4, markerfacecolor="white" if place % 2 else None)
        for name, order in zip(one.names, one.design.order, strict=True):
            for axes, panel, factor in ((left, "loss", 1.0), (right, "order", shift)):
                (row,) = style.series(tables.drawn, panel, name).itertuples()
                looks["color"] = COLOURS.get(int(order), style.UNBOUNDED)
                bars = style.factors(row.y, row.y_err)
                style.dots(axes, row.x * factor, row.y, yerr=bars, **looks)
    left.set(xlabel="test loss of the generator (nats per token)", yscale="log", ylabel="t (steps)")
    right.set(xlabel="order of interaction of the generator", xscale="log", yscale="log")
    style.plain_ticks(right.xaxis, sorted({float(x) for one in series for x in one.design.order}))
    for axes, title in ((left, "(a) against quality"), (right, "(b) against order")):
        axes.set_title(f"{title}: {SATURATION[0]:.0%} of the drop left")
        style.plain_ticks(axes.yaxis, STEPS)


def _draw_intervals(axes, found: pd.DataFrame, words: Sequence[str], measures: int, apart: float):
    """A row of points with intervals for each of the words, one for each measure; the first measure
    is filled, open what is of the 2 % or late."""
    for number, row in enumerate(found.itertuples()):
        measure = number % measures
        style.dots(
            axes,
            row.x,
            row.y + apart * (measure - (measures - 1) / 2),
            xerr=row.y_err if np.isfinite(row.y_err) else None,
            color="0.15",
            marker=MARKERS[measure],
            markerfacecolor="0.15" if measure == 0 else "white",
            markersize=3,
        )
    axes.axvline(0, color="0.6", linewidth=0.8, zorder=0)
    style.name_rows(axes, words)


def _draw_shares(axes, tables: style.Tables) -> None:
    found = tables.drawn[tables.drawn["panel"] == "shares"]
    shown = [one.label for one in tables.found.series if one.interval("both")]
    words = [f"{one}: {label}" for one in shown for label in SHARES.values()]
    _draw_intervals(axes, found, words, len(crossed.MEASURES), 0.22)
    axes.set(
        xlim=(-0.05, 1.05),
        xlabel="share of the variance (R²)",
        title="(c) what accounts for the times",
    )


def _draw_ratios(axes, tables: style.Tables) -> None:
    axes.axvspan(-BOUND, BOUND, color="0.93", linewidth=0, zorder=0)
    found = tables.drawn[tables.drawn["panel"] == "d"]
    _draw_intervals(axes, found, list(ratios(tables.found)), len(SATURATION), 0.25)
    limit = 1.6 * (float(found["x"].abs().max()) if len(found) else 1.0) + 0.2
    axes.set(
        xlim=(-limit, limit), xlabel="log of a ratio of times", title="(e) order and quality apart"
    )


def _draw_noise(axes, tables: style.Tables) -> None:
    ends, last = [], 0.0
    for colour, words in zip(NOISES, tables.found.changes, strict=False):
        found = style.series(tables.drawn, "noise", words)
        axes.plot(found["x"], found["y"], color=colour)
        ends.append((words, found["y"].iloc[-1], colour))
        last = max(last, found["x"].max())
    axes.set(
        xscale="log",
        xlim=(last / 100, None),
        xlabel="training step",
        ylabel="test loss (nats per token)",
        title="(d) text, and text with random tokens",
    )
    style.plain_ticks(axes.xaxis, STEPS[::2])
    style.label_right(axes, ends, 0.1)


def _draw_half_times(axes, tables: style.Tables) -> None:
    """Half-times of M_k, a point for each student and order, without any clone."""
    orders, count = tables.found.spectrum.orders, len(tables.found.spectrum.runs)
    for k in orders:
        found = style.series(tables.drawn, "half-times", f"M_{k}")
        x = k + 0.4 * ((np.arange(count) + 0.5) / count - 0.5)
        errors = found["y"] * found["y_err"]
        style.dots(axes, x, found["y"], yerr=errors, color=style.ORDERS[k + 1])
    axes.set_xticks(orders, [f"$M_{k}$" for k in orders])
    axes.set(
        yscale="log",
        xlim=(orders[0] - 0.5, orders[-1] + 0.5),
        xlabel="order k + 1 and above",
        ylabel="half-time (steps)",
        title="(f) without clones: half-times",
    )
    style.plain_ticks(axes.yaxis, STEPS)


def caption(inputs: Inputs, block: Block) -> str:
    return (
        "Is the time at which a student's loss on a clone saturates set by the order of its "
        "generator, or by its quality?\n\n"
        "**(a), (b)** Times against test loss and order of the generators. **(c)** Shares of the "
        "variance of log t. **(d)** Losses on text with random tokens. "
        "**(e)** Logs of ratios of times at equal loss, at equal order, and of chains from noise "
        "and from text; grey: within log 1.25. **(f)** Half-times "
        r"of the students' M\ :sub:`k`. Bars: 95 % intervals; open: 2 % of the drop, or late."
        f"\n\n{inputs.made()}\n"
    )
