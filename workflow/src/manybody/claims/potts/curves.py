"""What figures of curves over the number of samples read: figure 3, and recovery.

Square loss: `theory.replica.compute`; logistic: `inverse_potts.learning_curves`, of kind
`separability` or `recovery`. Their docstrings name the quantities.
"""

from dataclasses import dataclass

import pandas as pd

from manybody.claims.reading import Table, matrix
from manybody.io import tables

SMALL = 0.3  # alpha below which the independent teacher's curve is told from the true one
WINDOW = (1.4, 3.0)  # M / L between which the logistic loss has its maximum


def read(files) -> tuple[Table, "Logistic"]:
    """The tables of both panels of figure 3."""
    (theory,), (curve,) = files["theory"], files["curves"]
    return Table(*tables.read_theory(theory)), Logistic(*tables.read_theory(curve))


@dataclass(frozen=True)
class Fits:
    """Fits with one ridge: losses, realisations x numbers of samples M."""

    ridge: float
    test: pd.DataFrame
    train: pd.DataFrame


class Logistic:
    """The table of the curve: fits by ridge, the lowest first; the optimal loss; L."""

    def __init__(self, frame: pd.DataFrame, about: dict):
        self.length = about["length"]
        self.optimum = float(frame.loc[frame["quantity"] == "optimum", "y"].mean())
        test, training = (
            dict(tuple(frame[frame["quantity"] == quantity].groupby("series")))
            for quantity in ("test loss", "training loss")
        )
        self.fits = [
            Fits(float(series), matrix(test[series]), matrix(training[series]))
            for series in sorted(test, key=float)
        ]


def window(logistic: Logistic) -> tuple[float, float]:
    """Numbers of samples between which the test loss is expected to peak."""
    return WINDOW[0] * logistic.length, WINDOW[1] * logistic.length


def recovery(frame: pd.DataFrame, about: dict) -> Table:
    """A curve of recovery, by quantity: its series are ridges, of which it has one."""
    return Table(frame.assign(series=""), about)


def slope(recovery: Table) -> tuple[float, float]:
    """Of log err_J over log M, and its standard error."""
    row = recovery.get("mean slope").iloc[0]
    return row["y"], row["y_err"]
