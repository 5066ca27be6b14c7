"""Losses and ends of the networks of a staircase, as tables and as pictures.

Numbers that are not points of a panel have a panel of their own in the table: `lines`, `shares`
(f_k of the Hamiltonian), `escapes` (x: layer, y: epoch at which it has moved, empty if it has not),
`plateaus` (x: order, y: epochs on its line), `gap` (y: share of the last gap that is closed).
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from manybody.papers import style
from manybody.papers.simplicity.staircase import CLOSED, Group, Line, Lines, Staircase

APART = 0.07  # smallest distance of two labels of lines, as a share of the axis
WIDE = 4  # columns of ends whose names fit beside each other
LOSS = "held-out loss (nats per token)"
CLOSES = f"{CLOSED[0]:.0%} of the last gap closed"
DOT = dict(marker="o", markersize=3, gid="moved")
CROSS = dict(marker="x", markersize=4, gid="guide")
RING = DOT | dict(markersize=7, markerfacecolor="none", color="black", linestyle="")
GROUND = dict(marker="s", markersize=8, color="0.87", linestyle="")


def losses(panel: str, groups: Sequence[Group]) -> Iterator[pd.DataFrame]:
    """Loss curves of all seeds."""
    for group in groups:
        for seed, run in group.runs.items():
            curve = (run.curve[column] for column in ("epoch", "loss", "loss_se"))
            yield style.points(panel, group.label, seed, *curve)


def ends(panel: str, groups: Sequence[Group]) -> Iterator[pd.DataFrame]:
    """Final losses; x is the column."""
    for column, group in enumerate(groups):
        for seed, run in group.runs.items():
            error = run.curve["loss_se"].iloc[-1]
            yield style.points(panel, group.label, seed, [column], [run.end], error)


def numbers(found: Staircase) -> Iterator[pd.DataFrame]:
    """Lines, shares, escapes, gaps and plateaus, each a panel of its own."""
    lines = found.lines
    for line in lines.all:
        yield style.points("lines", line.name, "", [math.nan], [line.loss], line.error)
    yield style.points("lines", CLOSES, "", [math.nan], [edge(lines)])
    yield style.points("shares", "f_k", "", range(1, len(found.shares) + 1), found.shares)
    for group in found.groups:
        for seed, run in group.runs.items():
            moved = run.escapes().replace(math.inf, math.nan)
            yield style.points("escapes", group.label, seed, moved.index, moved)
            yield style.points("gap", group.label, seed, [math.nan], [lines.fraction(run.end)])
            for line in lines.under:
                series = f"{group.label} on the {line.order}-body line"
                yield style.points("plateaus", series, seed, [line.order], [run.dwell(line.loss)])


def edge(lines: Lines) -> float:
    """The loss at which most of the last gap is closed; NaN where there is no gap."""
    return lines.descending[-2].loss - CLOSED[0] * lines.gap


def named(group: Group) -> str:
    """A group, and the number of its runs."""
    return f"{group.label} ({len(group.runs)} seed{'s' if len(group.runs) > 1 else ''})"


def draw_losses(axes, groups: Sequence[Group], lines: Lines) -> None:
    """Loss curves of all seeds, the chosen one of each group thick, and the reference lines."""
    draw_lines(axes, lines)
    for group in groups:
        for seed, run in group.runs.items():
            looks = dict(linewidth=0.7, alpha=0.7)
            if seed == group.chosen:
                looks = dict(linewidth=1.8, zorder=3, label=named(group))
            colour = order_colour(group.layers + 1)
            axes.plot(run.curve["epoch"], run.curve["loss"], color=colour, **looks)
    axes.set_xlim(0, None)


def draw_lines(axes, lines: Lines) -> None:
    """The reference lines; the axis of losses, from below the lowest to above the highest."""
    for line in lines.all:
        dashes = ":" if line == lines.truth else "--"
        axes.axhline(line.loss, color=line_colour(line, lines), linestyle=dashes, linewidth=1.0)
    values = [line.loss for line in lines.all]
    pad = 0.06 * (max(values) - min(values)) or 0.01
    axes.set_ylim(min(values) - pad, max(values) + pad)


def line_colour(line: Line, lines: Lines) -> str:
    """Black for the true conditionals, grey for single sites, else the order's colour."""
    if line == lines.truth:
        return "black"
    return "0.55" if line.order == 1 else order_colour(line.order)


def order_colour(order: int) -> str:
    """The colour of an order, of its fit, and of the networks that reach no higher one."""
    return style.ORDERS.get(order, style.ORDERS[6])


def draw_ends(axes, groups: Sequence[Group], lines: Lines) -> None:
    """Final losses, a column of points for each group; the lines with their names and values.

    In a column runs stand in the order of their seeds, the chosen one ringed; those that diverged
    are crosses on the upper edge. Where most of the last gap is closed the ground is grey.
    """
    draw_lines(axes, lines)
    if math.isfinite(edge(lines)):
        axes.axhspan(lines.truth.loss, edge(lines), color=GROUND["color"], linewidth=0, zorder=0)
    for column, group in enumerate(groups):
        count, colour = len(group.runs), order_colour(group.layers + 1)
        places = column + 0.8 * ((np.arange(count) + 0.5) / count - 0.5)
        for place, (seed, run) in zip(places, group.runs.items(), strict=True):
            finite = math.isfinite(run.end)
            looks = dict(clip_on=False, color=colour) | (DOT if finite else CROSS)
            axes.plot(place, run.end if finite else axes.get_ylim()[1], **looks)
            if finite and seed == group.chosen:
                axes.plot(place, run.end, **RING)
    wide = len(groups) <= WIDE
    names = [group.label.replace(", ", "\n") if wide else group.label for group in groups]
    axes.set_xticks(range(len(groups)), names, rotation=0 if wide else 90)
    axes.set_xlim(-0.5, len(groups) - 0.5)
    labels = [(f"{x.name} {x.loss:.4f}", x.loss, line_colour(x, lines)) for x in lines.all]
    style.label_right(axes, labels, APART)


def legend_of_ends(figure, networks: Sequence = ()) -> None:
    """The marks of the ends, and those of networks, below the panels."""
    marks = {"median run, thick": RING, CLOSES: GROUND}
    handles = [*networks, *(style.mark(label, **looks) for label, looks in marks.items())]
    looks = dict(ncols=len(handles), columnspacing=1.2)
    figure.legend(handles=handles, loc="outside lower center", **looks)
