"""What section 3.1 reads: gradient flow of two layers, by equations and by their closed form.

The numbers are those of `theory.gradient_flow.compute`, whose docstring names the quantities.
"""

import numpy as np
import pandas as pd

from manybody.files import tables

CASES = (
    "product",
    "product, decay",
    "squares",
    "minus squares",
    "Gaussian",
    "Gaussian, sampled",
)


class Flow:
    """A table of theory by quantity and series, and what its document says of the cases."""

    def __init__(self, frame: pd.DataFrame, about: dict):
        self.entry, self.decays = about["entry"], about["decays"]
        self._frames = dict(tuple(frame.groupby(["quantity", "series"], sort=False)))

    def series(self, quantity: str) -> list[str]:
        return [series for found, series in self._frames if found == quantity]

    def get(self, quantity: str, series: str) -> pd.DataFrame:
        return self._frames[quantity, series]

    def y(self, quantity: str, series: str) -> np.ndarray:
        return self.get(quantity, series)["y"].to_numpy()


def read(files) -> Flow:
    """The flow of a figure, from the files of its rule."""
    (path,) = files["theory"]
    return Flow(*tables.read_theory(path))
