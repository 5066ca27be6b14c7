"""Tables of theory, of curves and of training runs as figures read them.

A table knows its quantities by series; a quantity that an entry did not ask for is an empty frame.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from manybody.io import tables
from manybody.measure.intervals import Value

SAME = 1e-6  # relative difference of two x that are meant to be equal
SMALLEST = 1e-12  # the same, absolute, at 0


class Table:
    """A table of theory, its entry of the config and its document."""

    def __init__(self, frame: pd.DataFrame, about: dict):
        self.entry, self.about = about["entry"], about
        self._empty = frame.iloc[:0]
        parts = frame.groupby(["quantity", "series"], sort=False)
        self._frames = {key: part.sort_values("x", kind="stable") for key, part in parts}

    @classmethod
    def read(cls, path) -> "Table":
        """The table at a path; `ArtifactError` names a file that is not such a table."""
        return cls(*tables.THEORY.read(path))

    def get(self, quantity: str, series: str = "") -> pd.DataFrame:
        """Rows of one quantity and series in the order of x; none if the table has not got it."""
        return self._frames.get((quantity, series), self._empty)

    def y(self, quantity: str, series: str = "") -> np.ndarray:
        """The numbers y of one quantity and series in the order of x."""
        return self.get(quantity, series)["y"].to_numpy()

    def series(self, quantity: str) -> list[str]:
        return [series for found, series in self._frames if found == quantity]

    def at(self, quantity: str, series: str, x: float) -> Value | None:
        """The value at x; None if the table has no such point."""
        found = self.get(quantity, series)
        found = found[same(found["x"], x)]
        if found.empty:
            return None
        return Value(*map(float, found[["y", "y_err"]].iloc[0]), self.entry.get("scrambles"))

    def between(self, quantity: str, series: str, x: float) -> Value | None:
        """The same on straight lines between points with numbers; None outside of them."""
        found = self.get(quantity, series)
        found = found[found["y"].notna()]
        if found.empty or not found["x"].iloc[0] - SAME <= x <= found["x"].iloc[-1] + SAME:
            return None
        values = (float(np.interp(x, found["x"], found[part])) for part in ("y", "y_err"))
        return Value(*values, self.entry.get("scrambles"))

    def failed(self, series: str) -> np.ndarray:
        """The x at which the iteration of a series did not converge."""
        found = self.get("converged", series)
        return found.loc[found["y"] < 1, "x"].to_numpy()


def same(x, places) -> np.ndarray:
    """True where they are equal but for rounding."""
    return np.isclose(x, places, rtol=SAME, atol=SMALLEST)


def matrix(frame: pd.DataFrame) -> pd.DataFrame:
    """Runs x places."""
    return frame.pivot(index="seed", columns="x", values="y")


def departure(entry: dict, **needed) -> str:
    """Says where an entry is not the one at which numbers were measured; empty where it is."""
    for key, value in needed.items():
        if entry.get(key) != value:
            return f"{key} is {entry.get(key)}, {value} is needed"
    return ""


@dataclass
class TrainedRun:
    """The document of a manifest, and a row a checkpoint: step, epoch, loss, loss_se, tokens."""

    about: dict
    curve: pd.DataFrame

    @property
    def end(self) -> float:
        """Loss at the last step; infinite if training diverged."""
        return math.inf if "diverged" in self.about else float(self.curve["loss"].iloc[-1])


def read_run(path) -> tuple[dict, pd.DataFrame]:
    """The document and the held-out curve of the run with the manifest at `path`."""
    about, history = tables.read_run(path)
    columns = ["step", "epoch", "loss", "loss_se", "tokens"]
    held_out = history.loc[history["split"] == "validation", columns]
    return about, held_out.sort_values("step", kind="stable", ignore_index=True)


def chosen(runs: dict[int, TrainedRun]) -> int:
    """The seed that is shown: the lower median of the final loss, ties to the lower seed."""
    ranked = sorted(runs, key=lambda seed: (runs[seed].end, seed))
    return ranked[(len(ranked) - 1) // 2]
