"""Panels of figure 2 and its relatives, and the tables of what they show.

They have the letters of the paper: (b) held-out loss against the epoch with the reference lines,
(c) mean square displacement of the layers of one run; and a new one, (d) where every run ended.
Numbers that are not points of a panel have a panel of their own in the table: `lines`, `shares`
(f_k of the Hamiltonian), `classes` (x: runs, y: their share), `escapes` (x: layer, y: epoch at
which it has moved, empty if it has not), `plateaus` (x: order, y: epochs on its line).
"""

import math

import pandas as pd

from manybody.papers import style
from manybody.papers.simplicity.staircase import MOVED, Group, Lines, Staircase, classes, classify

TRUTH = "black"
NOWHERE = "0.55"  # of runs that rest on no line
LAYERS = ((0, (1, 1)), (0, (4, 1.2)), "-")  # dashes from the first layer to the last
RING = dict(marker="o", color="black", markersize=8, markerfacecolor="none", markeredgewidth=0.9)
BESIDE = 0.16  # of a column: points that would cover each other lie so far apart
NEAR = 0.03  # of the axis of losses: points this close would cover each other
WIDE = 4  # columns of ends whose names fit beside each other
APART = 0.07  # smallest distance of two labels of lines, as a share of the axis


# --- Tables ---------------------------------------------------------------------------------------


def panels(found: Staircase) -> pd.DataFrame:
    """What figure 2 shows of a source: losses, ends, displacements and numbers."""
    return style.gathered(
        [
            *losses(found.networks),
            *ends(found.groups, found.lines),
            *displacements(found.deepest),
            *numbers(found),
        ]
    )


def losses(groups: list[Group]) -> list[pd.DataFrame]:
    """Panel b: loss curves of all seeds."""
    return [
        style.points("b", group.label, seed, *(run.curve[c] for c in ("epoch", "loss", "loss_se")))
        for group in groups
        for seed, run in group.runs.items()
    ]


def ends(groups: list[Group], lines: Lines) -> list[pd.DataFrame]:
    """Panel d: final losses; x is the column, and the series says the class."""
    parts = []
    for column, group in enumerate(groups):
        for seed, run in group.runs.items():
            series = f"{group.label}: {class_words(classify(run.end, lines), lines)}"
            error = float(run.curve["loss_se"].iloc[-1])
            parts.append(style.points("d", series, seed, [column], [run.end], error))
    return parts


def displacements(group: Group) -> list[pd.DataFrame]:
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
        for name, count in group.counts(lines).items():
            series = f"{group.label}: {class_words(name, lines)}"
            share = count / len(group.runs)
            parts.append(style.points("classes", series, "all", [count], [share]))
        for seed, run in group.runs.items():
            moved = run.escapes().replace(math.inf, math.nan)
            parts.append(style.points("escapes", group.label, seed, moved.index, moved))
            for line in lines.under:
                series = f"{group.label} on the {line.order}-body line"
                dwell = run.dwell(line.loss)
                parts.append(style.points("plateaus", series, seed, [line.order], [dwell]))
    return parts


# --- Panels ---------------------------------------------------------------------------------------


def draw_losses(axes, drawn: pd.DataFrame, groups: list[Group], lines: Lines, by_end=False) -> None:
    """Loss curves of all seeds and the reference lines.

    The chosen seed of each group is thick; or, `by_end`, every curve has the colour of its end.
    """
    _draw_lines(axes, lines)
    for group in groups:
        for seed, curve in style.series(drawn, "b", group.label).groupby("seed", sort=False):
            colour, looks = depth_colour(group.layers), dict(linewidth=0.7, alpha=0.7)
            if by_end:
                colour = class_looks(classify(group.runs[int(seed)].end, lines), lines)["color"]
            elif int(seed) == group.chosen:
                looks = dict(linewidth=1.8, zorder=3)
            axes.plot(curve["x"], curve["y"], color=colour, **looks)
    axes.set(xlim=(0, None), ylim=_limits(lines))


def draw_ends(axes, groups: list[Group], lines: Lines) -> None:
    """Final losses, a column of points for each group, by class; the lines with their values.

    Points lie in the middle of their column, side by side where they would cover each other. The
    chosen run of each group is ringed. Runs that diverged are crosses on the upper edge.
    """
    _draw_lines(axes, lines)
    for column, group in enumerate(groups):
        if column % 2 == 0:
            axes.axvspan(column - 0.5, column + 0.5, color="0.95", linewidth=0, zorder=0)
        last = {seed: run.end for seed, run in group.runs.items()}
        for seed, aside in beside(last, lines).items():
            end, place = last[seed], column + aside
            looks = class_looks(classify(end, lines), lines) | dict(linestyle="", clip_on=False)
            if not math.isfinite(end):
                axes.plot(place, 1.0, transform=axes.get_xaxis_transform(), **looks)
                continue
            axes.plot(place, end, zorder=3, **looks)
            if seed == group.chosen:
                axes.plot(place, end, linestyle="", clip_on=False, zorder=4, **RING)
    wide = len(groups) <= WIDE
    names = [group.label.replace(", ", "\n") if wide else group.label for group in groups]
    axes.set_xticks(range(len(groups)), names, rotation=0 if wide else 90)
    axes.set(xlim=(-0.5, len(groups) - 0.5), ylim=_limits(lines))
    label_lines(axes, lines)


def beside(ends: dict, lines: Lines) -> dict:
    """How far from the middle of its column each end is drawn: 0 where no other is near it."""
    low, high = _limits(lines)
    crowds: list[list] = []
    for seed in sorted(ends, key=lambda seed: (ends[seed], seed)):
        last = crowds[-1][-1] if crowds else None
        if last is None or ends[seed] - ends[last] > NEAR * (high - low):
            crowds.append([])
        crowds[-1].append(seed)
    found = {}
    for crowd in crowds:
        step = min(BESIDE, 0.8 / len(crowd))
        middle = (len(crowd) - 1) / 2
        found |= {seed: step * (rank - middle) for rank, seed in enumerate(crowd)}
    return found


def draw_displacements(axes, drawn: pd.DataFrame) -> None:
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


def _draw_lines(axes, lines: Lines) -> None:
    for line in lines.all:
        dashes = ":" if line == lines.truth else "--"
        axes.axhline(line.loss, color=line_colour(line, lines), linestyle=dashes, linewidth=1.0)


def label_lines(axes, lines: Lines) -> None:
    """The lines' names and values at the right edge."""
    named = [
        (f"{line.name} {line.loss:.4f}", line.loss, line_colour(line, lines)) for line in lines.all
    ]
    style.label_right(axes, named, APART)


def _limits(lines: Lines) -> tuple[float, float]:
    """The axis of losses: from below the lowest line to above the highest."""
    values = [line.loss for line in lines.all]
    pad = 0.06 * (max(values) - min(values)) or 0.01
    return min(values) - pad, max(values) + pad


# --- Looks and words ------------------------------------------------------------------------------


def line_colour(line, lines: Lines) -> str:
    """Black for the true conditionals, grey for single sites, else the order's colour."""
    if line == lines.truth:
        return TRUTH
    return NOWHERE if line.order == 1 else order_colour(line.order)


def order_colour(order: int) -> str:
    """The colour of an order of interaction."""
    return style.ORDERS.get(order, style.ORDERS[6])


def depth_colour(layers: int) -> str:
    """The colour of the line at which a network of this depth is expected to stop."""
    return order_colour(layers + 1)


def class_looks(name: str, lines: Lines) -> dict:
    """Marker and colour of a run's end: those of the line that it rests on, grey on none."""
    colour = style.UNBOUNDED if name == "diverged" else NOWHERE
    if name == "reached":
        colour = order_colour(lines.truth.order)
    elif name.startswith("on "):
        colour = order_colour(int(name[3:]))
    marker = {"between": "D", "above": "^", "diverged": "x"}.get(name, "o")
    face = "white" if name in ("between", "above") else colour
    edge = "white" if marker == "o" else colour
    looks = dict(marker=marker, color=colour, markerfacecolor=face, markeredgecolor=edge)
    return looks | dict(markersize=5, markeredgewidth=0.5 if marker == "o" else 1.0)


def class_words(name: str, lines: Lines) -> str:
    """A class in words."""
    if name.startswith("on "):
        return f"rests on the {name[3:]}-body line"
    top = f"the {lines.under[0].order}-body line" if lines.under else "single sites"
    return {
        "reached": f"reached the {lines.truth.order}-body region",
        "between": "between lines",
        "above": f"still above {top}",
        "diverged": "diverged",
    }[name]


def class_handles(groups: list[Group], lines: Lines) -> list:
    """A mark for each class that occurs, and the best ones, with the numbers of runs."""
    from matplotlib.lines import Line2D

    handles = []
    for name in classes(lines):
        counts = [group.counts(lines)[name] for group in groups]
        if any(counts) or name == "reached" or name.startswith("on "):
            text = f"{' | '.join(map(str, counts))}  {class_words(name, lines)}"
            looks = class_looks(name, lines)
            handles.append(Line2D([], [], linestyle="", label=text, **looks))
    return handles


def class_title(groups: list[Group]) -> str:
    """The title of the classes' legend: groups with their numbers of runs, two a line."""
    names = [f"{group.label} ({len(group.runs)})" for group in groups]
    pairs = [" | ".join(names[place : place + 2]) for place in range(0, len(names), 2)]
    return "runs of " + " |\n".join(pairs)


def depth_legend(axes, groups: list[Group], columns: int) -> None:
    """In the room above the lines and below single sites, which runs leave early."""
    from matplotlib.lines import Line2D

    handles = []
    for group in groups:
        count = len(group.runs)
        text = f"{group.label} ({count} seed{'s' if count > 1 else ''})"
        handles.append(Line2D([], [], color=depth_colour(group.layers), linewidth=1.8, label=text))
    axes.legend(
        handles=handles,
        loc="upper right",
        bbox_to_anchor=(1.0, 0.94),
        ncols=columns,
        columnspacing=1.0,
        handlelength=1.2,
    )


def title(found: Staircase) -> str:
    """The source in a few words: L, |V|, how large the shares of each order are."""
    return f"{found.sizes}, shares {' '.join(f'{share:.2f}' for share in found.shares)}"
