"""Figure 5: the overlap of layer 1 at convergence against that of layer 2, which is held fixed.

`held` is a table of `theory.multi_index.held`, `exact` one of
`claims.identities.multi_index`, whose identities are checked here.
"""

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from manybody.claims import verdicts
from manybody.claims.multi_index import fig1 as fig1_claims
from manybody.claims.multi_index import gates, reading
from manybody.claims.multi_index.gates import Gate, place, spread
from manybody.claims.multi_index.reading import Table
from manybody.plotting import style
from manybody.plotting.multi_index import drawing

Drawing = tuple[Figure, pd.DataFrame, pd.DataFrame]

# alpha is inferred: it is not in the public data
SETTING = {"skip": 1, "activation": "softmax", "regulariser": 0, "alpha": 1.2}
LANDMARKS = {0.93: 0.0, 0.95: 0.10, 0.96: 0.18, 0.97: 0.28, 0.98: 0.44}
LANDMARKS |= {0.99: 0.67, 0.995: 0.80, 0.998: 0.91, 0.999: 0.95}
TOLERANCE = 0.03
# What one scrambling of 1024 points scatters by, measured.
SPREAD = {0.93: 0.02, 0.95: 0.048, 0.96: 0.056, 0.97: 0.047, 0.98: 0.03}
SPREAD |= {0.99: 0.015, 0.995: 0.012, 0.998: 0.008, 0.999: 0.005}


def draw(files, block: dict, context: dict) -> Drawing:
    """The figure, what is drawn and the checks, from files; see the package's docstring."""
    return fig5(**reading.read(files, block))


@style.styled(style.RC)
def fig5(held: Table, exact: Table) -> Drawing:
    """The figure, from its tables."""
    figure = style.new(4.6, 3.5)
    axes = figure.subplots()
    drawn = draw_fixed(axes, held)
    rows = [*fixed_rows(held), *identity_rows(exact)]
    return figure, drawing.gather({"": drawn}), verdicts.table(rows)


def draw_fixed(axes: Axes, table: Table) -> list[pd.DataFrame]:
    found = table.get("fixed", "Q11")
    failed = table.failed("fixed")
    colour = drawing.LAYER[1]
    looks = dict(marker="o", markersize=3)
    shown = drawing.curve(axes, found, colour, "", failed, **looks)
    entry = table.entry
    axes.set(xlabel="overlap of layer 2, Q₂₂, held fixed", ylabel="overlap of layer 1, Q₁₁")
    axes.set_ylim(-0.03, 1.04)
    axes.set_title(f"α = {entry['alpha']:g}, c = {entry['skip']:g}, {fig1_claims.channel(entry)}")
    if len(failed):
        axes.lines[-1].set_label("not converged")
        axes.legend(loc="upper left")
    return drawing.named(shown, "Q11")


def fixed_rows(table: Table) -> list[dict]:
    """Section 5's numbers, and that a better layer 2 makes a better layer 1."""
    return [*gates.rows(fixed_gates(table.entry), table), _rising_row(table)]


def fixed_gates(entry: dict) -> list[Gate]:
    if reading.departure(entry, **SETTING):
        return []
    return [
        gates.landmark(
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


def _rising_row(table: Table) -> dict:
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


def identity_rows(table: Table) -> list[dict]:
    """Every identity of the table, with its own tolerance."""
    found = [(series, table.get("identity", series)) for series in table.series("identity")]
    if not found:
        return [verdicts.failed("identities", "exact", "missing in the table")]
    return [
        verdicts.identity(series, float(part["y"].iloc[0]), 0.0, float(part["x"].iloc[0]))
        for series, part in found
    ]
