"""Figure 2: networks of one, two and three layers climb down the orders of interaction.

Shares of runs are judged by exact tests (many-body, section 6). Numbers that are not points of a
panel have a panel of their own in the table: `lines`, `shares` (f_k of the Hamiltonian), `escapes`
(x: layer, y: epoch at which it has moved, empty if it has not), `plateaus` (x: order, y: epochs on
its line), `gap` (y: share of the last gap that is closed).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pandas as pd

from manybody.papers import style
from manybody.papers.claims import STRICT, Claim, Comparison, above, counted, near
from manybody.papers.simplicity import staircase
from manybody.papers.simplicity.staircase import MOVED, ON_LINE, Group, Inputs, Lines, Staircase

Block = staircase.StaircaseBlock
PLATEAU = 5.0  # epochs
FINE = PLATEAU / 2  # epochs between checkpoints that still show a plateau
ENOUGH = 6  # seeds of which all must agree to show a rule: below 3 % by a coin
APART = 0.07  # smallest distance of two labels of lines, as a share of the axis
WIDE = 4  # columns of ends whose names fit beside each other
CLOSES = f"{staircase.CLOSED[0]:.0%} of the last gap closed"
DOT = dict(marker="o", markersize=3, gid="moved")
CROSS = dict(marker="x", markersize=4, gid="guide")
RING = DOT | dict(markersize=7, markerfacecolor="none", color="black", linestyle="")
GROUND = dict(marker="s", markersize=8, color="0.87", linestyle="")


def tables(inputs: Inputs, block: Block) -> style.Tables:
    found = staircase.read(inputs)
    return style.Tables(style.gathered(_rows(found)), found)


def _rows(found: Staircase) -> Iterator[pd.DataFrame]:
    """Losses and ends (x: the column) of all runs, layers of one, then the numbers of no panel."""
    lines, shown = found.lines, found.deepest.chosen
    for group in found.networks:
        for seed, run in group.runs.items():
            curve = (run.curve[column] for column in ("epoch", "loss", "loss_se"))
            yield style.points("a", group.label, seed, *curve)
    for column, group in enumerate(found.groups):
        for seed, run in group.runs.items():
            error = run.curve["loss_se"].iloc[-1]
            yield style.points("b", group.label, seed, column, run.end, error)
    moved = found.deepest.runs[shown].displacement
    moved = moved[moved.index > 0]  # zero has no place on a log axis
    for layer in moved.columns:
        yield style.points("c", f"layer {layer}", shown, moved.index, moved[layer])
    for line in lines.all:
        yield style.points("lines", line.name, "", math.nan, line.loss, line.error)
    yield style.points("lines", CLOSES, "", math.nan, lines.edge)
    yield style.points("shares", "f_k", "", range(1, len(found.shares) + 1), found.shares)
    for group in found.groups:
        for seed, run in group.runs.items():
            moved = run.escapes().replace(math.inf, math.nan)
            yield style.points("escapes", group.label, seed, moved.index, moved)
            yield style.points("gap", group.label, seed, math.nan, lines.fraction(run.end))
            for line in lines.under:
                series = f"{group.label} on the {line.order}-body line"
                yield style.points("plateaus", series, seed, line.order, run.dwell(line.loss))


def _lines(found: Staircase) -> Iterator[Comparison]:
    for upper, lower in pairwise(found.lines.descending):
        # Both are means over the same sequences: their own errors bound that of the difference.
        gap, error = upper.loss - lower.loss, math.hypot(upper.error, lower.error)
        yield above(f"{upper.name} less {lower.name}", gap, error, deviations=STRICT)
    for low, high in pairwise(found.lines.all[1:-1]):
        yield above(f"training set: {low.name} less {high.name}", low.train - high.train, 0.0)


def _shallow(found: Staircase) -> Iterator[Comparison]:
    # On data of order 2 or 3 the lowest line is the true one.
    lines = {line.order: line for line in found.lines.descending}
    for group in (one for one in found.networks if one.layers <= 2):
        if under := [line for line in found.lines.under if line.order <= group.layers]:
            yield _rests(found, group, under)
        if line := lines.get(group.layers + 1):
            there = sum(abs(run.end - line.loss) <= ON_LINE for run in group.runs.values())
            yield share(group, f"ends on the {line.name}", there)


def _deepest(found: Staircase) -> Iterator[Comparison]:
    """The deepest network rests on every line below the data's order, and closes the last gap."""
    if found.lines.under:
        yield _rests(found, found.deepest, found.lines.under)
    yield staircase.closed(found.deepest, found.lines)


def _rests(found: Staircase, group: Group, under: list[staircase.Line]) -> Comparison:
    """The share of a group's runs that rest on each of some lines."""
    runs = group.runs.values()
    unusable = "" if all(run.spacing <= FINE for run in runs) else "checkpoints are too far apart"
    levels = [line.loss for line in found.lines.descending]
    if any(abs(high - low) < 2 * ON_LINE for low, high in pairwise(levels)):
        unusable = f"lines are closer than {2 * ON_LINE:g}"
    count = sum(all(run.dwell(line.loss) >= PLATEAU for line in under) for run in runs)
    names = " and ".join(f"the {line.name}" for line in under)
    return share(group, f"rests {PLATEAU:g} epochs on {names}", count, unusable)


def _layer_order(found: Staircase) -> Iterator[Comparison]:
    """The last layer moves first; the paper's order is from the last to the first."""
    group = found.deepest
    if group.layers < 2:
        return
    last_first, downward = [], []
    for run in group.runs.values():
        *others, last = moved = run.escapes().sort_index().tolist()
        # Checkpoints tell two layers apart unless both moved between the same two.
        if math.isfinite(last) and last not in others:
            last_first.append(last < min(others))
        if moved.count(math.inf) <= 1 and len(set(moved)) == len(moved):
            downward.append(moved == sorted(moved, reverse=True))
    yield always(f"{group.label}: the last layer moves first", last_first)
    yield always(f"{group.label}: layers move from the last to the first", downward)


@dataclass(frozen=True)
class Share(Comparison):
    """A share of `runs` runs, with the exact interval of Clopper and Pearson."""

    deviations: float = staircase.EXACT

    def interval(self, deviations=None):
        from scipy.stats import binomtest

        if self.unusable:
            return math.nan, math.nan
        level = 1 - 2 * NormalDist().cdf(-(deviations or self.deviations))
        found = binomtest(round(self.value * self.runs), self.runs).proportion_ci(level)
        return float(found.low), float(found.high)


def share(group: Group, what: str, count: int, unusable: str = "") -> Share:
    """The share of a group's runs, `count` of them, that do: it must be above one half."""
    runs = len(group.runs)
    label = f"{group.label}: {what} ({count} of {runs} runs)"
    above_half = staircase.HALF, math.inf
    return Share(label, count / runs, region=above_half, runs=runs, unusable=unusable)


def always(label: str, seen: list[bool]) -> Comparison:
    """A rule without exception: one seed breaks it, six that keep it are enough for a yes."""
    value = sum(seen) / len(seen) if seen else math.nan
    few = f"{len(seen)} seeds tell, {ENOUGH} are needed" if all(seen) and len(seen) < ENOUGH else ""
    label = f"{label} (in {sum(seen)} of {len(seen)} seeds that tell)"
    return near(label, value, 0.0, 1.0, 1e-9, unusable=few)


MOST = (
    "more than half of the runs do, by the exact 95 % interval of their share (Clopper and "
    "Pearson); no: fewer than half"
)
GAP = (
    "the median run closes the gap from the line below the order of the data to the true "
    f"conditionals by {staircase.CLOSED[-1]:.0%} or more, by the exact 95 % interval of the median;"
    f" no: by less than {staircase.CLOSED[0]:.0%}; between them the answer hangs on the threshold"
)
STATEMENTS = {
    "lines": (
        "Conditionals of each order of interaction have a lower loss than those of the order below",
        _lines,
        "a line lies above the next by three standard errors, or on the training set",
        "figure 2b",
    ),
    "shallow-networks": (
        "One layer ends at the 2-body line; two layers rest there and end at the 3-body line",
        _shallow,
        f"{MOST}; a run is on a line within {ON_LINE:g} nats of it, and rests there for "
        f"{PLATEAU:g} epochs or more",
        "figure 2b",
    ),
    "three-layers": (
        "The deepest network rests at each line below the order of the data, then comes to the "
        "true conditionals",
        _deepest,
        f"{MOST}; {GAP}",
        "figure 2b",
    ),
    "layer-order": (
        "The last layer moves first, then the others down to the first",
        _layer_order,
        f"every seed does in which checkpoints tell (mean square displacement above {MOVED:g}), of "
        f"at least {ENOUGH}",
        "figure 2c",
    ),
}


def claims(tables: style.Tables) -> list[Claim]:
    return staircase.claims_of("fig2", STATEMENTS, [tables.found])


@style.in_house_style
def draw(tables: style.Tables):
    figure = style.new(2, 3.0)
    draw_in(figure, tables)
    return figure


def draw_in(figure, tables: style.Tables, letters: str = "abc", name: str = "") -> None:
    """The panels in a figure or in a part of one that has a name."""
    found = tables.found
    losses, ends, layers = figure.subplots(1, 3, width_ratios=(1.3, 1.2, 1))
    shares = ", ".join(f"{share:.2f}" for share in found.shares)
    orders = ", ".join(map(str, range(1, len(found.shares) + 1)))
    title = f"{name}{found.sizes}; shares of orders {orders}: {shares}"
    figure.suptitle(title, x=0.01, ha="left")
    _draw_losses(losses, found.networks, found.lines)
    ends.sharey(losses)
    _draw_ends(ends, found.groups, found.lines)
    _draw_displacements(layers, tables.drawn)
    titles = "losses of all runs", "their ends", f"layers, n = {found.deepest.layers}"
    for axes, letter, title in zip((losses, ends, layers), letters, titles, strict=True):
        axes.set_title(f"({letter}) {title}")
    handles = losses.get_legend_handles_labels()[0]
    handles += [style.mark("median run, thick", **RING), style.mark(CLOSES, **GROUND)]
    looks = dict(ncols=len(handles), columnspacing=1.2)
    figure.legend(handles=handles, loc="outside lower center", **looks)


def _draw_losses(axes, groups: Sequence[Group], lines: Lines) -> None:
    _draw_lines(axes, lines)
    for group in groups:
        colour = _order_colour(group.layers + 1)
        for seed, run in group.runs.items():
            looks = dict(linewidth=0.7, alpha=0.7)
            if seed == group.chosen:
                named = f"{group.label} ({counted(len(group.runs), 'seed')})"
                looks = dict(linewidth=1.8, zorder=3, label=named)
            axes.plot(run.curve["epoch"], run.curve["loss"], color=colour, **looks)
    axes.set(xlim=(0, None), xlabel="training epoch", ylabel="held-out loss (nats per token)")


def _draw_lines(axes, lines: Lines) -> None:
    """The reference lines; the axis of losses, from below the lowest to above the highest."""
    for line in lines.all:
        dashes = ":" if line == lines.truth else "--"
        axes.axhline(line.loss, color=_line_colour(line, lines), linestyle=dashes, linewidth=1.0)
    values = [line.loss for line in lines.all]
    pad = 0.06 * (max(values) - min(values)) or 0.01
    axes.set_ylim(min(values) - pad, max(values) + pad)


def _line_colour(line: staircase.Line, lines: Lines) -> str:
    """Black for the true conditionals, grey for single sites, else the order's colour."""
    if line == lines.truth:
        return "black"
    return "0.55" if line.order == 1 else _order_colour(line.order)


def _order_colour(order: int) -> str:
    """The colour of an order, of its fit, and of the networks that reach no higher one."""
    return style.ORDERS.get(order, style.ORDERS[6])


def _draw_ends(axes, groups: Sequence[Group], lines: Lines) -> None:
    """Final losses, a column of points for each group, the chosen run ringed; those that diverged
    are crosses on the upper edge. Where most of the last gap is closed the ground is grey."""
    _draw_lines(axes, lines)
    if math.isfinite(lines.edge):
        axes.axhspan(lines.truth.loss, lines.edge, color=GROUND["color"], linewidth=0, zorder=0)
    for column, group in enumerate(groups):
        count, colour = len(group.runs), _order_colour(group.layers + 1)
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
    axes.tick_params(labelleft=False)
    labels = [(f"{x.name} {x.loss:.4f}", x.loss, _line_colour(x, lines)) for x in lines.all]
    style.label_right(axes, labels, APART)


def _draw_displacements(axes, drawn: pd.DataFrame) -> None:
    ends = []
    for place, layer in enumerate(drawn.loc[drawn["panel"] == "c", "series"].unique()):
        colour = style.TIMES[min(place, 3)]
        curve = style.line(axes, drawn, "c", layer, color=colour)
        ends.append((layer, float(curve["y"].iloc[-1]), colour))
    axes.axhline(MOVED, **style.GUIDE)
    axes.set(xlim=(0, None), xlabel="training epoch")
    axes.set(yscale="log", ylabel="mean square displacement")
    style.label_right(axes, ends, APART)


def caption(inputs: Inputs, block: Block) -> str:
    recipes = dict.fromkeys(one.recipe for one in [inputs.networks[-1], *inputs.protocols])
    return (
        "Losses of stacked layers of factored attention and the best of each order.\n\n"
        "**(a)** Held-out loss of every seed of n layers; thick: that of median final loss. "
        "Dashed: single sites, and the best conditionals of each order; dotted: the true "
        "conditionals. **(b)** Final loss of every run, thick ones ringed; grey: 70 % or more "
        "of the last gap above the dotted line is closed. **(c)** Mean square displacement of the "
        "layers' matrices; above the grey line a layer has moved.\n\n"
        "{sequences[train]} sequences of a Hamiltonian with interactions of order {order}, L = "
        "{length}, \\|V\\| = {vocabulary}; the deepest network by {recipes}. Shares of orders are "
        "of the logits' variance at high temperature.\n"
    ).format(**inputs.source, recipes=" or ".join(recipes))
