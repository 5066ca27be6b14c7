"""Thresholds at which two layers of attention begin to be learned, over the skip connection c
(docs/science/multi-index.md, section 4).

The layer of the larger eigenvalue lambda at Q = 0 is first, at alpha = 1 / lambda, with no noise
(`table.weak_recovery`): layer 2 of softmax attention, layer 1 of linear attention with c up to
about 1. The other one, layer 1 say, has two definitions. Literal: layer 2 is known, and
lambda_1 = T (T + 1) = 6 whatever c > 0 is. Then z_1 is given up to its sign, and alpha_1 = 1/6, a
bound of every threshold; it is approached so slowly as V22 falls that it says little.
Self-consistent: alpha lambda_1 = 1 along alpha(Q22), the curve of layer 2 alone, which is what
state evolution does.

Where alpha(Q) of the first layer falls before it rises again, its overlap jumps: from below at the
spinodal, the largest alpha up to which small overlaps are stable, and in the free entropy at the
`transition` before it. As phi' = (alpha G - Q / V) / 2 and G = Q / (V alpha(Q)), that is where the
integral of phi' between the two stable overlaps is 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq
from threadpoolctl import threadpool_limits

from manybody.io.progress import Progress
from manybody.io.tables import listed
from manybody.theory.multi_index.samples import Setting, draws, mean_error
from manybody.theory.multi_index.table import Weak, onset, onset_guess, single_layer, weak_recovery

LITERAL = 1 / 6  # 1 / T (T + 1), T = 2
BRANCH = (
    0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9,
)  # fmt: skip
BRANCH_POINTS = 1024  # samples of the curve alpha(Q), of each of BRANCH_SCRAMBLES
BRANCH_SCRAMBLES = 4
SIGNIFICANT = 3.0  # standard errors by which alpha has to fall along the branch
FINE = 4001  # places of an interpolated branch


@dataclass(frozen=True)
class Onset:
    """alpha where the second layer starts and 1 - Q of the first one there, with standard errors;
    each: alpha of each scrambling."""

    alpha: float
    alpha_error: float
    variance: float
    variance_error: float
    each: np.ndarray


def second_layer(
    setting: Setting, points: int, streams: Sequence[np.random.SeedSequence], weak: Weak
) -> Onset:
    """The self-consistent threshold of the layer that is learned second, from a scrambling of
    `points` samples by each of `streams`.

    Their number is given: to stop where the error of a few happens to be small would leave errors
    that are too small.
    """
    found: list[tuple[float, float]] = []
    for stream in streams:
        normal = draws(points, stream)
        guess = found[-1][0] if found else onset_guess(setting, normal[:512], weak.first)
        found.append(onset(setting, normal, guess, weak))
    (alpha, variance), errors = mean_error([(each[1], 1 - each[0]) for each in found])
    each = np.array([alpha for _, alpha in found])
    return Onset(float(alpha), float(errors[0]), float(variance), float(errors[1]), each)


@dataclass(frozen=True)
class Thresholds:
    """The layer (1 or 2) that is learned first, its alpha, that of the other one and its standard
    error."""

    first: int
    alpha_first: float
    alpha_second: float
    error: float


def at_skip(skip: float, activation: str, points: int, scrambles: int, seed: int) -> Thresholds:
    """The thresholds of both layers at one c > 0, without a regulariser."""
    setting = Setting(skip, activation)
    with threadpool_limits(1):
        weak = weak_recovery(setting)
        streams = np.random.SeedSequence(seed).spawn(scrambles)
        second = second_layer(setting, points, streams, weak)
    return Thresholds(weak.first + 1, weak.alpha, second.alpha, second.alpha_error)


def jump(overlaps: Sequence[float], alphas: Sequence[float]) -> tuple[float, float] | None:
    """The jump of a branch alpha(Q22), (m,) each, from Q22 = 0 on; None where alpha only rises.

    alpha where small overlaps stop being stable, and where the free entropies of small and large
    ones are equal (not a number where that is beyond the branch).
    """
    q = np.linspace(overlaps[0], overlaps[-1], FINE)
    curve = PchipInterpolator(overlaps, alphas)(q)
    falls = np.flatnonzero(np.diff(curve) < 0)
    if not len(falls):
        return None
    top, bottom = falls[0], falls[-1] + 1
    spinodal, lower = curve[top], curve[bottom]
    # Trapezoids on a fine lattice: the integrand is steep towards Q22 = 1, as Q22 / V22 is.
    odds = q / (1 - q)

    def difference(alpha: float) -> float:
        first = int(np.searchsorted(curve[: top + 1], alpha))
        last = bottom + int(np.searchsorted(curve[bottom:], alpha))
        part = slice(first, last + 1)
        return float(np.trapezoid(odds[part] * (alpha / curve[part] - 1), q[part]))

    low, high = max(lower, curve[0]), spinodal
    if curve[-1] < spinodal or difference(low) >= 0 or difference(high) <= 0:
        return float(spinodal), math.nan
    return float(spinodal), float(brentq(difference, low, high, xtol=1e-7))


def compute(entry: dict) -> tuple[pd.DataFrame, dict]:
    """The table of one entry of the config, and what it was made from.

    entry: the keys of `config.theory.Thresholds`. x is c. Quantities, by series, of a c at which
    layer 2 is learned first; 1 and 2 are swapped where layer 1 is:

    - `alpha_1`: literal, 1/6; self-consistent, with `converged` alpha_1;
    - `alpha_2`: exact;
    - `alpha_1 difference`: from that at the c closest to 1, the series, over the same samples;
    - `first order`: 1 where alpha falls along the curve of layer 2 alone, y_err none; `spinodal`,
      `transition` where it does;
    - `alpha_1 jump`: at c with a jump over the onset of layer 1, the alpha of the jump.
    """
    rows: list[tuple] = []
    onsets: list[Onset] = []
    layers: list[int] = []
    skips = sorted(entry["skips"])
    with threadpool_limits(1), Progress(len(skips), "values of c", "thresholds") as progress:
        for skip in skips:
            setting = Setting(skip, entry["activation"], entry["regulariser"], entry["threads"])
            weak = weak_recovery(setting)
            # The same points at every c: what differs between them is not noise. Seeds are made
            # anew, as Sobol sequences move them.
            own, branches = np.random.SeedSequence(entry["seed"]).spawn(2)
            found = second_layer(setting, entry["points"], own.spawn(entry["scrambles"]), weak)
            onsets.append(found)
            layers.append(2 - weak.first)
            name = f"alpha_{layers[-1]}"
            converged = float(found.alpha_error < entry["tolerance_1"] * found.alpha)
            rows += [
                (f"alpha_{weak.first + 1}", "exact", skip, weak.alpha, math.nan),
                (name, "self-consistent", skip, found.alpha, found.alpha_error),
                (name, "literal", skip, LITERAL, math.nan),
                ("converged", name, skip, converged, math.nan),
                *_branch(setting, weak, found, branches.spawn(BRANCH_SCRAMBLES)),
            ]
            progress.update(1, c=skip, **{name: found.alpha})
    rows += _differences(skips, onsets, layers)
    return listed(rows, entry, entry["seed"])


def _differences(
    skips: Sequence[float], onsets: Sequence[Onset], layers: Sequence[int]
) -> list[tuple]:
    """The self-consistent threshold less that of the same layer at the c closest to 1, scrambling
    by scrambling, whose common noise drops out."""
    rows = []
    for layer in sorted(set(layers)):
        same = [k for k, found in enumerate(layers) if found == layer]
        middle = min(same, key=lambda k: abs(math.log(skips[k])))
        for k in same:
            pair = mean_error(onsets[k].each - onsets[middle].each)
            name = f"alpha_{layer} difference"
            rows.append((name, f"c = {skips[middle]:g}", skips[k], *pair))
    return rows


def _branch(setting: Setting, weak: Weak, onset_found: Onset, streams: Sequence) -> list[tuple]:
    """Rows on the fall of alpha along the curve of the first layer alone, and the jump there."""
    c = setting.skip
    places = [q for q in BRANCH if q < 1 - onset_found.variance] + [1 - onset_found.variance]
    curves = [
        single_layer(places, setting, draws(BRANCH_POINTS, stream), weak.alpha, 0.0, weak.first)
        for stream in streams
    ]
    alphas = np.array([curve.alphas for curve in curves])
    alpha = mean_error(alphas)[0]
    overlaps = np.array([0.0, *places])
    # What falls is judged by differences within a scrambling, whose common noise drops out.
    fall, fall_error = mean_error(np.diff(alphas, axis=1))
    falls = bool((fall[1:] < -SIGNIFICANT * fall_error[1:]).any())
    found = jump(overlaps, alpha) if falls else None
    rows = [("first order", "", c, float(found is not None), math.nan)]
    if found is not None:
        spinodal, transition = found
        rows += [
            ("spinodal", "", c, spinodal, math.nan),
            ("transition", "", c, transition, math.nan),
        ]
        if spinodal > onset_found.alpha:
            rows.append((f"alpha_{2 - weak.first} jump", "", c, spinodal, math.nan))
    return rows
