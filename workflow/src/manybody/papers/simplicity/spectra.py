"""Order spectra of checkpoints, as figures read, judge and draw them."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pandas as pd

from manybody.io import tables
from manybody.measure.half_times import Spectra, spread
from manybody.papers import claims as records, inputs as needed, style

LINES = ("-", "--", ":", "-.", (0, (8, 2)), (0, (1, 3)), (0, (6, 1, 1, 1, 1, 1)))  # of models
COLOURS = {k: style.ORDERS[k + 1] for k in range(1, 6)}  # of M_k, and of logits cut at degree k
FLOOR = 1e-5  # share of the variance below which nothing is shown
DEGREES = (1, 2, 3)  # at which logits are cut for the loss: orders up to 2, 3 and 4
STEPS = [digit * 10**power for power in range(7) for digit in (1, 3)]  # that are labelled


def read(keys: Iterable[needed.Spectrum]) -> list[Spectra]:
    found: dict[str, dict] = {}
    for key in keys:
        found.setdefault(key.spectrum, {})[key.seed] = tables.SPECTRA.read(key.file())
    return list(map(Spectra, found.values()))


def half_time_ratio(one: Spectra, low: int, high: int, prefix: str = "") -> records.Comparison:
    """The logarithm of the ratio of two orders' half-times, over runs, which must be above 0. All
    are measured in the same contexts: the error by these is not averaged out."""
    pairs = [(one.half_time(seed, low), one.half_time(seed, high)) for seed in one.runs]
    logs = [math.log(late.step / early.step) for early, late in pairs]
    error = np.max([spread(late.drawn - early.drawn) for early, late in pairs])
    label = f"{prefix}log of half-time of M_{high} over that of M_{low}"
    return records.over_seeds(label, logs, resolution=error)


def name_of(one: Spectra, models: Sequence[Spectra]) -> str:
    """A model's short label, of several with one label with its rank or its name in the config."""
    if [other.short for other in models].count(one.short) == 1:
        return one.short
    rank = one.about["description"].get("rank")
    return f"{one.short}, rank {rank}" if rank else f"{one.short}, {one.about['model']}"


def named(models: Sequence[Spectra]) -> dict[str, Spectra]:
    return {name_of(one, models): one for one in models}


def growth(panel: str, name: str, one: Spectra) -> Iterator[pd.DataFrame]:
    """M_k of each run and order along training, its half-time, and suspect checkpoints."""
    for k, seed in itertools.product(one.orders, one.runs):
        series, half = f"{name}: M_{k}", one.half_time(seed, k).step
        curve, doubted = one.curve(seed, "M", k), one.curve(seed, "M", k, suspect=True)
        curve = curve[(curve["step"] > 0) & (curve["state"] == "measured")]
        yield style.points(panel, series, seed, curve["step"], curve["value"], curve["se"])
        if math.isfinite(half):
            height = one.end(seed, "M", k)["value"] / 2
            yield style.points(panel, f"{series}, half-time", seed, half, height)
        values = doubted["step"], doubted["value"], doubted["se"]
        yield style.points(panel, f"{series}, suspect", seed, *values)


def half_times(panel: str, models: Mapping[str, Spectra]) -> Iterator[pd.DataFrame]:
    """Half-times of all runs by order k, with the errors of their logarithms."""
    for name, one in models.items():
        for k, seed in itertools.product(one.orders, one.runs):
            half = one.half_time(seed, k)
            yield style.points(panel, name, seed, k, half.step, half.error)


def shares(panel: str, models: Mapping[str, Spectra]) -> Iterator[pd.DataFrame]:
    """M_k over the variance at the last checkpoint of the first run."""
    for name, one in models.items():
        for k in one.orders:
            end = one.end(one.first, "M", k)
            said = name if end["state"] == "measured" else f"{name}, upper bound"
            yield style.points(panel, said, one.first, k, end["share"], end["share_se"])


def excesses(panel: str, models: Mapping[str, Spectra]) -> Iterator[pd.DataFrame]:
    """Excess of the loss of logits cut above each degree over that of all, where measured."""
    for name, one in models.items():
        mine = one.at_end("anchored excess")
        mine = mine[mine["order"].isin(DEGREES)]
        yield style.points(panel, name, one.first, mine["order"], mine["value"], mine["se"])


def draw_growth(axes, drawn: pd.DataFrame, panel: str, name: str, line) -> None:
    """A curve for each run and order, a dot at its half-time; suspects are hollow."""
    for k, colour in COLOURS.items():
        for _, curve in style.series(drawn, panel, f"{name}: M_{k}").groupby("seed"):
            axes.plot(curve["x"], curve["y"], linestyle=line, color=colour, linewidth=1.0)
        for said, marker, face in (("half-time", "o", colour), ("suspect", "s", "white")):
            found = style.series(drawn, panel, f"{name}: M_{k}, {said}")
            if not found.empty:
                style.dots(axes, found["x"], found["y"], marker=marker, color=colour, mfc=face)
    axes.set(xscale="log", yscale="log", xlabel="training step", ylabel="$M_k$ (logits$^2$)")
    low, high = axes.get_xlim()
    style.plain_ticks(axes.xaxis, STEPS if high < 100 * low else STEPS[::2])


def draw_rows(
    axes, drawn: pd.DataFrame, panel: str, names: Sequence[str], logs: bool = False
) -> None:
    """A row for each name, and in it a line for each k and run; hollow are upper bounds. logs: the
    errors are those of logarithms."""
    middle = drawn.loc[drawn["panel"] == panel, "x"].unique().mean()
    for row, name in enumerate(names):
        for series, face in ((name, None), (f"{name}, upper bound", "white")):
            for k, runs in style.series(drawn, panel, series).groupby("x"):
                beside = 0.06 * (np.arange(len(runs)) - (len(runs) - 1) / 2)
                heights = row + 0.25 * (k - middle) + beside
                errors = style.factors(runs["y"], runs["y_err"]) if logs else runs["y_err"]
                style.dots(axes, runs["y"], heights, xerr=errors, color=COLOURS[k], mfc=face)
        if row:
            axes.axhline(row - 0.5, color="0.9", linewidth=0.5, zorder=0, gid="guide")
    style.name_rows(axes, [name.replace(", ", ",\n").replace("M_k", "$M_k$") for name in names])


def draw_shares(axes, drawn: pd.DataFrame, panel: str, names: Sequence[str]) -> None:
    draw_rows(axes, drawn, panel, names)
    title = f"({panel}) sizes at the last step"
    axes.set(xscale="log", xlim=(FLOOR, 3), xlabel="$M_k$ / Var g", title=title)


def draw_excesses(axes, drawn: pd.DataFrame, panel: str, names: Sequence[str]) -> None:
    axes.axvline(0, **style.GUIDE)
    draw_rows(axes, drawn, panel, names)
    axes.set(xlabel="above that of all orders (nats)", title=f"({panel}) loss of cut logits")


def legend(figure, orders: Sequence[int], cut: str, lines: Iterable[str]) -> None:
    """Colours of orders, also in the panel `cut` of losses, and the lines of models, by name."""
    cut = f"; ({cut}) up to {{}}" if cut else ""
    marks = [
        (f"$M_{k}$: order {k + 1} and above{cut.format(k + 1)}", dict(color=COLOURS[k]))
        for k in orders
    ]
    for name, line in zip(lines, itertools.cycle(LINES), strict=False):
        marks.append((name, dict(color="0.3", linestyle=line)))
    style.legend(figure, marks, 3)
