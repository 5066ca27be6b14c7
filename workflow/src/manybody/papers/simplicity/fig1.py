"""Figure 1, right: a student's losses on the clones against the training epoch."""

from typing import NamedTuple

import pandas as pd

from manybody.io import tables as files
from manybody.io.options import key
from manybody.papers import claims as records, style
from manybody.papers.figure import Figure
from manybody.papers.simplicity import learning, students


class Block(students.StudentBlock, Figure):
    """Losses on the clones against the epoch."""

    ladder: students.Targets = key("Targets from low to high order.", min_length=2)


class Inputs(students.StudentInputs):
    """The student's runs; the figure that has the claims about the same runs, if there is one."""

    claims_reported_by: str | None

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        same = (
            name
            for name, other in config.get("figures", {}).get("simplicity", {}).items()
            if "late_steps" in other and other["evaluation"] == block.evaluation
        )
        return super().of(block, config, claims_reported_by=next(same, None))


class Tables(NamedTuple):
    """The rows that are drawn, also by series; comparisons, none where another figure has them."""

    drawn: pd.DataFrame
    series: list[tuple[learning.Series, pd.DataFrame]]
    student: students.Evaluated
    compared: dict[str, list[records.Comparison]]


def tables(inputs: Inputs, block: Block) -> Tables:
    student = students.read_student(inputs.runs, inputs.clones, corpus=inputs.corpus)
    return tables_of(student, block, inputs.claims_reported_by)


def tables_of(
    student: students.Evaluated, block: Block, claims_reported_by: str | None = None
) -> Tables:
    unit = 1 / files.steps_per_epoch(student.history)
    series = [(one, one.curve(student, unit=unit)) for one in learning.ladder(student, block)]
    compared = {
        "order-of-learning": [*learning.ordered(student, block.ladder)],
        "early-overlap": [*learning.overlap(student, block.ladder, block.control)],
    }
    drawn = style.gathered([curve for _, curve in series])
    return Tables(drawn, series, student, {} if claims_reported_by else compared)


def claims(tables: Tables) -> list[records.Claim]:
    return learning.claims("fig1", tables.compared, tables.student.scope, "figure 1")


@style.in_house_style
def draw(tables: Tables):
    """The losses on a linear axis, with small marks, since early checkpoints are close."""
    figure = style.new(1, 3.0)
    axes = figure.subplots()
    for series, curve in tables.series:
        learning.draw_curve(axes, curve, series, markersize=2)
    axes.set(xlabel="training epoch", ylabel="test loss (nats per token)", xlim=(0, None))
    axes.set_title(tables.student.scope)
    style.legend_below(axes, 3 if len(tables.series) > 4 else 2)
    return figure


def caption(inputs: Inputs, block: Block) -> str:
    return (
        "Figure 1, right: test loss of a student on clones of bounded order, against the epoch.\n\n"
        "Line and band are the mean and one standard deviation over runs, in nats per predicted "
        "token. In the paper the losses fall together at first; those on clones of low order stop "
        "early and may rise, that on the highest order falls to the end.\n\n"
        f"{inputs.made()}\n"
    )
