"""Message passing as figures 1 and 2 read it: `theory.multi_index.gamp`, a run a seed."""

import math

import pandas as pd

from manybody.claims import reading
from manybody.claims.reading import Table

ALPHA = 1.2  # of which figure 2 shows the runs
ACROSS = ("M12", "M21", "Q12")  # sizes of the overlaps of different layers


def number(table: Table) -> str:
    count = table.entry["runs"]
    return f"{count} run{'s' if count > 1 else ''}"


def alphas(table: Table) -> dict[float, str]:
    """alpha -> the name of its series."""
    return {float(series): series for series in table.series("cosine 1")}


def last(table: Table, quantity: str, series: str) -> pd.Series:
    """The value of each run at its last iteration."""
    found = table.get(quantity, series)
    return found.groupby("seed")["y"].last()


def failed(table: Table) -> list[float]:
    """The alphas at which a run did not converge."""
    return [alpha for alpha, series in alphas(table).items() if len(table.failed(series))]


def final(table: Table) -> dict[str, pd.DataFrame]:
    """cosine^2 of both layers, the plug-in error and the sizes of the overlaps of different layers
    at the last iteration: means over runs."""
    found = {}
    for quantity in ("cosine 1", "cosine 2", "error plug-in", *ACROSS):
        rows = []
        for alpha, series in sorted(alphas(table).items()):
            values = last(table, quantity, series)
            squared = values**2 if quantity.startswith("cosine") else values
            rows.append((alpha, *reading.mean(squared)[:2]))
        found[quantity] = pd.DataFrame(rows, columns=["x", "y", "y_err"])
    return found


def overlaps(entry: dict) -> list[float] | None:
    """Those of an informed start; None for the random one."""
    return entry["overlaps"] if entry["init"] == "informed" else None


def predicted(table: Table, layer: int, series: str) -> pd.DataFrame:
    """cosine^2 = M^2 / Q of the same iteration at D -> infinity; empty where there is none."""
    m, q = (table.get(f"SE {name}{layer}{layer}", series) for name in "MQ")
    both = m.merge(q, on="x", suffixes=("", "_q"))
    both = both[both["y_q"] > 0]
    squared = both["y"] ** 2 / both["y_q"]
    # Errors of M and Q are those of the same points: they are added, not squared.
    shares = 2 * both["y_err"] / both["y"].where(both["y"] > 0) + both["y_err_q"] / both["y_q"]
    error = squared * shares.fillna(0)
    return pd.DataFrame({"x": both["x"], "y": squared, "y_err": error})


def shown_series(table: Table) -> str:
    """The alpha that is drawn: the one nearest to 1.2."""
    known = alphas(table)
    return known[min(known, key=lambda alpha: abs(alpha - ALPHA))]


def extended(frame: pd.DataFrame) -> pd.DataFrame:
    """A run that has converged stays where it is: its last row at all later iterations."""
    found = reading.matrix(frame).ffill(axis="columns").stack().rename("y").reset_index()
    return found.assign(y_err=math.nan)
