"""Figure 2: networks of one, two and three layers climb down the orders of interaction.

Ends of runs and lengths of plateaus are judged as they are (many-body, section 6). What is said and
shown of each seed is that of `fig2_seeds`. Panels have the letters of the paper, and (d) is new.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from manybody.papers import style
from manybody.papers.claims import STRICT, Claim, Comparison, above
from manybody.papers.simplicity import fig2_seeds as of_seeds
from manybody.papers.simplicity import staircase
from manybody.papers.simplicity.staircase import (
    MOVED,
    ON_LINE,
    Group,
    Inputs,
    Line,
    Lines,
    Staircase,
    closed,
    share,
)

PLATEAU = 5.0  # epochs
FINE = PLATEAU / 2  # epochs between checkpoints that still show a plateau
# Dashes and colours of layers from the last one down, of which all further ones have the last.
LAYERS = (("-", "black"), ((0, (4, 1.2)), style.TIMES[1]), ((0, (1, 1)), style.TIMES[2]))
RING = dict(marker="o", color="black", markersize=8, markerfacecolor="none", markeredgewidth=0.9)
BESIDE = 0.16  # of a column: points that would cover each other lie so far apart
NEAR = 0.03  # of the axis of losses: points this close would cover each other
WIDE = 4  # columns of ends whose names fit beside each other


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
    drawn = [*of_seeds.losses(found.networks), *of_seeds.ends(found, found.groups), *layers]
    return style.Tables(style.gathered([*drawn, *of_seeds.numbers(found)]), found)


# --- Claims ---------------------------------------------------------------------------------------


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
        f"{of_seeds.MOST}; a run is on a line within {ON_LINE:g} nats of it, and rests there for "
        f"{PLATEAU:g} epochs or more",
        "figure 2b",
    ),
    "three-layers": (
        "The deepest network rests at each line below the order of the data, then comes to the "
        "true conditionals",
        _deepest,
        f"{of_seeds.MOST}; {of_seeds.GAP}",
        "figure 2b",
    ),
    "layer-order": of_seeds.LAYER_ORDER,
    "recipes": of_seeds.RECIPES,
}


def claims(tables: style.Tables) -> list[Claim]:
    """The paper's statements on the plateaus, the ends and the order of the layers."""
    return list(of_seeds.claims_of("fig2", STATEMENTS, [tables.found]))


# --- The picture ----------------------------------------------------------------------------------


@style.in_house_style
def draw(tables: style.Tables):
    """(b) losses, (c) displacements below, (d) all ends beside, on the same axis of losses."""
    figure = style.new(2, 4.9)
    draw_in(figure, tables)
    return figure


def draw_in(figure, tables: style.Tables, name: str = "") -> None:
    """The panels in a figure or in a part of one that has a name."""
    found, deepest = tables.found, tables.found.deepest
    mosaic = [["b", "d"], ["c", "words"]]
    axes = figure.subplot_mosaic(mosaic, width_ratios=(2.1, 1), height_ratios=(1.4, 1))
    axes["c"].sharex(axes["b"])
    axes["d"].sharey(axes["b"])
    of_seeds.draw_losses(axes["b"], found.networks, found.lines)
    shares = " ".join(f"{share:.2f}" for share in found.shares)
    title = f"(b) {name}{found.sizes}, shares {shares}"
    axes["b"].set(title=title, ylabel="held-out loss (nats per token)")
    axes["b"].tick_params(labelbottom=False)
    # In the room above the lines and below single sites, which runs leave early.
    axes["b"].legend(
        loc="upper right", bbox_to_anchor=(1.0, 0.94), ncols=3, columnspacing=1.0, handlelength=1.2
    )
    _draw_displacements(axes["c"], tables.drawn)
    axes["c"].set(title=f"(c) n = {deepest.layers}, seed {deepest.chosen}", xlabel="training epoch")
    _draw_ends(axes["d"], found.groups, found.lines)
    axes["d"].set(title="(d) every run at the end")
    axes["d"].tick_params(labelleft=False)
    axes["words"].axis("off")
    ring = style.mark("drawn thick: lower median", linestyle="", **RING)
    of_seeds.legend_of_ends(
        axes["words"],
        found.lines,
        [deepest, *found.protocols],
        ring,
        loc="center left",
        bbox_to_anchor=(-0.1, 0.5),
        handletextpad=0.2,
        borderpad=0,
    )


def _draw_ends(axes, groups: Sequence[Group], lines: Lines) -> None:
    """Final losses by class, a column of points for each group; the lines with their values.

    The chosen run of each group is ringed. Runs that diverged are crosses on the upper edge.
    """
    of_seeds.draw_lines(axes, lines)
    for column, group in enumerate(groups):
        if column % 2 == 0:
            axes.axvspan(column - 0.5, column + 0.5, color="0.95", linewidth=0, zorder=0)
        last = pd.Series({seed: run.end for seed, run in group.runs.items()})
        for seed, aside in beside(last, NEAR * np.ptp(axes.get_ylim())).items():
            end, place = last[seed], column + aside
            looks = lines.classes[group.ends[seed]].looks | dict(clip_on=False)
            if not math.isfinite(end):
                axes.plot(place, 1.0, transform=axes.get_xaxis_transform(), **looks)
                continue
            axes.plot(place, end, zorder=3, **looks)
            if seed == group.chosen:
                axes.plot(place, end, linestyle="", clip_on=False, zorder=4, **RING)
    wide = len(groups) <= WIDE
    names = [group.label.replace(", ", "\n") if wide else group.label for group in groups]
    axes.set_xticks(range(len(groups)), names, rotation=0 if wide else 90)
    axes.set_xlim(-0.5, len(groups) - 0.5)
    of_seeds.label_lines(axes, lines)


def beside(ends: pd.Series, near: float) -> pd.Series:
    """Distances of ends from the middle of their column: 0 where no other is `near` one."""
    ends = ends.sort_values(kind="stable")
    crowds = ends.groupby((ends.diff() > near).cumsum())
    sizes = crowds.transform("size")
    return (crowds.cumcount() - (sizes - 1) / 2) * np.minimum(BESIDE, 0.8 / sizes)


def _draw_displacements(axes, drawn: pd.DataFrame) -> None:
    layers = drawn.loc[drawn["panel"] == "c", "series"].unique()
    for height, layer in enumerate(reversed(layers)):  # from the last layer down
        curve, rank = style.series(drawn, "c", layer), min(height, len(LAYERS) - 1)
        line, colour = LAYERS[rank]
        looks = dict(linestyle=line, color=colour, zorder=2 - height / 100, label=layer)
        axes.plot(curve["x"], curve["y"], **looks)
    axes.axhline(MOVED, color="0.8", linewidth=0.8, zorder=0)
    axes.set(xlim=(0, None), yscale="log")
    axes.set_ylabel("$|A(t)-A(0)|^2/L^2 + |V(t)-V(0)|^2/|V|^2$", fontsize=style.SMALL)
    axes.legend(frameon=True, framealpha=0.9, edgecolor="none", reverse=True)


def caption(inputs: Inputs, block: Block) -> str:
    """Says what is shown, what the eye sees, how it was made."""
    source = inputs.source
    deepest = inputs.networks[-1]
    return (
        "Stacked layers of factored attention climb down the orders of interaction, one plateau "
        "after the other.\n\n"
        "**(b)** Held-out loss of every seed; thick: the lower median of the final losses. Dashed: "
        "single sites, and the best conditionals of each order; dotted: the true conditionals. "
        "**(c)** Mean square displacement of the layers of the thick run; above the grey line a "
        "layer has moved. **(d)** Where every run ended; the last gap is that above the dotted "
        "line.\n\n"
        f"{source['sequences']['train']} sequences of a Hamiltonian with interactions of order "
        f"{source['order']}, L = {source['length']}, \\|V\\| = {source['vocabulary']}; the deepest "
        f"network by {deepest.recipe}. The shares are those of the logits' variance that orders 1, "
        "2 ... have at high temperature.\n"
    )
