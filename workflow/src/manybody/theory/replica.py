"""Replica theory of masked prediction with a square loss (docs/science/potts.md, section 3).

A masked site y is predicted from n inputs x of covariance Sigma, y = w*.x + noise of variance
Delta. Ridge regression on M = alpha L samples minimises over a, with w = a / sqrt(L),

    1/2 sum_mu (y_mu - a.x_mu / sqrt(L))^2 + lambda/2 |a|^2                                   (6)

and its generalisation loss is eps = E (y - w.x)^2: no factor 1/2, noise included. n and L differ
(L - 1 sites predict one of L); alpha and every 1/L below count sites.

The first part takes any Sigma, w* and Delta: the six saddle-point equations (7), numbers 36 and 39
to 41 of the paper, the free energy whose derivatives they are, and the same fixed point with one
unknown. The second is the paper's model, of precision K = gamma - G with G from the GOE
(off-diagonal variance 1/L, diagonal 2/L; gamma > 2): its conditional (15), which ties w* to Sigma,
and the limit L -> infinity in closed form. The third simulates (6) on samples of K alone, without
(15). `compute` makes the numbers of the figure.
"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy.linalg import cho_solve, solve_triangular
from scipy.linalg.blas import dtrsm
from scipy.optimize import brentq, minimize_scalar
from threadpoolctl import threadpool_limits

from manybody.io.progress import Progress
from manybody.theory.matrices import symmetric
from manybody.theory.rows import joined, rows

CONVERGED = 1e-13  # largest relative change of an order parameter in a step
STEPS = 1_000_000  # after which the iteration gives up
DAMPING = 0.5  # weight of the new values
NEWTON = 200  # steps for the one unknown; one is needed for each power of 2 in s, and a few

POINTS = 241  # of a curve
WEAK = (1e-4, 1e-6)  # ridges, relative to Var y, that stand for lambda -> 0
SITES = 1000  # of the equations whose peak is set against that of the closed form
TAIL = (50.0, 100.0, 1000.0)  # alphas between which the decay is measured
STEP = 1e-6  # in alpha: slope of the curve at its start


# --- Any covariance and teacher ------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Regression of y = w*.x + noise, x of covariance Sigma, in Sigma's eigenbasis.

    eigenvalues (n,) of Sigma; teacher (n,), components of w* on its eigenvectors; noise: Delta,
    the noise's variance; length: L.
    """

    eigenvalues: np.ndarray
    teacher: np.ndarray
    noise: float
    length: int

    @property
    def signal(self) -> float:
        """w*.Sigma w*, which is rho of (7)."""
        return float(self.teacher**2 @ self.eigenvalues)


@dataclass(frozen=True)
class Saddle:
    """Order parameters of (7): V, q, m and their conjugates Vh, qh, mh."""

    V: float
    q: float
    m: float
    Vh: float
    qh: float
    mh: float


def saddle_point(given: Problem, alpha: float, ridge: float) -> Saddle:
    """The fixed point of the six equations (7) (36, 39-41 of the paper) by damped iteration.

    alpha = M / L > 0; ridge: lambda of (6), > 0 (without one, V diverges below n / L; `loss` takes
    0). Iterates from V = 1, q = m = 0 until no order parameter changes by more than 1e-13 of
    itself. Raises `RuntimeError` if that does not happen.
    """
    ev, length, rho = given.eigenvalues, given.length, given.signal
    signal = given.teacher**2 * ev**2  # the diagonal of Sigma w* w*^T Sigma
    V, q, m = 1.0, 0.0, 0.0
    for _ in range(STEPS):
        Vh = mh = alpha / (1 + V)
        qh = alpha * (rho + given.noise - 2 * m + q) / (1 + V) ** 2
        inverse = 1 / (ridge + Vh * ev)
        found = (
            ev @ inverse / length,
            (qh * (ev**2 @ inverse**2) / length + mh**2 * ((signal * ev) @ inverse**2)),
            mh * (signal @ inverse),
        )
        new = [old + DAMPING * (now - old) for now, old in zip(found, (V, q, m), strict=True)]
        change = max(
            abs(now - old) / abs(now) if now else abs(old)
            for now, old in zip(new, (V, q, m), strict=True)
        )
        V, q, m = new
        if change <= CONVERGED:
            Vh = alpha / (1 + V)
            qh = Vh / (1 + V) * (rho + given.noise - 2 * m + q)
            return Saddle(*map(float, (V, q, m, Vh, qh, Vh)))
    raise RuntimeError(
        f"six equations at alpha = {alpha:g}, ridge = {ridge:g}: not converged in {STEPS} steps, "
        f"the last of which changed an order parameter by {change:.3g} of itself; a larger ridge "
        f"converges faster, and the one-unknown form needs no iteration"
    )


def saddle_loss(given: Problem, saddle: Saddle) -> float:
    """eps = rho + Delta - 2 m + q, the last line of (7)."""
    return given.signal + given.noise - 2 * saddle.m + saddle.q


def free_energy(given: Problem, alpha: float, ridge: float, saddle: Saddle) -> float:
    """f at any order parameters; at the fixed point the mean minimum of (6) over L.

    -f = (q Vh - V qh) / 2 - m mh + entropic + alpha energetic: the text under (7). Its six
    derivatives vanish where (7) holds. Complex order parameters give complex f, for derivatives.
    """
    ev, weights = given.eigenvalues, given.teacher**2 * given.eigenvalues**2
    inverse = 1 / (ridge + saddle.Vh * ev)
    entropic = saddle.qh * (ev @ inverse) / given.length + saddle.mh**2 * (weights @ inverse)
    energetic = -saddle_loss(given, saddle) / (1 + saddle.V)
    pairs = saddle.q * saddle.Vh - saddle.V * saddle.qh
    return -(0.5 * (pairs + entropic + alpha * energetic) - saddle.m * saddle.mh)


def training_error(given: Problem, alpha: float, saddle: Saddle) -> float:
    """Mean of 1/2 sum_mu (y_mu - w.x_mu)^2 over L at the minimum of (6): alpha/2 eps / (1+V)^2."""
    return alpha / 2 * saddle_loss(given, saddle) / (1 + saddle.V) ** 2


def kappa(given: Problem, alpha: float, ridge: float) -> float:
    """The one unknown, lambda / Vh: root of lambda = kappa (alpha - df1).

    df1 = 1/L sum ev / (ev + kappa). Without a ridge 0 from alpha = n / L on.
    """
    ev, length = given.eigenvalues, given.length
    if ridge == 0 and alpha >= len(ev) / length:
        return 0.0

    def excess(log):
        return ridge * math.exp(-log) + np.sum(ev / (ev + math.exp(log))) / length - alpha

    # df1 lies between 0 and tr Sigma / (L kappa), and at kappa = 0 it is n / L.
    high = math.log((ridge + ev.sum() / length) / alpha) + 1.0
    low = high - 1.0
    while excess(low) < 0:
        low -= 1.0
    return math.exp(brentq(excess, low, high, xtol=1e-15, rtol=1e-15))


def loss(given: Problem, alpha: float, ridge: float) -> float:
    """eps in its one-unknown form, the same as that of (7).

    eps = (Delta + kappa^2 w*.Sigma (Sigma + kappa)^-2 w*) / (1 - df2 / alpha),
    df2 = 1/L sum (ev / (ev + kappa))^2. Infinite at alpha = n / L without a ridge.
    """
    k, ev = kappa(given, alpha, ridge), given.eigenvalues
    bias = np.sum(given.teacher**2 * ev * (k / (ev + k)) ** 2)
    left = 1 - np.sum((ev / (ev + k)) ** 2) / given.length / alpha
    return float((given.noise + bias) / left) if left > 0 else math.inf


# --- The GOE precision model ---------------------------------------------------------------------


def goe(length: int, generator: np.random.Generator) -> np.ndarray:
    """G (L, L) of the GOE: variance 1/L off the diagonal, 2/L on it; spectrum [-2, 2]."""
    A = generator.standard_normal((length, length))
    return (A + A.T) / math.sqrt(2 * length)


def conditional(precision: np.ndarray) -> Problem:
    """The regression of the first site on the others under N(0, K^-1), K (L, L): (15).

    w*_j = -K_0j / K_00, Delta = 1 / K_00, and Sigma^-1 = K without the site minus K_.0 K_0. / K_00:
    the rank-one term ties w* to Sigma. Raises `ValueError` for a `precision` that is not symmetric
    and positive definite.
    """
    precision = symmetric("precision", precision)
    row, site = precision[0, 1:], float(precision[0, 0])
    _check_positive(site, len(precision))
    rates, U = np.linalg.eigh(precision[1:, 1:] - np.outer(row, row / site))
    _check_positive(rates[0], len(precision))
    return Problem(1 / rates, -(row / site) @ U, 1 / site, len(precision))


def independent_teacher(given: Problem, gamma: float) -> Problem:
    """The same inputs with a Gaussian w* independent of them, E w*_j^2 = 1 / (L gamma^2).

    In the mean over w*; Delta = 1 / gamma. Beside `conditional`, whose w* is not independent.
    """
    weight = 1 / (gamma * math.sqrt(given.length))
    return Problem(
        given.eigenvalues, np.full_like(given.eigenvalues, weight), 1 / gamma, given.length
    )


def _check_positive(lowest: float, length: int) -> None:
    """lowest: eigenvalue or pivot."""
    if not lowest > 0:
        raise ValueError(
            f"precision: found a matrix that is not positive definite at L = {length} (a pivot is "
            f"{lowest:.3g}); K = gamma - G is, for gamma well above 2, the more so the smaller L"
        )


# --- Many realisations at once -------------------------------------------------------------------


def tridiagonal(
    gamma: float, length: int, count: int, generator: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Diagonals (count, L) and beside them (count, L-1): K = gamma - G up to rotations.

    Reflections that leave the first site alone make a G of the GOE tridiagonal, with independent
    entries, normal on the diagonal and chi beside it. Losses of the first site do not change.
    """
    diagonal = gamma - math.sqrt(2 / length) * generator.standard_normal((count, length))
    chi = np.sqrt(generator.chisquare(np.arange(length - 1, 0, -1), (count, length - 1)))
    return diagonal, -chi / math.sqrt(length)


def tridiagonal_losses(
    diagonal: np.ndarray, beside: np.ndarray, alphas: np.ndarray, ridge: float
) -> np.ndarray:
    """`loss` of `conditional` (count, alphas) for tridiagonal K, (count, L) and (count, L-1).

    In L steps for each s = 1 / kappa that Newton's method tries, where `conditional` takes L^3:
    alpha = lambda s + s/L tr (Sigma^-1 + s)^-1 is concave in s and rises, so that no step from 0
    passes the root. Raises `ValueError` if a K is not positive definite.
    """
    length = diagonal.shape[1]
    alphas = np.asarray(alphas, dtype=float)
    site, squares = diagonal[:, :1], beside.T[:, :, None] ** 2
    rows = diagonal.T[1:, :, None].copy()  # Sigma^-1, (n, count, 1)
    rows[0] -= squares[0] / site  # its rank-one term
    s = np.zeros((len(site), len(alphas)))
    lowest = min(float(site.min()), _resolvent(rows, squares[1:], s)[-1])
    _check_positive(lowest, length)
    settled = np.zeros(s.shape, dtype=bool)
    for _ in range(NEWTON):
        trace, second, corner, slope, _ = _resolvent(rows, squares[1:], s)
        excess = alphas - ridge * s - s * trace / length
        step = excess / (ridge + (trace - s * second) / length)
        settled |= step <= CONVERGED * s  # below 0 only by rounding
        if settled.all():
            bias = squares[0] / site**2 * (corner - s * slope)  # w* is along the first input
            return (1 / site + bias) / (1 - s**2 * second / length / alphas)
        s = np.where(settled, s, s + step)
    raise RuntimeError(
        f"one unknown at L = {length}, ridge = {ridge:g}: not converged in {NEWTON} steps"
    )


def _resolvent(rows: np.ndarray, squares: np.ndarray, s: np.ndarray) -> tuple:
    """Traces of (P + s)^-1 and (P + s)^-2, their first entries, and the lowest pivot.

    P is tridiagonal, rows (n, count, 1) and squares (n - 1, count, 1) of the entries beside them;
    s (count, alphas). Pivots d of P + s from the last row up, with their derivatives in s: traces
    are those of log det, and the first entry of the inverse is 1 / d of the first row.
    """
    d, d1, d2 = rows[-1] + s, 1.0, 0.0
    trace, second = 1 / d, 1 / d**2
    lowest = d.min()
    for row, square in zip(rows[-2::-1], squares[::-1], strict=True):
        ratio = square / d**2
        d, d1, d2 = row + s - ratio * d, 1 + ratio * d1, ratio * (d2 - 2 * d1**2 / d)
        part = d1 / d
        trace += part
        second += part**2 - d2 / d
        lowest = min(lowest, d.min())
    return trace, second, 1 / d, d1 / d**2, float(lowest)


# --- The limit L -> infinity ---------------------------------------------------------------------
#
# All is rational in the resolvent g(z), z = gamma + 1 / kappa = g + 1 / g, which runs from
# g(gamma) = Var y at alpha = 0 down to 0. The forms below have no differences of close numbers.


def variance(gamma: float) -> float:
    """Var y = g(gamma) = (gamma - sqrt(gamma^2 - 4)) / 2: eps before the first sample."""
    return 2 / (gamma + math.sqrt(gamma**2 - 4))


def samples(gamma: float, ridge: float, g: float) -> float:
    """alpha = lambda s + s g with s = 1 / kappa = g + 1/g - gamma: the curve's first coordinate."""
    return (ridge + g) * (1 + g * (g - gamma)) / g


def loss_at(gamma: float, ridge: float, g: float, independent: bool = False) -> float:
    """eps on the parametric curve: (1 / gamma + B) / (1 - df2 / alpha).

    B = (h + s h') / gamma^2, h = gamma g / (gamma - g), df2 = -s^2 g'; `independent` puts g for h,
    a teacher that does not know Sigma. Derivatives are g' = -g^2 / (1 - g^2).
    """
    bias = g**2 / (gamma * (1 - g**2))
    if independent:
        bias *= (gamma - 2 * g) / gamma
    else:
        bias *= 1 - 1 / (gamma - g) ** 2
    left = (ridge + g**2 * (gamma - 2 * g) / (1 - g**2)) / (ridge + g)
    return (1 / gamma + bias) / left


def closed_form(
    gamma: float, ridge: float, alphas: np.ndarray | float, independent: bool = False
) -> np.ndarray:
    """eps at L -> infinity, at any alphas (...,) above 0, for gamma > 2 and ridge >= 0.

    Without a ridge it is alpha / (alpha - 1) / gamma above alpha = 1, where it diverges.
    """
    top = variance(gamma)

    def at(alpha):
        if ridge == 0 and alpha >= 1:
            return alpha / (alpha - 1) / gamma if alpha > 1 else math.inf

        def excess(g):  # g (samples - alpha) / (lambda + g), of one sign change in (0, top)
            return g * (g - gamma) + (ridge + (1 - alpha) * g) / (ridge + g)

        low = top / 2  # towards 0 it is 1 or, without a ridge, 1 - alpha
        while excess(low) <= 0:
            low /= 2
        high = min(2 * low, top)
        g = brentq(excess, low, high, xtol=1e-300, rtol=1e-15) if excess(high) < 0 else high
        return loss_at(gamma, ridge, g, independent)

    return np.vectorize(at, otypes=[float])(alphas)


def peak(gamma: float, ridge: float) -> tuple[float, float]:
    """alpha and eps of the highest local maximum of the closed form, (NaN, NaN) if it has none.

    Without a ridge it is at alpha = 1 and infinite; its height is of order lambda^-1/2.
    """
    top = variance(gamma)
    if ridge == 0:
        return 1.0, math.inf
    # From a small alpha to a large one, where nothing is left of the peak.
    logs = np.linspace(math.log(1e-3 * ridge / (1 + ridge) * top), math.log(top), 2000)

    def height(log):
        return loss_at(gamma, ridge, math.exp(log))

    heights = np.array([height(log) for log in logs])
    inner = np.flatnonzero((heights[1:-1] > heights[:-2]) & (heights[1:-1] >= heights[2:])) + 1
    if not len(inner):
        return math.nan, math.nan
    best = inner[heights[inner].argmax()]
    found = minimize_scalar(
        lambda log: -height(log),
        bounds=(logs[best - 1], logs[best + 1]),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(samples(gamma, ridge, math.exp(found.x))), float(-found.fun)


def peak_of_equations(gamma: float, ridge: float) -> tuple[float, float]:
    """The same from the one-unknown form at large L, without the closed form.

    The mean of the GOE's tridiagonal form, 0 and sqrt((L - k) / L) beside it, stands for G: its
    spectrum, seen from the first site, is the semicircle up to 1/L. alpha and the ridge are for
    each of the L - 1 inputs. The highest inner maximum of finer and finer grids.
    """
    beside = -np.sqrt(1 - np.arange(1, SITES) / SITES)[None]
    given, share = (np.full((1, SITES), gamma), beside), (SITES - 1) / SITES
    grid = np.union1d(np.geomspace(1e-2, 1e3, 301), np.linspace(0.9, 1.1, 101))
    for _ in range(4):
        losses = tridiagonal_losses(*given, grid * share, ridge * share)[0]
        inner = np.flatnonzero((losses[1:-1] > losses[:-2]) & (losses[1:-1] >= losses[2:])) + 1
        if not len(inner):
            return math.nan, math.nan
        best = inner[losses[inner].argmax()]
        found = float(grid[best]), float(losses[best])
        grid = np.linspace(grid[best - 1], grid[best + 1], 21)
    return found


def exponent(gamma: float, ridge: float, first: float, last: float) -> float:
    """Mean exponent of the decay of eps - 1 / gamma between two alphas; 1 far above the peak."""
    low, high = closed_form(gamma, ridge, np.array([first, last])) - 1 / gamma
    return math.log(low / high) / math.log(last / first)


def rising_gamma(ridge: float) -> float:
    """gamma above which the loss rises from the first sample on: 3 / sqrt(2) without a ridge.

    The root of 2 m (m + lambda) = 1; below it the loss first falls.
    """
    m = (math.sqrt(ridge**2 + 2) - ridge) / 2
    return m + 1 / m


# --- Simulation ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fits:
    """Ridge regressions on more and more samples, (counts,) each.

    losses: eps of each; objectives: the minimum of (6) over L; residuals: its first term over L.
    """

    losses: np.ndarray
    objectives: np.ndarray
    residuals: np.ndarray


def simulate(
    precision: np.ndarray,
    ridge: float,
    counts: Sequence[int],
    generator: np.random.Generator,
) -> Fits:
    """Minimises (6) on samples of N(0, K^-1), K = `precision` (L, L), and measures eps exactly.

    The first site is predicted. counts: numbers of samples M, rising; each fit sees the samples of
    those before it. eps is v.K^-1 v with v = (1, -w): neither (15) nor a test set enters. Solves
    (L-1) x (L-1) systems for M >= L - 1 and M x M ones below.
    """
    length = len(precision)
    try:
        factor = np.linalg.cholesky(precision)
    except np.linalg.LinAlgError:
        _check_positive(float(np.linalg.eigvalsh(precision)[0]), length)
        raise
    noise = generator.standard_normal((counts[-1], length))
    drawn = dtrsm(1.0, factor, noise.T, lower=1, trans_a=1, overwrite_b=1).T  # (M, L)
    y, x = drawn[:, 0], drawn[:, 1:]
    x /= math.sqrt(length)
    fits = _minima(x, y, ridge, counts)
    found = np.empty((3, len(counts)))
    for place, (count, a) in enumerate(zip(counts, fits, strict=True)):
        white = solve_triangular(factor, np.append(1.0, -a / math.sqrt(length)), lower=True)
        r = y[:count] - x[:count] @ a
        residual = r @ r / (2 * length)
        found[:, place] = white @ white, residual + ridge * (a @ a) / (2 * length), residual
    return Fits(*found)


def _minima(x: np.ndarray, y: np.ndarray, ridge: float, counts: Sequence[int]) -> list[np.ndarray]:
    """a (n,) of (6) on the first M of x (M, n) and y (M,), for each M of `counts`, rising."""
    inputs = x.shape[1]
    few = [count for count in counts if count < inputs]
    found = []
    if few:
        rows = x[: few[-1]]
        # The factor of the first M rows is the leading block of that of all.
        factor = np.linalg.cholesky(rows @ rows.T + ridge * np.eye(few[-1]))
        for count in few:
            dual = cho_solve((factor[:count, :count], True), y[:count])
            found.append(dual @ x[:count])
    gram, moments, done = np.zeros((inputs, inputs)), np.zeros(inputs), 0
    for count in counts[len(few) :]:
        rows = x[done:count]
        gram += rows.T @ rows
        moments += rows.T @ y[done:count]
        done = count
        factor = np.linalg.cholesky(gram + ridge * np.eye(inputs))
        found.append(cho_solve((factor, True), moments))
    return found


# --- The numbers of the figure -------------------------------------------------------------------


def compute(entry: dict) -> tuple[pd.DataFrame, dict]:
    """The table of theory of one entry of the config, and what it was made from.

    entry: `gamma`, `ridge` (lambda of (6), > 0), `length` (L), `alphas` (M / L, rounded to whole
    M), `realisations` (of G and samples), `sizes` (L of the comparison with the limit),
    `size_realisations` (of G, at each size), `seed`, `threads` (realisations at once; numbers do
    not depend on it). x is alpha and seed the realisation unless said otherwise. Quantities, by
    series:

    - `loss`: eps; simulation, finite L (one unknown), six equations, independent teacher (finite
      L), each with the same G;
    - `objective`: minimum of (6) over L; simulation and free energy; `residual`: its first term;
      simulation and theory;
    - `start`: y Var y of a realisation's G, at alpha = 0;
    - `curve`: closed form at L -> infinity; conditional and independent teacher; `limit`: the
      same at the alphas of `loss`;
    - `size`: L; eps at finite L; `size limit`: L; the closed form at M / (L - 1) and the ridge per
      input, as there are L - 1, without which the peak is shifted by 1 / L;
    - `peak`: closed form and equations; x alpha, y eps of its maximum at the entry's ridge, NaN if
      it has none; `weak peak`: ridge (`WEAK`, the stronger first); the closed form's there;
    - `exponent`: two alphas; x the first, y the exponent of the decay between them at the weakest;
    - `slope`: y d eps / d alpha of the closed form at 0, by a small step; `rising`: x ridge, y the
      gamma above which that is positive.
    """
    gamma, ridge, length = entry["gamma"], entry["ridge"], entry["length"]
    counts = _counts(entry["alphas"], length)
    streams = np.random.SeedSequence(entry["seed"]).spawn(2)
    parts = []
    # One thread a realisation: the order of a library's sums may hang on its number of threads.
    with threadpool_limits(1), ThreadPoolExecutor(entry["threads"]) as pool:
        label = f"simulate L = {length}"
        with Progress(entry["realisations"], "realisations", label) as progress:
            seeds = streams[0].spawn(entry["realisations"])
            for found in pool.map(
                lambda job: _realisation(gamma, ridge, length, counts, *job), enumerate(seeds)
            ):
                parts += found
                progress.update(1)
        for size, stream in zip(entry["sizes"], streams[1].spawn(len(entry["sizes"])), strict=True):
            parts += _size(entry, size, np.random.default_rng(stream))
        parts += _limits(entry, np.array(counts) / length)
    return joined(parts, entry)


def _counts(alphas: Sequence[float], length: int) -> list[int]:
    """Numbers of samples M, rising; each must be its own."""
    counts = [round(alpha * length) for alpha in sorted(alphas)]
    if counts[0] < 1 or len(set(counts)) < len(counts):
        raise ValueError(
            f"alphas: found {list(alphas)}, which at L = {length} are {counts} samples; expected "
            f"different numbers of 1 or more"
        )
    return counts


def _realisation(
    gamma: float,
    ridge: float,
    length: int,
    counts: list[int],
    seed: int,
    stream: np.random.SeedSequence,
) -> list[pd.DataFrame]:
    """Simulation and theory of one G."""
    generator = np.random.default_rng(stream)
    precision = gamma * np.eye(length) - goe(length, generator)
    fits = simulate(precision, ridge, counts, generator)
    given = conditional(precision)
    other = independent_teacher(given, gamma)
    alphas = np.array(counts) / length
    saddles = [saddle_point(given, alpha, ridge) for alpha in alphas]
    pairs = list(zip(alphas, saddles, strict=True))
    theory = {
        ("loss", "finite L"): [loss(given, alpha, ridge) for alpha in alphas],
        ("loss", "six equations"): [saddle_loss(given, saddle) for saddle in saddles],
        ("loss", "independent teacher"): [loss(other, alpha, ridge) for alpha in alphas],
        ("objective", "free energy"): [free_energy(given, a, ridge, saddle) for a, saddle in pairs],
        ("residual", "theory"): [training_error(given, a, saddle) for a, saddle in pairs],
        ("loss", "simulation"): fits.losses,
        ("objective", "simulation"): fits.objectives,
        ("residual", "simulation"): fits.residuals,
    }
    found = [rows(*names, alphas, values, seed=seed) for names, values in theory.items()]
    return [*found, rows("start", "", [0], [given.signal + given.noise], seed=seed)]


def _size(entry: dict, size: int, generator: np.random.Generator) -> list[pd.DataFrame]:
    """The theory of many G of one size, and the limits that it is compared with."""
    gamma, ridge = entry["gamma"], entry["ridge"]
    alphas = np.array(_counts(entry["alphas"], size)) / size
    drawn = tridiagonal(gamma, size, entry["size_realisations"], generator)
    losses = tridiagonal_losses(*drawn, alphas, ridge)
    seeds = np.repeat(np.arange(len(losses)), len(alphas))
    per_input = size / (size - 1)
    limit = closed_form(gamma, ridge * per_input, alphas * per_input)
    return [
        rows("size", str(size), np.tile(alphas, len(losses)), losses.ravel(), seed=seeds),
        rows("size limit", str(size), alphas, limit),
    ]


def _limits(entry: dict, alphas: np.ndarray) -> list[pd.DataFrame]:
    """The averages that need no realisation."""
    gamma, ridge = entry["gamma"], entry["ridge"]
    top, _ = peak(gamma, ridge)
    grid = np.geomspace(alphas[0] / 2, alphas[-1] * 2, POINTS)
    grid = np.union1d(grid, [top]) if math.isfinite(top) else grid
    parts = []
    for name, independent in (("conditional", False), ("independent teacher", True)):
        for quantity, places in (("curve", grid), ("limit", alphas)):
            values = closed_form(gamma, ridge, places, independent)
            parts.append(rows(quantity, name, places, values))
    for name, found in {"closed form": peak, "equations": peak_of_equations}.items():
        place, height = found(gamma, ridge)
        parts.append(rows("peak", name, [place], [height]))
    weak = [share * variance(gamma) for share in WEAK]
    for each in weak:
        place, height = peak(gamma, each)
        parts.append(rows("weak peak", f"{each:g}", [place], [height]))
    for first, last in pairwise(TAIL):
        measured = exponent(gamma, weak[-1], first, last)
        parts.append(rows("exponent", f"{first:g} to {last:g}", [first], [measured]))
    rise = closed_form(gamma, ridge, STEP) - variance(gamma)
    return [
        *parts,
        rows("slope", "", [0], [rise / STEP]),
        rows("rising", "", [ridge], [rising_gamma(ridge)]),
    ]
