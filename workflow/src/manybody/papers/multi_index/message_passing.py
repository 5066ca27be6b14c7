"""Message passing as figures 1 and 2 read it: `theory.multi_index.gamp`, a run a seed.

Cosines are compared rather than overlaps, since M converges to |w|^2 / D of the teacher drawn, not
to 1 (specification, section 7).
"""

import math

import pandas as pd

from manybody.papers import readings
from manybody.papers.readings import Table, Value

ALPHA = 1.2  # of which figure 2 shows the runs
ACROSS = ("M12", "M21", "Q12")  # sizes of the overlaps of different layers


def alphas(table: Table) -> dict[float, str]:
    """The name of the series of each alpha."""
    return {float(series): series for series in table.series("cosine 1")}


def last(table: Table, quantity: str, series: str) -> pd.Series:
    """The value of each run at its last iteration."""
    return table.get(quantity, series).groupby("seed")["y"].last()


def failed(table: Table) -> list[float]:
    """The alphas at which a run did not converge."""
    return [alpha for alpha, series in alphas(table).items() if len(table.failed(series))]


def final(table: Table) -> dict[str, pd.DataFrame]:
    """Means over runs at the last iteration, against alpha: cosine^2 of both layers, the plug-in
    error and the sizes of the overlaps of different layers."""
    found = {}
    for quantity in ("cosine 1", "cosine 2", "error plug-in", *ACROSS):
        rows = []
        for alpha, series in sorted(alphas(table).items()):
            values = last(table, quantity, series)
            squared = values**2 if quantity.startswith("cosine") else values
            rows.append((alpha, *readings.mean(squared)[:2]))
        found[quantity] = pd.DataFrame(rows, columns=["x", "y", "y_err"])
    return found


def converged_mean(table: Table, quantity: str, alpha: float) -> Value | None:
    """The mean, at the last iteration, over the runs that converged: at finite size some go on
    fluctuating. None where fewer than two of several did."""
    known = [series for value, series in alphas(table).items() if math.isclose(value, alpha)]
    if not known:
        return None
    converged = table.get("converged", known[0]).set_index("seed")["y"] == 1
    if converged.sum() < min(2, len(converged)):
        return None
    return readings.mean(last(table, quantity, known[0])[converged].abs())


def informed(entry: dict) -> bool:
    """Says whether runs start with the overlaps of the entry, and not at random."""
    return entry["init"] == "informed"


def predicted(table: Table, layer: int, series: str) -> pd.DataFrame:
    """cosine = M / sqrt(Q) of the same iteration at D -> infinity; empty where there is none."""
    m, q = (table.get(f"SE {name}{layer}{layer}", series) for name in "MQ")
    both = m.merge(q, on="x", suffixes=("", "_q"))
    both = both[both["y_q"] > 0]
    squared = both["y"] ** 2 / both["y_q"]
    return pd.DataFrame({"x": both["x"], "y": squared.clip(0) ** 0.5, "y_err": math.nan})


def shown_series(table: Table) -> str:
    """The alpha that is drawn: the one nearest to 1.2."""
    known = alphas(table)
    return known[min(known, key=lambda alpha: abs(alpha - ALPHA))]


def extended(frame: pd.DataFrame) -> pd.DataFrame:
    """A run that has converged stays where it is: its last row at all later iterations."""
    found = readings.matrix(frame).ffill(axis="columns").stack().rename("y").reset_index()
    return found.assign(y_err=math.nan)
