"""What figures 1 and 2 say of message passing: `theory.multi_index.gamp`, a run a seed.

Cosines are compared rather than overlaps, since M converges to |w|^2 / D, not to 1 (multi-index,
section 7); cosine^2 is the overlap of a teacher of norm one at the Bayes-optimal fixed point.
"""

import math

from manybody.claims import reading, verdicts
from manybody.claims.multi_index import gates
from manybody.claims.multi_index.gates import Gate, place
from manybody.claims.multi_index.runs import (
    ACROSS,
    ALPHA,
    alphas,
    last,
    number,
    overlaps,
    predicted,
)
from manybody.claims.reading import Table, Value
from manybody.theory.multi_index.sizes import SETS

SETTING = {"skip": 1, "regulariser": 1e-3}
FINITE = 0.06  # at D = 1000
# Times a threshold: finite D rounds the onset off between these.
NEAR = (0.85, 1.25)
# The first iterations from (Q11, Q22) = (.3, .6) at alpha = 1.2, without damping.
STEPS = ((0.083, 0.804), (0.044, 0.904), (0.042, 0.951), (0.059, 0.972))
START = [0.3, 0.6]
FINITE_STEP = (0.03, 1500)  # of both, and of GAMP's iteration at this D
# What one run scatters by at D = 1000, measured: cosine^2 after a step.
SPREAD_STEP = 0.025
# cosine^2 at convergence, away from thresholds, by layer: below and above an alpha. The overlap of
# layer 2 rises steeply below, and teachers and data of this size move the curve by .03 in alpha.
SPREAD_END = {1: (0.01, 0.55, 0.04), 2: (0.07, 0.55, 0.015)}
# |M21| of a learned layer 2 in units of 1 / sqrt(D), measured at D = 400 and 1000: the mean, and
# what a run scatters by. Directions drawn apart have .8 and .6; |M12| and |Q12| are not larger.
ACROSS_ONE = (1.0, 0.8)
SPREAD_PREDICTED = 0.012  # of overlaps at D -> infinity, of one set of 256 points
# Section 5, stored public data: converged overlaps and errors of D = 1000.
PUBLIC = {
    "Q22": {0.2: 0.014, 0.3: 0.219, 0.4: 0.494, 0.5: 0.773, 0.6: 0.913},
    "Q11": {0.9: 0.26, 1.0: 0.52, 1.1: 0.77, 1.2: 0.83, 1.5: 0.90},
    "error plug-in": {0.1: 0.385, 0.5: 0.183, 1.0: 0.0240, 1.2: 0.0055},
}
CLOSE = 0.05  # to public data


def _converged(quantity: str, alpha: float, square: bool = False):
    """Finds the mean, at the last iteration, over the runs that converged.

    At finite size some go on fluctuating. One of several, or none, is no mean.
    """

    def find(table: Table) -> Value | str:
        known = [series for value, series in alphas(table).items() if math.isclose(value, alpha)]
        if not known:
            return "missing in the table"
        series = known[0]
        converged = table.get("converged", series).set_index("seed")["y"] == 1
        if converged.sum() < min(2, len(converged)):
            return f"{(~converged).sum()} of {number(table)} not converged"
        values = last(table, quantity, series)[converged].abs()
        return reading.mean(values**2 if square else values) if len(values) else "no values"

    return find


# --- The claims ----------------------------------------------------------------------------------


def claims(table: Table, theories: list[Table], figure: str) -> list[dict]:
    """GAMP at convergence and step by step: state evolution, and the stored public data."""
    found = theory_gates(table.entry, theories, figure) + step_gates(table.entry, figure)
    return [*gates.claims(found, table), *_public_claims(table, figure)]


def theory_gates(entry: dict, theories: list[Table], figure: str) -> list[Gate]:
    """At convergence cosine^2 is the overlap of state evolution, up to finite size: at each alpha
    away from thresholds, where the channel knows the data's noise and the start is a posterior's.

    theories: of the figure; that with the same c and regulariser gives overlaps and thresholds.
    """
    skip, size, regulariser = entry["skip"], entry["dimension"], entry["regulariser"]
    known = [
        theory
        for theory in theories
        if not reading.departure(
            theory.entry, skip=skip, regulariser=regulariser, activation="softmax"
        )
    ]
    same_noise = math.isclose(entry["noise"], regulariser, abs_tol=1e-12)
    if not known or not same_noise or not overlaps(entry):
        return []
    theory = known[0]
    starts = [theory.at("threshold", name, skip) for name in ("alpha_2", "alpha_1")]
    starts = [start.value for start in starts if start is not None]
    finite = FINITE * math.sqrt(1000 / size)
    found = []
    for alpha in entry["alphas"]:
        if any(NEAR[0] * start < alpha < NEAR[1] * start for start in starts):
            continue
        for layer in reading.LAYERS:
            name = f"Q{layer}{layer}"
            claim = (
                f"{figure}: GAMP at convergence = state evolution, D = {size}, "
                f"V + {regulariser:g}, alpha = {alpha:g}: cosine^2 of layer {layer} - {name} "
                f"(mean of those of {entry['runs']} runs that converged)"
            )
            finder = _converged(f"cosine {layer}", alpha, square=True)
            stated = _overlap(theory, name, alpha)
            low, border, high = SPREAD_END[layer]
            scatter = low if alpha < border else high
            error = scatter * math.sqrt(1000 / size / entry["runs"])
            found.append(Gate(claim, finder, stated, finite, error, entry["runs"]))
    return found


def across_gates(entry: dict, figure: str) -> list[Gate]:
    """Overlaps of different layers vanish as 1 / sqrt(D): g is odd in the omega of its own layer
    and even in the other's, so that state evolution keeps them at 0. Each run at each alpha has a
    teacher of its own and counts once."""
    size, count = entry["dimension"], entry["runs"] * len(entry["alphas"])
    finite = FINITE * math.sqrt(1000 / size)
    mean, scatter = (part / math.sqrt(size) for part in ACROSS_ONE)
    error = scatter / math.sqrt(count)
    if mean + verdicts.margin(error, count) >= finite:
        return []  # a size is not 0: the gate needs room for it as well
    claim = (
        f"{figure}: overlaps of different layers vanish, D = {size}: mean of |M12|, |M21| or "
        f"|Q12|, the largest, over the runs of {len(entry['alphas'])} alphas that converged"
    )
    return [Gate(claim, _across, 0.0, finite, error, count)]


def _across(table: Table) -> Value | str:
    """The largest mean size of an overlap of different layers."""
    sizes = {quantity: [] for quantity in ACROSS}
    for series in alphas(table).values():
        converged = table.get("converged", series).set_index("seed")["y"] == 1
        for quantity in ACROSS:
            values = last(table, quantity, series)
            if not len(values):
                return "missing in the table"
            sizes[quantity] += values[converged].tolist()
    found = [reading.mean(values) for values in sizes.values()]
    if found[0].runs < 2:
        return "fewer than two runs converged"
    return max(found, key=lambda each: math.inf if math.isnan(each.value) else each.value)


def _overlap(theory: Table, name: str, alpha: float):
    """Finds state evolution's overlap, which is not in the table of message passing."""

    def find(_: Table) -> Value | str:
        if any(math.isclose(alpha, failed) for failed in theory.failed("from 0")):
            return "state evolution did not converge"
        found = theory.between("overlap", name, alpha)
        return "outside of state evolution's alphas" if found is None else found

    return find


def step_gates(entry: dict, figure: str) -> list[Gate]:
    """Iteration by iteration from the start of the specification's table: of the same iteration at
    D -> infinity its numbers, and of the runs that iteration."""
    known = any(math.isclose(alpha, ALPHA) for alpha in entry["alphas"])
    away = reading.departure(entry, damping=1, **SETTING)
    if away or not known or not entry["points"] or overlaps(entry) != START:
        return []
    same_noise = math.isclose(entry["noise"], entry["regulariser"], abs_tol=1e-12)
    series = f"{ALPHA:g}"
    text = f"{figure}: from (Q11, Q22) = (.3, .6), alpha = {ALPHA:g}, V + 1e-3"
    bound, size = FINITE_STEP
    finite = bound * max(1.0, math.sqrt(size / entry["dimension"]))
    theirs = SPREAD_PREDICTED * math.sqrt(256 / entry["points"] / SETS)
    ours = SPREAD_STEP * math.sqrt(1000 / entry["dimension"] / entry["runs"])
    found = []
    for step, landmark in enumerate(STEPS, start=1):
        if step > entry["iterations"]:
            break
        for layer, value in zip(reading.LAYERS, landmark, strict=True):
            name = f"Q{layer}{layer}"
            claim = f"{text}: {name} of state evolution after iteration {step}: specification"
            finder = place(f"SE {name}", series, step, runs=SETS)
            if same_noise:  # which the specification's map is with
                found.append(Gate(claim, finder, value, bound, theirs, SETS))
            claim = f"{text}: cosine^2 of layer {layer} after iteration {step}, "
            claim += f"{entry['runs']} runs, less that at D -> infinity"
            error, runs = gates.combined((ours, entry["runs"]), (theirs, SETS))
            finder = _step(layer, series, step)
            found.append(Gate(claim, finder, 0.0, finite, error, runs))
    return found


def _step(layer: int, series: str, step: int):
    """Finds the mean of cosine^2 after a step, less that at D -> infinity."""

    def find(table: Table) -> Value | str:
        ours = table.get(f"cosine {layer}", series)
        theory = predicted(table, layer, series)
        theory = theory[theory["x"] == step]
        ours = ours.loc[ours["x"] == step, "y"] ** 2
        if not len(theory) or not len(ours):
            return "missing in the table"
        ours, (_, y, error) = reading.mean(ours), theory.iloc[0]
        return Value(ours.value - y, *gates.combined((ours.error, ours.runs), (error, SETS)))

    return find


def _public_claims(table: Table, figure: str) -> list[dict]:
    """The stored public runs: one start each, their number is not known. Alphas at which one of
    ours did not converge are left out."""
    if reading.departure(table.entry, dimension=1000, **SETTING):
        return []
    lines = []
    for quantity, stated in PUBLIC.items():
        found = {alpha: _converged(quantity, alpha)(table) for alpha in stated}
        found = {alpha: None if isinstance(v, str) else v for alpha, v in found.items()}
        claim = f"{figure}: GAMP, D = 1000, public data: {quantity}"
        lines.append(gates.largest_difference(claim, found, stated, CLOSE))
    return lines
