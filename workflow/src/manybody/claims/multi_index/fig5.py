"""What figure 5 says: the overlap of layer 1 at convergence, that of layer 2 held fixed.

`fixed_overlap` is a table of `theory.multi_index.fixed_overlap`, `exact` one of
`claims.identities.multi_index`, whose identities are judged here.
"""

import math

import pandas as pd

from manybody.claims import reading, verdicts
from manybody.claims.multi_index import gates
from manybody.claims.multi_index.gates import Gate, place, spread
from manybody.claims.reading import Table

# alpha is inferred: it is not in the public data
SETTING = {"skip": 1, "activation": "softmax", "regulariser": 0, "alpha": 1.2}
LANDMARKS = {0.93: 0.0, 0.95: 0.10, 0.96: 0.18, 0.97: 0.28, 0.98: 0.44}
LANDMARKS |= {0.99: 0.67, 0.995: 0.80, 0.998: 0.91, 0.999: 0.95}
TOLERANCE = 0.03
# What one scrambling of 1024 points scatters by, measured.
SPREAD = {0.93: 0.02, 0.95: 0.048, 0.96: 0.056, 0.97: 0.047, 0.98: 0.03}
SPREAD |= {0.99: 0.015, 0.995: 0.012, 0.998: 0.008, 0.999: 0.005}


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from the files of the figure's rule."""
    tables = reading.read(files, block, context)
    return verdicts.table(
        [*fixed_claims(tables["fixed_overlap"]), *identity_claims(tables["exact"])]
    )


def fixed_claims(table: Table) -> list[dict]:
    """Section 5's numbers, and that a better layer 2 makes a better layer 1."""
    return [*gates.claims(fixed_gates(table.entry), table), _rising_claim(table)]


def fixed_gates(entry: dict) -> list[Gate]:
    if reading.departure(entry, **SETTING):
        return []
    return [
        Gate(
            f"fig. 5: Q11 at Q22 = {x:g}, alpha = 1.2, no regulariser: specification",
            place("fixed", "Q11", x, "fixed"),
            value,
            TOLERANCE,
            spread(SPREAD[x], entry),
            entry["scrambles"],
        )
        for x, value in LANDMARKS.items()
        if any(math.isclose(x, own) for own in entry["overlaps"])
    ]


def _rising_claim(table: Table) -> dict:
    """Where layer 1 is not learned the steps are 0, which is no fall; noise of both ends counts
    three times, by Student's t."""
    claim, bound = "fig. 5: Q11 rises with Q22: the smallest step", TOLERANCE / 10
    found = table.get("fixed", "Q11")
    if len(found) < 2:
        return verdicts.failed(claim, "statistical", "one point or none", ">= 0", bound)
    failed = table.failed("fixed")
    if len(failed):
        places = ", ".join(f"{x:g}" for x in failed)
        cause = f"not converged at Q22 = {places}"
        return verdicts.failed(claim, "statistical", cause, ">= 0", bound)
    steps = found["y"].diff().iloc[1:]
    at = steps.idxmin()
    errors = found["y_err"].fillna(0)
    error = math.hypot(errors[at], errors.shift()[at])
    value, runs = float(steps[at]), table.entry["scrambles"]
    width = verdicts.margin(error, runs, verdicts.DEVIATIONS)
    holds = "yes" if value >= -bound else "undecided" if value >= -width - bound else "no"
    return verdicts.row(claim, "statistical", holds, value, error, ">= 0", bound)


def identity_claims(table: Table) -> list[dict]:
    """Every identity of the table, with its own tolerance."""
    found = [(series, table.get("identity", series)) for series in table.series("identity")]
    found.sort(key=lambda one: one[1]["x"].iloc[0])  # the strictest first
    if not found:
        return [verdicts.failed("identities", "exact", "missing in the table")]
    return [
        verdicts.identity(series, float(part["y"].iloc[0]), 0.0, float(part["x"].iloc[0]))
        for series, part in found
    ]
