"""Plain Monte Carlo of two-layer attention: slow, and shares no code with what it is to check.

The curves and thresholds of `table` rest on Sobol points, control variates and a rotated, adaptive
lattice. Here samples are independent, every estimate is a mean over them with nothing taken off,
its error that of a mean, and the integral over z_1 (docs/science/multi-index.md,
section 3) is the trapezoid rule on a square lattice,

    Z_out = sum_+- int dz_1 |det B|^-1 N(z_1; omega_1, V11) N(+-B^-1 x; omega_2, V22).

Cells of a coarse lattice are left out where no point of theirs can weigh 1e-13 of the heaviest.
Q and V are diagonal. Fixed points have alpha = Q_kk / ((1 - Q_kk) G_kk) for each learned layer k,
and alpha lambda_k = 1 where layer k starts (section 4).

Errors of roots: with F(w) = 0 at the root and l = log alpha there, a sample moves w by -dF / F' and
l by dl - l' dF / F', where F, l and their slopes are of the same samples (the delta method).
"""

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.special import expit, logit

from manybody.theory.multi_index.samples import Setting

REACH = 6.0  # of the lattice, standard deviations of z_1
COARSE = 0.24  # its cells, standard deviations of z_1
FINE = 2.5  # how far z_2 moves over a step, standard deviations of z_2
MOST = 96  # steps along the side of a cell
DROP = 20.0  # exponent below that of the heaviest point at which a cell is left out
CHUNK = 256  # samples that a thread takes at a time
SLOPE = 0.1  # of logit Q, for the slope of a root
STEPS = 12  # of a secant


@dataclass(frozen=True)
class Value:
    """A mean over independent samples and its standard error."""

    value: float
    error: float


@dataclass(frozen=True)
class Samples:
    """Sums of each sample: squares (n, 2), sum_t g_kt^2, of mean G_kk; growth (n, 2),
    sum_ts (G_ts)^2, of mean lambda_k (not a number for a layer whose overlap is not 0)."""

    squares: np.ndarray
    growth: np.ndarray


def normals(count: int, seed: int) -> np.ndarray:
    """Independent normal numbers (count, 2, 2, 2): omega and Z - omega, layer, token."""
    return np.random.default_rng(seed).standard_normal((count, 2, 2, 2))


def evaluate(overlaps: Sequence[float], setting: Setting, normal: np.ndarray) -> Samples:
    """The channel's averages of each sample at Q = diag(overlaps), 0 <= Q_kk < 1."""
    q = np.asarray(overlaps, dtype=float)
    variance = 1 - q + setting.regulariser
    omega = np.sqrt(q)[:, None] * normal[:, 0]
    z = omega + np.sqrt(variance)[:, None] * normal[:, 1]
    linear = setting.activation == "linear"
    given = variance[0], variance[1], float(setting.skip), linear
    first, second = np.empty((len(z), 2, 2)), np.empty((len(z), 2, 2, 2))

    def run(start: int) -> None:
        part = slice(start, start + CHUNK)
        _moments(z[part], omega[part], *given, first[part], second[part])

    with ThreadPoolExecutor(setting.threads) as pool:
        list(pool.map(run, range(0, len(z), CHUNK)))
    squares = (((first - omega) / variance[:, None]) ** 2).sum(axis=2)
    growth = (second / variance[:, None, None] - np.eye(2)) / variance[:, None, None]
    growth = (growth**2).sum(axis=(2, 3))
    growth[:, q > 0] = math.nan
    return Samples(squares, growth)


# --- Thresholds and fixed points -----------------------------------------------------------------


def weak_recovery(setting: Setting, count: int, seed: int) -> tuple[Value, Value]:
    """1 / lambda_k at Q = 0 of layers 1 and 2; the smaller is where learning starts (alpha_2 of
    softmax attention)."""
    growth = evaluate((0, 0), setting, normals(count, seed)).growth
    return tuple(_of_logs(-np.log(part.mean()), -part / part.mean()) for part in growth.T)


def single_layer(overlap: float, setting: Setting, count: int, seed: int, layer: int = 1) -> Value:
    """alpha at which `layer` (0 or 1) alone has `overlap`, the other one 0."""
    at = np.zeros(2)
    at[layer] = overlap
    squares = evaluate(at, setting, normals(count, seed)).squares[:, layer]
    return _of_logs(logit(overlap) - np.log(squares.mean()), -squares / squares.mean())


def onset(setting: Setting, count: int, seed: int, guess: float, layer: int = 1) -> Value:
    """alpha at which the other layer starts on the curve of `layer` alone (alpha_1 for layer 1).
    guess: of the Q of `layer` there."""
    other = 1 - layer

    def ask(w: float, normal) -> tuple:
        at = np.zeros(2)
        at[layer] = expit(w)
        found = evaluate(at, setting, normal)
        squares, growth = found.squares[:, layer], found.growth[:, other]
        alpha = w - np.log(squares.mean())
        change = -squares / squares.mean()
        return (
            alpha + np.log(growth.mean()), change + growth / growth.mean(), alpha, change,
        )  # fmt: skip

    return _at_root(ask, guess, normals(count, seed))


def _at_root(ask: Callable, guess: float, normal: np.ndarray) -> Value:
    """exp of the second number at the root w = logit Q of the first.

    ask(w, normal): F, what each sample adds to it, log alpha, and the same; a sixteenth of the
    samples finds the root first.
    """
    w = float(logit(guess))
    for part in (normal[: max(len(normal) // 16, 64)], normal):
        w = _secant(lambda w, part=part: ask(w, part)[0], w, 1e-3)
    F, change, alpha, moved = ask(w, normal)
    F_up, _, alpha_up, _ = ask(w + SLOPE, normal)
    climb = (alpha_up - alpha) / (F_up - F)
    return _of_logs(alpha - climb * F, moved - climb * change)


def _secant(function: Callable, w: float, tolerance: float) -> float:
    before = w, function(w)
    w = w - 1.5 * max(min(before[1], 0.6), -0.6)
    for _ in range(STEPS):
        value = function(w)
        if value == before[1]:
            return w
        step = -value * (w - before[0]) / (value - before[1])
        before, w = (w, value), w + max(min(step, 1.0), -1.0)
        if abs(step) < 20 * tolerance:  # the last step is linear, and its slope taken again
            return w
    raise RuntimeError(f"no root near Q = {expit(w):.6g}: take more samples or another guess")


def _of_logs(log: float, changes: np.ndarray) -> Value:
    value = math.exp(log)
    return Value(value, value * float(changes.std(ddof=1)) / math.sqrt(len(changes)))


# --- The integral over z_1 -----------------------------------------------------------------------


@njit(nogil=True, cache=True)
def _mixing(u, v, skip, linear):
    """B at z_1 = (u, v): its diagonal, then B12 and B21."""
    if linear:
        return skip + u * u, skip + v * v, u * v, u * v
    p, q = 1 / (1 + math.exp(u * (u - v))), 1 / (1 + math.exp(v * (v - u)))
    return 1 - p + skip, 1 - q + skip, p, q


@njit(nogil=True, cache=True)
def _second(u, v, x, skip, linear):
    """z_2 = B^-1 x and det B at z_1 = (u, v)."""
    one, two, off1, off2 = _mixing(u, v, skip, linear)
    det = one * two - off1 * off2
    return (two * x[0] - off1 * x[1]) / det, (one * x[1] - off2 * x[0]) / det, det


@njit(nogil=True, cache=True)
def _moments(z, omega, v1, v2, skip, linear, first, second):
    """Fills E[Z | y] (n, 2, 2) and E[z_t z_s | y] (n, 2, 2, 2), layer before tokens, for outputs of
    the indices z (n, 2, 2); omega (n, 2, 2); variances v1, v2 of the layers."""
    width = math.sqrt(v1)
    cells = 2 * int(REACH / COARSE) + 1
    cell = COARSE * width
    a, b = np.empty((cells, cells)), np.empty((cells, cells))
    heavy, kept = np.empty((cells, cells)), np.empty((cells, cells), np.bool_)
    sums = np.empty(11)
    for n in range(len(z)):
        o = omega[n]
        u, v = z[n, 0, 0], z[n, 0, 1]
        one, two, off1, off2 = _mixing(u, v, skip, linear)
        x = one * z[n, 1, 0] + off1 * z[n, 1, 1], off2 * z[n, 1, 0] + two * z[n, 1, 1]
        for i in range(cells):
            for j in range(cells):
                s, t = (i - cells // 2) * cell, (j - cells // 2) * cell
                a[i, j], b[i, j], det = _second(o[0, 0] + s, o[0, 1] + t, x, skip, linear)
                heavy[i, j] = -0.5 * (s * s + t * t) / v1 - math.log(abs(det))
        # The truth is a point of the integrand: none of the others matters that is far below it.
        _, _, det = _second(u, v, x, skip, linear)
        gap = (u - o[0, 0]) ** 2 + (v - o[0, 1]) ** 2
        far = (z[n, 1, 0] - o[1, 0]) ** 2 + (z[n, 1, 1] - o[1, 1]) ** 2
        top = -0.5 * gap / v1 - 0.5 * far / v2 - math.log(abs(det))
        peak = top
        sums[:] = 0.0
        steepest = 0.0
        for i in range(cells):
            for j in range(cells):
                # z_2 over the cell is within `near` of its value at the centre.
                near, higher = 0.0, heavy[i, j]
                for k in range(max(i - 1, 0), min(i + 2, cells)):
                    for m in range(max(j - 1, 0), min(j + 2, cells)):
                        moved = (a[k, m] - a[i, j]) ** 2 + (b[k, m] - b[i, j]) ** 2
                        near, higher = max(near, moved), max(higher, heavy[k, m])
                near = math.sqrt(near)
                plus = (a[i, j] - o[1, 0]) ** 2 + (b[i, j] - o[1, 1]) ** 2
                minus = (a[i, j] + o[1, 0]) ** 2 + (b[i, j] + o[1, 1]) ** 2
                least = max(math.sqrt(min(plus, minus)) - near, 0.0)
                kept[i, j] = higher - 0.5 * least * least / v2 >= top - DROP
                if kept[i, j]:
                    steepest = max(steepest, near)
        # One step for all that is kept, over which z_2 moves by about its width at most.
        parts = min(max(math.ceil(steepest / (FINE * math.sqrt(v2))), 1), MOST)
        step = cell / parts
        for i in range(cells):
            for j in range(cells):
                if not kept[i, j]:
                    continue
                for k in range(parts):
                    s = (i - cells // 2 - 0.5) * cell + (k + 0.5) * step
                    for m in range(parts):
                        t = (j - cells // 2 - 0.5) * cell + (m + 0.5) * step
                        r, w, det = _second(o[0, 0] + s, o[0, 1] + t, x, skip, linear)
                        base = -0.5 * (s * s + t * t) / v1 - math.log(abs(det))
                        for sign in (-1.0, 1.0):
                            c, d = sign * r, sign * w
                            far = (c - o[1, 0]) ** 2 + (d - o[1, 1]) ** 2
                            exponent = base - 0.5 * far / v2
                            if exponent < peak - DROP - 10:
                                continue
                            if exponent > peak:
                                sums *= math.exp(peak - exponent)
                                peak = exponent
                            weight = math.exp(exponent - peak)
                            f, g = o[0, 0] + s, o[0, 1] + t
                            squares = (f * f, f * g, g * g, c * c, c * d, d * d)
                            for place, value in enumerate((1.0, f, g, c, d, *squares)):
                                sums[place] += weight * value
        total = sums[0]
        for layer in range(2):
            first[n, layer, 0] = sums[1 + 2 * layer] / total
            first[n, layer, 1] = sums[2 + 2 * layer] / total
            second[n, layer, 0, 0] = sums[5 + 3 * layer] / total
            second[n, layer, 0, 1] = second[n, layer, 1, 0] = sums[6 + 3 * layer] / total
            second[n, layer, 1, 1] = sums[7 + 3 * layer] / total
