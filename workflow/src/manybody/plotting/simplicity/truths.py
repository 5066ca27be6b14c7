"""Students of known laws: losses on cuts and clones with exact lines, and times against half-times.

In the table panels a, b, ... are curves (y_err: over sequences), lines `exact` and `own law`; of
panel `times` x is the half-time of M_k, y the time at which 5 % of the drop are left, and y_err the
standard error of log(y); of panel `half-times` x is k, y the step and y_err that of log(y).
"""

import itertools
import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from manybody.claims.simplicity.spectra import HalfTime
from manybody.claims.simplicity.truths_runs import Ladder, Student, read_students
from manybody.plotting import style
from manybody.plotting.points import Drawing, drawn, points

COLOURS = (style.ORDERS[2], style.ORDERS[3], style.ORDERS[4], style.UNBOUNDED, style.ORDERS[6])
MARKERS = ("o", "s", "^", "D", "v")
STEPS = [10**power for power in range(7)]
TIMES = [digit * 10**power for power in range(7) for digit in (1, 3)]
LOSSES, TIMED, LEGEND = 1.9, 2.3, 0.9  # inches of a row of losses, of the times, of the legend


def draw(files, block: dict, context: dict) -> Drawing:
    """The figure and what is drawn, from files; see the package's docstring."""
    return figure_of(read_students(files, block, context))


@style.styled(style.RC)
def figure_of(students: list[Student]) -> Drawing:
    """A row of losses for each student, a panel a ladder, and below the times."""
    heights = [*[LOSSES] * len(students), TIMED]
    figure = style.new(2, sum(heights) + LEGEND)
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    letters = iter("abcdefghijklmnop")
    tables: list[pd.DataFrame] = []
    for part, student in zip(parts, students, strict=False):
        part.suptitle(student.name, x=0.01, ha="left")
        panels = part.subplots(1, len(student.ladders), sharey=True, squeeze=False)[0]
        for axes, ladder in zip(panels, student.ladders, strict=True):
            letter = next(letters)
            axes.set_title(f"({letter}) {ladder.label}")
            tables += _draw_losses(axes, letter, ladder, student.name)
        panels[0].set_ylabel("loss (nats per token)")
    for axes, student in zip(
        parts[-1].subplots(1, len(students), squeeze=False)[0], students, strict=True
    ):
        axes.set_title(f"({next(letters)}) {student.name}")
        tables += _draw_times(axes, student, _markers(students))
    figure.legend(handles=_handles(students), loc="outside lower center", ncols=3)
    return figure, drawn(tables)


def _handles(students: list[Student]) -> list[Line2D]:
    """What colours, lines and markers mean; a colour is a rung of every ladder."""
    made = []
    every = [ladder.rungs for one in students for ladder in one.ladders]
    rungs = [
        [found[place].label for found in every if place < len(found)]
        for place in range(max(map(len, every)))
    ]
    for colour, place, words in zip(COLOURS, itertools.count(1), rungs, strict=False):
        label = f"rung {place}, $M_{place}$: {', '.join(dict.fromkeys(words))}"
        made.append(Line2D([], [], color=colour, label=label))
    looks = dict(color="0.3", linewidth=0.9)
    made.append(Line2D([], [], linestyle="--", label="exact, of the whole law", **looks))
    made.append(Line2D([], [], linestyle=":", label="exact, of the set's own law", **looks))
    labels = dict.fromkeys(ladder.label for one in students for ladder in one.ladders)
    for marker, label in zip(_markers(students).values(), labels, strict=True):
        made.append(Line2D([], [], linestyle="", marker=marker, color="0.3", label=label))
    return made


def _markers(students: list[Student]) -> dict[str, str]:
    labels = dict.fromkeys(ladder.label for one in students for ladder in one.ladders)
    return dict(zip(labels, itertools.cycle(MARKERS)))


def _draw_losses(axes: Axes, panel: str, ladder: Ladder, name: str) -> list[pd.DataFrame]:
    """A curve for each run, dashed the exact loss, dotted the least that is possible."""
    tables = []
    for colour, rung in zip(COLOURS, ladder.rungs, strict=False):
        series = f"{name}, {ladder.label}: {rung.label}"
        for seed, curve in rung.curves.groupby("seed"):
            curve = curve[curve["step"] > 0].sort_values("step")
            axes.plot(curve["step"], curve["loss"], color=colour, linewidth=0.8)
            tables.append(
                points(panel, series, seed, curve["step"], curve["loss"], curve["loss_se"])
            )
        lines = {"exact": (rung.exact, "--")}
        # Of the whole law both are the same.
        if not math.isclose(rung.own, rung.exact, abs_tol=1e-9):
            lines["own law"] = (rung.own, ":")
        for said, (height, line) in lines.items():
            if math.isfinite(height):
                axes.axhline(height, color=colour, linestyle=line, linewidth=0.8, zorder=1)
                tables.append(points(panel, f"{series}, {said}", said, [math.nan], [height]))
    axes.set(xscale="log", xlabel="training step")
    style.plain_ticks(axes.xaxis, STEPS)
    return tables


def _bar(value: float, error: float) -> list[list[float]]:
    """Below and above a value whose logarithm has this standard error."""
    return [[value * (1 - math.exp(-error))], [value * (math.exp(error) - 1)]]


def _half(found: dict[int, HalfTime]) -> tuple[float, float]:
    """The half-time of all runs, and the standard error of its log, by runs and contexts."""
    logs = np.log([one.step for one in found.values()])
    runs = logs.std(ddof=1) / math.sqrt(len(logs)) if len(logs) > 1 else 0.0
    return math.exp(logs.mean()), math.hypot(runs, max(one.error for one in found.values()))


def _draw_times(axes: Axes, student: Student, markers: dict[str, str]) -> list[pd.DataFrame]:
    """The time of each rung against the half-time of M_k, by ladder."""
    halves, shown = [_half(found) for found in student.halves], []
    name = f"{student.name}, M_k"
    tables = [
        points("half-times", name, "mean", [k], [half], error)
        for k, (half, error) in enumerate(halves, 1)
    ]
    for ladder in student.ladders:
        for place, (colour, rung) in enumerate(zip(COLOURS, ladder.rungs, strict=False)):
            half, beside = halves[place]
            log, error = rung.time()
            time = math.exp(log)
            series = f"{student.name}, {ladder.label}: {rung.label}"
            tables.append(points("times", series, f"M_{place + 1}", [half], [time], error))
            if math.isfinite(half * time):
                axes.errorbar(
                    half,
                    time,
                    xerr=_bar(half, beside),
                    yerr=_bar(time, error),
                    color=colour,
                    marker=markers[ladder.label],
                    markerfacecolor=colour if ladder.known else "white",
                    elinewidth=0.7,
                )
                shown += [half, time]
    if shown:
        ends = [min(shown) / 1.5, max(shown) * 1.5]
        axes.plot(ends, ends, color="0.8", linewidth=0.8, zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="half-time of $M_k$ (steps)")
    axes.set_ylabel("loss stops falling (steps)")
    style.plain_ticks(axes.xaxis, TIMES)
    style.plain_ticks(axes.yaxis, TIMES)
    return tables
