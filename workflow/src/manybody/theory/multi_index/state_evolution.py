"""State evolution of two layers of attention: what is learned at alpha = N / D samples an input.

Tied weights, two tokens, rank 1 (docs/science/multi-index.md, sections 2 and 4). A step is

    Qhat = alpha G(Q) + s I,   Q <- Qhat (I + Qhat)^-1,   G(Q) = E sum_t g_t g_t^T,

with s the strength of side information, 0 unless said. G does not know alpha, so fixed points are
read from curves of alpha over Q without iterating (`table`): of the layer that is learned first
alone, from its exact threshold at Q = 0, and of both, from where the other one starts on the first
curve. `informed` iterates instead, down from strong side information, as a check.
"""

import logging
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from scipy.special import expit, logit, ndtr, stdtrit
from threadpoolctl import threadpool_limits

from manybody.io.progress import Progress
from manybody.io.tables import joined, rows
from manybody.theory.multi_index import table
from manybody.theory.multi_index.samples import (
    Setting,
    averages,
    draws,
    mean_error,
    prediction_errors,
)
from manybody.theory.multi_index.table import Curve, Weak

log = logging.getLogger(__name__)

PERFECT = 1.0  # alpha from which both layers are known: two equations a sample, 2 D unknowns
TOLERANCE = 2e-5  # of logit Q, where an iteration stops
ITERATIONS = 150  # some 20 are enough, but where a layer is about to be lost
LONGEST = 1.5  # step of an iteration, of logit Q
DIFFERENCE = 0.1  # of logit Q, for its first slopes
NONE = 1e-3  # overlap below which a layer that does not grow is taken to be 0
FULL = 4e-6  # 1 - Q at which an iteration is held: on the way to Q = I layer 2 is far ahead
# Errors of prediction are means over so many scramblings of so many samples.
ERROR_POINTS, ERROR_SCRAMBLES = 2**16, 4
RANDOM = 10  # overlaps at which identities are tested
BATCHES = 32  # scramblings that they are tested on
DEVIATIONS = 3.0  # standard errors that a normal number exceeds as rarely as an identity may fail
SHIFT = 2e-3  # of log V, for derivatives


# --- From strong side information ----------------------------------------------------------------


@dataclass(frozen=True)
class Fixed:
    """overlaps (2,); whether the iteration ended; its jacobian, for a next one."""

    overlaps: np.ndarray
    converged: bool
    jacobian: np.ndarray | None


def fixed_point(
    alpha: float,
    initial: Sequence[float],
    setting: Setting,
    normal: np.ndarray,
    fixed_layer: int | None = None,
    jacobian: np.ndarray | None = None,
) -> Fixed:
    """The fixed point that state evolution reaches from Q = diag(initial).

    In logit Q, where an iteration adds F = log alpha G - logit Q and comes closer by a few percent,
    by Broyden's method, of steps up to LONGEST. As each layer helps the other and the iteration is
    stable, the inverse of -dF / dlogit Q has no negative entry; where that is lost differences are
    taken again, and if that fails a step is the iteration's, or LONGEST down below NONE.

    A layer goes to 0 below NONE if alpha lambda < 1 at 0, or below NONE^2; 1 - Q is at least FULL.
    `fixed_layer` keeps its overlap; jacobian: dF / dlogit Q at first, by differences if None.
    """
    Q = np.minimum(np.array(initial, dtype=float), 1 - FULL)
    top = logit(1 - FULL)
    before = None

    def ask(Q, moving):
        gain = averages(Q, setting, normal).gain
        u = logit(Q[moving])
        F = np.log(alpha * np.maximum(np.diag(gain)[moving], 1e-12)) - u
        return u, np.minimum(F, top - u)

    for _ in range(ITERATIONS):
        moving = (Q > 0) & (np.arange(2) != fixed_layer)
        u, F = ask(Q, moving)
        if np.abs(F).max(initial=0) < TOLERANCE:
            return Fixed(Q, True, jacobian)
        if before is not None:
            du, dF = u - before[0], F - before[1]
            if (size := du @ du) > 0:
                jacobian = jacobian + np.outer(dF - jacobian @ du, du) / size
        inverse = _inverse(jacobian, len(u))
        if inverse is None:
            jacobian = _jacobian(ask, Q, moving, F)
            inverse = _inverse(jacobian, len(u))
        if inverse is not None:
            step = inverse @ F
        else:  # the iteration's, of which a layer that is all but lost would take hundreds
            step = np.where((Q[moving] < NONE) & (F < 0), -LONGEST, F)
        before = u, F
        Q[moving] = np.minimum(expit(u + np.clip(step, -LONGEST, LONGEST)), 1 - FULL)
        for layer in np.flatnonzero(moving & (Q < NONE)):
            without = Q.copy()
            without[layer] = 0
            eigenvalue = averages(without, setting, normal).eigenvalue[layer]
            if alpha * eigenvalue < 1 or Q[layer] < NONE**2:
                Q, jacobian, before = without, None, None
    return Fixed(Q, False, None)


def _inverse(jacobian: np.ndarray | None, size: int) -> np.ndarray | None:
    """The inverse of -dF / dlogit Q, if one of `size` layers has no negative entries."""
    if jacobian is None or len(jacobian) != size:
        return None
    inverse = np.linalg.pinv(-jacobian)
    return None if (inverse < -1e-9).any() else inverse


def _jacobian(ask, Q, moving, F) -> np.ndarray:
    """dF / dlogit Q of the moving layers, by differences downwards. Of two layers that hardly see
    each other the samples may say that one hinders the other: that counts as 0."""
    columns = []
    for layer in np.flatnonzero(moving):
        shifted = Q.copy()
        shifted[layer] = expit(logit(Q[layer]) - DIFFERENCE)
        columns.append((F - ask(shifted, moving)[1]) / DIFFERENCE)
    found = np.column_stack(columns)
    return np.where(np.eye(len(found), dtype=bool), found, np.maximum(found, 0))


def informed(
    alphas: Sequence[float], strength: float, setting: Setting, normal: np.ndarray
) -> list[Fixed]:
    """The fixed points above all others at rising `alphas`: from side information of `strength`,
    Q = s / (1 + s) for both layers, which is taken away for the iteration. That of one alpha is
    above that of a smaller one, as G grows with Q, and so is the next start."""
    found = []
    initial, jacobian = np.full(2, strength / (1 + strength)), None
    for alpha in reversed(alphas):
        found.append(fixed_point(alpha, initial, setting, normal, jacobian=jacobian))
        initial, jacobian = found[-1].overlaps, found[-1].jacobian
    return found[::-1]


# --- Numbers of the figures ----------------------------------------------------------------------


def compute(entry: dict) -> tuple[pd.DataFrame, dict]:
    """The table of one entry of the config, and what it was made from.

    entry: keys of `config.theory.StateEvolution`. Quantities, by series, x is alpha if not stated:

    - `overlap`: Q11, Q22 from near 0, the table; `overlap informed`: from strong side information,
      by iteration of the first scrambling: its difference from the table's of that scrambling is
      added to the mean; `converged`: 1 or 0, from 0 and informed;
    - `error plug-in`, `error posterior mean`: both layers; layer 2 only, or layer 1 only, of the
      one that is learned first;
    - `threshold`: alpha_1, alpha_2, x c: exact of the layer that is learned first, self-consistent
      of the other.

    Where one of the `identities` does not hold at random full Q, which says that averages are
    wrong, the document has a sentence on it under `broken`, and it is logged.
    """
    setting = Setting(entry["skip"], entry["activation"], entry["regulariser"], entry["threads"])
    with threadpool_limits(1):
        streams = np.random.SeedSequence(entry["seed"]).spawn(3)
        normals = [draws(entry["points"], seed) for seed in streams[0].spawn(entry["scrambles"])]
        alphas = np.array(sorted(entry["alphas"]))
        # Of a table, each about as long as an alpha from above.
        places = len(table.SINGLE_LAYER) + len(table.BOTH)
        steps = len(normals) * places + len(alphas) + 3
        with Progress(steps, "overlaps", f"state evolution, c = {setting.skip:g}") as progress:
            weak = table.weak_recovery(setting)
            rough = table.onset_guess(setting, normals[0][:512], weak.first)
            curves = []
            for normal in normals:
                given = table.SINGLE_LAYER, setting, normal, weak.alpha, alphas[-1], weak.first
                single = table.single_layer(*given)
                start = table.onset(setting, normal, rough, weak)
                pair = table.both(table.BOTH, setting, normal, start, alphas[-1], weak)
                curves.append((single, pair))
                progress.update(places)
            later = mean_error([pair.alphas[0] for _, pair in curves])
            parts = [
                rows("threshold", f"alpha_{2 - weak.first}", [setting.skip], *later),
                rows("threshold", f"alpha_{weak.first + 1}", [setting.skip], weak.alpha),
            ]
            regular = setting.regulariser > 0
            each = [read_curves(*pair, alphas, weak, regular) for pair in curves]
            overlaps, alone, reached = zip(*each, strict=True)
            parts += _layers("overlap", alphas, *mean_error(overlaps))
            parts.append(rows("converged", "from 0", alphas, np.all(reached, axis=0)))
            progress.update(1)
            far = informed(list(alphas), entry["side_information"], setting, normals[0])
            parts.append(rows("converged", "informed", alphas, [fixed.converged for fixed in far]))
            Q = np.array([fixed.overlaps for fixed in far])
            if not regular:  # where an iteration is held both layers are known
                Q[(Q >= 1 - FULL) & (alphas >= PERFECT)[:, None]] = 1.0
            # Both from one scrambling, so that most noise drops out of the difference.
            Q += mean_error(overlaps)[0] - overlaps[0]
            parts += _layers("overlap informed", alphas, Q)
            progress.update(len(alphas))
            given = {"both layers": overlaps, f"layer {weak.first + 1} only": alone}
            parts += _errors(given, setting, alphas, streams[1])
            progress.update(1)
            broken = broken_identities(_identities(setting, entry, streams[2]))
            progress.update(1)
    frame, about = joined(parts, entry)
    if broken:
        log.warning("identities do not hold: %s", "; ".join(broken))
        about["broken"] = broken
    return frame, about


def _layers(quantity: str, x: np.ndarray, y: np.ndarray, errors=math.nan) -> list[pd.DataFrame]:
    """Rows of y (m, 2), a layer each, with one error for all or errors (m, 2)."""
    errors = np.broadcast_to(errors, y.shape)
    return [rows(quantity, f"Q{k + 1}{k + 1}", x, y[:, k], errors[:, k]) for k in range(2)]


def read_curves(
    single: Curve, pair: Curve, alphas: np.ndarray, weak: Weak, regular: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Overlaps (m, 2) from near 0, those of the layer that is learned first alone (m, 2), and
    whether the former are found (m,): beyond the end of a curve they are its end's, not found.
    Without a regulariser they are 1 from PERFECT on."""
    first = table.read(single, weak.first, alphas).overlaps
    overlaps = table.read(pair, 1 - weak.first, alphas).overlaps
    below, zero = alphas <= pair.alphas[0], alphas <= weak.alpha
    overlaps[below] = first[below]
    overlaps[zero], first[zero] = 0.0, 0.0
    if not regular:
        overlaps[alphas >= PERFECT] = 1.0
    done = np.isfinite(overlaps).all(axis=1)
    overlaps[~done] = pair.overlaps[-1]
    first[~np.isfinite(first).all(axis=1)] = single.overlaps[-1]
    return overlaps, first, done


def _errors(given: dict[str, tuple], setting: Setting, alphas, seed) -> list[pd.DataFrame]:
    """Errors at the mean overlaps, of each series those of the scramblings."""
    normals = [draws(ERROR_POINTS, part, 3) for part in seed.spawn(ERROR_SCRAMBLES)]
    parts = []
    with ThreadPoolExecutor(setting.threads) as pool:
        for series, overlaps in given.items():
            found = [
                mean_error(list(pool.map(partial(prediction_errors, Q, setting), normals)))
                for Q in mean_error(overlaps)[0]
            ]
            plug_in, posterior = np.transpose(found)  # (values and errors, alphas) each
            parts.append(rows("error plug-in", series, alphas, *plug_in))
            parts.append(rows("error posterior mean", series, alphas, *posterior))
    return parts


def random_overlaps(seed: np.random.SeedSequence) -> list[np.ndarray]:
    """RANDOM matrices (2, 2) between 0 and I, of eigenvalues .1 to .9, in any direction."""
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(RANDOM):
        turn = generator.uniform(0, math.pi)
        axes = np.array([[math.cos(turn), -math.sin(turn)], [math.sin(turn), math.cos(turn)]])
        found.append((axes * generator.uniform(0.1, 0.9, 2)) @ axes.T)
    return found


def identities(
    Q: np.ndarray, setting: Setting, normals: Sequence[np.ndarray]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """2 dE log Z_out / dQ less G along V, and the difference of the two estimates of tr V G, each
    with its standard error over `normals`.

    Q + h V, with V = I - Q: the derivative 2 dE log Z_out / dh is tr V G. E log Z_out of the true
    Z is that of the channel, so that its noise is the samples' alone."""
    V = np.eye(2) - Q
    derivatives, differences = [], []
    for normal in normals:
        here = averages(Q, setting, normal)
        up, down = (averages(Q + h * V, setting, normal).log_z for h in (SHIFT, -SHIFT))
        derivatives.append((up - down) / SHIFT - np.trace(V @ here.gain))
        differences.append(np.trace(V @ here.nishimori))
    return mean_error(derivatives), mean_error(differences)


def _identities(setting: Setting, entry: dict, seed) -> list[tuple]:
    first, second = seed.spawn(2)
    points = max(entry["points"] * entry["scrambles"] // BATCHES, 64)
    points = 2 ** int(math.log2(points))
    normals = [draws(points, stream) for stream in second.spawn(BATCHES)]
    return [identities(Q, setting, normals) for Q in random_overlaps(first)]


def broken_identities(each: list[tuple]) -> list[str]:
    """A sentence on each of the `identities` at several Q whose largest difference, in its standard
    errors, is above what the largest of so many Student's t passes as rarely as a normal number
    passes DEVIATIONS."""
    texts = "2 d(E log Z_out)/dQ = G(Q)", "E g g' = T/V - E[sum_t Cov]/V^2"
    found = []
    for text, pairs in zip(texts, zip(*each, strict=True), strict=True):
        # Two estimators that agree to rounding have no error to divide by.
        scaled = [abs(y / error) if y else 0.0 for y, error in pairs]
        most = -stdtrit(BATCHES - 1, ndtr(-DEVIATIONS) / len(scaled))
        if not max(scaled) <= most or not np.isfinite(scaled).all():
            found.append(f"{text} fails by {np.max(scaled):.3g} standard errors")
    return found
