"""Means over runs with their errors, and intervals of measured values."""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

ERRORS = 2.0  # standard errors on either side of a value: 95 % of a normal distribution
MEDIAN = math.sqrt(math.pi / 2)  # error of a median over that of a mean, normal distribution


class Value(NamedTuple):
    """A number, its standard error (NaN: none) and how many independent values that error was
    estimated from (None: very many, or the number is exact)."""

    value: float
    error: float = math.nan
    runs: float | None = None


def mean(values: Iterable[float]) -> Value:
    """Mean and standard error; the error of one value is not known."""
    values = np.fromiter(values, float)
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return Value(float(values.mean()) if len(values) else math.nan, error, len(values))


def margin(error: float, runs: float | None = None, deviations: float = ERRORS) -> float:
    """Half width of the interval that a normal distribution has at `deviations` standard errors.

    error: a standard error estimated from `runs` independent values, which widens the interval by
    Student's t with runs - 1 degrees of freedom; None stands for very many. One run has an infinite
    margin: it says nothing of its error.
    """
    if runs is None:
        return deviations * error
    from scipy.special import ndtr, stdtrit

    return float(stdtrit(runs - 1, ndtr(deviations))) * error if runs > 1 else math.inf
