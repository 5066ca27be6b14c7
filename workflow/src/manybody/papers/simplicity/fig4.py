"""Figure 4: a masked student learns low orders first. Losses, accuracy, late losses by clone."""

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from manybody import models
from manybody.io.options import key
from manybody.papers import claims as records
from manybody.papers import style
from manybody.papers.saturation import SATURATION, saturations
from manybody.papers.simplicity import comparison, learning
from manybody.papers.simplicity.students import (
    Evaluated,
    Evaluation,
    Kept,
    Pair,
    StudentFigure,
    Target,
    Targets,
    Test,
    read_evaluated,
    read_student,
)
from manybody.papers.simplicity.students import StudentInputs as Inputs

STOPPED = {"linestyle": "--", "marker": "D", "markerfacecolor": "white"}
WIDE = {"linestyle": "--", "marker": "s", "markerfacecolor": "white"}


class Block(StudentFigure):
    """Losses on the clones against the step, accuracy, and late losses."""

    ladder: Targets = key("Targets from low to high order.", min_length=2)
    early_stopped: Target = key(
        "Target whose generator was stopped at the lowest order's loss.", None
    )
    wide: Target = key("Target whose low-order generator is as good as the highest's.", None)
    norm: Targets = key("The ladder by the norm score.", [])
    chain_inits: Pair = key(
        "Two targets of one generator, from test sequences and from unigram noise.", None
    )
    generators: list[Evaluation] = key(
        "Evaluations of the generators, whose losses must be equal where orders are compared.", []
    )
    test: Test = key("Target of test text in the generators' evaluations.", None)
    late_steps: list[Kept] = key("Checkpoints of the right panel.", min_length=2)


@dataclass(frozen=True)
class Tables:
    """Rows and looks of what is drawn, and comparisons by the claim that they decide.

    series: of the ladder, original text, then the controls, each with its rows. pairs: clones of
    equal loss and different order, by the marker of the control among them.
    """

    drawn: pd.DataFrame
    block: Block
    student: Evaluated
    series: list[tuple[learning.Series, pd.DataFrame]]
    ladder: dict[str, list[records.Comparison]]
    text: dict[str, list[records.Comparison]]
    controls: dict[str, list[records.Comparison]]
    pairs: dict[str, comparison.Compared]


def tables(inputs: Inputs, block: Block) -> Tables:
    """Curves, times of saturation, and comparisons of clones."""
    student = read_student(inputs.runs, inputs.clones, corpus=inputs.corpus)
    return tables_of(student, read_evaluated(inputs.generators, inputs.clones), block)


def tables_of(student: Evaluated, generators: list[Evaluated], block: Block) -> Tables:
    """The same of a student, and of runs of generators that were tested on text."""
    ladder, control, norm = block.ladder, block.control, block.norm
    drawn = learning.ladder(student, block)
    for name, looks, note, rank in (
        (block.early_stopped, STOPPED, "\nstopped", False),
        (block.wide, WIDE, "\nwide", True),
    ):
        if name:
            drawn.append(learning.Series.of(student, name, looks, block.palette, note, rank))
    series = [(one, _rows(student, one)) for one in drawn]
    parts = [rows[rows["panel"] != "late"] for _, rows in series]
    for step in block.late_steps:
        parts += [rows[(rows["panel"] == "late") & (rows["x"] == step)] for _, rows in series]
    when = block.late_steps[0], block.late_steps[-1]
    controls = {
        "norm-score": norm
        and [*learning.ordered(student, norm), *learning.late_changes(student, norm, when)],
        "starts": _starts(student, block),
    }
    # Of higher and of lower order, the control among them
    pairs = {"◇": (block.early_stopped, ladder[0]), "□": (ladder[-1], block.wide)}
    pairs = {mark: ([late], [early]) for mark, (late, early) in pairs.items() if late and early}
    compared = comparison.compare(student, generators, block.test or "", list(pairs.values()))
    return Tables(
        drawn=style.gathered(parts),
        block=block,
        student=student,
        series=series,
        ladder={
            "order-of-learning": [*learning.ordered(student, ladder)],
            "early-overlap": [*learning.overlap(student, ladder, control)],
            "late-losses": [*learning.late_changes(student, ladder, when)],
        },
        text={"original-text": learning.still_falling(student, control)},
        controls={name: parts for name, parts in controls.items() if parts},
        pairs=dict(zip(pairs, compared, strict=True)),
    )


def _rows(student: Evaluated, one: learning.Series) -> pd.DataFrame:
    """Loss and accuracy but for step 0, which has no place on a log axis, and saturation.

    `saturation` has the mean step and its sd over seeds, `between` the checkpoints around the
    saturation of all seeds; y is the share of the drop that is left, in per cent. `late` has the
    losses again, at all steps.
    """
    share = 100 * SATURATION[0]
    times = saturations(student.curves, one.target)
    steps, before = times["step"], times["step"] - times["spacing"]
    mean = [steps.mean()], [share], steps.std(ddof=1)
    curves = [one.curve(student, name) for name in ("loss", "accuracy")]
    parts = [
        *(curve[curve["x"] > 0] for curve in curves),
        style.points("saturation", one.label, "mean", *mean),
        style.points("between", one.label, "all", [before.min(), steps.max()], [share] * 2),
        curves[0].assign(panel="late"),
    ]
    return pd.concat(parts, ignore_index=True)


def _starts(student: Evaluated, block: Block) -> list[records.Comparison]:
    if not block.chain_inits:
        return []
    test, noise = block.chain_inits
    sweeps = student.targets[test]["sweep"]
    label = f"{student.labels[test]} after {sweeps} sweeps, from noise and from text"
    return [*learning.similar_losses(label, student, test, noise, block.control, paired=False)]


# --- Claims --------------------------------------------------------------------------------------


def claims(tables: Tables) -> list[records.Claim]:
    """The order of learning, and the controls of order against quality, score and starts."""
    return claims_of(tables, "fig4")


def claims_of(tables: Tables, figure: str) -> list[records.Claim]:
    """The claims of figure 4 or 5 of the paper."""
    id_, scope = f"simplicity/{figure}/order-at-equal-loss", tables.student.scope
    alone = f"{scope}, these generators"
    return [
        *learning.claims(figure, tables.ladder | tables.text, scope, f"figure {figure[3:]}"),
        comparison.claim(id_, "", list(tables.pairs.values()), alone),
        *learning.claims(figure, tables.controls, scope),
    ]


# --- The picture ---------------------------------------------------------------------------------


@style.in_house_style
def draw(tables: Tables):
    """Checkpoints of saturation, losses with the accuracy in an inset, late losses by clone."""
    from matplotlib.ticker import LogLocator, NullFormatter

    figure = style.new(2, 5.2)
    places = [["times", "late"], ["left", "late"]]
    panels = figure.subplot_mosaic(places, width_ratios=(1.5, 1), height_ratios=(1, 2.9))
    times, left, right = (panels[name] for name in ("times", "left", "late"))
    inset = left.inset_axes((0.1, 0.11, 0.36, 0.36))  # early losses are high: it is empty there
    for series, rows in tables.series:
        learning.draw_curve(left, rows[rows["panel"] == "loss"], series)
        curve = rows[(rows["panel"] == "accuracy") & (rows["seed"] == "mean")]
        inset.plot(curve["x"], curve["y"], **(series.looks | {"marker": "", "linewidth": 0.9}))
    causal = models.about(tables.student.about["description"]).causal
    what = "next-token" if causal else "masked-token"
    left.set(
        xlabel="training step",
        ylabel=f"{what} test loss (nats per token)",
        title="(b) loss on each clone",
    )
    for axes in (left, inset):
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(10))
        axes.xaxis.set_minor_formatter(NullFormatter())
    inset.set_title("accuracy", fontsize=style.SMALL, pad=2)
    inset.tick_params(labelsize=6)
    inset.set_facecolor("none")
    _draw_times(times, left, tables)
    times.set_title(
        f"{tables.student.scope}\n"
        f"(a) saturation ({SATURATION[0]:.0%} of the drop left) is between checkpoints"
    )
    _draw_late(right, tables)
    figure.legend(
        handles=[style.mark(one.label, **one.looks) for one, _ in tables.series],
        loc="outside lower left",
        ncols=2,
        title="\n".join(
            [*itertools.starmap(_ratio, tables.pairs.items()), learning.band(tables.student)]
        ),
        alignment="left",
    )
    return figure


def _ratio(mark: str, one: comparison.Compared) -> str:
    """The ratio of the times at which the losses on two clones saturate, with its interval, by the
    first definition of saturation."""
    d = one.found[SATURATION[0]]
    ends = d.value, d.value - d.half, d.value + d.half
    factor, low, high = (f"{np.exp(value):.2f}" for value in ends)
    interval = f" (95 %: {low} to {high})" if math.isfinite(d.half) else ""
    return f"{mark} {one.words}: ratio of saturation times {factor}{interval}"


def _draw_times(axes, losses, tables: Tables) -> None:
    """A row for each series: a bar from checkpoint to checkpoint, on the axis of the losses."""
    first, last = losses.get_xlim()
    axes.set(xscale="log", xlim=(first, last))
    for row, (series, rows) in enumerate(tables.series):
        low, high = rows.loc[rows["panel"] == "between", "x"]
        if math.isnan(low):
            continue
        # Step 0, where a loss that never falls saturates, has no place on a log axis.
        begin, end = max(low, first), max(high, first)
        axes.plot([begin, end], [row, row], "|-", color=series.looks["color"], linewidth=2.5)
        early = math.log(end / first) < 0.5 * math.log(last / first)
        axes.annotate(
            f"{low:g} to {high:g}" if high else "step 0",
            (end if early else begin, row),
            xytext=(5 if early else -5, 0),
            textcoords="offset points",
            ha="left" if early else "right",
            va="center",
            fontsize=style.SMALL,
        )
    style.name_rows(axes, [series.short.replace("\n", " ") for series, _ in tables.series])
    axes.set_ylabel("order")
    axes.tick_params(labelbottom=False)


def _draw_late(axes, tables: Tables) -> None:
    """Mean and sd at a few late steps, clone by clone from low to high order, then all others."""
    rungs, count = len(tables.block.ladder), len(tables.series)
    places = [n if n < rungs else rungs + 0.3 + 1.3 * (n - rungs) for n in range(count)]
    means = [
        rows.query("panel == 'late' and seed == 'mean'").set_index("x") for _, rows in tables.series
    ]
    for step, colour in zip(tables.block.late_steps, itertools.cycle(style.TIMES), strict=False):
        # NaN where no such step is a checkpoint
        y, errors = ([mean[name].get(step, math.nan) for mean in means] for name in ("y", "y_err"))
        looks = dict(color=colour, marker="o")
        axes.errorbar(places, y, np.nan_to_num(errors), capsize=2, linestyle="", **looks)
        axes.plot(places[:rungs], y[:rungs], label=f"step {step}", **looks)
    axes.legend(
        loc="lower left",  # above the axes: the losses may be anywhere in them
        title="(c) the same losses, clone by clone, at",
        alignment="left",
        bbox_to_anchor=(-0.03, 1.0),
        ncols=len(tables.block.late_steps),
        columnspacing=1.0,
    )
    axes.axvline(rungs - 0.35, color="0.8", linewidth=0.8)
    axes.set_xticks(places, [series.short for series, _ in tables.series])
    axes.set(xlim=(-0.4, places[-1] + 0.4), xlabel="order of the clone's generator")


def caption(inputs: Inputs, block: Block) -> str:
    """Says what is shown, what the eye sees, how it was made."""
    title = "Figure 4: losses of a masked student on clones of bounded order of interaction.\n\n"
    return f"{title}{panels(block)}{inputs.made()}\n"


def panels(block: Block) -> str:
    """Says what the panels of figures 4 and 5 show."""
    text = (
        "**(a)** Checkpoints between which each loss saturates in all runs. **(b)** Test loss on "
        "each clone; line and band are mean and one standard deviation over runs. Losses on low "
        "orders stop first and may rise, those on high orders fall on. Inset: share of tokens "
        "predicted right. **(c)** The same losses at late steps.\n\n"
    )
    if block.early_stopped or block.wide:
        text += "Open markers: generators whose test loss is near that of another order.\n\n"
    return text
