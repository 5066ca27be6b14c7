"""Tables of theory as this paper's figures read them, and rows that compare them with landmarks.

A table knows its quantities by series; a quantity that an entry did not ask for is an empty frame,
and what should be said of it a row that was not run.
"""

import math
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd
from scipy.stats import norm, t

from manybody import checks, tables

SAME = 1e-6  # relative difference of two x that are meant to be equal
SMALLEST = 1e-12  # the same, absolute, at 0
LAYERS = (1, 2)


class Table:
    """A table of theory, its entry of the config and its document."""

    def __init__(self, frame: pd.DataFrame, about: dict):
        self.entry, self.about = about["entry"], about
        self._width = width(self.entry.get("scrambles"))
        self._empty = frame.iloc[:0]
        frame = frame.sort_values("x", kind="stable")
        self._frames = dict(tuple(frame.groupby(["quantity", "series"], sort=False)))

    def get(self, quantity: str, series: str = "") -> pd.DataFrame:
        """Rows of one quantity and series in the order of x; none if the table has not got it."""
        return self._frames.get((quantity, series), self._empty)

    def series(self, quantity: str) -> list[str]:
        return [series for found, series in self._frames if found == quantity]

    def at(self, quantity: str, series: str, x: float) -> tuple[float, float] | None:
        """Value and its standard error at x; None if the table has no such point.

        The error is that of a normal law which is as wide at the margin of a check: one from few
        scramblings is itself uncertain.
        """
        found = self.get(quantity, series)
        found = found[np.isclose(found["x"], x, rtol=SAME, atol=SMALLEST)]
        if not len(found):
            return None
        return float(found["y"].iloc[0]), self._width * float(found["y_err"].iloc[0])

    def between(self, quantity: str, series: str, x: float) -> tuple[float, float] | None:
        """The same on straight lines between points with numbers; None outside of them."""
        found = self.get(quantity, series)
        found = found[found["y"].notna()]
        if not len(found) or not found["x"].iloc[0] - SAME <= x <= found["x"].iloc[-1] + SAME:
            return None
        return tuple(float(np.interp(x, found["x"], found[part])) for part in ("y", "y_err"))

    def failed(self, series: str) -> np.ndarray:
        """The x at which the iteration of a series did not converge."""
        found = self.get("converged", series)
        return found.loc[found["y"] < 1, "x"].to_numpy()


def width(count: int | None) -> float:
    """Student's t over the normal law at a check's margin: for an error from `count` values."""
    if count is None or count < 2:
        return 1.0
    return float(t.isf(norm.sf(checks.ERRORS), count - 1) / checks.ERRORS)


def read(files: Mapping[str, list], block: dict) -> dict[str, Table]:
    """The tables of a figure, by their roles."""
    paths = zip(block["theory"], files["theory"], strict=True)
    return {role: Table(*tables.read_theory(path)) for role, path in paths}


def is_in(x: pd.Series, places: Iterable[float]) -> np.ndarray:
    """Which x are among some places, but for rounding."""
    places = np.asarray(list(places), float)
    return np.isclose(np.asarray(x)[:, None], places, rtol=SAME, atol=SMALLEST).any(axis=1)


def matrix(frame: pd.DataFrame) -> pd.DataFrame:
    """Runs x places."""
    return frame.pivot(index="seed", columns="x", values="y")


def mean_over_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns x, y, y_err: means over runs and their standard errors (NaN for one run)."""
    found = matrix(frame)
    runs = found.notna().sum()
    errors = found.std(ddof=1) / np.sqrt(runs)
    return pd.DataFrame({"x": found.columns, "y": found.mean(), "y_err": errors}).reset_index(
        drop=True
    )


def mean(values: Iterable[float]) -> tuple[float, float]:
    """Mean and standard error; the error of one value is not known."""
    values = np.asarray(list(values), float)
    error = values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return float(values.mean()) if len(values) else math.nan, error


def judged_mean(values: Iterable[float]) -> tuple[float, float]:
    """Mean and standard error for a check: wider where it is known from few values."""
    values = np.asarray(list(values), float)
    found, error = mean(values)
    return found, width(len(values)) * error


def judged_median(values: Iterable[float]) -> tuple[float, float]:
    """Median and its standard error, that of a normal law's; see `judged_mean`."""
    values = np.asarray(list(values), float)
    return float(np.median(values)), math.sqrt(math.pi / 2) * judged_mean(values)[1]


# --- Landmarks -----------------------------------------------------------------------------------


def departure(entry: dict, **needed) -> str:
    """Where an entry is not the one at which landmarks were measured; empty where it is."""
    for key, value in needed.items():
        found = entry.get(key)
        same = math.isclose(found, value) if _numbers(found, value) else found == value
        if not same:
            return f"{key} is {found}, {value} is needed"
    return ""


def _numbers(*values) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def landmarks(
    claim: str,
    table: Table,
    place: tuple[str, str],
    expected: Mapping[float, float],
    share: float | Mapping[float, float],
    kind: str = "statistical",
    away: str = "",
) -> list[dict]:
    """One row for each x: the table's value is within a share of the expected one.

    claim: the text with `{x:g}` for the place; place: quantity and series; away: why the landmarks
    do not apply, in which case one row says so.
    """
    if away:
        places = ", ".join(f"{x:g}" for x in expected)
        return [checks.not_run(claim.replace("{x:g}", places), away, kind)]
    rows = []
    for x, value in expected.items():
        found = table.at(*place, x)
        tolerance = (share[x] if isinstance(share, Mapping) else share) * value
        rows.append(at_landmark(claim.format(x=x), found, value, tolerance, kind))
    return rows


def at_landmark(
    claim: str,
    found: tuple[float, float] | None,
    expected: float,
    tolerance: float,
    kind: str = "statistical",
) -> dict:
    """A value with its error against a landmark; not run if there is no value."""
    if found is None:
        return checks.not_run(claim, "not in the table", kind)
    if kind == "exact":
        return checks.identity(claim, found[0], expected, tolerance)
    return checks.within(claim, *found, expected, tolerance, kind)


def largest_difference(
    claim: str,
    found: Mapping[float, tuple[float, float] | None],
    expected: Mapping[float, float],
    tolerance: float,
    kind: str = "paper",
    name: str = "alpha",
) -> dict:
    """The place at which values are furthest from the expected ones, which are within tolerance.

    Places without a value are left out; the row was not run if none has one.
    """
    known = {x: value for x, value in found.items() if value is not None and x in expected}
    if not known:
        return checks.not_run(claim, "no common points", kind)
    apart = {x: known[x][0] - expected[x] for x in known}
    worst = max(apart, key=lambda x: abs(apart[x]))
    claim += f" (largest difference at {len(known)} points, here at {name} = {worst:g})"
    error = known[worst][1]
    error = 0.0 if kind == "exact" else error
    return checks.within(claim, apart[worst], error, 0.0, tolerance, kind)


def first_crossing(x: Iterable[float], y: Iterable[float], level: float) -> float:
    """The x at which a curve first passes a level, on straight lines; NaN if it never does."""
    x, y = np.asarray(list(x), float), np.asarray(list(y), float)
    above = np.flatnonzero(y >= level)
    if not len(above):
        return math.nan
    first = above[0]
    if first == 0:
        return float(x[0])
    low, high = y[first - 1], y[first]
    share = (level - low) / (high - low)
    return float(x[first - 1] + share * (x[first] - x[first - 1]))


def crossings(frame: pd.DataFrame, level: float) -> pd.Series:
    """Where each run first passes a level, by run; NaN for those that never do. In order of x."""
    return pd.Series(
        {run: first_crossing(part["x"], part["y"], level) for run, part in frame.groupby("seed")},
        dtype=float,
    )
