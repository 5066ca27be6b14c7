"""Figure 2: networks of one, two and three layers climb down the orders of interaction.

Ends of runs and lengths of plateaus are judged as they are, shares of the seeds by exact tests
(many-body, section 6). Panels have the letters of the paper, and (d) is a new one. Numbers that are
not points of a panel have a panel of their own in the table: `lines`, `shares` (f_k of the
Hamiltonian), `classes` (x: runs, y: their share), `escapes` (x: layer, y: epoch at which it has
moved, empty if it has not), `plateaus` (x: order, y: epochs on its line).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import pandas as pd

from manybody.papers import claims as records
from manybody.papers import style
from manybody.papers.claims import Claim, Comparison, above, near
from manybody.papers.simplicity import staircase
from manybody.papers.simplicity.staircase import (
    MOVED,
    NOWHERE,
    ON_LINE,
    REACHED,
    Group,
    Inputs,
    Line,
    Lines,
    Staircase,
    order_colour,
)

ONE_LAYER = 0.002  # nats per token: one layer is the same model as the 2-body fit
PLATEAU = 5.0  # epochs
FINE = PLATEAU / 2  # epochs between checkpoints that still show a plateau
SOME = 0.25  # share of the seeds
ENOUGH = 6  # seeds of which all must agree to show a rule: below 3 % by a coin
EXACT = 1.959964  # standard errors of a normal distribution's interval of 95 %, for exact tests
LAYERS = ((0, (1, 1)), (0, (4, 1.2)), "-")  # dashes from the first layer to the last
RING = dict(marker="o", color="black", markersize=8, markerfacecolor="none", markeredgewidth=0.9)
BESIDE = 0.16  # of a column: the largest distance of two of its points
WIDE = 4  # columns of ends whose names fit beside each other
APART = 0.07  # smallest distance of two labels of lines, as a share of the axis


class Block(staircase.StaircaseBlock):
    """Networks of growing depth on samples of a known Hamiltonian."""


@dataclass(frozen=True)
class Tables:
    """What is drawn, and the runs and lines that are judged."""

    drawn: pd.DataFrame
    found: Staircase


def tables(inputs: Inputs, block: Block) -> Tables:
    """All runs, their lines, classes and plateaus."""
    found = staircase.read(inputs)
    parts = [*losses(found.networks), *ends(found, found.groups), *_displacements(found.deepest)]
    return Tables(style.gathered([*parts, *numbers(found)]), found)


def losses(groups: Sequence[Group]) -> list[pd.DataFrame]:
    """Panel b: loss curves of all seeds."""
    return [
        style.points("b", group.label, seed, *(run.curve[c] for c in ("epoch", "loss", "loss_se")))
        for group in groups
        for seed, run in group.runs.items()
    ]


def ends(found: Staircase, groups: Sequence[Group]) -> list[pd.DataFrame]:
    """Panel d: final losses; x is the column, and the series says the class."""
    parts = []
    for column, group in enumerate(groups):
        for seed, run in group.runs.items():
            series = f"{group.label}: {found.lines.classes[group.ends[seed]].words}"
            error = float(run.curve["loss_se"].iloc[-1])
            parts.append(style.points("d", series, seed, [column], [run.end], error))
    return parts


def _displacements(group: Group) -> list[pd.DataFrame]:
    """Panel c: mean square displacement of each layer of the group's chosen run."""
    table = group.runs[group.chosen].displacement
    table = table[table.index > 0]  # zero has no place on a log axis
    return [
        style.points("c", f"layer {layer}", group.chosen, table.index, table[layer])
        for layer in table.columns
    ]


def numbers(found: Staircase) -> list[pd.DataFrame]:
    """Lines, shares, classes, escapes and plateaus, each a panel of its own."""
    lines, shares = found.lines, found.shares
    parts = [
        style.points("lines", line.name, "", [math.nan], [line.loss], line.error)
        for line in lines.all
    ]
    parts.append(style.points("shares", "f_k", "", range(1, len(shares) + 1), shares))
    for group in found.groups:
        for kind, end in lines.classes.items():
            count = group.count(kind)
            share = [count / len(group.runs)]
            parts.append(
                style.points("classes", f"{group.label}: {end.words}", "all", [count], share)
            )
        for seed, run in group.runs.items():
            moved = run.escapes().replace(math.inf, math.nan)
            parts.append(style.points("escapes", group.label, seed, moved.index, moved))
            for line in lines.under:
                series = f"{group.label} on the {line.order}-body line"
                dwell = run.dwell(line.loss)
                parts.append(style.points("plateaus", series, seed, [line.order], [dwell]))
    return parts


# --- Claims ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Share(Comparison):
    """A share of `runs` runs, with the exact interval of Clopper and Pearson."""

    deviations: float = EXACT

    def interval(self, deviations=None):
        from scipy.special import ndtr
        from scipy.stats import binomtest

        if self.unusable:
            return math.nan, math.nan
        level = 1 - 2 * float(ndtr(-(deviations or self.deviations)))
        found = binomtest(round(self.value * self.runs), self.runs).proportion_ci(level)
        return float(found.low), float(found.high)


def share(label: str, count: int, runs: int, unusable: str = "") -> Share:
    """The share of `runs` seeds that do, which must be above a quarter."""
    value = count / runs
    error = math.sqrt(value * (1 - value) / runs)
    label = f"{label} ({count} of {runs} seeds)"
    return Share(label, value, error, (SOME, math.inf), runs, unusable=unusable)


@dataclass(frozen=True)
class MoreOften(Comparison):
    """How much larger a share of runs is than that of others; p values of Fisher's exact test.

    more, fewer: one-sided, that so many or more of the first runs, or so few, would be seen if both
    shares were one.
    """

    more: float = math.nan
    fewer: float = math.nan
    deviations: float = EXACT

    def verdict(self, deviations=None):
        from scipy.special import ndtr

        rare = ndtr(-(deviations or self.deviations))
        return "yes" if self.more < rare else "no" if self.fewer < rare else "undecided"

    def __str__(self):
        return f"{super().__str__()}, p = {self.more:.2g} (Fisher, one-sided)"


def _lines(found: Staircase) -> list[Comparison]:
    """Each line lies above the next, also on the training set."""
    parts = []
    for upper, lower in pairwise(found.lines.descending):
        # Both are means over the same sequences: their own errors bound that of the difference.
        gap, error = upper.loss - lower.loss, math.hypot(upper.error, lower.error)
        label = f"{upper.name} less {lower.name}"
        parts.append(above(label, gap, error, deviations=records.STRICT))
    for low, high in pairwise(found.lines.fits):
        label = f"training set: {low.name} less {high.name}"
        parts.append(above(label, low.train - high.train, 0.0))
    return parts


def _shallow(found: Staircase) -> list[Comparison]:
    """One layer ends on the 2-body line; two rest there, then end on the 3-body line: as far as
    there are such networks and lines."""
    networks = {group.layers: group for group in reversed(found.networks)}
    fits = {line.order: line.loss for line in found.lines.fits}
    under = {line.order: line.loss for line in found.lines.under}
    # Two layers cannot go below order 3; on data of order 3 the lowest line is the true one.
    third = (under | {found.lines.truth.order: found.lines.truth.loss}).get(3)
    parts = []
    if 1 in networks and 2 in fits:
        last = [run.end for run in networks[1].runs.values()]
        farthest = max(last, key=lambda end: abs(end - fits[2]))
        parts.append(near("n = 1, farthest seed: end", farthest, 0.0, fits[2], ONE_LAYER))
    if 2 in networks:
        run = networks[2].runs[networks[2].chosen]
        if 2 in under:
            coarse = "" if run.spacing <= FINE else f"checkpoints are {run.spacing:g} epochs apart"
            # Five epochs are enough: the bound itself is inside.
            least = math.nextafter(PLATEAU, 0)
            label = "n = 2, seed shown: epochs on the 2-body line"
            parts.append(above(label, run.dwell(under[2]), 0.0, least, unusable=coarse))
        if third is not None:
            parts.append(near("n = 2, seed shown: end", run.end, 0.0, third, ON_LINE))
    return parts


def _three_layers(found: Staircase) -> list[Comparison]:
    """The shares of the deepest network's seeds that rest on every line below the data's order, and
    that come down to the true conditionals."""
    return [*_plateaus(found), *arrivals(found)]


def _plateaus(found: Staircase) -> list[Comparison]:
    group, under = found.deepest, found.lines.under
    if not under:
        return []
    levels = [line.loss for line in found.lines.descending]
    runs = group.runs.values()
    unusable = ""
    if any(abs(high - low) < 2 * ON_LINE for low, high in pairwise(levels)):
        unusable = f"lines are closer than {2 * ON_LINE:g}"
    elif not all(run.spacing <= FINE for run in runs):
        unusable = "checkpoints are too far apart"
    rests = sum(all(run.dwell(line.loss) >= PLATEAU for line in under) for run in runs)
    names = " and ".join(f"{line.order}-body" for line in under)
    label = f"{group.label}: rests {PLATEAU:g} epochs on the {names} lines"
    return [share(label, rests, len(runs), unusable)]


def arrivals(found: Staircase) -> list[Comparison]:
    """The share of the deepest network's seeds that come down to the true conditionals."""
    group, start = found.deepest, found.lines.descending[-2]
    label = f"{group.label}: comes {REACHED:.0%} of the way from {start.name} to the true line"
    return [share(label, group.count("reached"), len(group.runs))]


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


def always(label: str, seen: list[bool]) -> Comparison:
    """A rule without exception: one seed breaks it, six that keep it are enough for a yes."""
    value = sum(seen) / len(seen) if seen else math.nan
    few = f"{len(seen)} seeds tell, {ENOUGH} are needed" if all(seen) and len(seen) < ENOUGH else ""
    label = f"{label} (in {sum(seen)} of {len(seen)} seeds that tell)"
    return near(label, value, 0.0, 1.0, 1e-9, unusable=few)


def recipes(found: Staircase) -> list[Comparison]:
    """Another recipe reaches the data's order in a larger share of the seeds than the first."""
    from scipy.stats import fisher_exact

    first, parts = found.deepest, []
    ours, of_ours = first.count("reached"), len(first.runs)
    for group in found.protocols:
        count, runs = group.count("reached"), len(group.runs)
        counts = [[count, runs - count], [ours, of_ours - ours]]
        more, fewer = (fisher_exact(counts, side).pvalue for side in ("greater", "less"))
        label = (
            f"share of {group.label} ({count} of {runs} seeds) less that of {first.label} "
            f"({ours} of {of_ours})"
        )
        parts.append(MoreOften(label, count / runs - ours / of_ours, more=more, fewer=fewer))
    return parts


class Statement(NamedTuple):
    """A statement about a staircase, its comparisons, and what one of them must show."""

    text: str
    compare: Callable[[Staircase], list[Comparison]]
    rule: str
    beyond: bool = False


SEEDS = (
    f"at least {SOME:.0%} of the seeds do, by the exact 95 % interval of their share (Clopper and "
    f"Pearson)"
)
STATEMENTS = {
    "lines": Statement(
        "Conditionals of each order of interaction have a lower loss than those of the order below "
        "(figure 2b)",
        _lines,
        "a line lies above the next by three standard errors, or on the training set",
    ),
    "shallow-networks": Statement(
        "One layer ends at the 2-body line; two layers rest there and end at the 3-body line "
        "(figure 2b)",
        _shallow,
        f"one layer ends within {ONE_LAYER:g} nats of the 2-body line; two are within {ON_LINE:g} "
        f"of it for {PLATEAU:g} epochs or more and end within {ON_LINE:g} of the 3-body line",
    ),
    "three-layers": Statement(
        "The deepest network rests at each line below the order of the data, then comes to the "
        "true conditionals (figure 2b)",
        _three_layers,
        SEEDS,
    ),
    "layer-order": Statement(
        "The last layer moves first, then the others down to the first (figure 2c)",
        _layer_order,
        f"every seed does in which checkpoints tell (mean square displacement above {MOVED:g}), of "
        f"at least {ENOUGH}",
    ),
    "recipes": Statement(
        "Another training recipe reaches the order of the data in more of its seeds",
        recipes,
        "the share of seeds is larger by Fisher's exact test, one-sided at 2.5 % either way",
        beyond=True,
    ),
}


def claims(tables: Tables) -> list[Claim]:
    """What the paper says of the plateaus, the ends and the order of the layers."""
    return claims_of("fig2", STATEMENTS, tables.found)


def claims_of(figure: str, statements: Mapping[str, Statement], found: Staircase) -> list[Claim]:
    """Records of these statements; those beyond the paper where there is something to compare."""
    return [
        claim(f"{figure}/{name}", one.text, one.compare(found), one.rule, [found], one.beyond)
        for name, one in statements.items()
        if found.protocols or not one.beyond
    ]


def claim(
    name: str,
    statement: str,
    parts: Sequence[Comparison],
    rule: str,
    sources: Sequence[Staircase],
    beyond: bool = False,
) -> Claim:
    """The record of all these comparisons; not run where losses are not of the same tokens."""
    scope = "; ".join(one.scope for one in sources)
    for one in sources:
        if len(one.predictions) > 1:
            tested = " and ".join(map(str, one.predictions))
            reason = f"runs and lines of {one.name} are tested on {tested} held-out tokens"
            return records.not_run(f"simplicity/{name}", statement, reason, scope, beyond)
    return records.judged(f"simplicity/{name}", statement, parts, scope, rule, beyond=beyond)


# --- The picture ----------------------------------------------------------------------------------


@style.in_house_style
def draw(tables: Tables):
    """(b) losses, (c) displacements below, (d) all ends beside, on the same axis of losses."""
    from matplotlib.lines import Line2D

    found = tables.found
    figure = style.new(2, 4.9)
    mosaic = [["b", "d"], ["c", "words"]]
    axes = figure.subplot_mosaic(mosaic, width_ratios=(2.1, 1), height_ratios=(1.4, 1))
    axes["c"].sharex(axes["b"])
    axes["d"].sharey(axes["b"])
    draw_panels(axes["b"], axes["d"], axes["c"], tables, 3)
    axes["b"].set(title=f"(b) {title(found)}", ylabel="held-out loss (nats per token)")
    axes["b"].tick_params(labelbottom=False)
    axes["d"].set(title="(d) every run at the end")
    axes["words"].axis("off")
    ring = Line2D([], [], linestyle="", label="the run drawn thick", **RING)
    place = dict(loc="center left", bbox_to_anchor=(-0.1, 0.5), handletextpad=0.2, borderpad=0)
    legend_of_ends(axes["words"], found.lines, [found.deepest, *found.protocols], ring, **place)
    return figure


def draw_panels(losses, ends, moves, tables: Tables, columns: int) -> None:
    """Panels (b), (d) and (c) on three axes; the legend of (b) has so many columns."""
    found, deepest = tables.found, tables.found.deepest
    draw_losses(losses, found.networks, found.lines)
    _draw_ends(ends, found.groups, found.lines)
    _draw_displacements(moves, tables.drawn)
    _depth_legend(losses, found.networks, columns)
    ends.tick_params(labelleft=False)
    moves.set(title=f"(c) n = {deepest.layers}, seed {deepest.chosen}", xlabel="training epoch")


def draw_losses(axes, groups: Sequence[Group], lines: Lines, by_end: bool = False) -> None:
    """Loss curves of all seeds and the reference lines.

    The chosen seed of each group is thick; or, `by_end`, every curve has the colour of its end.
    """
    _draw_lines(axes, lines)
    for group in groups:
        for seed, run in group.runs.items():
            colour, looks = order_colour(group.layers + 1), dict(linewidth=0.7, alpha=0.7)
            if by_end:
                colour = lines.classes[group.ends[seed]].colour
            elif seed == group.chosen:
                looks = dict(linewidth=1.8, zorder=3)
            axes.plot(run.curve["epoch"], run.curve["loss"], color=colour, **looks)
    axes.set_xlim(0, None)


def _draw_lines(axes, lines: Lines) -> None:
    for line in lines.all:
        dashes = ":" if line == lines.truth else "--"
        axes.axhline(line.loss, color=_colour(line, lines), linestyle=dashes, linewidth=1.0)
    values = [line.loss for line in lines.all]
    pad = 0.06 * (max(values) - min(values)) or 0.01
    axes.set_ylim(min(values) - pad, max(values) + pad)


def _colour(line: Line, lines: Lines) -> str:
    """Black for the true conditionals, grey for single sites, else the order's colour."""
    if line == lines.truth:
        return "black"
    return NOWHERE if line.order == 1 else order_colour(line.order)


def label_lines(axes, lines: Lines) -> None:
    """The lines' names and values at the right edge."""
    named = [(f"{one.name} {one.loss:.4f}", one.loss, _colour(one, lines)) for one in lines.all]
    style.label_right(axes, named, APART)


def _draw_ends(axes, groups: Sequence[Group], lines: Lines) -> None:
    """Final losses by class, a column for each group, its seeds by their loss; lines with values.

    The chosen run of each group is ringed. Runs that diverged are crosses on the upper edge.
    """
    _draw_lines(axes, lines)
    for column, group in enumerate(groups):
        if column % 2 == 0:
            axes.axvspan(column - 0.5, column + 0.5, color="0.95", linewidth=0, zorder=0)
        step, middle = min(BESIDE, 0.8 / len(group.runs)), (len(group.runs) - 1) / 2
        for rank, (seed, run) in enumerate(sorted(group.runs.items(), key=lambda one: one[1].end)):
            place = column + step * (rank - middle)
            looks = lines.classes[group.ends[seed]].looks | dict(clip_on=False)
            if not math.isfinite(run.end):
                axes.plot(place, 1.0, transform=axes.get_xaxis_transform(), **looks)
                continue
            axes.plot(place, run.end, zorder=3, **looks)
            if seed == group.chosen:
                axes.plot(place, run.end, linestyle="", clip_on=False, zorder=4, **RING)
    wide = len(groups) <= WIDE
    names = [group.label.replace(", ", "\n") if wide else group.label for group in groups]
    axes.set_xticks(range(len(groups)), names, rotation=0 if wide else 90)
    axes.set_xlim(-0.5, len(groups) - 0.5)
    label_lines(axes, lines)


def _draw_displacements(axes, drawn: pd.DataFrame) -> None:
    """Mean square displacement of each layer of one run."""
    layers = drawn.loc[drawn["panel"] == "c", "series"].unique()
    for height, layer in enumerate(reversed(layers)):  # from the last layer down
        curve = style.series(drawn, "c", layer)
        looks = dict(linestyle=LAYERS[max(len(LAYERS) - 1 - height, 0)], zorder=2 - height / 100)
        colour = style.TIMES[min(height, 2)] if height else "black"
        axes.plot(curve["x"], curve["y"], color=colour, label=layer, **looks)
    axes.axhline(MOVED, color="0.8", linewidth=0.8, zorder=0)
    axes.set(xlim=(0, None), yscale="log")
    axes.set_ylabel("$|A(t)-A(0)|^2/L^2 + |V(t)-V(0)|^2/|V|^2$", fontsize=style.SMALL)
    axes.legend(frameon=True, framealpha=0.9, edgecolor="none", reverse=True)


def legend_of_ends(place, lines: Lines, groups: Sequence[Group], *others, **looks) -> None:
    """A mark for each class that occurs, and the best ones, with the numbers of runs.

    place: figure or axes. The title has the groups, two a line.
    """
    from matplotlib.lines import Line2D

    handles = []
    for kind, end in lines.classes.items():
        counts = [group.count(kind) for group in groups]
        if any(counts) or kind == "reached" or kind.startswith("on "):
            label = f"{' | '.join(map(str, counts))}  {end.words}"
            handles.append(Line2D([], [], label=label, **end.looks))
    names = [f"{group.label} ({len(group.runs)})" for group in groups]
    pairs = [" | ".join(names[at : at + 2]) for at in range(0, len(names), 2)]
    title = "runs of " + " |\n".join(pairs)
    place.legend(handles=[*handles, *others], title=title, alignment="left", **looks)


def _depth_legend(axes, groups: Sequence[Group], columns: int) -> None:
    """In the room above the lines and below single sites, which runs leave early."""
    for group in groups:
        count = len(group.runs)
        label = f"{group.label} ({count} seed{'s' if count > 1 else ''})"
        axes.plot([], [], color=order_colour(group.layers + 1), linewidth=1.8, label=label)
    place = dict(loc="upper right", bbox_to_anchor=(1.0, 0.94))
    axes.legend(**place, ncols=columns, columnspacing=1.0, handlelength=1.2)


def title(found: Staircase) -> str:
    """The source in a few words: L, |V|, how large the shares of each order are."""
    return f"{found.sizes}, shares {' '.join(f'{share:.2f}' for share in found.shares)}"


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
        "layer has moved. **(d)** Where every run ended.\n\n"
        f"{source['sequences']['train']} sequences of a Hamiltonian with interactions of order "
        f"{source['order']}, L = {source['length']}, \\|V\\| = {source['vocabulary']}; the deepest "
        f"network by {deepest.recipe}. The shares are those of the logits' variance that orders 1, "
        "2 ... have at high temperature.\n"
    )
