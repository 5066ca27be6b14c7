"""Replica theory of masked prediction with a square loss (docs/science/potts.md, section 3).

A masked site y is predicted from n inputs x of covariance Sigma, y = w*.x + noise of variance
Delta. Ridge regression on M = alpha L samples minimises over a, with w = a / sqrt(L),

    1/2 sum_mu (y_mu - a.x_mu / sqrt(L))^2 + lambda/2 |a|^2                                   (6)

and its generalisation loss is eps = E (y - w.x)^2: no factor 1/2, noise included. n and L differ
(L - 1 sites predict one of L); alpha and every 1/L below count sites.

The first part takes any Sigma, w* and Delta: the fixed point of the six saddle-point equations
(7), numbers 36 and 39 to 41 of the paper, with one unknown. The second is the paper's model, of
precision K = gamma - G with G from the GOE (gamma > 2): its conditional (15), which ties w* to
Sigma, and the limit L -> infinity in closed form. The third simulates (6) without (15).
"""

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from scipy.linalg import cho_solve, solve_triangular
from scipy.linalg.blas import dtrsm
from scipy.optimize import brentq
from threadpoolctl import threadpool_limits

from manybody.io.progress import Progress
from manybody.io.tables import joined, rows

POINTS = 241  # of a curve


# --- Any covariance and teacher ------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Regression of y = w*.x + noise: eigenvalues (n,) of Sigma; teacher (n,), w* on its
    eigenvectors; noise: Delta, its variance; length: L."""

    eigenvalues: np.ndarray
    teacher: np.ndarray
    noise: float
    length: int

    @property
    def signal(self) -> float:
        """w*.Sigma w*, which is rho of (7)."""
        return float(self.teacher**2 @ self.eigenvalues)


def kappa(given: Problem, alpha: float, ridge: float) -> float:
    """The one unknown, lambda over the conjugate of V in (7): root of lambda = kappa (alpha - df1),
    df1 = 1/L sum ev / (ev + kappa). Without a ridge 0 from alpha = n / L on."""
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
    the rank-one term ties w* to Sigma. Raises `ValueError` for a K that is not positive definite.
    """
    row, site = precision[0, 1:], float(precision[0, 0])
    _check_positive(site, len(precision))
    rates, U = np.linalg.eigh(precision[1:, 1:] - np.outer(row, row / site))
    _check_positive(rates[0], len(precision))
    return Problem(1 / rates, -(row / site) @ U, 1 / site, len(precision))


def _check_positive(lowest: float, length: int) -> None:
    """lowest: eigenvalue or pivot."""
    if not lowest > 0:
        raise ValueError(
            f"precision: found a matrix that is not positive definite at L = {length} (a pivot is "
            f"{lowest:.3g}); K = gamma - G is, for gamma well above 2, the more so the smaller L"
        )


# --- The limit L -> infinity ---------------------------------------------------------------------
#
# All is rational in the resolvent g(z), z = gamma + 1 / kappa = g + 1 / g, which runs from
# g(gamma) = Var y at alpha = 0 down to 0. The forms below have no differences of close numbers.


def variance(gamma: float) -> float:
    """Var y = g(gamma) = (gamma - sqrt(gamma^2 - 4)) / 2: eps before the first sample."""
    return 2 / (gamma + math.sqrt(gamma**2 - 4))


def loss_at(gamma: float, ridge: float, g: float, independent: bool = False) -> float:
    """eps on the parametric curve: (1 / gamma + B) / (1 - df2 / alpha).

    B = (h + s h') / gamma^2, h = gamma g / (gamma - g), df2 = -s^2 g'; `independent` puts g for h,
    a teacher that does not know Sigma. Derivatives are g' = -g^2 / (1 - g^2).
    """
    bias = g**2 / (gamma * (1 - g**2))
    bias *= (gamma - 2 * g) / gamma if independent else 1 - 1 / (gamma - g) ** 2
    left = (ridge + g**2 * (gamma - 2 * g) / (1 - g**2)) / (ridge + g)
    return (1 / gamma + bias) / left


def closed_form(
    gamma: float, ridge: float, alphas: np.ndarray | float, independent: bool = False
) -> np.ndarray:
    """eps at L -> infinity, at any alphas (...,) above 0, for gamma > 2 and ridge >= 0. Without a
    ridge it is alpha / (alpha - 1) / gamma above alpha = 1, where it diverges."""
    top = variance(gamma)

    def at(alpha):
        if ridge == 0 and alpha >= 1:
            return alpha / (alpha - 1) / gamma if alpha > 1 else math.inf

        # On the curve alpha = lambda s + s g, with s = 1 / kappa = g + 1 / g - gamma.
        def excess(g):  # that less alpha, times g / (lambda + g): of one sign change in (0, top)
            return g * (g - gamma) + (ridge + (1 - alpha) * g) / (ridge + g)

        low = top / 2  # towards 0 it is 1 or, without a ridge, 1 - alpha
        while excess(low) <= 0:
            low /= 2
        high = min(2 * low, top)
        g = brentq(excess, low, high, xtol=1e-300, rtol=1e-15) if excess(high) < 0 else high
        return loss_at(gamma, ridge, g, independent)

    return np.vectorize(at, otypes=[float])(alphas)


# --- Simulation ----------------------------------------------------------------------------------


def simulate(
    precision: np.ndarray, ridge: float, counts: Sequence[int], generator: np.random.Generator
) -> np.ndarray:
    """eps (counts,) of the minima of (6) for the first site of samples of N(0, K^-1), K (L, L) the
    `precision`, of numbers M that rise, as each fit sees the samples of those before it.

    eps is v.K^-1 v with v = (1, -w): neither (15) nor a test set enters.
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
    found = []
    for a in _minima(x, y, ridge, counts):
        white = solve_triangular(factor, np.append(1.0, -a / math.sqrt(length)), lower=True)
        found.append(white @ white)
    return np.array(found)


def _minima(x: np.ndarray, y: np.ndarray, ridge: float, counts: Sequence[int]) -> list[np.ndarray]:
    """a (n,) of (6) on the first M of x (M, n) and y (M,), for each M of `counts`, rising: of
    M x M systems for M < n, else of n x n."""
    inputs = x.shape[1]
    few = [count for count in counts if count < inputs]
    found = []
    if few:
        rows = x[: few[-1]]
        # The factor of the first M rows is the leading block of that of all.
        factor = np.linalg.cholesky(rows @ rows.T + ridge * np.eye(few[-1]))
        for count in few:
            found.append(cho_solve((factor[:count, :count], True), y[:count]) @ x[:count])
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

    entry: the keys of `config.theory.Replica`; alphas are rounded to whole M. x is alpha and seed
    the realisation unless said otherwise. Quantities, by series:

    - `loss`: eps; simulation, finite L (one unknown), with the same G;
    - `start`: y Var y of a realisation's G, at alpha = 0;
    - `curve`: closed form at L -> infinity, at the alphas and between them; conditional and
      independent teacher.
    """
    gamma, ridge, length = entry["gamma"], entry["ridge"], entry["length"]
    counts = _counts(entry["alphas"], length)
    (stream,) = np.random.SeedSequence(entry["seed"]).spawn(1)
    parts = []
    # One thread a realisation: the order of a library's sums may hang on its number of threads.
    with threadpool_limits(1), ThreadPoolExecutor(entry["threads"]) as pool:
        with Progress(entry["realisations"], "realisations", f"simulate L = {length}") as progress:
            seeds = stream.spawn(entry["realisations"])
            realise = partial(_realisation, gamma, ridge, length, counts)
            for found in pool.map(realise, range(len(seeds)), seeds):
                parts += found
                progress.update(1)
        simulated = np.array(counts) / length
        grid = np.union1d(np.geomspace(simulated[0] / 2, simulated[-1] * 2, POINTS), simulated)
        parts += [
            rows("curve", name, grid, closed_form(gamma, ridge, grid, independent))
            for name, independent in (("conditional", False), ("independent teacher", True))
        ]
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
    gamma: float, ridge: float, length: int, counts: list[int], seed: int, stream
) -> list[pd.DataFrame]:
    """Simulation and theory of one G, drawn from the seed sequence `stream`."""
    generator = np.random.default_rng(stream)
    precision = gamma * np.eye(length) - goe(length, generator)
    simulated = simulate(precision, ridge, counts, generator)
    given = conditional(precision)
    alphas = np.array(counts) / length
    return [
        rows("loss", "finite L", alphas, [loss(given, a, ridge) for a in alphas], seed=seed),
        rows("loss", "simulation", alphas, simulated, seed=seed),
        rows("start", "", [0], [given.signal + given.noise], seed=seed),
    ]
