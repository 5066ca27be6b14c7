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
alpha_c = 1 / (its largest eigenvalue). On M = (M_qq, sqrt 2 M_qk, M_kk) it is a 3 x 3 matrix, which
does not couple M_qk with the others, as a and -a, or x and -x below, have the same distribution.

One layer: a is known, and F on the diagonal is ((3, 2), (2, 1)): alpha_c = sqrt 5 - 2 = .23607.

Two layers with skip c: y tells x = kappa B q k' where B = c I + softmax, kappa = c + 1 - p - q of
the first layer (p, q: off-diagonal weights) and q, k' = e.k of the second. kappa changes sign if
c < 1. The last layer leaves Q = 0 first. Its averages given x are integrals over the first layer's
a: two-dimensional quadrature for x and for a, no sampling.
"""

import math
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from manybody.io.compiled import njit
from manybody.io.progress import Progress
from manybody.io.tables import joined, rows
from manybody.theory.multi_index.channel import share_out

SINGLE_LAYER = math.sqrt(5) - 2
STEP, FINE = 0.35, 0.25  # of quadrature over the first layer; the second one shows the error
GRID, FINE_GRID = 0.4, 0.3  # of log x
LEAST = 1e-13  # share of the distribution of a node that counts
CHUNK = 32  # x that a thread takes at a time


def first_layer(skip: float, step: float = STEP) -> tuple[np.ndarray, np.ndarray]:
    """A rule for averages over the first layer's a: rows of B^-1 / kappa, (n, 4), and the share of
    the distribution over |det kappa B|, (n,).

    Double exponential in the two logits of attending to oneself. Its pieces end where the
    distribution is singular, a = 0, and where kappa changes sign, which c < 1 lets it.
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
    kept = (share > LEAST) & (np.abs(kappa) > 1e-15)
    one, two, share, kappa = (part[kept] for part in (one, two, share, kappa))
    inverse = np.stack([skip + expit(two), -expit(-one), -expit(-two), skip + expit(one)], axis=1)
    return inverse / ((1 + skip) * kappa**2)[:, None], share / np.abs((1 + skip) * kappa**3)


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


@njit(nogil=True, cache=True)
def average(x, inverse, weight, totals, moments):
    """Averages over the rule of `first_layer` given each x = kappa B q k' (n, 2).

    At a node q k' = w = inverse x, whose rho n has density exp(-rho) d rho, n uniform on the
    circle. Fills totals (n,), the density of x times |x|^2, and moments (n, 6), posterior averages
    of rho, rho n_1, rho n_2 and the entries 11, 12, 22 of (1 + rho) n n^T.
    """
    sums = np.empty(7)
    for n in range(len(x)):
        x1, x2 = x[n, 0], x[n, 1]
        scale = (x1 * x1 + x2 * x2) / (2 * math.pi)
        sums[:] = 0
        for i in range(len(weight)):
            w1 = inverse[i, 0] * x1 + inverse[i, 1] * x2
            w2 = inverse[i, 2] * x1 + inverse[i, 3] * x2
            square = w1 * w1 + w2 * w2
            rho = math.sqrt(square)
            if rho > 60.0 or rho == 0.0:
                continue
            share = weight[i] * math.exp(-rho) / rho * scale
            outer = share * (1 + rho) / square
            sums[0] += share
            sums[1] += share * rho
            sums[2] += share * w1
            sums[3] += share * w2
            sums[4] += outer * w1 * w1
            sums[5] += outer * w1 * w2
            sums[6] += outer * w2 * w2
        totals[n] = sums[0]
        if sums[0] > 0:
            for m in range(6):
                moments[n, m] = sums[1 + m] / sums[0]


def operator(moments: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """F (3, 3) on (M_qq, sqrt 2 M_qk, M_kk) of a layer, from the posterior averages (n, 6) that
    `average` fills, of outputs that count with `shares` (n,)."""
    rho, g1, g2, a, b, d = moments.T
    a, d, keys = a - 1, d - 1, rho - 1
    entries = np.zeros((3, 3, len(rho)))
    entries[0, 0], entries[2, 2] = a * a + 2 * b * b + d * d, keys * keys
    entries[0, 2] = entries[2, 0] = g1 * g1 + g2 * g2
    entries[1, 1] = ((a + d - 2 * b) * keys + (g1 - g2) ** 2) / 2
    return entries @ shares / shares.sum()


def eigenvalue(found: np.ndarray) -> float:
    """Largest eigenvalue of an operator F."""
    return float(np.linalg.eigvalsh(found)[-1])


def last_layer(
    skip: float, step: float = STEP, grid: float = GRID, threads: int = 1
) -> tuple[float, np.ndarray]:
    """The total mass, 1 up to the error of quadrature, and F of the last of two layers at Q = 0.

    From (x_1 + x_2, x_1 - x_2) on a logarithmic grid: x -> -x and the exchange of tokens map the
    quadrants of these two on each other.
    """
    rule = first_layer(skip, step)
    high = math.log(60 * (1 + skip) ** 2)
    axes = np.arange(-18, high, grid), np.arange(-36, high, grid)  # as kappa, as kappa^2
    s, d = (np.exp(part).ravel() for part in np.meshgrid(*axes, indexing="ij"))
    x = np.stack([s + d, s - d], axis=1) / math.sqrt(2)
    totals, moments = np.zeros(len(x)), np.zeros((len(x), 6))

    def run(part: slice) -> None:
        average(x[part], *rule, totals[part], moments[part])

    share_out(run, len(x), CHUNK, threads)
    shares = 4 * grid**2 * totals * s * d / (s * s + d * d)
    return float(shares.sum()), operator(moments, shares)


def compute(entry: dict) -> tuple[pd.DataFrame, dict]:
    """The thresholds over the skips of a config entry, and what was calculated.

    entry: the keys of `config.theory.Untied`. Quantity `threshold`, x = c, of `L = 1` and
    `L = 2 last`, the last of two layers. y_err: what a finer rule changes.
    """
    parts = []
    with Progress(len(entry["skips"]), "skips", "untied weights") as progress:
        for skip in map(float, entry["skips"]):
            coarse, fine = (
                1 / eigenvalue(last_layer(skip, *rule, entry["threads"])[1])
                for rule in ((STEP, GRID), (FINE, FINE_GRID))
            )
            parts += [
                rows("threshold", "L = 1", [skip], SINGLE_LAYER, 0.0),
                rows("threshold", "L = 2 last", [skip], fine, abs(fine - coarse)),
            ]
            progress.update(1)
    return joined(parts, entry)
