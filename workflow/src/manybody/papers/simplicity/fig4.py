"""Figure 4: a masked student learns low orders first. Losses, times of saturation, late losses."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody import models
from manybody.io.options import Condition, given, key, other_than, refers
from manybody.measure.saturation import SATURATION
from manybody.papers import claims as records, style
from manybody.papers.figure import Figure
from manybody.papers.simplicity import comparison, learning, students
from manybody.papers.simplicity.students import Evaluated, StudentInputs as Inputs, Target, Targets

STOPPED = {"linestyle": "--", "marker": "D", "markerfacecolor": "white"}
WIDE = {"linestyle": "--", "marker": "s", "markerfacecolor": "white"}


class Block(students.StudentBlock, Figure):
    """Losses on the clones against the step, accuracy, and late losses."""

    ladder: Targets = key("Targets from low to high order.", min_length=2)
    early_stopped: Target = key(
        "Target whose generator was stopped at the lowest order's loss.", None
    )
    wide: Target = key("Target whose low-order generator is as good as the highest's.", None)
    norm: Targets = key("The ladder by the norm score.", [])
    generators: list[refers("evaluations")] = key(
        "Evaluations of the generators, whose losses must be equal where orders are compared.", []
    )
    test: students.Test = key("Target of test text in the generators' evaluations.", None)
    late_steps: list[students.Kept] = key("Checkpoints of panel c, early to late.", min_length=2)
    conditions = (
        Condition("test", given, {"generators": other_than([])}, expected="a target of theirs"),
    )


class Tables(NamedTuple):
    """The rows that are drawn, and comparisons by the claim that they decide.

    series: by target its name and looks, with its rows. paper: of what the paper says. by_norm: of
    the ladder by the norm score. pairs: of clones of equal loss and different order.
    """

    drawn: pd.DataFrame
    block: Block
    student: Evaluated
    series: dict[str, tuple[learning.Series, pd.DataFrame]]
    paper: dict[str, list[records.Comparison]]
    by_norm: dict[str, list[records.Comparison]]
    pairs: list[records.Comparison]


def tables(inputs: Inputs, block: Block) -> Tables:
    student = students.read_student(inputs.runs, inputs.clones, corpus=inputs.corpus)
    return tables_of(student, students.read_evaluated(inputs.generators, inputs.clones), block)


def tables_of(student: Evaluated, generators: list[Evaluated], block: Block) -> Tables:
    ladder, control, norm = block.ladder, block.control, block.norm
    named = learning.ladder(student, block)
    for name, looks, note, rank in (
        (block.early_stopped, STOPPED, "\nstopped", False),
        (block.wide, WIDE, "\nwide", True),
    ):
        if name:
            named.append(learning.Series.of(student, name, looks, note, rank))
    series = {one.target: (one, _rows(student, one)) for one in named}
    when = block.late_steps[0], block.late_steps[-1]
    paper = {
        "order-of-learning": [*learning.ordered(student, ladder)],
        "early-overlap": [*learning.overlap(student, ladder, control)],
        "late-losses": [*learning.late_changes(student, ladder, when)],
        "original-text": learning.still_falling(student, control),
    }
    by_norm = {}
    if norm:
        by_norm["norm-score"] = [
            *learning.ordered(student, norm),
            *learning.late_changes(student, norm, when),
        ]
    # Of higher and of lower order, the control among them
    pairs = [(block.early_stopped, ladder[0]), (ladder[-1], block.wide)]
    pairs = [pair for pair in pairs if all(pair)]
    compared = [*comparison.compare(student, generators, block.test or "", pairs)]
    drawn = style.gathered([rows for _, rows in series.values()])
    return Tables(drawn, block, student, series, paper, by_norm, compared)


def _rows(student: Evaluated, one: learning.Series) -> pd.DataFrame:
    """Loss and accuracy but for step 0, which has no place on a log axis, and `between`: the
    checkpoints around the saturation of all seeds, at the share of the drop that is left in %."""
    times = learning.saturated(student, one.target)
    ends = (times["time"] - times["spacing"]).min(), times["time"].max()
    curves = [one.curve(student, name) for name in ("loss", "accuracy")]
    between = style.points("between", one.label, "all", ends, [100 * SATURATION[0]] * 2)
    return pd.concat([*(curve[curve["x"] > 0] for curve in curves), between], ignore_index=True)


def claims(tables: Tables, figure: str = "fig4") -> list[records.Claim]:
    """The order of learning, and the controls of order against quality and score."""
    id_, scope = f"simplicity/{figure}/order-at-equal-loss", tables.student.scope
    return [
        *learning.claims(figure, tables.paper, scope, f"figure {figure[3:]}"),
        comparison.claim(id_, tables.pairs, f"{scope}, these generators"),
        *learning.claims(figure, tables.by_norm, scope),
    ]


@style.in_house_style
def draw(tables: Tables):
    figure = style.new(2, 4.1)
    places = [["losses", "times"], ["losses", "late"]]
    panels = figure.subplot_mosaic(places, width_ratios=(1.25, 1), height_ratios=(1, 1.5))
    _draw_losses(panels["losses"], tables)
    _draw_times(panels["times"], tables)
    _draw_late(panels["late"], tables)
    style.legend(figure, ((one.label, one.looks) for one, _ in tables.series.values()), 3)
    figure.suptitle(tables.student.scope, x=0.01, ha="left")
    return figure


def _draw_losses(axes, tables: Tables) -> None:
    """Means and sds by step; markers at some of the checkpoints."""
    from matplotlib.ticker import LogLocator, NullFormatter

    inset = axes.inset_axes((0.11, 0.1, 0.4, 0.4))  # early losses are high: it is empty there
    for place, (series, rows) in enumerate(tables.series.values()):
        apart = (0.02 * place, 0.12)  # of the diagonal, so that markers do not lie on each other
        learning.draw_curve(axes, rows[rows["panel"] == "loss"], series, markevery=apart)
        curve = rows[(rows["panel"] == "accuracy") & (rows["seed"] == "mean")]
        inset.plot(curve["x"], curve["y"], **(series.looks | {"marker": "", "linewidth": 0.9}))
    for panel in (axes, inset):
        panel.set_xscale("log")
        panel.xaxis.set_major_locator(LogLocator(10))
        panel.xaxis.set_minor_formatter(NullFormatter())
    inset.set_title("accuracy", fontsize=style.SMALL, pad=2)
    inset.tick_params(labelsize=6)
    causal = models.about(tables.student.about["description"]).causal
    which = "next" if causal else "masked"
    axes.set(xlabel="training step", ylabel=f"{which}-token test loss (nats per token)")
    axes.set_title("(a) loss on each clone")


def _paired(tables: Tables) -> list[tuple[learning.Series, pd.DataFrame]]:
    """The series from low to high order, each control beside the clone of equal loss."""
    block = tables.block
    low, *others = block.ladder
    names = [low, block.early_stopped, *others, block.wide, block.control]
    return [tables.series[name] for name in names if name]


def _draw_times(axes, tables: Tables) -> None:
    shown = _paired(tables)
    for row, (series, rows) in enumerate(shown):
        ends = rows.loc[rows["panel"] == "between", "x"]
        axes.plot(ends, [row, row], "|-", color=series.looks["color"], linewidth=2.5)
    axes.set(xlim=(0, None), xlabel="training step", ylabel="order")
    axes.set_title(f"(b) saturation: {SATURATION[0]:.0%} of the drop left")
    style.name_rows(axes, [series.short.replace("\n", " ") for series, _ in shown])


def _draw_late(axes, tables: Tables) -> None:
    """Mean and sd of each loss at a few late steps, from left to right."""
    steps, shown = tables.block.late_steps, _paired(tables)
    shifts = np.linspace(-0.25, 0.25, len(steps))
    for place, (series, rows) in enumerate(shown):
        mean = rows.query("panel == 'loss' and seed == 'mean'").set_index("x")
        mean = mean.reindex(steps)  # NaN where no such step is a checkpoint
        looks = series.looks | {"marker": series.looks["marker"] or "o"}
        axes.errorbar(place + shifts, mean["y"], mean["y_err"].fillna(0), **looks)
    axes.set_xticks(range(len(shown)), [series.short for series, _ in shown])
    *before, last = map(str, steps)
    axes.set(xlabel="order of the clone's generator", ylabel="test loss (nats per token)")
    axes.set_title(f"(c) losses at steps {', '.join(before)} and {last}")


def caption(inputs: Inputs, block: Block) -> str:
    title = "Figure 4: losses of a masked student on clones of bounded order of interaction.\n\n"
    return f"{title}{panels(block)}{inputs.made()}\n"


def panels(block: Block) -> str:
    open_markers = (
        "Open markers: generators with the test loss of another order, shown beside it in (b) "
        "and (c).\n\n"
    )
    return (
        "**(a)** Test loss on each clone: mean and one standard deviation over runs, markers at "
        "some checkpoints. In the paper losses on low orders stop first and may rise, those on "
        "high orders fall on. Inset: accuracy. **(b)** Checkpoints between which each loss "
        "saturates in all runs. **(c)** Late losses, from left to right.\n\n"
        f"{open_markers if block.early_stopped or block.wide else ''}"
    )
