"""What a curve of recovery says: how errors of couplings fall with the number of sequences.

The numbers are those of `inverse_potts.learning_curves.compute`, of kind `recovery`, whose
docstring names the quantities.
"""

import math

import numpy as np
import pandas as pd

from manybody.claims import verdicts
from manybody.claims.potts import curves, setting
from manybody.claims.reading import Table, mean
from manybody.io import tables

SLOPE = (-1.0, 0.15)
SLOPE_SPREAD = 0.011  # sd over samples
MEASURED = (500, 1000, 2000, 3000, 5000, 10000, 20000)  # the sizes that this is for
SMALLEST = 500  # sequences from which errors fall like 1 / M
RIDGE = 1e-4  # under which these were measured
SIZE = setting.M  # sequences of figure 2
EXCESS = (0.004, 0.009)  # at that size, nats a site
EXCESS_SPREAD = 1.3e-3
# Bounds at that size, the values that were measured and their sd over samples.
BOUNDS = {
    "coupling error": ("err_J", "<", 0.06, 0.0546, 4.2e-3),
    "pearson": ("r", ">", 0.96, 0.9666, 2.7e-3),
}


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from the files of the figure's rule."""
    return verdicts.table(claims(*tables.read_theory(files["curves"][0])))


def claims(frame: pd.DataFrame, about: dict) -> list[dict]:
    """The claims at the default setting: how the error falls, and how good M = 3000 is (potts,
    section 6). None for what so few samples cannot confirm, or for another source."""
    entry, runs = about["entry"], about["entry"]["realisations"]
    table = curves.recovery(frame, about)
    elsewhere = setting.departure(about.get("source", {}), about.get("beta", math.nan))
    rows = []
    if elsewhere or entry["ridge"] != RIDGE:
        return rows
    sizes = np.array(entry["sizes"], float)
    spread = SLOPE_SPREAD * _reach(MEASURED) / _reach(sizes)
    if sizes.min() >= SMALLEST and _confirms(spread, runs, SLOPE[1]):
        claim = (
            f"recovery: slope of log err_J by log M, M = {sizes.min():g} to {sizes.max():g}, "
            f"{runs} samples"
        )
        rows.append(verdicts.within(claim, *curves.slope(table), *SLOPE, "statistical", runs))
    if SIZE not in sizes:
        return rows
    claim = f"recovery: free A, M = {SIZE}:"
    middle, width = sum(EXCESS) / 2, (EXCESS[1] - EXCESS[0]) / 2
    if _confirms(EXCESS_SPREAD, runs, width):
        value, error, of_test = _at_size(table, "excess loss")
        # All samples are tested on the same sequences: that error does not average out.
        error = math.hypot(error, verdicts.margin(1.0) / verdicts.margin(1.0, runs) * of_test)
        text = f"{claim} excess test loss within {EXCESS[0]:g} to {EXCESS[1]:g}"
        rows.append(verdicts.within(text, value, error, middle, width, "statistical", runs))
    for quantity, (name, sign, bound, measured, spread) in BOUNDS.items():
        if _confirms(spread, runs, abs(bound - measured)):
            value, error, _ = _at_size(table, quantity)
            text = f"{claim} {name} {sign} {bound:g}"
            rows.append(verdicts.bounded(text, sign, value, error, bound, "statistical", runs))
    return rows


def _confirms(spread: float, runs: int, tolerance: float) -> bool:
    """So many samples of a known sd can confirm what holds within the tolerance."""
    return verdicts.margin(spread / math.sqrt(runs), runs) < tolerance


def _reach(sizes) -> float:
    """What the error of a slope goes down with: the spread of log M."""
    logs = np.log(sizes)
    return float(np.sqrt(((logs - logs.mean()) ** 2).sum()))


def _at_size(table: Table, quantity: str) -> tuple[float, float, float]:
    """Mean over samples at M = 3000, its standard error, and the mean error over test sequences."""
    found = table.get(quantity)
    found = found[found["x"] == SIZE]
    return *mean(found["y"])[:2], float(found["y_err"].mean())
