"""Is a saturation time set by the order of a clone's generator, by its quality, or by neither?

In the table: panels `loss` and `order` (x: what is said; y: t in steps where 5 % of the drop are
left; y_err: standard deviation over students of log t), a row a clone, and `times` with each
student's; `shares` (x: R^2 or its difference; y_err: half width of the 95 % interval) for each
measure of each series; `d` the same for logs of ratios of times; `noise` curves of the loss, and
`half-times` those of the students' own spectrum (y_err: standard error of log(step)).
"""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from manybody.claims.saturation import SATURATION
from manybody.claims.simplicity import crossed
from manybody.claims.simplicity.comparison import BOUND
from manybody.claims.simplicity.controls import TRIPLED
from manybody.claims.simplicity.crossed import Crossed, Series
from manybody.io import tables
from manybody.plotting import style
from manybody.plotting.points import Drawing, drawn, points

MARKERS = ("o", "s", "D", "^", "v")
COLOURS = {1: style.ORIGINAL, 2: style.ORDERS[2], 3: style.ORDERS[3], 4: style.ORDERS[4]}
COLOURS |= {5: style.ORDERS[5], 9: style.ORDERS[6]}
SHARES = {
    "order": "order alone",
    "loss": "loss alone",
    "unique to order": "unique to order",
    "unique to loss": "unique to loss",
}
RATIOS = {
    "doubling": "order 9 to 3, regression",
    "order at equal loss": "order, pairs of equal loss",
    "quality at equal order": "quality, pairs of one order",
}
NOISES = ("#8C8C8C", "#B0743C", "#7A3E9D", "#C2185B")
STEPS = [digit * 10**power for power in range(7) for digit in (1, 1.5, 2, 3, 5, 7)]


def draw(files, block: dict, context: dict) -> Drawing:
    """The figure and what is drawn, from files; see the package's docstring."""
    return figure_of(crossed.read(files, block, context))


@style.styled(style.RC)
def figure_of(design: Crossed) -> Drawing:
    """Times against quality and order, what a regression and pairs say, noise, and the spectrum."""
    rows = len(design.series) * len(RATIOS) + len(design.twins)
    heights = (2.1, 2.1, max(2.0, 0.15 * rows + 0.5))
    figure = style.new(2, sum(heights) + 0.5)
    # Rows of their own, as names beside intervals take more room than those of an axis.
    first, second, third = figure.subfigures(3, height_ratios=heights)
    left, right = first.subplots(1, 2)
    shares, noise = second.subplots(1, 2)
    ratios, halves = third.subplots(1, 2, width_ratios=(1.4, 1))
    parts = [
        *_draw_times(left, right, design),
        *_draw_shares(shares, design),
        *_draw_noise(noise, design),
        *_draw_ratios(ratios, design),
        *_draw_half_times(halves, design),
    ]
    figure.legend(handles=_handles(design), loc="outside upper center", ncols=4)
    return figure, drawn(parts)


def _colour(order: float) -> str:
    return COLOURS.get(int(order), style.UNBOUNDED)


def _handles(design: Crossed) -> list[Line2D]:
    """What markers and colours of panels a and b mean."""
    made = [
        Line2D([], [], linestyle="", color="0.3", marker=marker, label=one.label)
        for marker, one in zip(MARKERS, design.series, strict=False)
    ]
    length = design.student.about["description"]["length"]
    orders = sorted({int(order) for one in design.series for order in one.design.order})
    return made + [
        Line2D(
            *([], []),
            linestyle="",
            marker="o",
            color=_colour(order),
            label="any order" if order == length else f"order {order}",
        )
        for order in orders
    ]


def _draw_times(left: Axes, right: Axes, design: Crossed) -> list[pd.DataFrame]:
    """t of each clone against the loss and the order of its generator."""
    parts, share = [], SATURATION[0]
    for place, (marker, one) in enumerate(zip(MARKERS, design.series, strict=False)):
        logs = one.measured[share]
        means, spread = logs.mean(axis=0), logs.std(axis=0, ddof=1)
        for number, name in enumerate(one.targets):
            colour, time = _colour(one.design.order[number]), math.exp(means[number])
            below = time * (1 - math.exp(-spread[number]))
            above = time * (math.exp(spread[number]) - 1)
            looks = dict(color=colour, marker=marker, linestyle="", elinewidth=0.7, markersize=4)
            looks |= {"markerfacecolor": "white"} if place % 2 else {}
            series = f"{one.label}: {one.labels[number]} ({name})"
            shift = 2 ** (0.06 * (place - (len(design.series) - 1) / 2))
            for axes, panel, x, shown in (
                (left, "loss", one.design.loss[number], one.design.loss[number]),
                (right, "order", one.design.order[number], one.design.order[number] * shift),
            ):
                axes.errorbar(shown, time, yerr=[[below], [above]], **looks)
                parts.append(points(panel, series, "mean", [x], [time], spread[number]))
            seeds = sorted(design.student.losses["seed"].unique())
            for definition in SATURATION:
                steps = np.exp(one.measured[definition][:, number])
                given = seeds, steps, np.full(len(steps), 100 * definition)
                parts.append(points("times", series, *given))
    left.set(xlabel="test loss of the generator (nats per token)", yscale="log", ylabel="t (steps)")
    right.set(xlabel="order of interaction of the generator", xscale="log", yscale="log")
    orders = sorted({float(order) for one in design.series for order in one.design.order})
    style.plain_ticks(right.xaxis, orders)
    for axes, title in ((left, "(a) against quality"), (right, "(b) against order")):
        axes.set_title(f"{title}: {SATURATION[0]:.0%} of the drop left")
        style.plain_ticks(axes.yaxis, STEPS)
    return parts


def _draw_shares(axes: Axes, design: Crossed) -> list[pd.DataFrame]:
    """R^2 of each series and measure, with its interval; open what is of the 2 % or late."""
    parts, rows, words = [], 0, []
    for one in design.series:
        if not one.interval("both"):
            continue
        for name, label in SHARES.items():
            for number, measure in enumerate(crossed.MEASURES):
                found = one.found[measure][name]
                said = measure if isinstance(measure, str) else f"{measure:.0%}"
                series = f"{one.label}, {said}: {label}"
                parts.append(points("shares", series, "all", [found.value], [rows], found.half))
                _interval(axes, found.value, found.half, rows + 0.22 * (number - 1), number)
            words.append(f"{one.label}: {label}")
            rows += 1
    axes.set_yticks(range(rows), words)
    axes.axvline(0, color="0.6", linewidth=0.8, zorder=0)
    axes.set(xlim=(-0.05, 1.05), ylim=(rows - 0.5, -0.5), xlabel="share of the variance (R²)")
    axes.set_title("(c) what accounts for the times")
    axes.tick_params(axis="y", length=0)
    return parts


def _draw_ratios(axes: Axes, design: Crossed) -> list[pd.DataFrame]:
    """Logs of ratios of times at equal loss, at equal order, and between twins."""
    axes.axvspan(-BOUND, BOUND, color="0.93", linewidth=0, zorder=0)
    entries: list[tuple[str, dict]] = []
    for one in design.series:
        for name, label in RATIOS.items():
            if one.interval(name):
                entries.append((f"{one.label}: {label}", _ratios(one, name)))
    entries += [
        (_brief(words), {share: (one.value, one.half) for share, one in found.items()})
        for words, found in design.twins.items()
    ]
    parts = []
    for row, (words, found) in enumerate(entries):
        for number, (share, (value, half)) in enumerate(found.items()):
            parts.append(points("d", f"{words}, {share:.0%}", "all", [value], [row], half))
            _interval(axes, value, half, row + 0.25 * (number - 0.5), number)
    axes.set_yticks(range(len(entries)), [words for words, _ in entries])
    axes.axvline(0, color="0.6", linewidth=0.8, zorder=0)
    limits = max((abs(x) for _, found in entries for x, _ in found.values()), default=1.0)
    axes.set(ylim=(len(entries) - 0.5, -0.5), xlim=(-1.6 * limits - 0.2, 1.6 * limits + 0.2))
    axes.set_xlabel("log of a ratio of times")
    axes.set_title("(e) order and quality apart")
    axes.tick_params(axis="y", length=0)
    return parts


def _brief(words: str) -> str:
    """A twin's name without what its colour would say."""
    series, _, label = words.partition(": ")
    kept = [part for part in label.split(", ") if not part.startswith(("order", "any order"))]
    return f"{series}: noise to text, {', '.join(kept).replace('stopped at ', '')}"


def _ratios(one: Series, name: str) -> dict[float, tuple[float, float]]:
    scale = TRIPLED if name == "doubling" else 1.0
    found = {share: one.found[share][name] for share in SATURATION}
    return {share: (scale * each.value, scale * each.half) for share, each in found.items()}


def _interval(axes: Axes, value: float, half: float, height: float, number: int) -> None:
    """A point with its interval; the first of several measures is filled."""
    looks = dict(color="0.15", marker=MARKERS[number], linestyle="", elinewidth=0.7, markersize=3)
    face = "0.15" if number == 0 else "white"
    xerr = half if np.isfinite(half) else None
    axes.errorbar(value, height, xerr=xerr, markerfacecolor=face, **looks)


def _draw_noise(axes: Axes, design: Crossed) -> list[pd.DataFrame]:
    """Mean loss of the students on text and on text with noise."""
    curves, parts = tables.learning_curves(design.student.losses), []
    curves, ends = curves[curves["step"] > 0], []
    names = [design.block["control"], *design.block["noise"]]
    for colour, name, words in zip(NOISES, names, design.changes, strict=False):
        mine = curves[curves["target"] == name].groupby("step")["loss"].agg(["mean", "std"])
        axes.plot(mine.index, mine["mean"], color=colour)
        ends.append((words, mine["mean"].iloc[-1], colour))
        parts.append(points("noise", words, "mean", mine.index, mine["mean"], mine["std"]))
    axes.set(xscale="log", xlabel="training step", ylabel="test loss (nats per token)")
    axes.set_xlim(left=curves["step"].max() / 100)
    style.plain_ticks(axes.xaxis, STEPS[::2])
    axes.set_title("(d) text, and text with random tokens")
    style.label_right(axes, ends, 0.1)
    return parts


def _draw_half_times(axes: Axes, design: Crossed) -> list[pd.DataFrame]:
    """Half-times of M_k, a point for each student and order, without any clone."""
    one, parts = design.spectrum, []
    for k in one.orders:
        for place, seed in enumerate(one.runs):
            found = one.half_time(seed, k)
            parts.append(points("half-times", f"M_{k}", seed, [k], [found.step], found.error))
            if not found.step > 0:
                continue
            looks = dict(color=style.ORDERS[k + 1], marker="o", linestyle="", elinewidth=0.8)
            x = k + 0.4 * ((place + 0.5) / len(one.runs) - 0.5)
            axes.errorbar(x, found.step, yerr=found.step * found.error, **looks)
    axes.set_xticks(one.orders, [f"$M_{k}$" for k in one.orders])
    axes.set(
        yscale="log", ylabel="half-time (steps)", xlim=(one.orders[0] - 0.5, one.orders[-1] + 0.5)
    )
    axes.set_xlabel("order k + 1 and above")
    style.plain_ticks(axes.yaxis, STEPS)
    axes.set_title("(f) without clones: half-times")
    return parts
