"""The same checkpoints by four definitions of order: a column a student, a row a definition.

In the table y_err of panel `times` is the standard error of log(step).
"""

import itertools
import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from manybody.claims.simplicity.definitions_runs import Definition, Student, read_students
from manybody.plotting import style
from manybody.plotting.points import Drawing, drawn, points

AXES = {
    "clones": "loss on clones (nats)",
    "spectrum": "$M_k$",
    "n_grams": "KL from n-grams (nats)",
    "interactions": "$J^{(m)}$ (nats)",
}
STEPS = [10**power for power in range(7)]  # that are labelled
COLOURS = tuple(style.ORDERS.values())  # from low to high
PANEL, TIMES, LEGEND = 1.4, 1.6, 0.8  # inches of a panel, of the times, of the legend


def draw(files, block: dict, context: dict) -> Drawing:
    """The figure and what is drawn, from files; see the package's docstring."""
    return figure_of(read_students(files, block, context))


@style.styled(style.RC)
def figure_of(students: list[Student]) -> Drawing:
    """Every definition along training, and below when each says that an order is learned."""
    every = [one for student in students for one in student.definitions]
    keys = [key for key in AXES if key in {one.key for one in every}]
    inches = [*[PANEL] * len(keys), TIMES]
    figure = style.new(2, sum(inches) + LEGEND)
    panels = figure.subplots(
        len(inches), len(students), sharex="col", squeeze=False, height_ratios=inches
    )
    names = dict.fromkeys(one.name for one in sorted(every, key=lambda one: keys.index(one.key)))
    names = list(names)
    tables = []
    for column, student in enumerate(students):
        letter = "abcdefg"[column]
        panels[0, column].set_title(f"({letter}) {student.name}".replace(" on ", "\non "))
        for row, key in enumerate(keys):
            axes = panels[row, column]
            mine = [one for one in student.definitions if one.key == key]
            for number, one in enumerate(mine):
                tables += _draw_definition(axes, letter, one, ("-", ":")[number])
            if not mine:
                place = dict(transform=axes.transAxes, ha="center", color="0.5")
                axes.text(0.5, 0.5, "not measured", **place)
                axes.set_yticks([])
            if key == "spectrum":
                axes.set_yscale("log")
            if column == 0:
                axes.set_ylabel(AXES[key])
        times = panels[-1, column]
        tables += _draw_times(times, student, names)
        times.set(xscale="log", xlabel="training step")
        style.plain_ticks(times.xaxis, STEPS)
        times.set_yticks(range(len(names)), names if column == 0 else [])
        times.set_ylim(len(names) - 0.5, -0.5)
        times.tick_params(axis="y", length=0)
    figure.align_ylabels(panels[:-1, 0])
    handles = [
        Line2D([], [], color=colour, label=label) for colour, label in _coloured(_legend(every))
    ]
    looks = dict(color="0.3", linewidth=0.8)
    if not all(math.isnan(rung.truth) for one in every for rung in one.rungs):
        handles.append(Line2D([], [], linestyle="--", label="truth, enumerated", **looks))
    if "n_grams" in keys:
        handles.append(Line2D([], [], linestyle=":", label="KL(q‖p) in place of KL(p‖q)", **looks))
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure, drawn(tables)


def _coloured(items: list) -> zip:
    """Items from low to high order, each after its colour."""
    return zip(itertools.cycle(COLOURS), items, strict=False)


def _legend(every: list[Definition]) -> list[str]:
    """What the colours mean, from low to high: the orders of every definition."""
    found = []
    for place in range(max(len(one.rungs) for one in every)):
        mine = [one for one in every if place < len(one.rungs)]
        parts = {
            key: list(dict.fromkeys(one.rungs[place].label for one in mine if one.key == key))
            for key in AXES
        }
        found.append(", ".join(_joined(key, labels) for key, labels in parts.items() if labels))
    return found


def _joined(key: str, labels: list[str]) -> str:
    """`m = 2 or 6`; of clones `clone of order 3`."""
    if key == "clones":
        return f"clone of {' or '.join(labels)}"
    if key == "spectrum":
        return " or ".join(f"${label}$" for label in labels)
    return " or ".join([labels[0], *(label.removeprefix("m = ") for label in labels[1:])])


def _draw_definition(axes: Axes, panel: str, one: Definition, line: str) -> list[pd.DataFrame]:
    """A curve for each run and order; dashed what the true conditionals have."""
    tables = []
    for colour, rung in _coloured(one.rungs):
        series = f"{one.name}: {rung.label}"
        for seed, curve in rung.curves.items():
            curve = curve[curve["step"] > 0]
            looks = dict(color=colour, linestyle=line, linewidth=0.9)
            axes.plot(curve["step"], curve["value"], **looks)
            given = curve["step"], curve["value"], curve["se"]
            tables.append(points(panel, series, seed, *given))
        if not math.isnan(rung.truth) and line == "-":
            axes.axhline(rung.truth, color=colour, linestyle="--", linewidth=0.7, zorder=1)
            tables.append(points(panel, f"{series}, truth", "truth", [math.nan], [rung.truth]))
    return tables


def _draw_times(axes: Axes, student: Student, names: list[str]) -> list[pd.DataFrame]:
    """A row for each definition, a point for each run and order, with its error."""
    tables = []
    for one in student.definitions:
        row = names.index(one.name)
        for place, (colour, rung) in enumerate(_coloured(one.rungs)):
            height = row + 0.5 * ((place + 0.5) / len(one.rungs) - 0.5)
            for seed, (step, error) in rung.times.items():
                if step > 0:
                    looks = dict(color=colour, marker="o", linestyle="", elinewidth=0.8)
                    axes.errorbar(step, height, xerr=step * error, **looks)
                series = f"{student.name}, {one.name}: {rung.label}"
                tables.append(points("times", series, seed, [step], [row], error))
    return tables
