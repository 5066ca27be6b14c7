"""Half-times of M_k, from the order spectra of a model's checkpoints.

M_k is 0 for a model of order k or less; the first order that it sees is k + 1. A half-time is the
step at which M_k comes to half of its value at the last checkpoint.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody import models
from manybody.measure.intervals import mean

REFERENCES = {"text": "", "unigram": ", unigram draws", "model": ", its own draws"}
KNOWN = 0.95  # share of the replicates that must have a half-time


class HalfTime(NamedTuple):
    """A step, and its logarithm with the contexts drawn anew (replicates,), the same for all
    checkpoints and orders: what two half-times share by their contexts is no error of their ratio.
    """

    step: float
    drawn: np.ndarray

    @property
    def error(self) -> float:
        """Standard error of the logarithm by the choice of contexts."""
        return spread(self.drawn)


def spread(drawn: np.ndarray) -> float:
    """Standard deviation of replicates; not a number where one in twenty has no value."""
    known = drawn[np.isfinite(drawn)]
    return float(known.std(ddof=1)) if len(known) > KNOWN * len(drawn) else math.nan


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
        self.label = models.about(self.about["description"]).generator
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
        kept = found[found["state"].isin(["suspect"] if suspect else ["measured", "upper bound"])]
        return kept.sort_values("step", ignore_index=True)

    def end(self, seed: int, quantity: str, order: int) -> pd.Series:
        """The row of the last checkpoint."""
        return self.curve(seed, quantity, order).iloc[-1]

    def at_end(self, quantity: str) -> pd.DataFrame:
        """The rows of what the first run's last checkpoint alone has, by `order`, if measured:
        `anchored excess`, the loss of logits cut at each degree above that of all, or `span k`, the
        share of M_k at each span."""
        table = self.runs[self.first]
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
        """The half-time of the rising curve nearest to the values; NaN where checkpoints do not
        enclose it, or the last value is no more than an upper bound."""
        curve = self.curve(seed, "M", order)
        if curve.empty or curve["state"].iloc[-1] != "measured":
            return HalfTime(math.nan, np.full(1, np.nan))
        steps, values, errors = (curve[name].to_numpy(float) for name in ("step", "value", "se"))
        drawn = np.vstack(curve["replicates"]).T
        found = [halfway(steps, one, 1 / errors**2) for one in (values, *drawn)]
        return HalfTime(found[0], np.log(found[1:]))

    def mean_half_time(self, order: int) -> tuple[float, float]:
        """The half-time of all runs, and the standard error of its log, by runs and contexts."""
        found = [self.half_time(seed, order) for seed in self.runs]
        log, runs, count = mean(np.log([one.step for one in found]))
        # numpy's maximum: not a number where that of any run is none.
        error = math.hypot(runs if count > 1 else 0.0, np.max([one.error for one in found]))
        return math.exp(log), error


def halfway(steps: np.ndarray, values: np.ndarray, weights: np.ndarray) -> float:
    """The step at which the rising curve nearest to values (steps,) has half of its end."""
    from scipy.optimize import isotonic_regression

    values = isotonic_regression(values, weights=weights).x
    late = np.flatnonzero(values >= values[-1] / 2)[0]
    if late == 0:
        return math.nan
    rise = (values[late] - values[late - 1]) / (steps[late] - steps[late - 1])
    return steps[late - 1] + (values[-1] / 2 - values[late - 1]) / rise
