"""Is a saturation time set by the order of a clone's generator, by its quality, or by neither?

In the table: panels `loss` and `order` (x: what is said; y: t in steps where 5 % of the drop are
left; y_err: standard deviation over students of log t), a row a clone, and `times` with each
student's; `shares` (x: R^2 or its difference; y_err: half width of the 95 % interval) for each
measure of each series; `d` the same for logs of ratios of times; `noise` curves of the loss, and
`half-times` those of the students' own spectrum (y_err: standard error of log(step)).
"""

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd
from pydantic import Field

from manybody.io import tables as stored
from manybody.io.options import Block as Part
from manybody.io.options import Text, different, key, refers
from manybody.io.sequences import Sequences as StoredSequences
from manybody.models import labels
from manybody.papers import claims as records
from manybody.papers import inputs as needed
from manybody.papers import style
from manybody.papers.figure import Figure
from manybody.papers.inputs import Sequences, spectra_of
from manybody.papers.saturation import SATURATION
from manybody.papers.simplicity import crossed, spectra, students
from manybody.papers.simplicity.comparison import BOUND
from manybody.papers.simplicity.crossed import Crossed, Drawn
from manybody.papers.simplicity.regression import Estimate
from manybody.papers.simplicity.students import Pair, StudentBlock, StudentInputs, Target, Targets
from manybody.papers.style import points

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
NOISES = ("#8C8C8C", "#B0743C", "#7A3E9D", "#C2185B")
STEPS = [digit * 10**power for power in range(7) for digit in (1, 1.5, 2, 3, 5, 7)]


class Series(Part):
    """Clones of several generators that are drawn in one way."""

    label: Text = key("What they are called.")
    targets: different(Target) = key("Targets, each of a generator of its own.")


class Block(StudentBlock, Figure):
    """Is a time set by the order of a generator, or by its quality? Clones of many generators."""

    generators: list[students.Evaluation] = key(
        "Evaluations of the generators at all their checkpoints."
    )
    test: students.Test = key("Target of test text in the generators' evaluations.")
    series: list[Series] = key(
        "Clones by the way they are drawn: each is a regression of its own.", min_length=1
    )
    twins: list[Pair] = key("Pairs of targets of one generator, from text and from noise.", [])
    noise: Targets = key("Targets of text with noise.", [])
    spectrum: refers("spectra", "draws", same=("source", "model"), like="evaluation") = key(
        "Spectrum of the student along its training."
    )
    late: Annotated[list[students.Kept], Field(min_length=2, max_length=2)] = key(
        "Two checkpoints of the student, between which a loss rises or falls late."
    )

    def misfits(self, path, config):
        evaluation = config.evaluations[self.evaluation]
        found = [config.evaluations[name] for name in self.generators]
        tested = {(one.model, seed) for one in found if one.steps == "all" for seed in one.seeds}
        targets = evaluation.targets
        known = {getattr(targets[n], "clone", None) for one in self.series for n in one.targets}
        for where, names in (
            ("noise", self.noise),
            ("series", [name for one in self.series for name in one.targets]),
            ("twins", [text for text, _ in self.twins]),
        ):
            for name in names:
                yield from self._unfit(f"{path}.{where}", where, name, known, tested, config)

    def _unfit(self, path, where, name, known, tested, config):
        """True if a target is what it is named for."""
        target = config.evaluations[self.evaluation].targets[name]
        kind = config.sources[target.source].kind if getattr(target, "source", None) else None
        clone = config.clones[target.clone] if hasattr(target, "clone") else None
        if where == "noise" and kind != "noisy":
            yield f"{path}: found {name}; expected targets of a source of kind noisy; take others"
        if where == "twins" and (clone is None or target.clone not in known):
            yield (
                f"{path}: found {name}; expected first a target of a clone that one of the series "
                f"has; take another, or add it there"
            )
        if where == "series" and clone is None and kind != "n-gram-clone":
            yield (
                f"{path}: found {name}; expected clones, or targets of a source of kind "
                f"n-gram-clone, whose order is known; take others"
            )
        if where == "series" and clone and (clone.model, clone.seed) not in tested:
            yield (
                f"{path}: found {name}, a clone of run {clone.seed} of {clone.model}, of which "
                f"{path[:-7]}.generators has no evaluation of all steps; add one there"
            )


class Inputs(StudentInputs):
    """The student with its generators and clones, its spectrum, and sources drawn exactly."""

    spectra: list[needed.Spectrum]
    drawn: list[Sequences]

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        targets = config["evaluations"][block.evaluation]["targets"].values()
        names = dict.fromkeys(target["source"] for target in targets if "source" in target)
        return super().of(
            block,
            config,
            spectra=spectra_of([block.spectrum], config),
            drawn=[Sequences(source=name) for name in names],
        )


@dataclass(frozen=True)
class Tables:
    """Measurements of all clones, and the table of what is drawn."""

    drawn: pd.DataFrame
    design: Crossed


def tables(inputs: Inputs, block: Block) -> Tables:
    """Times against quality and order, what a regression and pairs say, noise, and the spectrum."""
    student = students.read_student(inputs)
    generators = students.read_evaluated(inputs.generators, inputs.clones)
    drawn = {one.source: StoredSequences.open(one.file()).about for one in inputs.drawn}
    (spectrum,) = spectra.read(inputs.spectra)
    return tables_of(crossed.crossed(student, generators, drawn, spectrum, block))


def tables_of(design: Crossed) -> Tables:
    """The tables of a design."""
    parts = [part for one in design.series for part in _times(one, design)]
    parts += [*_shares(design), *_noise(design), *_ratio_rows(design), *_halves(design)]
    return Tables(style.gathered(parts), design)


def _times(one: Drawn, design: Crossed) -> list[pd.DataFrame]:
    """t of each clone against the loss and the order of its generator."""
    found, logs = [], one.measured[SATURATION[0]]
    means, spread = logs.mean(axis=0), logs.std(axis=0, ddof=1)
    seeds = sorted(design.student.losses["seed"].unique())
    for number, series in enumerate(names_of(one)):
        time = [math.exp(means[number])]
        for panel, x in (("loss", one.design.loss[number]), ("order", one.design.order[number])):
            found.append(points(panel, series, "mean", [x], time, spread[number]))
        for definition in SATURATION:
            steps = np.exp(one.measured[definition][:, number])
            given = seeds, steps, np.full(len(steps), 100 * definition)
            found.append(points("times", series, *given))
    return found


def names_of(one: Drawn) -> list[str]:
    """Names of the clones of a series in the table."""
    pairs = zip(one.labels, one.targets, strict=True)
    return [f"{one.label}: {label} ({name})" for label, name in pairs]


def _shares(design: Crossed) -> list[pd.DataFrame]:
    """R^2 of each series and measure, with its interval."""
    found, row = [], 0
    for one in (one for one in design.series if one.interval("both")):
        for name, label in SHARES.items():
            for measure in crossed.MEASURES:
                share = one.found[measure][name]
                said = measure if isinstance(measure, str) else f"{measure:.0%}"
                series = f"{one.label}, {said}: {label}"
                found.append(points("shares", series, "all", [share.value], [row], share.half))
            row += 1
    return found


def _noise(design: Crossed) -> list[pd.DataFrame]:
    """Mean loss of the students on text and on text with noise."""
    curves = stored.learning_curves(design.student.losses)
    curves, found = curves[curves["step"] > 0], []
    names = [design.block.control, *design.block.noise]
    for name, words in zip(names, design.changes, strict=False):
        mine = curves[curves["target"] == name].groupby("step")["loss"].agg(["mean", "std"])
        found.append(points("noise", words, "mean", mine.index, mine["mean"], mine["std"]))
    return found


def ratios(design: Crossed) -> dict[str, dict[float, tuple[float, float]]]:
    """Logs of ratios of times with half widths, by name and definition of saturation: at equal
    loss, at equal order, and of paired chains."""
    found = {
        f"{one.label}: {label}": _scaled(one, name)
        for one in design.series
        for name, label in RATIOS.items()
        if one.interval(name)
    }
    return found | {
        _brief(words): {share: (one.value, one.half) for share, one in pairs.items()}
        for words, pairs in design.twins.items()
    }


def _scaled(one: Drawn, name: str) -> dict[float, tuple[float, float]]:
    scale = TRIPLED if name == "doubling" else 1.0
    found = {share: one.found[share][name] for share in SATURATION}
    return {share: (scale * each.value, scale * each.half) for share, each in found.items()}


def _brief(words: str) -> str:
    """The name of paired chains without what its colour would say."""
    series, _, label = words.partition(": ")
    kept = [part for part in label.split(", ") if not part.startswith(("order", "any order"))]
    return f"{series}: noise to text, {', '.join(kept).replace('stopped at ', '')}"


def _ratio_rows(design: Crossed) -> list[pd.DataFrame]:
    return [
        points("d", f"{words}, {share:.0%}", "all", [value], [row], half)
        for row, (words, found) in enumerate(ratios(design).items())
        for share, (value, half) in found.items()
    ]


def _halves(design: Crossed) -> list[pd.DataFrame]:
    """Half-times of M_k, a point for each student and order, without any clone."""
    one, found = design.spectrum, []
    for k in one.orders:
        for seed in one.runs:
            half = one.half_time(seed, k)
            found.append(points("half-times", f"M_{k}", seed, [k], [half.step], half.error))
    return found


# --- Claims ---------------------------------------------------------------------------------------


def claims(tables: Tables) -> list[records.Claim]:
    """Comparisons of clones that are drawn in one way, under each control; paired chains, noise."""
    design = tables.design
    scope = labels.scale(design.student.about, design.student.losses["seed"].nunique())
    id_ = "simplicity/controls"
    asked = {
        "doubling alone": (
            "Without a control: saturation follows the order of the generator",
            "log t grows with the order",
            1.0,
            0.0,
        ),
        "order less loss": (
            "The generator's order accounts for more of the times than its quality",
            "R² of the order is above that of the loss",
            1.0,
            0.0,
        ),
        "doubling": (
            "At equal loss, by regression, order 9 saturates later than order 3",
            "the factor is above 1.25",
            TRIPLED,
            BOUND,
        ),
        "order at equal loss": (
            "At equal loss, in pairs, the higher order saturates later",
            "the factor is above 1.25",
            1.0,
            BOUND,
        ),
        "quality at equal order": (
            "At equal order the better generator's clone saturates later",
            "the factor is above 1.25",
            1.0,
            BOUND,
        ),
    }
    found = []
    for name, (statement, rule, scale, bound) in asked.items():
        parts = [
            _above(f"{one.label}, {len(one.targets)} clones, {share:.0%} left", each, scale, bound)
            for one in design.series
            if one.interval(name)
            for share, each in ((share, one.found[share][name]) for share in SATURATION)
        ]
        short = name.replace(" ", "-")
        found.append(records.judged(f"{id_}/{short}", statement, parts, scope, rule, beyond=True))
    found.append(
        records.judged(
            f"{id_}/start",
            "Times do not depend on what chains start from",
            [
                records.near(f"{words}, {share:.0%} left", *one[:2], 0.0, BOUND, half=one.half)
                for words, pairs in design.twins.items()
                for share, one in pairs.items()
            ],
            scope,
            "times from noise and from text are within a factor of 1.25",
            beyond=True,
        )
    )
    early = [
        records.below(f"{words}, {share:.0%} left", *one[:2], BOUND, half=one.half)
        for words, pairs in design.noise.items()
        for share, one in pairs.items()
    ]
    first, last = design.steps
    falls = [
        records.over_seeds(f"fall of the loss on {words}", -design.changes[words])
        for words in design.noise
    ]
    return [
        *found,
        records.judged(
            f"{id_}/noise-early",
            "Text with noise saturates no earlier than text",
            early,
            scope,
            "text saturates later by less than a factor of 1.25",
            beyond=True,
        ),
        records.judged(
            f"{id_}/noise-late",
            f"The loss on text with noise falls from step {first} to {last}",
            falls,
            scope,
            "the mean fall over students is above 0",
            beyond=True,
        ),
        records.judged(
            f"{id_}/half-times",
            "Without clones: each order of interaction is learned before the next",
            spectra.later(design.spectrum),
            scope,
            "the half-time of the next order is later",
            beyond=True,
        ),
    ]


def _above(label: str, found: Estimate, scale: float, bound: float) -> records.Comparison:
    value, error, half = (scale * number for number in found)
    return records.above(label, value, error, bound, half=half)


# --- Panels ---------------------------------------------------------------------------------------


@style.in_house_style
def draw(tables: Tables):
    """Times against quality and order, what a regression and pairs say, noise, and the spectrum."""
    design = tables.design
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


def _colour(order: float) -> str:
    return COLOURS.get(int(order), style.UNBOUNDED)


def _handles(design: Crossed) -> list:
    """Legend entries of the markers and colours of panels a and b."""
    from matplotlib.lines import Line2D

    made = [
        Line2D([], [], linestyle="", color="0.3", marker=marker, label=one.label)
        for marker, one in zip(MARKERS, design.series, strict=False)
    ]
    length = design.student.about["description"]["length"]
    orders = sorted({int(order) for one in design.series for order in one.design.order})
    for order in orders:
        label = "any order" if order == length else f"order {order}"
        looks = dict(linestyle="", marker="o", color=_colour(order))
        made.append(Line2D([], [], label=label, **looks))
    return made


def _draw_times(left, right, tables: Tables) -> None:
    """t of each clone against the loss and the order of its generator."""
    design = tables.design
    for place, (marker, one) in enumerate(zip(MARKERS, design.series, strict=False)):
        shift = 2 ** (0.06 * (place - (len(design.series) - 1) / 2))
        for number, series in enumerate(names_of(one)):
            looks = dict(marker=marker, linestyle="", elinewidth=0.7, markersize=4)
            looks |= {"markerfacecolor": "white"} if place % 2 else {}
            looks["color"] = _colour(one.design.order[number])
            for axes, panel, factor in ((left, "loss", 1.0), (right, "order", shift)):
                (row,) = style.series(tables.drawn, panel, series).itertuples()
                bars = [[row.y * (1 - math.exp(-row.y_err))], [row.y * (math.exp(row.y_err) - 1)]]
                axes.errorbar(row.x * factor, row.y, yerr=bars, **looks)
    left.set(xlabel="test loss of the generator (nats per token)", yscale="log", ylabel="t (steps)")
    right.set(xlabel="order of interaction of the generator", xscale="log", yscale="log")
    orders = sorted({float(order) for one in design.series for order in one.design.order})
    style.plain_ticks(right.xaxis, orders)
    for axes, title in ((left, "(a) against quality"), (right, "(b) against order")):
        axes.set_title(f"{title}: {SATURATION[0]:.0%} of the drop left")
        style.plain_ticks(axes.yaxis, STEPS)


def _draw_shares(axes, tables: Tables) -> None:
    """R^2 of each series and measure, with its interval; open what is of the 2 % or late."""
    found = tables.drawn[tables.drawn["panel"] == "shares"]
    shown = [one for one in tables.design.series if one.interval("both")]
    for number, row in enumerate(found.itertuples()):
        measure = number % len(crossed.MEASURES)
        _interval(axes, row.x, row.y_err, row.y + 0.22 * (measure - 1), measure)
    words = [f"{one.label}: {label}" for one in shown for label in SHARES.values()]
    axes.set_yticks(range(len(words)), words)
    axes.axvline(0, color="0.6", linewidth=0.8, zorder=0)
    axes.set(xlim=(-0.05, 1.05), ylim=(len(words) - 0.5, -0.5))
    axes.set_xlabel("share of the variance (R²)")
    axes.set_title("(c) what accounts for the times")
    axes.tick_params(axis="y", length=0)


def _draw_ratios(axes, tables: Tables) -> None:
    """Logs of ratios of times at equal loss, at equal order, and of paired chains."""
    axes.axvspan(-BOUND, BOUND, color="0.93", linewidth=0, zorder=0)
    found, words = tables.drawn[tables.drawn["panel"] == "d"], list(ratios(tables.design))
    for number, row in enumerate(found.itertuples()):
        definition = number % len(SATURATION)
        _interval(axes, row.x, row.y_err, row.y + 0.25 * (definition - 0.5), definition)
    axes.set_yticks(range(len(words)), words)
    axes.axvline(0, color="0.6", linewidth=0.8, zorder=0)
    limits = float(found["x"].abs().max()) if len(found) else 1.0
    axes.set(ylim=(len(words) - 0.5, -0.5), xlim=(-1.6 * limits - 0.2, 1.6 * limits + 0.2))
    axes.set_xlabel("log of a ratio of times")
    axes.set_title("(e) order and quality apart")
    axes.tick_params(axis="y", length=0)


def _interval(axes, value: float, half: float, height: float, number: int) -> None:
    """A point with its interval; the first of several measures is filled."""
    looks = dict(color="0.15", marker=MARKERS[number], linestyle="", elinewidth=0.7, markersize=3)
    face = "0.15" if number == 0 else "white"
    xerr = half if np.isfinite(half) else None
    axes.errorbar(value, height, xerr=xerr, markerfacecolor=face, **looks)


def _draw_noise(axes, tables: Tables) -> None:
    """Mean loss of the students on text and on text with noise."""
    ends, last = [], 0.0
    for colour, words in zip(NOISES, tables.design.changes, strict=False):
        found = style.series(tables.drawn, "noise", words)
        axes.plot(found["x"], found["y"], color=colour)
        ends.append((words, found["y"].iloc[-1], colour))
        last = max(last, found["x"].max())
    axes.set(xscale="log", xlabel="training step", ylabel="test loss (nats per token)")
    axes.set_xlim(left=last / 100)
    style.plain_ticks(axes.xaxis, STEPS[::2])
    axes.set_title("(d) text, and text with random tokens")
    style.label_right(axes, ends, 0.1)


def _draw_half_times(axes, tables: Tables) -> None:
    """Half-times of M_k, a point for each student and order, without any clone."""
    one = tables.design.spectrum
    for k in one.orders:
        found = style.series(tables.drawn, "half-times", f"M_{k}")
        for place, row in enumerate(found.itertuples()):
            if row.y > 0:
                looks = dict(color=style.ORDERS[k + 1], marker="o", linestyle="", elinewidth=0.8)
                x = k + 0.4 * ((place + 0.5) / len(one.runs) - 0.5)
                axes.errorbar(x, row.y, yerr=row.y * row.y_err, **looks)
    axes.set_xticks(one.orders, [f"$M_{k}$" for k in one.orders])
    axes.set(
        yscale="log", ylabel="half-time (steps)", xlim=(one.orders[0] - 0.5, one.orders[-1] + 0.5)
    )
    axes.set_xlabel("order k + 1 and above")
    style.plain_ticks(axes.yaxis, STEPS)
    axes.set_title("(f) without clones: half-times")


def caption(inputs: Inputs, block: Block) -> str:
    """Says what is shown, what the eye sees, how it was made."""
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
