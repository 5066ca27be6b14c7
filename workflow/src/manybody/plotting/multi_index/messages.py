"""What figures 1 and 2 say of message passing: `theory.multi_index.gamp`, a run a seed.

Cosines are compared rather than overlaps, since M converges to |w|^2 / D, not to 1 (multi-index,
section 7); cosine^2 is the overlap of a teacher of norm one at the Bayes-optimal fixed point.
"""

import math

import numpy as np
import pandas as pd

from manybody import checks
from manybody.plotting.multi_index import reading
from manybody.plotting.multi_index.reading import Table

# Section 5: D = 1000, regulariser 1e-3, converged; overlaps with the teacher, of layer 1 also Q.
SETTING = {"skip": 1, "regulariser": 1e-3}
CONVERGED = {
    "M22": {0.4: 0.46, 0.6: 0.88, 1.0: 0.97, 1.2: 1.03},
    "M11": {0.4: 0.0, 0.6: 0.0, 1.0: 0.68, 1.2: 0.89},
    "Q11": {1.0: 0.61, 1.2: 0.82},
}
FINITE = 0.06  # at D = 1000
NEAR = (0.85, 1.25)  # times a threshold: finite D rounds the onset off between these
# The first iterations from (Q11, Q22) = (.3, .6) at alpha = 1.2, without damping.
STEPS = ((0.083, 0.804), (0.044, 0.904), (0.042, 0.951), (0.059, 0.972))
START, ALPHA = [0.3, 0.6], 1.2
FINITE_STEP = (0.03, 1500)  # of both, and of GAMP's iteration at this D
PAIR = reading.width(2)  # errors of predictions are from two sets of points
# Section 5, stored public data: converged overlaps and errors of D = 1000.
PUBLIC = {
    "Q22": {0.2: 0.014, 0.3: 0.219, 0.4: 0.494, 0.5: 0.773, 0.6: 0.913},
    "Q11": {0.9: 0.26, 1.0: 0.52, 1.1: 0.77, 1.2: 0.83, 1.5: 0.90},
    "error plug-in": {0.1: 0.385, 0.5: 0.183, 1.0: 0.0240, 1.2: 0.0055},
}
CLOSE = 0.05  # to public data


def runs(table: Table) -> str:
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
    return [alpha for alpha, series in alphas(table).items() if _failures(table, series)]


def _failures(table: Table, series: str) -> int:
    return int((table.get("converged", series)["y"] < 1).sum())


def final(table: Table) -> dict[str, pd.DataFrame]:
    """cosine^2 of both layers and the plug-in error at the last iteration: means over runs."""
    found = {}
    for quantity in ("cosine 1", "cosine 2", "error plug-in"):
        rows = []
        for alpha, series in sorted(alphas(table).items()):
            values = last(table, quantity, series)
            squared = values**2 if quantity.startswith("cosine") else values
            rows.append((alpha, *reading.mean(squared)))
        found[quantity] = pd.DataFrame(rows, columns=["x", "y", "y_err"])
    return found


# --- The checks ----------------------------------------------------------------------------------


def rows(table: Table, theories: list[Table], figure: str) -> list[dict]:
    """GAMP at convergence: the specification's numbers, state evolution, public data."""
    return [
        *_converged_rows(table, figure),
        *_theory_rows(table, theories, figure),
        *step_rows(table, figure),
        *_public_rows(table, figure),
    ]


def _mean_at(table: Table, quantity: str, alpha: float) -> tuple[float, float] | None:
    known = [series for value, series in alphas(table).items() if math.isclose(value, alpha)]
    if not known:
        return None
    values = last(table, quantity, known[0]).abs()
    return reading.judged_mean(values) if len(values) else None


def _converged_rows(table: Table, figure: str) -> list[dict]:
    """Where all layers that can be are learned; a start that leaves some runs behind is not it."""
    away = reading.departure(table.entry, dimension=1000, **SETTING) or _uninformed(table)
    text = f"{figure}: GAMP, D = 1000, V + 1e-3, converged"
    if away:
        names = ", ".join(CONVERGED)
        return [checks.not_run(f"{text}: {names}", away, "statistical")]
    return [
        reading.at_landmark(
            f"{text}: {quantity} at alpha = {alpha:g} (mean of {runs(table)})",
            _mean_at(table, quantity, alpha),
            value,
            FINITE,
        )
        for quantity, expected in CONVERGED.items()
        for alpha, value in expected.items()
    ]


def _uninformed(table: Table) -> str:
    """Why runs need not end at the optimal fixed point; empty if they start like a posterior."""
    return "" if overlaps(table) else "the random start is no posterior's; some runs end elsewhere"


def overlaps(table: Table) -> list[float] | None:
    """Those of an informed start; None for the random one."""
    return table.entry["overlaps"] if table.entry["start"] == "informed" else None


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


def _theory_rows(table: Table, theories: list[Table], figure: str) -> list[dict]:
    """Where every run converged, cosine^2 is the overlap of state evolution, up to finite size."""
    entry = table.entry
    size, regulariser = entry["dimension"], entry["regulariser"]
    claim = f"{figure}: GAMP at convergence = state evolution, D = {size}, V + {regulariser:g}"
    known = [
        theory
        for theory in theories
        if not reading.departure(
            theory.entry, skip=entry["skip"], regulariser=regulariser, activation="softmax"
        )
    ]
    thresholds = [
        found[0]
        for theory in known or theories
        for name in ("alpha_2", "alpha_1")
        if (found := theory.at("threshold", name, entry["skip"])) is not None
    ]
    away = "" if known else "no theory with the same c and regulariser"
    if not math.isclose(entry["noise"], regulariser, abs_tol=1e-12):
        away = f"the data's noise is {entry['noise']:g}, not the regulariser"
    away = away or _uninformed(table)
    lines = []
    for layer in reading.LAYERS:
        text = f"{claim}: cosine^2 of layer {layer} - Q{layer}{layer}"
        if away:
            lines.append(checks.not_run(text, away, "statistical"))
        else:
            values = {
                alpha: known[0].between("overlap", f"Q{layer}{layer}", alpha)
                for alpha in alphas(table)
            }
            lines.append(_agreement(text, table, layer, values, thresholds))
        text = f"{figure}: GAMP at convergence = its iteration at D -> infinity, D = {size}"
        text = f"{text}: cosine^2 of layer {layer}"
        ends = {
            alpha: (float(found["y"].iloc[-1]), PAIR * float(found["y_err"].iloc[-1]))
            for alpha, series in alphas(table).items()
            if len(found := predicted(table, layer, series))
        }
        if ends and not _uninformed(table):
            lines.append(_agreement(text, table, layer, ends, thresholds))
    return lines


def _agreement(claim: str, table: Table, layer: int, known: dict, thresholds: list) -> dict:
    """The largest difference of GAMP from theory among alphas where finite D should not matter."""
    left_out = [*failed(table)]
    left_out += [
        alpha
        for alpha in alphas(table)
        if any(NEAR[0] * threshold < alpha < NEAR[1] * threshold for threshold in thresholds)
    ]
    values, expected = {}, {}
    for x, y, error in final(table)[f"cosine {layer}"].itertuples(index=False):
        if known.get(x) is not None and x not in left_out:
            error *= reading.width(table.entry["runs"])
            values[x] = (y, math.hypot(error, np.nan_to_num(known[x][1])))
            expected[x] = known[x][0]
    claim += ", converged and away from thresholds"
    finite = FINITE * math.sqrt(1000 / table.entry["dimension"])
    return reading.largest_difference(claim, values, expected, finite, "statistical")


def step_rows(table: Table, figure: str) -> list[dict]:
    """Iteration by iteration from the start of the specification's table."""
    entry = table.entry
    away = reading.departure(entry, damping=1, **SETTING)
    series = [name for alpha, name in alphas(table).items() if math.isclose(alpha, ALPHA)]
    if not series:
        away = f"alpha = {ALPHA:g} was not run"
    if not away and overlaps(table) != START:
        found = f"{entry['start']}, overlaps {entry['overlaps']}"
        away = f"the start is {found}; informed, {START} is needed"
    text = f"{figure}: from (Q11, Q22) = (.3, .6), alpha = {ALPHA:g}, V + 1e-3"
    if away:
        return [checks.not_run(f"{text}: the first iterations", away, "statistical")]
    bound, size = FINITE_STEP
    finite = bound * max(1.0, math.sqrt(size / entry["dimension"]))
    lines = []
    for step, landmark in enumerate(STEPS, start=1):
        for layer, value in zip(reading.LAYERS, landmark, strict=True):
            name = f"Q{layer}{layer}"
            known = table.at(f"SE {name}", series[0], step)
            claim = f"{text}: {name} of state evolution after iteration {step}"
            known = known and (known[0], PAIR * known[1])
            lines.append(reading.at_landmark(claim, known, value, bound))
            ours = table.get(f"cosine {layer}", series[0])
            ours = reading.judged_mean(ours.loc[ours["x"] == step, "y"] ** 2)
            theory = predicted(table, layer, series[0])
            theory = theory.loc[theory["x"] == step, "y"]
            claim = f"{text}: cosine^2 of layer {layer} after iteration {step}, {runs(table)}"
            if not len(theory) or math.isnan(ours[0]):
                lines.append(checks.not_run(claim, "not in the table", "statistical"))
            else:
                expected = float(theory.iloc[0])
                lines.append(checks.within(claim, *ours, expected, finite, "statistical"))
    return lines


def _public_rows(table: Table, figure: str) -> list[dict]:
    """The stored public runs: one start each, their number is not known."""
    away = reading.departure(table.entry, dimension=1000, **SETTING)
    lines = []
    for quantity, expected in PUBLIC.items():
        claim = f"{figure}: GAMP, D = 1000, public data: {quantity}"
        if away:
            lines.append(checks.not_run(claim, away))
            continue
        found = {alpha: _mean_at(table, quantity, alpha) for alpha in expected}
        lines.append(reading.largest_difference(claim, found, expected, CLOSE))
    return lines
