"""Order spectra of checkpoints, as figures read, judge and draw them.

M_k is 0 for a model of order k or less; the first order that it sees is k + 1. A half-time is the
step at which M_k comes to half of its value at the last checkpoint.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody.io import tables
from manybody.models import labels
from manybody.papers import style
from manybody.papers.claims import Comparison, over_seeds
from manybody.papers.inputs import Spectrum

REFERENCES = {"text": "", "unigram": ", unigram law", "model": ", its own draws"}
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
LINES = ("-", "--", ":")
FLOOR = 1e-5  # share of the variance below which nothing is drawn
SMALLEST = 1e-2  # nats: below it the axis of losses is linear
DEGREES = (0, 1, 2, 3)
STEPS = [digit * 10**power for power in range(7) for digit in (1, 3)]  # that are labelled


class HalfTime(NamedTuple):
    """A step, and an upper bound on the standard error of its logarithm by the choice of contexts.

    All checkpoints are measured on the same blocks, but only the error of each is kept. The bound
    adds them as if they were independent; they rise and fall together (correlation .4 to .97), so
    that the error is smaller: 1.6 to 5 times in two BERTs, for ratios of half-times 1.8 to 13.
    """

    step: float
    error: float


class Spectra:
    """The spectra of all runs of an entry: by seed, a row a step, quantity and order.

    half_time: as `_half_time`, worked out once.
    """

    def __init__(self, runs: dict[int, tuple[pd.DataFrame, dict]]):
        self.half_time = cache(self._half_time)
        self.runs = {seed: table for seed, (table, _) in runs.items()}
        self.first = next(iter(runs))
        self.about = runs[self.first][1]
        self.entry = self.about["entry"]
        self.label = labels.generator(self.about["description"])
        self.short = self.label.partition(",")[0] + REFERENCES[self.entry.get("law", "text")]

    @property
    def orders(self) -> list[int]:
        """The k of the M_k that were measured."""
        first = self.runs[self.first]
        return sorted(first["order"][first["quantity"] == "M"].unique())

    @property
    def followed(self) -> bool:
        """True where there are several checkpoints."""
        return self.runs[self.first]["step"].nunique() > 1

    def curve(self, seed: int, quantity: str, order: int, suspect: bool = False) -> pd.DataFrame:
        """The rows of one quantity, by step, without steps that have no spectrum yet, and those
        that the audit of a series doubts; or these alone."""
        table = self.runs[seed]
        found = table[(table["quantity"] == quantity) & (table["order"] == order)]
        left_out = found["state"].isin(["no spectrum yet", "suspect"])
        kept = found["state"] == "suspect" if suspect else ~left_out
        return found[kept].sort_values("step", ignore_index=True)

    def end(self, seed: int, quantity: str, order: int) -> pd.Series:
        """The row of the last checkpoint."""
        return self.curve(seed, quantity, order).iloc[-1]

    def at_end(self, seed: int, quantity: str) -> pd.DataFrame:
        """The rows of what the last checkpoint alone has, by `order`, if it was measured.

        quantity: `anchored excess`, the loss of logits cut at each degree above that of all, or
        `span k`, the share of M_k at each span.
        """
        table = self.runs[seed]
        return table[table["quantity"] == quantity].sort_values("order")

    def influence(self, quantity: str) -> np.ndarray:
        """`influence` or `pairs` of the first run's passage by target and source: (L, L)."""
        table = self.runs[self.first]
        length = len(self.about["passage"])
        found = np.full((length, length), np.nan)
        parts = table["quantity"].str.extract(rf"^{quantity} on (\d+)$")[0]
        mine = parts.notna()
        found[parts[mine].astype(int), table["order"][mine]] = table["value"][mine]
        return found

    def _half_time(self, seed: int, order: int) -> HalfTime:
        """The half-time of the rising curve that is nearest to the values: one value that is too
        high is no half.

        NaN where checkpoints do not enclose it, or the last value is no more than an upper bound.
        """
        from scipy.optimize import isotonic_regression

        curve, unknown = self.curve(seed, "M", order), HalfTime(math.nan, math.nan)
        if curve.empty or curve["state"].iloc[-1] != "measured":
            return unknown
        steps, values, errors = (curve[name].to_numpy(float) for name in ("step", "value", "se"))
        values = isotonic_regression(values, weights=1 / errors**2).x
        late = np.flatnonzero(values >= values[-1] / 2)[0]
        if late == 0:
            return unknown
        rise = (values[late] - values[late - 1]) / (steps[late] - steps[late - 1])
        step = steps[late - 1] + (values[-1] / 2 - values[late - 1]) / rise
        error = math.hypot(max(errors[late - 1 : late + 1]), errors[-1] / 2)
        return HalfTime(step, error / rise / step)


def read(keys: Iterable[Spectrum]) -> list[Spectra]:
    """The spectra of each entry that the keys name, in their order."""
    found: dict[str, dict] = {}
    for key in keys:
        found.setdefault(key.spectrum, {})[key.seed] = tables.read_spectra(key.file())
    return [Spectra(runs) for runs in found.values()]


def later(one: Spectra) -> list[Comparison]:
    """Half-times of successive orders, which must rise."""
    pairs = itertools.pairwise(one.orders)
    return [half_time_ratio(one, *pair, f"{one.short}: ") for pair in pairs]


def half_time_ratio(one: Spectra, low: int, high: int, prefix: str = "") -> Comparison:
    """The logarithm of the ratio of two orders' half-times, over runs, which must be above 0.

    All runs are measured in the same contexts, so that the error by these is not averaged out. It
    is an upper bound, as of `HalfTime`: a difference may be undecided that the contexts decide.
    """
    pairs = [(one.half_time(seed, low), one.half_time(seed, high)) for seed in one.runs]
    logs = [math.log(late.step / early.step) for early, late in pairs]
    error = max(math.hypot(early.error, late.error) for early, late in pairs)
    label = f"{prefix}log of half-time of M_{high} over that of M_{low}"
    return over_seeds(label, logs, resolution=error)


# --- Points and curves ----------------------------------------------------------------------------


def growth(panel: str, one: Spectra) -> Iterator[pd.DataFrame]:
    """M_k of each run and order along training, and what an audit doubts."""
    for k, seed in itertools.product(one.orders, one.runs):
        curve, series = one.curve(seed, "M", k), f"{one.short}: M_{k}"
        curve = curve[(curve["step"] > 0) & (curve["state"] == "measured")]
        yield style.points(panel, series, seed, curve["step"], curve["value"], curve["se"])
        doubted = one.curve(seed, "M", k, suspect=True)
        if len(doubted):
            given = seed, doubted["step"], doubted["value"], doubted["se"]
            yield style.points(panel, f"{series}, suspect", *given)


def shares(panel: str, models: list[Spectra]) -> Iterator[pd.DataFrame]:
    """M_k over the variance at the last checkpoint of the first run."""
    for one, k in itertools.product(models, models[0].orders):
        end, name = one.end(one.first, "M", k), name_of(one, models)
        yield style.points(panel, name, one.first, [k], [end["share"]], end["share_se"])


def excesses(panel: str, models: list[Spectra]) -> Iterator[pd.DataFrame]:
    """Excess of the loss of logits cut at each order over that of all orders, where measured."""
    for one in models:
        mine = one.at_end(one.first, "anchored excess")
        mine = mine[mine["order"].isin(DEGREES)]
        if len(mine):
            given = one.first, mine["order"] + 1, mine["value"], mine["se"]
            yield style.points(panel, name_of(one, models), *given)


def name_of(one: Spectra, models: list[Spectra]) -> str:
    """The label of a model; of several with one label with its rank, or its name in the config."""
    if [other.label for other in models].count(one.label) == 1:
        return one.label
    rank = one.about["description"].get("rank")
    return f"{one.label}, rank {rank}" if rank else f"{one.label}, {one.about['model']}"


def draw_growth(axes, drawn: pd.DataFrame, panel: str, one: Spectra, number: int) -> None:
    """A curve for each run and order, a dot at its half-time; hollow what an audit doubts."""
    looks = dict(linestyle=LINES[number % len(LINES)], linewidth=1.0)
    for k in one.orders:
        colour, series = style.ORDERS[k + 1], f"{one.short}: M_{k}"
        found = style.series(drawn, panel, series)
        for seed in one.runs:
            curve = found[found["seed"] == str(seed)]
            axes.plot(curve["x"], curve["y"], color=colour, **looks)
            half, end = one.half_time(seed, k).step, one.end(seed, "M", k)["value"]
            axes.plot(half, end / 2, "o", color=colour, markersize=4)
        doubted = style.series(drawn, panel, f"{series}, suspect")
        if len(doubted):
            axes.plot(doubted["x"], doubted["y"], "s", color=colour, markerfacecolor="white")
    axes.set(xscale="log", yscale="log", xlabel="training step", ylabel="$M_k$")


def draw_shares(axes, drawn: pd.DataFrame, panel: str, models: list[Spectra]) -> None:
    """Shares of the variance by order; hollow is an upper bound, below FLOOR there is no point."""
    orders = models[0].orders
    for number, one in enumerate(models):
        found = style.series(drawn, panel, name_of(one, models))
        for _, row in found[found["y"] >= FLOOR].iterrows():
            k = int(row["x"])
            measured = one.end(one.first, "M", k)["state"] == "measured"
            colour = style.ORDERS[k + 1]
            looks = dict(color=colour, markerfacecolor=colour if measured else "white")
            _beside(axes, number, len(models), k, row["y"], row["y_err"], **looks)
    axes.set_xticks(orders, [f"$M_{k}$" for k in orders])
    axes.set(
        yscale="log",
        ylim=(FLOOR, 3),
        xlim=(orders[0] - 0.5, orders[-1] + 0.5),
        title=f"({panel}) shares of the variance, last step",
    )


def draw_excesses(axes, drawn: pd.DataFrame, panel: str, models: list[Spectra]) -> None:
    """The loss of logits cut at each order above that of all orders."""
    for number, one in enumerate(models):
        found = style.series(drawn, panel, name_of(one, models))
        if len(found):
            _beside(axes, number, len(models), found["x"], found["y"], found["y_err"], color="0.35")
    axes.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    axes.set_yscale("symlog", linthresh=SMALLEST)
    axes.set(
        xticks=[degree + 1 for degree in DEGREES],
        ylim=(None, 10),
        xlabel="orders up to",
        ylabel="loss above that of all (nats)",
        title=f"({panel}) which orders the loss needs",
    )


def _beside(axes, number: int, count: int, x, y, errors, **looks) -> None:
    """Points with error bars, those of each of `count` models a little aside from the others'."""
    aside = 0.1 * (number - (count - 1) / 2)
    marker = MARKERS[number % len(MARKERS)]
    style.dots(axes, x + aside, y, yerr=errors, marker=marker, **looks)


def legend(figure, models: Sequence[Spectra]) -> None:
    """Colours of orders and markers of models, below the panels."""
    handles = [
        style.mark(f"$M_{k}$: order {k + 1} and above", color=style.ORDERS[k + 1])
        for k in models[0].orders
    ]
    handles += [
        style.mark(name_of(one, models), linestyle="", color="0.3", marker=marker)
        for marker, one in zip(itertools.cycle(MARKERS), models, strict=False)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
