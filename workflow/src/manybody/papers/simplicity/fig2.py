"""Figure 2: networks of one, two and three layers climb down the orders of interaction.

Ends of runs and lengths of plateaus are judged as they are, shares of runs by exact tests
(many-body, section 6).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import NormalDist

import pandas as pd

from manybody.papers import style
from manybody.papers.claims import STRICT, Claim, Comparison, above, near
from manybody.papers.simplicity import staircase, staircase_panels as panels
from manybody.papers.simplicity.staircase import (
    CLOSED,
    EXACT,
    HALF,
    MOVED,
    ON_LINE,
    Group,
    Inputs,
    Line,
    Staircase,
    closed,
)

PLATEAU = 5.0  # epochs
FINE = PLATEAU / 2  # epochs between checkpoints that still show a plateau
ENOUGH = 6  # seeds of which all must agree to show a rule: below 3 % by a coin


class Block(staircase.StaircaseBlock):
    """Networks of growing depth on samples of a known Hamiltonian."""


def tables(inputs: Inputs, block: Block) -> style.Tables:
    """All runs, their lines, classes and plateaus."""
    found = staircase.read(inputs)
    moved = found.deepest.runs[found.deepest.chosen].displacement
    moved = moved[moved.index > 0]  # zero has no place on a log axis
    layers = [
        style.points("c", f"layer {layer}", found.deepest.chosen, moved.index, moved[layer])
        for layer in moved.columns
    ]
    ends = panels.ends("b", found.groups)
    drawn = [*panels.losses("a", found.networks), *ends, *layers, *panels.numbers(found)]
    return style.Tables(style.gathered(drawn), found)


def _lines(found: Staircase) -> Iterator[Comparison]:
    """Each line lies above the next, also on the training set."""
    for upper, lower in pairwise(found.lines.descending):
        # Both are means over the same sequences: their own errors bound that of the difference.
        gap, error = upper.loss - lower.loss, math.hypot(upper.error, lower.error)
        label = f"{upper.name} less {lower.name}"
        yield above(label, gap, error, deviations=STRICT)
    for low, high in pairwise(found.lines.fits):
        yield above(f"training set: {low.name} less {high.name}", low.train - high.train, 0.0)


def _shallow(found: Staircase) -> Iterator[Comparison]:
    """One layer ends on the 2-body line; two rest there, then end on the 3-body line: as far as
    there are such networks and lines."""
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
    yield closed(found.deepest, found.lines)


def _rests(found: Staircase, group: Group, under: Sequence[Line]) -> Comparison:
    """The share of a group's runs that rest on each of some lines."""
    runs = group.runs.values()
    fine = all(run.spacing <= FINE for run in runs)
    unusable = "" if fine else "checkpoints are too far apart"
    levels = [line.loss for line in found.lines.descending]
    if any(abs(high - low) < 2 * ON_LINE for low, high in pairwise(levels)):
        unusable = f"lines are closer than {2 * ON_LINE:g}"
    count = sum(all(run.dwell(line.loss) >= PLATEAU for line in under) for run in runs)
    names = " and ".join(f"the {line.name}" for line in under)
    return share(group, f"rests {PLATEAU:g} epochs on {names}", count, unusable)


def _layer_order(found: Staircase) -> list[Comparison]:
    """The last layer moves first; the paper's order is from the last to the first."""
    group = found.deepest
    if group.layers < 2:
        return []
    last_first, downward = [], []
    for run in group.runs.values():
        *others, last = moved = run.escapes().sort_index().tolist()
        # Checkpoints tell two layers apart unless both moved between the same two.
        if math.isfinite(last) and last not in others:
            last_first.append(last < min(others))
        if sum(map(math.isfinite, moved)) >= len(moved) - 1 and len(set(moved)) == len(moved):
            downward.append(all(later > sooner for later, sooner in pairwise(moved)))
    return [
        always(f"{group.label}: the last layer moves first", last_first),
        always(f"{group.label}: layers move from the last to the first", downward),
    ]


@dataclass(frozen=True)
class Share(Comparison):
    """A share of `runs` runs, with the exact interval of Clopper and Pearson."""

    deviations: float = EXACT

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
    return Share(label, count / runs, region=(HALF, math.inf), runs=runs, unusable=unusable)


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
    f"conditionals by {CLOSED[-1]:.0%} or more, by the exact 95 % interval of the median; no: by "
    f"less than {CLOSED[0]:.0%}; between them the answer hangs on the threshold"
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
    """The paper's statements on the plateaus, the ends and the order of the layers."""
    return list(staircase.claims_of("fig2", STATEMENTS, [tables.found]))


@style.in_house_style
def draw(tables: style.Tables):
    """(a) losses, (b) all ends on the same axis, (c) displacements."""
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
    panels.draw_losses(losses, found.networks, found.lines)
    losses.set(xlabel="training epoch", ylabel=panels.LOSS)
    ends.sharey(losses)
    panels.draw_ends(ends, found.groups, found.lines)
    ends.tick_params(labelleft=False)
    _draw_displacements(layers, tables.drawn)
    titles = "losses of all runs", "their ends", f"layers, n = {found.deepest.layers}"
    for axes, letter, title in zip((losses, ends, layers), letters, titles, strict=True):
        axes.set_title(f"({letter}) {title}")
    panels.legend_of_ends(figure, losses.get_legend_handles_labels()[0])


def _draw_displacements(axes, drawn: pd.DataFrame) -> None:
    ends = []
    for place, layer in enumerate(drawn.loc[drawn["panel"] == "c", "series"].unique()):
        curve, colour = style.series(drawn, "c", layer), style.TIMES[min(place, 3)]
        axes.plot(curve["x"], curve["y"], color=colour)
        ends.append((layer, float(curve["y"].iloc[-1]), colour))
    axes.axhline(MOVED, color="0.8", linewidth=0.8, zorder=0, gid="guide")
    axes.set(xlim=(0, None), yscale="log")
    axes.set(xlabel="training epoch", ylabel="mean square displacement")
    style.label_right(axes, ends, panels.APART)


def caption(inputs: Inputs, block: Block) -> str:
    recipes = dict.fromkeys(one.recipe for one in [inputs.networks[-1], *inputs.protocols])
    return (
        "Stacked layers of factored attention climb down the orders of interaction.\n\n"
        "**(a)** Held-out loss of every seed of n layers; thick: the run of median final loss. "
        "Dashed: single sites, and the best conditionals of each order; dotted: the true "
        "conditionals. **(b)** Where every run ended, thick ones ringed; grey: the last gap, above "
        "the dotted line, is closed by 70 % or more. **(c)** Mean square displacement of the "
        "layers' matrices; above the grey line a layer has moved.\n\n"
        f"{inputs.made()}; the deepest network by {' or '.join(recipes)}. Shares of orders are "
        "those of the logits' variance at high temperature.\n"
    )
