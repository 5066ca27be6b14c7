"""Learning three layers of attention: state evolution, thresholds and the phase diagram.

Tied weights, two tokens, rank 1, layers 1 to 3 of overlaps Q = (Q11, Q22, Q33); overlaps of
different layers vanish, as the channel is even in each. State evolution at alpha = N / D is

    Qhat_l = alpha G_l(Q),  Q_ll = Qhat_l / (1 + Qhat_l),  G_l(Q) = E sum_t g_lt^2,

that is logit Q_ll = log alpha G_l(Q), solved by fits to the steps of this iteration. Layer l
with Q_ll = 0 stays at 0 until alpha lambda_l(Q) > 1, with

    lambda_l(Q) = E sum_ts (G_ts)^2,  G_ts = (E[z_lt z_ls | y] / V_l - delta_ts) / V_l.

E is over scrambled Sobol points of the 12 normal numbers of a sample. g g^T is a product of two
half-samples of points of the channel, so its noise adds nothing; what vanishes on average is
fitted and taken off (see `samples.controlled`). All is done again with each of the independent
scramblings: values are means over them, errors those of the mean.

The last layer is learned first, from alpha_3 = 1 / lambda_3(0), then layer 1 where
alpha lambda_1(0, 0, Q33) = 1, then layer 2; from c = 1.5 to 3 layer 2 comes before layer 1.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.interpolate import PchipInterpolator
from scipy.optimize import brentq
from scipy.special import expit, logit

from manybody.io.progress import Progress
from manybody.io.tables import joined, rows
from manybody.theory.multi_index import channel_three as channel
from manybody.theory.multi_index.channel import outputs
from manybody.theory.multi_index.samples import Setting, controlled, mean_error, normals

INNER = 128  # points of each half-sample of the channel's integral
TABLE = (
    0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999,
)  # Q33 alone  # fmt: skip
ERRORS = 2**14  # samples of a prediction error
TOLERANCE = 0.02  # of logit Q, where the iteration stops
ITERATIONS = 40
DEPTH = 6  # steps of the iteration that a fit looks back
FARTHEST = 1.0  # largest step of logit Q
FAR = 3.0  # how far beyond the onset of one layer that of the next is looked for, ratio of alphas
ONSET = 0.03  # overlap that a layer starts from, above its threshold
NONE = 1e-3  # overlap below which a layer that does not grow is taken to be 0
LEAST, MOST = 1e-5, 1 - 1e-4  # overlaps are kept between these


def draws(points: int, seed: np.random.SeedSequence) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of a scrambling of `points` (a power of 2) samples: normal ones (n, 2, 3, 2), for
    omega and for Z given it, and the points of the channel (n, 2, 4, INNER)."""
    outer, inner = seed.spawn(2)
    normal = normals(points, 12, outer, channel.EDGE).reshape(points, 2, 3, 2)
    return normal, channel.points(points, INNER, inner)


# --- Averages over samples -----------------------------------------------------------------------


def averages(overlaps: Sequence[float], setting: Setting, drawn: tuple) -> tuple:
    """G (3,) and lambda (3,) at Q = `overlaps` (3,), each between 0 and 1; lambda_l is that of the
    text where Q_ll = 0, and not a number elsewhere."""
    normal, nodes = drawn
    overlaps = np.array(overlaps, dtype=float)
    variance = 1 - overlaps + setting.regulariser
    omega = np.sqrt(overlaps)[:, None] * normal[:, 0]
    noise = np.sqrt(variance)[:, None] * normal[:, 1]  # Z - omega
    x = channel.index(omega + noise, setting.skip)
    found = channel.posterior(x, omega, variance, setting.skip, nodes, setting.threads)

    first, second = found.mean.swapaxes(0, 1)
    own = ((first + second) / 2 * noise).sum(axis=2) / variance  # (n, 3)
    other = (first * second).sum(axis=2) / variance
    spread = np.trace(found.second.mean(axis=1), axis1=2, axis2=3) / variance
    zeros = np.concatenate([2 - spread, own - other], axis=1)
    gains = np.array([controlled(other[:, k] / variance[k], zeros) for k in range(3)])

    eigenvalues = np.full(3, math.nan)
    pairs = noise[:, :, :, None] * noise[:, :, None, :]
    for k in np.flatnonzero(overlaps == 0):
        a, b = (found.second[:, half, k] / variance[k] - np.eye(2) for half in range(2))
        truth = pairs[:, k] / variance[k] - np.eye(2)
        products = (a * b).sum(axis=(1, 2))
        tower = ((a + b) / 2 * truth).sum(axis=(1, 2)) - products
        zeros = np.column_stack([np.trace(a + b, axis1=1, axis2=2), tower, 2 - spread])
        eigenvalues[k] = controlled(products, np.delete(zeros, 2 + k, axis=1)) / variance[k] ** 2
    return gains, eigenvalues


def prediction_errors(overlaps: Sequence[float], skip: float, normal: np.ndarray) -> np.ndarray:
    """E |g(Z) - g(omega)|^2 (2,), squares summed over the four entries, of the student that puts in
    its mean omega ~ N(0, Q): of all layers, and of the last alone (the others at 0). normal
    (n, 2, 3, 2); Z has no noise of the regulariser."""
    overlaps = np.array(overlaps, dtype=float)
    omega = np.sqrt(overlaps)[:, None] * normal[:, 0]
    truth = omega + np.sqrt(1 - overlaps)[:, None] * normal[:, 1]
    last = omega * np.array([0.0, 0.0, 1.0])[:, None]
    y, *students = (outputs(channel.index(z, skip)) for z in (truth, omega, last))
    return np.array([((y - found) ** 2).sum(axis=(1, 2)).mean() for found in students])


# --- State evolution -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Fixed:
    """A fixed point: Q (3,), lambda (3,) of layers at 0, and whether the iteration got there."""

    overlaps: np.ndarray
    eigenvalues: np.ndarray
    converged: bool


def fixed_point(alpha: float, initial: Sequence[float], setting: Setting, drawn: tuple) -> Fixed:
    """Fixed point of state evolution reached from Q = `initial` (3,); layers at 0 stay there, and
    one that falls below NONE goes there if alpha lambda < 1: it would decay for ever."""
    low, high = logit([LEAST, MOST])
    overlaps = np.array(initial, dtype=float)
    overlaps[overlaps > 0] = np.clip(overlaps[overlaps > 0], LEAST, MOST)
    places, images = [], []
    for _ in range(ITERATIONS):
        active = overlaps > 0
        u = logit(overlaps[active])
        gains, eigenvalues = averages(overlaps, setting, drawn)
        image = np.clip(np.log(alpha * np.maximum(gains[active], 1e-9)), low, high)
        places, images = [*places, u][-DEPTH:], [*images, image][-DEPTH:]
        move = np.clip(_crossing_of(places, images) - u, -FARTHEST, FARTHEST)
        change, residual = np.abs(move).max(initial=0), np.abs(image - u).max(initial=0)
        # A linear fit to as many points as it has coefficients says nothing of its error.
        fitted = len(places) > len(u) + 1 and change < TOLERANCE and residual < TOLERANCE
        if fitted or residual < TOLERANCE / 20:
            return Fixed(overlaps, eigenvalues, True)
        overlaps[active] = expit(np.clip(u + move, low, high))
        for layer in np.flatnonzero(active & (overlaps < NONE)):
            without = np.where(np.arange(3) == layer, 0.0, overlaps)
            if alpha * averages(without, setting, drawn)[1][layer] < 1:
                overlaps, places, images = without, [], []
    return Fixed(overlaps, eigenvalues, False)


def _crossing_of(places: list[np.ndarray], images: list[np.ndarray]) -> np.ndarray:
    """The place at which a linear fit of the last steps, `places` to `images`, stands still.

    Not a secant: sums over samples are not quite smooth in Q, which it would blow up where layer 1
    is close to neutral. Directions not looked along are taken to map to one point.
    """
    u, image = np.mean(places, axis=0), np.mean(images, axis=0)
    slope = (np.linalg.pinv(np.array(places) - u, rcond=0.02) @ (np.array(images) - image)).T
    return u + np.linalg.lstsq(np.eye(len(u)) - slope, image - u, rcond=1e-3)[0]


def last_layer(setting: Setting, drawn: tuple) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The curve of the last layer alone, from Q33 = 0 on, where alpha is alpha_3: Q33 (m,), alpha
    (m,), and alpha lambda_1 and alpha lambda_2 (m, 2)."""
    places = np.array((0.0, *TABLE))
    alphas, rates = [], []
    for q in places:
        gains, eigenvalues = averages((0, 0, q), setting, drawn)
        alphas.append(q / (1 - q) / gains[2] if q > 0 else 1 / eigenvalues[2])
        rates.append(alphas[-1] * eigenvalues[:2])
    return places, np.array(alphas), np.array(rates)


def onsets(curve: tuple, setting: Setting, drawn: tuple) -> np.ndarray:
    """alphas (3,) where layers 1 to 3 start to be learned, from the curve of `last_layer`; the same
    if within .1 %. Not a number: nowhere up to Q33 = .999, or `FAR` times the threshold before."""
    places, threshold, rates = curve[0][1:], curve[1][0], curve[2][1:]
    alphas = np.array([math.nan, math.nan, threshold])
    u = logit(places)
    rates = np.log(np.maximum(rates, 1e-6))
    crossings = [_crossing(u, rates[:, k]) for k in range(2)]
    first = int(np.argmin(crossings))
    if not math.isfinite(crossings[first]):
        return alphas
    second = 1 - first
    initial = np.zeros(3)
    initial[first] = ONSET

    # The points of the curve are far apart, so the crossing between two of them is solved for.
    def excess(u: float) -> float:
        q = initial[2] = float(expit(u))
        gains, eigenvalues = averages((0, 0, q), setting, drawn)
        alphas[first] = q / (1 - q) / gains[2]
        return math.log(max(alphas[first] * eigenvalues[first], 1e-6))

    _secant(excess, crossings[first], crossings[first] + 0.1, 5e-3, (u[0], logit(MOST)))

    def excess_beyond(log_alpha: float) -> float:
        fixed = fixed_point(math.exp(log_alpha), initial, setting, drawn)
        initial[:] = fixed.overlaps
        initial[first] = max(initial[first], ONSET)  # it may start at the next alpha, not at this
        return math.log(max(math.exp(log_alpha) * fixed.eigenvalues[second], 1e-6))

    low = math.log(alphas[first])
    span = low + 1e-3, low + math.log(FAR)
    place = _secant(excess_beyond, low + 0.05, low + 0.15, 5e-4, span)
    if place <= span[0]:  # it is unstable as soon as the first one is learned
        place = low
    alphas[second] = math.exp(place) if place < span[1] else math.nan
    return alphas


def _crossing(u: np.ndarray, values: np.ndarray) -> float:
    """The place, between points of `u`, at which `values` first rise above 0; infinite if none."""
    above = np.flatnonzero(values > 0)
    if len(above) == 0 or above[0] == 0:
        return math.inf
    k = above[0]
    return brentq(PchipInterpolator(u, values), u[k - 1], u[k])


def _secant(function: Callable, a: float, b: float, tolerance: float, span: tuple) -> float:
    """A root near `a` and `b` by the secant rule within `span`; `function`, which may be noisy, was
    last called within `tolerance` of it, unless it lies at an end of the span. Between two points
    of different sign the rule stays, however small their difference."""
    fa = function(a)
    for _ in range(12):
        fb = function(b)
        if fa == fb:
            break
        if fa * fb < 0:
            span = max(span[0], min(a, b)), min(span[1], max(a, b))
        step = float(np.clip(-fb * (b - a) / (fb - fa), -0.5, 0.5))
        a, fa = b, fb
        b = float(np.clip(b + step, *span))
        if abs(b - a) < tolerance:
            break
    return b


def compute(entry: dict) -> tuple[pd.DataFrame, dict]:
    """The table of theory of one entry of the config, and what it was made from.

    entry: the keys of `config.theory.Deep`. Quantities, by series, with the standard error of the
    mean over scramblings:

    - `overlap`: Q11, Q22, Q33; x alpha; kept below 1 - 1e-4, which stands for perfect recovery;
    - `converged`: 1 if the iteration of all scramblings did, at the same alpha;
    - `error plug-in`: all layers, last layer only; x alpha;
    - `threshold`: alpha_1, alpha_2, alpha_3; x c (not a number where none was found).
    """
    skips = sorted({entry["skip"], *entry["skips"]})
    alphas = sorted(entry["alphas"])
    streams = np.random.SeedSequence(entry["seed"]).spawn(entry["scrambles"])
    total = entry["scrambles"] * (len(skips) + 1)
    thresholds, walks = {skip: [] for skip in skips}, []
    with Progress(total, "branches", "three layers") as progress:
        for stream in streams:
            drawn = draws(entry["points"], stream)
            for skip in skips:
                setting = Setting(skip, regulariser=entry["regulariser"], threads=entry["threads"])
                found = onsets(last_layer(setting, drawn), setting, drawn)
                thresholds[skip].append(found)
                progress.update(1)
                if skip == entry["skip"]:
                    walks.append(walk(alphas, found, setting, drawn))
                    progress.update(1)
    parts = _walk_rows(entry, alphas, walks, streams)
    for skip, found in thresholds.items():
        for k in range(3):
            starts = [[alpha[k]] for alpha in found]
            parts.append(rows("threshold", f"alpha_{k + 1}", [skip], *mean_error(starts)))
    return joined(parts, entry)


def walk(
    alphas: Sequence[float], thresholds: np.ndarray, setting: Setting, drawn: tuple
) -> list[Fixed]:
    """Fixed points at rising `alphas`, each from the one before; layers begin at `thresholds`."""
    overlaps, found = np.zeros(3), []
    for alpha in alphas:
        overlaps = np.where(alpha > thresholds, np.maximum(overlaps, ONSET), 0.0)
        found.append(fixed_point(alpha, overlaps, setting, drawn))
        overlaps = found[-1].overlaps
    return found


def _walk_rows(
    entry: dict, alphas: Sequence[float], walks: list[list[Fixed]], streams: list
) -> list[pd.DataFrame]:
    overlaps = np.array([[fixed.overlaps for fixed in found] for found in walks])  # (s, m, 3)
    errors = np.empty((*overlaps.shape[:2], 2))
    for found, given, stream in zip(errors, overlaps, streams, strict=True):
        (seed,) = stream.spawn(1)
        normal = normals(ERRORS, 12, seed, channel.EDGE).reshape(ERRORS, 2, 3, 2)
        found[:] = [prediction_errors(Q, entry["skip"], normal) for Q in given]
    converged = np.array([[fixed.converged for fixed in found] for found in walks])
    return [
        *(
            rows("overlap", f"Q{k}{k}", alphas, *mean_error(overlaps[:, :, k - 1]))
            for k in (1, 2, 3)
        ),
        rows("error plug-in", "all layers", alphas, *mean_error(errors[:, :, 0])),
        rows("error plug-in", "last layer only", alphas, *mean_error(errors[:, :, 1])),
        rows("converged", "", alphas, converged.all(axis=0)),
    ]
