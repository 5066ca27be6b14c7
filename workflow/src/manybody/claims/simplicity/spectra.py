"""Order spectra of checkpoints, as figures and claims read them.

M_k is 0 for a model of order k or less; the first order that it sees is k + 1. A half-time is the
step at which M_k comes to half of its value at the last checkpoint.
"""

import math
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression

from manybody import models
from manybody.claims import labels
from manybody.io import tables

LAWS = {"text": "", "unigram": ", unigram law", "model": ", its own draws"}


class HalfTime(NamedTuple):
    """A step, and the standard error of its logarithm, that of the choice of contexts."""

    step: float
    error: float


class Spectra:
    """The spectra of all runs of an entry: by seed, a row a step, quantity and order."""

    def __init__(self, runs: dict[int, tuple[pd.DataFrame, dict]]):
        self.runs = {seed: table for seed, (table, _) in runs.items()}
        self.about = next(iter(runs.values()))[1]
        self.entry = self.about["entry"]
        self.label = labels.generator(self.about["description"])
        self.short = self.label.partition(",")[0] + LAWS[self.entry.get("law", "text")]

    @property
    def order(self) -> int | None:
        """The order of interaction, if the architecture bounds it."""
        about = models.about(self.about["description"])
        return None if about.nominal else about.order

    @property
    def orders(self) -> list[int]:
        """k of the M_k that were measured."""
        first = next(iter(self.runs.values()))
        return sorted(first["order"][first["quantity"] == "M"].unique())

    @property
    def followed(self) -> bool:
        """Whether there are several checkpoints."""
        return next(iter(self.runs.values()))["step"].nunique() > 1

    def curve(self, seed: int, quantity: str, order: int) -> pd.DataFrame:
        """The rows of one quantity, by step, without steps that have no spectrum yet, and those
        that the audit of a series doubts."""
        found = self._rows(seed, quantity, order)
        return found[~found["state"].isin(["no spectrum yet", "suspect"])].reset_index(drop=True)

    def suspects(self, seed: int, quantity: str, order: int) -> pd.DataFrame:
        """The rows of the steps that the audit doubts."""
        found = self._rows(seed, quantity, order)
        return found[found["state"] == "suspect"]

    def _rows(self, seed: int, quantity: str, order: int) -> pd.DataFrame:
        table = self.runs[seed]
        mine = (table["quantity"] == quantity) & (table["order"] == order)
        return table[mine].sort_values("step")

    def end(self, seed: int, quantity: str, order: int) -> pd.Series:
        """The row of the last checkpoint."""
        return self.curve(seed, quantity, order).iloc[-1]

    def excess(self, seed: int) -> pd.DataFrame:
        """Excess loss of the last checkpoint's logits cut at each degree (`order`), if measured."""
        table = self.runs[seed]
        return table[table["quantity"] == "anchored excess"].sort_values("order")

    def spans(self, seed: int, order: int) -> pd.DataFrame:
        """At the last checkpoint the share (`value`) of M_k, k = order, at each span (`order`)."""
        table = self.runs[seed]
        return table[table["quantity"] == f"span {order}"].sort_values("order")

    def influence(self, quantity: str) -> np.ndarray:
        """Of the first run's passage `influence` or `pairs` by target and source: (L, L)."""
        table = next(iter(self.runs.values()))
        length = len(self.about["passage"])
        found = np.full((length, length), np.nan)
        parts = table["quantity"].str.extract(rf"^{quantity} on (\d+)$")[0]
        mine = parts.notna()
        found[parts[mine].astype(int), table["order"][mine]] = table["value"][mine]
        return found

    def half_time(self, seed: int, order: int) -> HalfTime:
        """Of the rising curve that is nearest to the values, as one that is too high is no half.

        NaN where checkpoints do not enclose it, or the last value is none but an upper bound.
        """
        curve = self.curve(seed, "M", order)
        if curve.empty or curve["state"].iloc[-1] != "measured":
            return HalfTime(math.nan, math.nan)
        steps, values, errors = (curve[name].to_numpy(float) for name in ("step", "value", "se"))
        values = isotonic_regression(values, weights=1 / errors**2).x
        late = np.flatnonzero(values >= values[-1] / 2)[0]
        if late == 0:
            return HalfTime(math.nan, math.nan)
        rise = (values[late] - values[late - 1]) / (steps[late] - steps[late - 1])
        step = steps[late - 1] + (values[-1] / 2 - values[late - 1]) / rise
        error = math.hypot(max(errors[late - 1 : late + 1]), errors[-1] / 2)
        return HalfTime(step, error / rise / step)


def read(files, names: list[str], context: dict) -> list[Spectra]:
    """These entries of `context["spectra"]` (entry, seed), from the files of a rule."""
    found = {}
    for (name, seed), path in zip(context["spectra"], files["spectra"], strict=True):
        found.setdefault(name, {})[seed] = tables.read_spectra(path)
    return [Spectra(found[name]) for name in names]
