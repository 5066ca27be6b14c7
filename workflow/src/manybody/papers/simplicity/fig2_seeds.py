"""Figure 2, seed by seed: how far the deepest network comes, by each training recipe.

Figure 2 takes losses, ends, and shares of seeds from here; shares are judged by exact tests
(many-body, section 6). Numbers that are not points of a panel have a panel of their own in the
table: `lines`, `shares` (f_k of the Hamiltonian), `classes` (x: runs, y: their share), `escapes`
(x: layer, y: epoch at which it has moved, empty if it has not), `plateaus` (x: order, y: epochs on
its line), `gap` (y: share of the last gap that is closed).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from manybody.papers import style
from manybody.papers.claims import Claim, Comparison, judged, not_run
from manybody.papers.simplicity import staircase
from manybody.papers.simplicity.staircase import (
    CLOSED,
    ENOUGH,
    EXACT,
    MOVED,
    NOWHERE,
    Group,
    Line,
    Lines,
    Staircase,
    Statement,
    always,
    closed,
    order_colour,
)

COLUMNS = 3  # of panels
APART = 0.07  # smallest distance of two labels of lines, as a share of the axis


class Block(staircase.StaircaseBlock):
    """As fig2, with more seeds."""


class Inputs(staircase.Inputs):
    """The same as fig2, and the figure that has the claims about the runs by the first recipe."""

    claims_reported_by: str | None = None

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        deepest = block.networks[-1].model_dump() if block.networks else None
        others = [
            name
            for name, other in config["figures"]["simplicity"].items()
            if other and "networks" in other and "protocols" not in other
            if (other["source"], other["networks"][-1]) == (block.source, deepest)
        ]
        found = super().of(block, config)
        reported = others[0] if block.protocols and others else None
        return found.model_copy(update={"claims_reported_by": reported})


@dataclass(frozen=True)
class Tables:
    """The rows drawn; runs and lines; `reported`: claims on the first recipe stand elsewhere."""

    drawn: pd.DataFrame
    found: Staircase
    reported: bool


def tables(inputs: Inputs, block: Block) -> Tables:
    """The deepest network's runs by each recipe, their lines and classes."""
    found = staircase.read(inputs)
    groups = [found.deepest, *found.protocols]
    drawn = [*losses(groups), *ends(found, groups), *numbers(found)]
    return Tables(style.gathered(drawn), found, inputs.claims_reported_by is not None)


def losses(groups: Sequence[Group]) -> list[pd.DataFrame]:
    """Panel b: loss curves of all seeds."""
    return [
        style.points("b", group.label, seed, *(run.curve[c] for c in ("epoch", "loss", "loss_se")))
        for group in groups
        for seed, run in group.runs.items()
    ]


def ends(found: Staircase, groups: Sequence[Group]) -> Iterator[pd.DataFrame]:
    """Panel d: final losses; x is the column, and the series says the class."""
    for column, group in enumerate(groups):
        for seed, run in group.runs.items():
            series = f"{group.label}: {found.lines.classes[group.ends[seed]].words}"
            error = run.curve["loss_se"].iloc[-1]
            yield style.points("d", series, seed, [column], [run.end], error)


def numbers(found: Staircase) -> Iterator[pd.DataFrame]:
    """Lines, shares, classes, escapes and plateaus, each a panel of its own."""
    lines = found.lines
    for line in lines.all:
        yield style.points("lines", line.name, "", [math.nan], [line.loss], line.error)
    yield style.points("shares", "f_k", "", range(1, len(found.shares) + 1), found.shares)
    for group in found.groups:
        for kind, end in lines.classes.items():
            series, count = f"{group.label}: {end.words}", group.count(kind)
            yield style.points("classes", series, "all", [count], [count / len(group.runs)])
        for seed, run in group.runs.items():
            moved = run.escapes().replace(math.inf, math.nan)
            yield style.points("escapes", group.label, seed, moved.index, moved)
            yield style.points("gap", group.label, seed, [math.nan], [lines.fraction(run.end)])
            for line in lines.under:
                series = f"{group.label} on the {line.order}-body line"
                yield style.points("plateaus", series, seed, [line.order], [run.dwell(line.loss)])


# --- Claims ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MoreOften(Comparison):
    """What runs do more often than others; p values of Fisher's exact test.

    more, fewer: one-sided, that so many or more of the first runs, or so few, would be seen if the
    shares of both that do were one; the largest of several thresholds.
    """

    more: float = math.nan
    fewer: float = math.nan
    deviations: float = EXACT

    def verdict(self, deviations=None):
        from scipy.special import ndtr

        rare = ndtr(-(deviations or self.deviations))
        return "yes" if self.more < rare else "no" if self.fewer < rare else "undecided"

    def __str__(self):
        return f"{super().__str__()}, largest p = {self.more:.2g} (Fisher, one-sided)"


def layer_order(found: Staircase) -> list[Comparison]:
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


def recipes(found: Staircase) -> Iterator[Comparison]:
    """Another recipe closes the last gap in more of its runs than the first, at each threshold."""
    from scipy.stats import fisher_exact

    first, *others = (closed(group, found.lines) for group in [found.deepest, *found.protocols])
    for other in others:
        tables = [
            [np.bincount(np.less(one.each, least), minlength=2) for one in (other, first)]
            for least in CLOSED
        ]
        more, fewer = (
            max(fisher_exact(table, side).pvalue for table in tables)
            for side in ("greater", "less")
        )
        label = f"{other.label} less {first.label}"
        yield MoreOften(label, other.value - first.value, more=more, fewer=fewer)


MOST = (
    "more than half of the runs do, by the exact 95 % interval of their share (Clopper and "
    "Pearson); no: fewer than half"
)
GAP = (
    "the median run closes the gap from the line below the order of the data to the true "
    f"conditionals by {CLOSED[-1]:.0%} or more, by the exact 95 % interval of the median; no: by "
    f"less than {CLOSED[0]:.0%}; between them the answer hangs on the threshold"
)
LAYER_ORDER = (
    "The last layer moves first, then the others down to the first",
    layer_order,
    f"every seed does in which checkpoints tell (mean square displacement above {MOVED:g}), of at "
    f"least {ENOUGH}",
    "figure 2c",
)
RECIPES = (
    "Another training recipe closes the gap to the true conditionals in more of its runs",
    recipes,
    f"the share of runs that close {', '.join(f'{least:.0%}' for least in CLOSED)} of the gap is "
    "larger each time, by Fisher's exact test, one-sided at 2.5 % either way",
    "",
)
OF_FIRST_RECIPE = {
    "three-layers": (
        "The deepest network comes to the true conditionals",
        lambda found: [closed(found.deepest, found.lines)],
        GAP,
        "figure 2b",
    ),
    "layer-order": LAYER_ORDER,
}


def claims(tables: Tables) -> list[Claim]:
    """Recipes against each other; of the first one what no other figure has."""
    statements = {"recipes": RECIPES} if tables.reported else OF_FIRST_RECIPE | {"recipes": RECIPES}
    return list(claims_of("fig2_seeds", statements, [tables.found]))


def claims_of(
    figure: str, statements: Mapping[str, Statement], sources: Sequence[Staircase]
) -> Iterator[Claim]:
    """Records of statements about all sources; not run where losses are not of the same tokens.

    Those beyond the paper are left out where there is nothing to compare.
    """
    scope = "; ".join(one.scope for one in sources)
    mixed = next((one for one in sources if len(one.predictions) > 1), None)
    for name, (text, compare, rule, reference) in statements.items():
        id = f"simplicity/{figure}/{name}"
        parts = [part for source in sources for part in compare(source)]
        if not (reference or parts):
            continue
        if mixed:
            tested = " and ".join(map(str, mixed.predictions))
            reason = f"runs and lines of {mixed.name} are tested on {tested} held-out tokens"
            yield not_run(id, text, reason, scope, reference)
        else:
            yield judged(id, text, parts, scope, rule, reference=reference)


# --- The picture ----------------------------------------------------------------------------------


@style.in_house_style
def draw(tables: Tables):
    """A panel of losses for the deepest network by each recipe, each seed coloured by its end."""
    found, lines = tables.found, tables.found.lines
    groups = [found.deepest, *found.protocols]
    columns = min(len(groups), COLUMNS)
    rows = -(-len(groups) // columns)
    figure = style.new(2, 2.3 * rows + 1.0)
    places = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for axes, group in zip(places, groups, strict=False):
        draw_losses(axes, [group], lines, by_end=True)
        share = closed(group, lines).value
        axes.set(
            title=f"{group.label}: median closes {share:.0%} of the last gap",
            xlabel="training epoch",
        )
    for axes in places[len(groups) :]:
        axes.axis("off")
    for axes in places[::columns]:
        axes.set_ylabel("held-out loss (nats per token)")
    label_lines(places[len(groups) - 1], lines)
    legend_of_ends(figure, lines, groups, loc="outside lower center", ncols=3)
    return figure


def draw_losses(axes, groups: Sequence[Group], lines: Lines, by_end: bool = False) -> None:
    """Loss curves of all seeds and the reference lines.

    The chosen seed of each group is thick; or, `by_end`, every curve has the colour of its end.
    """
    draw_lines(axes, lines)
    for group in groups:
        seeds = f"{len(group.runs)} seed{'s' if len(group.runs) > 1 else ''}"
        for seed, run in group.runs.items():
            colour, looks = order_colour(group.layers + 1), dict(linewidth=0.7, alpha=0.7)
            if by_end:
                colour = lines.classes[group.ends[seed]].colour
            elif seed == group.chosen:
                looks = dict(linewidth=1.8, zorder=3, label=f"{group.label} ({seeds})")
            axes.plot(run.curve["epoch"], run.curve["loss"], color=colour, **looks)
    axes.set_xlim(0, None)


def draw_lines(axes, lines: Lines) -> None:
    """The reference lines; the axis of losses, from below the lowest to above the highest."""
    for line in lines.all:
        dashes = ":" if line == lines.truth else "--"
        axes.axhline(line.loss, color=_colour(line, lines), linestyle=dashes, linewidth=1.0)
    values = [line.loss for line in lines.all]
    pad = 0.06 * (max(values) - min(values)) or 0.01
    axes.set_ylim(min(values) - pad, max(values) + pad)


def label_lines(axes, lines: Lines) -> None:
    """The lines' names and values at the right edge."""
    named = [(f"{one.name} {one.loss:.4f}", one.loss, _colour(one, lines)) for one in lines.all]
    style.label_right(axes, named, APART)


def _colour(line: Line, lines: Lines) -> str:
    """Black for the true conditionals, grey for single sites, else the order's colour."""
    if line == lines.truth:
        return "black"
    return NOWHERE if line.order == 1 else order_colour(line.order)


def legend_of_ends(place, lines: Lines, groups: Sequence[Group], *others, **looks) -> None:
    """A mark for each class that occurs, and for each line, with the numbers of runs.

    place: figure or axes. The title has the groups, two a line.
    """
    handles = []
    for kind, end in lines.classes.items():
        counts = [group.count(kind) for group in groups]
        if any(counts) or end.marker == "o":
            label = f"{' | '.join(map(str, counts))}  {end.words}"
            handles.append(style.mark(label, **end.looks))
    names = [f"{group.label} ({len(group.runs)})" for group in groups]
    pairs = [" | ".join(names[at : at + 2]) for at in range(0, len(names), 2)]
    title = "runs of " + " |\n".join(pairs)
    place.legend(handles=[*handles, *others], title=title, alignment="left", **looks)


def caption(inputs: Inputs, block: Block) -> str:
    """Says what is shown, what the eye sees, how it was made."""
    source, runs = inputs.source, [inputs.networks[-1], *inputs.protocols]
    recipes = "; ".join(f"*{one.runs[0].model}*, {one.recipe}" for one in runs)
    return (
        "Figure 2, seed by seed: how far the deepest network comes to the order of its data.\n\n"
        "Held-out loss of every seed, a panel for each recipe; lines as in figure 2. A curve has "
        "the colour of the line on which its run ended, or of the highest order where it closed "
        f"{CLOSED[0]:.0%} of the last gap, from the line below that order to the true "
        "conditionals; grey between lines or above them, orange where it diverged.\n\n"
        f"Trained on {source['sequences']['train']} sequences of a Hamiltonian with interactions "
        f"of order {source['order']}, L = {source['length']}, \\|V\\| = {source['vocabulary']}: "
        f"{recipes}.\n"
    )
