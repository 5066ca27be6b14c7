"""Weak recovery of untied weights: queries and keys of their own
(docs/science/multi-index.md, sections 1 and 4).

Rank 1, two tokens. Of a layer's query q and key k (two tokens each) the scores q_t (k_1 - k_2) are
all that softmax sees. Their vector a = q (k_1 - k_2) = sqrt 2 rho n has

    rho with density exp(-rho), n uniform on the circle,

and given a the posterior averages are closed forms (Bessel functions of half-integer order):

    E q q^T = (1 + rho) n n^T,   E q k^T = rho n e^T,   E k k^T = I + (rho - 1) e e^T,

with e = (1, -1) / sqrt 2. So the G_ts = E[z_t z_s^T | y] - delta_ts I of z = (q, k), and the map
F(M) = E sum_ts G_ts M G_ts^T on symmetric matrices M, by which overlaps grow around 0, need
averages over a only. It is self-adjoint and keeps matrices positive: the threshold is
alpha_c = 1 / (its largest eigenvalue). On M = (M_qq, sqrt 2 M_qk, M_kk) it is a 3 x 3 matrix.

One layer: a is known, and F on the diagonal is ((3, 2), (2, 1)): alpha_c = sqrt 5 - 2 = .23607.

Two layers with skip c: y tells x = kappa B q k' where B = c I + softmax, kappa = c + 1 - p - q of
the first layer (p, q: off-diagonal weights) and q, k' = e.k of the second. kappa changes sign if
c < 1. Both layers' averages given x are integrals over the first layer's a.

- `last`: the last layer leaves Q = 0 at 1 / (its largest eigenvalue there); two-dimensional
  quadrature for x and for a, no sampling.
- `first`: the first layer leaves 0 once the last one is learnt, self-consistently as definition
  (b) of the tied model: the last layer sits at its own fixed point Q = diag(Q_q, Q_k) with the
  first one at 0, and alpha is where alpha times the first layer's largest eigenvalue there is 1.
  If the last layer were known perfectly, c >= 1 would leave a known, as kappa^2 is and kappa > 0:
  then sqrt 5 - 2 again, the literal definition (a).

Only (q, k) -> (-q, -k) of one layer is a symmetry. q <-> k is not: rows are normalised over keys.
So the first layer's F couples the diagonal of M to M_qk; the last layer's does not, where Q = 0 or
diagonal, as x -> -x has the same distribution.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import norm, qmc

from manybody.io.progress import Progress
from manybody.io.tables import listed
from manybody.theory.multi_index.channel import share_out
from manybody.theory.multi_index.samples import controlled
from manybody.theory.multi_index.untied_loops import average_at_zero, average_samples

SINGLE_LAYER = math.sqrt(5) - 2
STEP, FINE = 0.35, 0.25  # of quadrature over the first layer; the second one shows the error
GRID, FINE_GRID = 0.4, 0.3  # of log x
SHIFT = 0.15  # of logit Q, for slopes
LONGEST = 0.4  # step of logit Q
STEPS = 8  # at most
INNER = 1.0  # of the integral over the last layer, sd: then 1e-6 is left
COARSE = 256  # points with which an onset is first looked for
CHUNK = 32  # samples that a thread takes at a time
ASIDE = np.array([1.0, -1.0]) / math.sqrt(2)  # e


# --- Quadrature over the first layer -------------------------------------------------------------


@dataclass(frozen=True)
class Nodes:
    """A rule for averages over the first layer's a.

    inverse: (n, 4), rows of B^-1 / kappa. weight: (n,), share of the distribution over |det kappa
    B|. moments: (n, 6), rho, rho n_1, rho n_2 and the entries 11, 12, 22 of (1 + rho) n n^T.
    """

    inverse: np.ndarray
    weight: np.ndarray
    moments: np.ndarray


def first_layer(skip: float, step: float = STEP, least: float = 1e-13) -> Nodes:
    """The rule for one c, double exponential in the two logits of attending to oneself.

    Its pieces end where the distribution is singular, a = 0, and where kappa changes sign, which c
    < 1 lets it. Nodes with a smaller share than `least` are left out.
    """
    parts = []
    edge = [logit(1 - skip)] if 0 < skip < 1 else []  # beyond it kappa keeps its sign
    for one, share, apart in zip(*_line([0.0, *edge], step), strict=True):
        if edge:
            offset = _difference(edge[0], apart[1])
        else:
            offset = skip - 1 + expit(one) if skip else -expit(-one)
        breaks = [0.0]
        if offset < 0:
            breaks.append(logit(-offset) if skip else -one)
        two, shares, aparts = _line(breaks, step)
        kappa = _difference(breaks[1], aparts[:, 1]) if offset < 0 else offset + expit(two)
        parts.append((np.full(len(two), one), two, share * shares, kappa))
    one, two, share, kappa = (np.concatenate(part) for part in zip(*parts, strict=True))
    rho = np.hypot(one, two) / math.sqrt(2)
    share = share * np.exp(-rho) / (4 * math.pi * rho)
    kept = (share > least) & (np.abs(kappa) > 1e-15)
    one, two, share, kappa, rho = (part[kept] for part in (one, two, share, kappa, rho))
    n = np.stack([one, -two], axis=1) / (math.sqrt(2) * rho)[:, None]
    rows = [skip + expit(two), -expit(-one), -expit(-two), skip + expit(one)]
    return Nodes(
        np.stack(rows, axis=1) / ((1 + skip) * kappa**2)[:, None],
        share / np.abs((1 + skip) * kappa**3),
        np.concatenate([rho[:, None], rho[:, None] * n, _outer(1 + rho, n)], axis=1),
    )


def _outer(scale: np.ndarray, n: np.ndarray) -> np.ndarray:
    return scale[:, None] * np.stack([n[:, 0] ** 2, n[:, 0] * n[:, 1], n[:, 1] ** 2], axis=1)


def _difference(base: float, apart: np.ndarray) -> np.ndarray:
    """expit(base + apart) - expit(base), without cancellation."""
    return expit(base) * np.expm1(apart) * expit(-base - apart)


def _line(breaks: list[float], step: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points (n,), weights (n,) and distances (n, breaks) from the breaks, each to full precision.

    Towards breaks points gather double exponentially.
    """
    ends = sorted(breaks)
    t = np.arange(-3.4, 4.2, step)
    far = np.exp(t - np.exp(-t))
    pieces = [(-far, ends[0]), (far, ends[-1])]
    weights = [step * (1 + np.exp(-t)) * far] * 2
    t = np.arange(-3.2, 3.2 + step, step)
    left, right = expit(math.pi * np.sinh(t)), expit(-math.pi * np.sinh(t))
    for a, b in pairwise(ends):
        near = left < right
        pieces += [((b - a) * left[near], a), ((a - b) * right[~near], b)]
        share = (b - a) * step * math.pi * np.cosh(t) * left * right
        weights += [share[near], share[~near]]
    points = [end + offsets for offsets, end in pieces]
    apart = [
        np.stack([(end - other) + offsets for other in breaks], axis=1) for offsets, end in pieces
    ]
    return np.concatenate(points), np.concatenate(weights), np.concatenate(apart)


def operator(moments: np.ndarray, shares=None, truth=None) -> np.ndarray:
    """F (3, 3) on (M_qq, sqrt 2 M_qk, M_kk) of one layer.

    moments: (n, 6), posterior averages of `Nodes.moments` given n outputs, which count with
    `shares` (n,), or equally. truth: (n, 6), the moments at the a that was drawn; then G x (truth
    - G), of mean 0, is a control variate.
    """
    values = _products(moments, moments)
    if truth is None:
        shares = np.full(len(moments), 1 / len(moments)) if shares is None else shares
        return values @ shares / shares.sum()
    controls = _products(moments, truth) - values
    pairs = zip(values.reshape(9, -1), controls.reshape(9, -1), strict=True)
    found = [controlled(own, zero[:, None]) for own, zero in pairs]
    return np.reshape(found, (3, 3))


def _products(moments: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Entries (3, 3, n) of the map M -> sum_ts G_ts M H_ts^T of G and H, made symmetric."""
    (queries, mixed, keys), (queries2, mixed2, keys2) = (
        (np.array([[m[3] - 1, m[4]], [m[4], m[5] - 1]]), m[1:3], m[0] - 1)
        for m in (moments.T, other.T)
    )
    turned, turned2 = (np.einsum("ijn,j->in", part, ASIDE) for part in (queries, queries2))
    along, along2 = ASIDE @ mixed, ASIDE @ mixed2
    qq, kk = (queries * queries2).sum(axis=(0, 1)), keys * keys2
    qk = (mixed * mixed2).sum(axis=0)
    left = (turned * mixed2 + turned2 * mixed).sum(axis=0) / math.sqrt(2)
    right = (along * keys2 + along2 * keys) / math.sqrt(2)
    middle = (ASIDE @ turned * keys2 + ASIDE @ turned2 * keys) / 2 + along * along2
    return np.array([[qq, left, qk], [left, middle, right], [qk, right, kk]])


def eigenvalue(found: np.ndarray) -> float:
    """Largest eigenvalue of an operator F."""
    return float(np.linalg.eigvalsh(found)[-1])


# --- Around Q = 0 --------------------------------------------------------------------------------


def at_zero(
    skip: float, step: float = STEP, grid: float = GRID, threads: int = 1
) -> tuple[float, np.ndarray]:
    """The total mass, 1 up to the error of quadrature, and F of the last layer with nothing known.

    From (x_1 + x_2, x_1 - x_2) on a logarithmic grid: x -> -x and the exchange of tokens map the
    quadrants of these two on each other.
    """
    nodes = first_layer(skip, step)
    high = math.log(60 * (1 + skip) ** 2)
    axes = np.arange(-18, high, grid), np.arange(-36, high, grid)  # as kappa, as kappa^2
    s, d = (np.exp(part).ravel() for part in np.meshgrid(*axes, indexing="ij"))
    x = np.stack([s + d, s - d], axis=1) / math.sqrt(2)
    totals, last = np.zeros(len(x)), np.zeros((len(x), 6))

    def run(part: slice) -> None:
        average_at_zero(x[part], nodes.inverse, nodes.weight, totals[part], last[part])

    share_out(run, len(x), CHUNK, threads)
    shares = 4 * grid**2 * totals * s * d / (s * s + d * d)
    found = operator(last, shares)
    found[1, [0, 2]] = found[[0, 2], 1] = 0.0  # odd in x
    return float(shares.sum()), found


# --- The last layer learnt -----------------------------------------------------------------------


@dataclass(frozen=True)
class Learnt:
    """With the last layer's overlaps Q = (Q_q, Q_k) and the first layer unknown.

    gains: G_qq, G_kk of the last layer, so that it is at its fixed point where
    alpha = Q_q / ((1 - Q_q) G_qq) = Q_k / ((1 - Q_k) G_kk). squares, nishimori: the two estimators
    they combine, E g g^T and that of posterior variances. first: F of the first layer.
    """

    overlaps: np.ndarray
    gains: np.ndarray
    squares: np.ndarray
    nishimori: np.ndarray
    first: np.ndarray

    @property
    def alphas(self) -> np.ndarray:
        return self.overlaps / ((1 - self.overlaps) * self.gains)


def uniforms(points: int, stream: np.random.SeedSequence) -> np.ndarray:
    """Scrambled Sobol points (points, 8) for `learnt`."""
    rng = np.random.default_rng(stream.generate_state(8))  # Sobol moves a stream given as such
    drawn = qmc.Sobol(8, scramble=True, rng=rng).random(points)
    return np.clip(drawn, 1e-12, 1 - 1e-12)


def learnt(skip: float, overlaps, points: np.ndarray, nodes: Nodes, threads: int = 1) -> Learnt:
    """Averages over samples, one for each row of `points` (n, 8), uniform in the unit cube.

    overlaps: Q_q, Q_k between 0 and 1, both excluded. nodes: of `first_layer` at the same c.
    """
    overlaps = np.asarray(overlaps, dtype=float)
    variance = 1 - overlaps
    rho, angle = -np.log1p(-points[:, 0]), 2 * math.pi * points[:, 1]
    normal = norm.ppf(points[:, 2:])
    omega = normal[:, :3] * np.sqrt(overlaps[[0, 0, 1]])
    off = normal[:, 3:] * np.sqrt(variance[[0, 0, 1]])
    q, k = (omega + off)[:, :2], (omega + off)[:, 2]
    one, two = math.sqrt(2) * rho * np.cos(angle), -math.sqrt(2) * rho * np.sin(angle)
    own = np.stack([expit(one), expit(two)], axis=1)
    kappa = skip - 1 + own.sum(axis=1)
    x = ((skip + own) * q + (1 - own) * q[:, ::-1]) * (kappa * k)[:, None]
    # Loops leave out what is far below the log weight of the true indices, lowered by 6.
    start = -rho - np.log(4 * math.pi * rho * (1 + skip) * np.abs(kappa) ** 3) - 6
    start -= (normal[:, 3:] ** 2).sum(axis=1) / 2 + 2 * np.log(np.abs(k))
    second, first = np.empty((len(points), 5)), np.empty((len(points), 6))
    logs = np.log(nodes.weight)

    def run(part: slice) -> None:
        given = x[part], omega[part], tuple(variance), start[part], INNER
        average_samples(*given, nodes.inverse, logs, nodes.moments, second[part], first[part])

    share_out(run, len(points), CHUNK, threads)
    squares = (
        np.stack([second[:, 0] ** 2 + second[:, 1] ** 2, second[:, 3] ** 2])
        / variance[:, None] ** 2
    )
    other = (
        np.array([2.0, 1.0])[:, None] / variance[:, None]
        - second[:, [2, 4]].T / variance[:, None] ** 2
    )
    zeros = other - squares
    gains = [controlled(*pair) for pair in zip(squares, zeros[:, :, None], strict=True)]
    n = np.stack([one, -two], axis=1) / (math.sqrt(2) * rho)[:, None]
    truth = np.concatenate([rho[:, None], rho[:, None] * n, _outer(1 + rho, n)], axis=1)
    grown = operator(first, truth=truth)
    return Learnt(overlaps, np.array(gains), squares.mean(axis=1), other.mean(axis=1), grown)


def onset(
    skip: float, points: int, scrambles: int, stream: np.random.SeedSequence, threads: int = 1
) -> tuple[float, float, bool]:
    """alpha where the first layer leaves 0, its error, and whether the last step moved it little.

    Solves alpha_q = alpha_k, alpha lambda_1 = 1 for the logits of (Q_q, Q_k). The error holds what
    independent scramblings differ by and what a finer rule over the first layer changes.
    Looked for with few points, then moved to by Newton's steps with all; each scrambling then
    gives its own solution by one more step.
    """
    nodes = first_layer(skip, STEP, 1e-10)
    streams = stream.spawn(scrambles + 1)
    few = uniforms(COARSE, streams[0])

    def measure(place, given, rule=nodes):
        found = learnt(skip, expit(place), given, rule, threads)
        logs = np.log(found.alphas)
        alpha = logs.mean()
        return np.array([logs[0] - logs[1], alpha + math.log(eigenvalue(found.first)), alpha])

    def jacobian_at(place):
        base = measure(place, few)
        columns = [measure(place + SHIFT * step, few) - base for step in np.eye(2)]
        return np.stack(columns, axis=1) / SHIFT

    place = _look_for(lambda place: measure(place, few))
    sets = [uniforms(points, part) for part in streams[1:]]
    jacobian, step = jacobian_at(place), np.inf
    inverse = np.linalg.inv(jacobian[:2])
    for _ in range(STEPS):
        found = np.array([measure(place, given) for given in sets])
        moves = -found[:, :2] @ inverse.T
        move = moves.mean(axis=0)
        step = float(np.abs(move).max())
        place = place + np.clip(move, -LONGEST, LONGEST)
        if step < 0.05:
            break
        if step > LONGEST:  # the few points led astray: their jacobian is of another place
            jacobian = jacobian_at(place)
            inverse = np.linalg.inv(jacobian[:2])
    logs = found[:, 2] + moves @ jacobian[2]
    # What a finer rule changes, with common random numbers.
    fine = measure(place, few, first_layer(skip, FINE, 1e-12)) - measure(place, few)
    off = -inverse @ fine[:2]
    log_error = np.hypot(logs.std(ddof=1) / math.sqrt(scrambles), fine[2] + jacobian[2] @ off)
    alpha = float(np.exp(logs.mean()))
    return alpha, alpha * float(log_error), step < 0.05


def _look_for(measure) -> np.ndarray:
    """A place near the onset: up the branch of the last layer until alpha lambda_1 passes 1."""
    place, before = np.array([1.0, 0.0]), None
    for _ in range(30):
        place = _to_branch(measure, place)
        excess = measure(place)[1]
        if before is not None and before[1] < 0 <= excess:
            break
        ahead = place + (1.0 if excess < 0 else -1.0)
        before, place = (place, excess), ahead
    start, low = before
    return _to_branch(measure, start + (place - start) * -low / (excess - low))


def _to_branch(measure, place: np.ndarray) -> np.ndarray:
    """Moves logit Q_k to where both overlaps of the last layer ask for the same alpha."""
    moved, last = place[1], None
    for _ in range(12):
        value = measure(np.array([place[0], moved]))[0]
        if abs(value) < 0.02:
            break
        # d(logs[0] - logs[1]) / d logit Q_k is about -1/2 everywhere.
        slope = -0.5 if last is None else (value - last[1]) / (moved - last[0])
        last = moved, value
        moved -= value / min(slope, -0.1)
    return np.array([place[0], moved])


# --- The table -----------------------------------------------------------------------------------


def compute(entry: dict) -> tuple[pd.DataFrame, dict]:
    """The thresholds over the skips of a config entry, and what was calculated.

    entry: the keys of `config.theory.Untied`. Quantities, with x = c:

    - `threshold`, of `L = 1`, `L = 2 last`, `L = 2 first`;
    - `converged`, 1 or 0, of `L = 2 first`.

    y_err: what a finer rule changes, and for the first layer the standard error over scramblings
    with it.
    """
    rows = []
    skips = [float(skip) for skip in entry["skips"]]
    points, scrambles, threads = entry["points"], entry["scrambles"], entry["threads"]
    if 1 in entry["layers"]:
        rows += [("threshold", "L = 1", skip, SINGLE_LAYER, 0.0) for skip in skips]
    if 2 in entry["layers"]:
        streams = np.random.SeedSequence(entry["seed"]).spawn(len(skips))
        with Progress(len(skips), "skips", "untied weights") as progress:
            for skip, stream in zip(skips, streams, strict=True):
                coarse, fine = (
                    1 / eigenvalue(at_zero(skip, *rule, threads)[1])
                    for rule in ((STEP, GRID), (FINE, FINE_GRID))
                )
                alpha, error, converged = onset(skip, points, scrambles, stream, threads)
                rows += [
                    ("threshold", "L = 2 last", skip, fine, abs(fine - coarse)),
                    ("threshold", "L = 2 first", skip, alpha, error),
                    ("converged", "L = 2 first", skip, float(converged), np.nan),
                ]
                progress.update(1)
    return listed(rows, entry, 0)
