"""Places on curves: where one passes a level, first or for good, and where it peaks."""

import math
from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

from manybody.measure.intervals import Value

RESAMPLES = 1000  # of the runs, for the errors of places


def first_crossing(x: Iterable[float], y: Iterable[float], level: float) -> float:
    """The x at which a curve first passes a level, on straight lines; NaN if it never does."""
    x, y = np.fromiter(x, float), np.fromiter(y, float)
    above = np.flatnonzero(y >= level)
    if not len(above):
        return math.nan
    around = slice(max(above[0] - 1, 0), above[0] + 1)
    return float(np.interp(level, y[around], x[around]))


def of_runs(frame: pd.DataFrame, level: float) -> pd.Series:
    """The x at which each run first passes a level, by run; NaN if it never does. In order of x."""
    return pd.Series(
        {run: first_crossing(part["x"], part["y"], level) for run, part in frame.groupby("seed")},
        dtype=float,
    )


def of_mean(runs: pd.DataFrame, place: Callable) -> Value:
    """A place on the mean of curves (runs x places), with its error: runs drawn with repetition;
    infinite, and exact, where the mean has no such place."""
    generator = np.random.default_rng(0)
    x, values = runs.columns.to_numpy(float), runs.to_numpy()
    found = place(x, values.mean(axis=0))
    if math.isnan(found):
        return Value(math.inf, 0.0)
    draws = generator.integers(len(values), size=(RESAMPLES, len(values)))
    places = [place(x, drawn) for drawn in values[draws].mean(axis=1)]
    return Value(found, float(np.std(places, ddof=1)), len(values))


def peak(sizes: np.ndarray, losses: np.ndarray) -> float:
    """M of the highest mean loss, by the parabola, in logarithms, through the highest point and its
    neighbours; NaN at either end of the grid."""
    place = int(losses.argmax())
    if not 0 < place < len(losses) - 1:
        return math.nan
    near = slice(place - 1, place + 2)
    centre = math.log(sizes[place])
    bend, slope, _ = np.polyfit(np.log(sizes[near]) - centre, np.log(losses[near]), 2)
    return math.exp(centre - slope / (2 * bend))


def last_crossing(sizes: np.ndarray, losses: np.ndarray, threshold: float) -> float:
    """M from which the mean loss stays above a threshold, between points linear in log M."""
    below = np.flatnonzero(losses <= threshold)
    if not len(below) or below[-1] == len(losses) - 1:
        return math.nan
    pair = slice(below[-1], below[-1] + 2)
    return math.exp(np.interp(threshold, losses[pair], np.log(sizes[pair])))
