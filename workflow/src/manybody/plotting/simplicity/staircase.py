"""Panels of figure 2 and its relatives: networks of growing depth on a known Hamiltonian's samples.

They have the letters of the paper: (b) held-out loss against the epoch with the reference lines,
(c) mean square displacement of the layers of one run; and a new one, (d) where every run ended.
Numbers that are not points of a panel have a panel of their own in the table: `lines`, `shares`
(f_k of the Hamiltonian), `classes` (x: runs, y: their share), `escapes` (x: layer, y: epoch at
which it has moved, empty if it has not), `plateaus` (x: order, y: epochs on its line).
"""

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from manybody.claims.simplicity.staircase_runs import MOVED, Group, Lines, Part, classes, classify
from manybody.plotting import style
from manybody.plotting.points import points

TRUTH = "black"
NOWHERE = "0.55"  # of runs that rest on no line
LAYERS = ((0, (1, 1)), (0, (4, 1.2)), "-")  # dashes from the first layer to the last
RING = dict(marker="o", color="black", markersize=8, markerfacecolor="none", markeredgewidth=0.9)
BESIDE = 0.16  # of a column: points that would cover each other lie so far apart
NEAR = 0.03  # of the axis of losses: points this close would cover each other
WIDE = 4  # columns of ends whose names fit beside each other
APART = 0.07  # smallest distance of two labels of lines, as a share of the axis


# --- Panels --------------------------------------------------------------------------------------


def draw_losses(
    axes: Axes, groups: list[Group], lines: Lines, by_end: bool = False
) -> pd.DataFrame:
    """Loss curves of all seeds, the chosen one of each group thick, and the reference lines."""
    _draw_lines(axes, lines)
    tables = []
    for group in groups:
        for seed, run in group.runs.items():
            curve = run.curve
            chosen = seed == group.chosen and not by_end
            colour = depth_colour(group.layers)
            if by_end:
                colour = class_colour(classify(run.end, lines), lines)
            looks = dict(linewidth=1.8, zorder=3) if chosen else dict(linewidth=0.7, alpha=0.7)
            axes.plot(curve["epoch"], curve["loss"], color=colour, **looks)
            tables.append(
                points("b", group.label, seed, curve["epoch"], curve["loss"], curve["loss_se"])
            )
    axes.set(xlim=(0, None), ylim=_limits(lines))
    return pd.concat(tables)


def draw_ends(axes: Axes, groups: list[Group], lines: Lines) -> pd.DataFrame:
    """Final losses, a column of points for each group, by class; the lines with their values.

    Points lie in the middle of their column, side by side where they would cover each other. The
    chosen run of each group is ringed. Runs that diverged are crosses on the upper edge.
    """
    _draw_lines(axes, lines)
    for column, group in enumerate(groups):
        if column % 2 == 0:
            axes.axvspan(column - 0.5, column + 0.5, color="0.95", linewidth=0, zorder=0)
        ends = {seed: run.end for seed, run in group.runs.items()}
        for seed, aside in _beside(ends, lines).items():
            end, place = ends[seed], column + aside
            looks = class_looks(classify(end, lines), lines)
            if math.isfinite(end):
                axes.plot(place, end, linestyle="", clip_on=False, zorder=3, **looks)
                if seed == group.chosen:
                    axes.plot(place, end, linestyle="", clip_on=False, zorder=4, **RING)
            else:
                at_top = axes.get_xaxis_transform()
                axes.plot(place, 1.0, linestyle="", transform=at_top, clip_on=False, **looks)
    wide = len(groups) <= WIDE
    names = [group.label.replace(", ", "\n") if wide else group.label for group in groups]
    axes.set_xticks(range(len(groups)), names, rotation=0 if wide else 90)
    axes.set(xlim=(-0.5, len(groups) - 0.5), ylim=_limits(lines))
    label_lines(axes, lines)
    return ends_table(groups, lines)


def _beside(ends: dict, lines: Lines) -> dict:
    """How far from the middle of its column each end is drawn: 0 where no other is near it."""
    low, high = _limits(lines)
    ranked = sorted(ends, key=lambda seed: (ends[seed], seed))
    crowds: list[list] = []
    for seed in ranked:
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


def draw_displacements(axes: Axes, group: Group) -> pd.DataFrame:
    """Mean square displacement of each layer of the group's chosen run."""
    run = group.runs[group.chosen]
    table = run.displacement[run.displacement.index > 0]  # zero has no place on a log axis
    tables = []
    layers = list(table.columns)
    for layer in layers:
        line = LAYERS[max(len(LAYERS) - 1 - (layers[-1] - layer), 0)]
        colour = style.TIMES[min(layers[-1] - layer, 2)] if layer != layers[-1] else "black"
        axes.plot(table.index, table[layer], linestyle=line, color=colour, label=f"layer {layer}")
        tables.append(points("c", f"layer {layer}", group.chosen, table.index, table[layer]))
    axes.axhline(MOVED, color="0.8", linewidth=0.8, zorder=0)
    axes.set(xlim=(0, None), yscale="log")
    axes.set_ylabel("$|A(t)-A(0)|^2/L^2 + |V(t)-V(0)|^2/|V|^2$", fontsize=style.SMALL)
    axes.legend(frameon=True, framealpha=0.9, edgecolor="none")
    return pd.concat(tables) if tables else points("c", "", group.chosen, [], [])


def _draw_lines(axes: Axes, lines: Lines) -> None:
    for _, value, colour, dashes in _named_lines(lines):
        axes.axhline(value, color=colour, linestyle=dashes, linewidth=1.0, zorder=1)


def label_lines(axes: Axes, lines: Lines) -> None:
    """The lines' names and values at the right edge."""
    named = [
        (f"{name} {value:.4f}", value, colour) for name, value, colour, _ in _named_lines(lines)
    ]
    style.label_right(axes, named, APART)


def _named_lines(lines: Lines) -> list[tuple[str, float, str, str]]:
    """Name, loss, colour and dashes of each line."""
    fits = [
        (f"{order}-body fit", loss, style.ORDERS[order], "--")
        for order, (loss, _) in sorted(lines.fits.items())
    ]
    return [
        ("single sites", lines.marginals[0], NOWHERE, "--"),
        *fits,
        (f"true {lines.order}-body", lines.truth[0], TRUTH, ":"),
    ]


def _limits(lines: Lines) -> tuple[float, float]:
    """The axis of losses: from below the lowest line to above the highest."""
    values = [value for _, value, _, _ in _named_lines(lines)]
    pad = 0.06 * (max(values) - min(values)) or 0.01
    return min(values) - pad, max(values) + pad


# --- Looks and words -----------------------------------------------------------------------------


def depth_colour(layers: int) -> str:
    """The colour of the line at which a network of this depth is expected to stop."""
    return style.ORDERS.get(layers + 1, style.ORDERS[6])


def class_colour(name: str, lines: Lines) -> str:
    """Of the line that the run rests on; grey on none."""
    if name == "reached":
        return style.ORDERS[lines.order]
    if name.startswith("on "):
        return style.ORDERS[int(name[3:])]
    return style.UNBOUNDED if name == "diverged" else NOWHERE


def class_looks(name: str, lines: Lines) -> dict:
    """Marker and colour of a run's end."""
    marker = {"between": "D", "above": "^", "diverged": "x"}.get(name, "o")
    colour = class_colour(name, lines)
    face = "white" if name in ("between", "above") else colour
    edge = "white" if marker == "o" else colour
    looks = dict(marker=marker, color=colour, markerfacecolor=face, markeredgecolor=edge)
    return looks | dict(markersize=5, markeredgewidth=0.5 if marker == "o" else 1.0)


def class_words(name: str, lines: Lines) -> str:
    """A class in words."""
    if name.startswith("on "):
        return f"rests on the {name[3:]}-body line"
    under = list(lines.under())
    top = f"the {under[0]}-body line" if under else "single sites"
    return {
        "reached": f"reached the {lines.order}-body region",
        "between": "between lines",
        "above": f"still above {top}",
        "diverged": "diverged",
    }[name]


def class_handles(groups: list[Group], lines: Lines) -> list[Line2D]:
    """A mark for each class that occurs, and the two best, with the number of runs."""
    handles = []
    for name in classes(lines):
        counts = [group.counts(lines)[name] for group in groups]
        if any(counts) or name == "reached" or name.startswith("on "):
            text = f"{' | '.join(map(str, counts))}  {class_words(name, lines)}"
            looks = class_looks(name, lines)
            handles.append(Line2D([], [], linestyle="", label=text, **looks))
    return handles


def class_title(groups: list[Group]) -> str:
    names = [f"{group.label} ({len(group.runs)})" for group in groups]
    pairs = [" | ".join(names[place : place + 2]) for place in range(0, len(names), 2)]
    return "runs of " + " |\n".join(pairs)


def class_legend(axes: Axes, groups: list[Group], lines: Lines) -> None:
    axes.legend(
        handles=[
            *class_handles(groups, lines),
            Line2D([], [], linestyle="", label="the run drawn thick", **RING),
        ],
        title=class_title(groups),
        alignment="left",
        loc="center left",
        bbox_to_anchor=(-0.1, 0.5),
        handletextpad=0.2,
        borderpad=0,
    )


def depth_legend(axes: Axes, groups: list[Group], columns: int) -> None:
    """In the room above the lines and below single sites, which runs leave early."""
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


def data(part: Part) -> str:
    """The source in a few words: L, |V|, how large the shares of each order are."""
    source = part.source
    shares = " ".join(f"{share:.2f}" for share in part.shares)
    sizes = f"L = {source['length']}, |V| = {source['vocabulary']}"
    return f"{sizes}, shares {shares}"


# --- Numbers -------------------------------------------------------------------------------------


def ends_table(groups: list[Group], lines: Lines) -> pd.DataFrame:
    """Panel d: x is the column; the series says the class."""
    tables = []
    for column, group in enumerate(groups):
        for seed, run in group.runs.items():
            series = f"{group.label}: {class_words(classify(run.end, lines), lines)}"
            error = float(run.curve["loss_se"].iloc[-1])
            tables.append(points("d", series, seed, [column], [run.end], error))
    return pd.concat(tables)


def numbers(part: Part) -> list[pd.DataFrame]:
    """Lines, shares, classes, escapes and plateaus, each a panel of its own."""
    lines = part.lines
    errors = [lines.marginals[1], *(lines.fits[order][1] for order in sorted(lines.fits))]
    errors.append(lines.truth[1])
    tables = [
        points("lines", name, "", [math.nan], [value], error)
        for (name, value, _, _), error in zip(_named_lines(lines), errors, strict=True)
    ]
    tables.append(points("shares", "f_k", "", range(1, len(part.shares) + 1), part.shares))
    for group in part.groups:
        for name, count in group.counts(lines).items():
            share = count / len(group.runs)
            series = f"{group.label}: {class_words(name, lines)}"
            tables.append(points("classes", series, "all", [count], [share]))
        for seed, run in group.runs.items():
            moved = run.escapes().replace(math.inf, math.nan)
            tables.append(points("escapes", group.label, seed, moved.index, moved))
            for order, value in lines.under().items():
                series = f"{group.label} on the {order}-body line"
                tables.append(points("plateaus", series, seed, [order], [run.dwell(value)]))
    return tables
