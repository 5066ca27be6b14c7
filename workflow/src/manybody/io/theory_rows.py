"""The table that a calculation returns, and what it was made from."""

import numpy as np
import pandas as pd

from manybody.io.tables import THEORY

COLUMNS = THEORY.schema.names


def rows(quantity: str, series: str, x, y, y_err=np.nan, seed: int = 0) -> pd.DataFrame:
    """Rows of one quantity and series: y (n,) at x (n,), with one error for all or one each."""
    columns = {"quantity": quantity, "series": series, "seed": seed, "x": np.asarray(x, float)}
    return pd.DataFrame(columns | {"y": np.asarray(y, float), "y_err": y_err})


def joined(parts: list[pd.DataFrame], entry: dict) -> tuple[pd.DataFrame, dict]:
    """All `rows` of a config entry, and the document about them."""
    return pd.concat(parts, ignore_index=True)[COLUMNS], about(entry)


def listed(found: list[tuple], entry: dict, seed: int) -> tuple[pd.DataFrame, dict]:
    """The same from tuples (quantity, series, x, y, y_err)."""
    frame = pd.DataFrame(found, columns=["quantity", "series", "x", "y", "y_err"])
    return frame.assign(seed=seed)[COLUMNS], about(entry)


def about(entry: dict) -> dict:
    """The entry without the number of threads, on which no number depends."""
    return {"entry": {key: value for key, value in entry.items() if key != "threads"}}
