"""What a figure draws, as a table: one row a point."""

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from manybody.plotting import style

Drawing = tuple[Figure, pd.DataFrame]


def points(panel: str, series: str, seed, x, y, errors=math.nan) -> pd.DataFrame:
    """Points (x, y) of one series; seed and errors (y_err) are one for all or one for each."""
    table = pd.DataFrame({"x": np.asarray(x, float), "y": np.asarray(y, float)})
    seeds = np.broadcast_to(np.asarray(seed), len(table)).astype(str)
    errors = np.broadcast_to(np.asarray(errors, float), len(table))
    return table.assign(panel=panel, series=series, seed=seeds, y_err=errors)


def drawn(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """The tables of a figure's panels as one."""
    return pd.concat(tables, ignore_index=True)[style.FIGURE_COLUMNS]
