"""Plain Monte Carlo of two-layer attention: slow, without the methods that it is to check.

The curves and thresholds of `table` rest on Sobol points and control variates. Here samples are
independent, every estimate is a mean over them with nothing taken off, and its error that of a
mean; the channel's averages of a sample are `channel.posterior`'s. Q and V are diagonal. Fixed
points have alpha = Q_kk / ((1 - Q_kk) G_kk) for each learned layer k, and alpha lambda_k = 1 where
layer k starts (docs/science/multi-index.md, section 4).

Errors of roots: with F(w) = 0 at the root and l = log alpha there, a sample moves w by -dF / F' and
l by dl - l' dF / F', where F, l and their slopes are of the same samples (the delta method).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import newton
from scipy.special import expit, logit

from manybody.theory.multi_index import channel
from manybody.theory.multi_index.samples import Setting

SLOPE = 0.1  # of logit Q, for the slope of a root
NEAR, STEPS = 0.02, 12  # the last step of a secant, and how many it has at most


@dataclass(frozen=True)
class Value:
    """A mean over independent samples and its standard error."""

    value: float
    error: float


def normals(count: int, seed: int) -> np.ndarray:
    """Independent normal numbers (count, 2, 2, 2): omega and Z - omega, layer, token."""
    return np.random.default_rng(seed).standard_normal((count, 2, 2, 2))


def evaluate(
    overlaps: Sequence[float], setting: Setting, normal: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of each sample at Q = diag(overlaps), 0 <= Q_kk < 1: squares (n, 2), sum_t g_kt^2, of
    mean G_kk; growth (n, 2), sum_ts (G_ts)^2, of mean lambda_k (not a number for a layer whose
    overlap is not 0)."""
    q = np.asarray(overlaps, dtype=float)
    variance = 1 - q + setting.regulariser
    omega = np.sqrt(q)[:, None] * normal[:, 0]
    given = setting.skip, setting.activation
    x = channel.index(omega + np.sqrt(variance)[:, None] * normal[:, 1], *given)
    found = channel.posterior(x, omega, np.diag(variance), *given, threads=setting.threads)
    squares = (channel.denoiser(found, np.diag(variance)) ** 2).sum(axis=2)
    growth = np.full((len(x), 2), math.nan)
    for k in np.flatnonzero(q == 0):
        outer = np.einsum("nt,ns->nts", found.mean[:, k], found.mean[:, k])
        second = found.covariance[:, k, :, k] + outer
        growth[:, k] = ((second / variance[k] - np.eye(2)) ** 2).sum(axis=(1, 2)) / variance[k] ** 2
    return squares, growth


def weak_recovery(setting: Setting, count: int, seed: int) -> tuple[Value, Value]:
    """1 / lambda_k at Q = 0 of layers 1 and 2; the smaller is where learning starts (alpha_2 of
    softmax attention)."""
    _, growth = evaluate((0, 0), setting, normals(count, seed))
    return tuple(_of_logs(-np.log(part.mean()), -part / part.mean()) for part in growth.T)


def single_layer(overlap: float, setting: Setting, count: int, seed: int, layer: int = 1) -> Value:
    """alpha at which `layer` (0 or 1) alone has `overlap`, the other one 0."""
    at = np.zeros(2)
    at[layer] = overlap
    squares = evaluate(at, setting, normals(count, seed))[0][:, layer]
    return _of_logs(logit(overlap) - np.log(squares.mean()), -squares / squares.mean())


def onset(setting: Setting, count: int, seed: int, guess: float, layer: int = 1) -> Value:
    """alpha at which the other layer starts on the curve of `layer` alone (alpha_1 for layer 1).
    guess: of the Q of `layer` there."""
    other = 1 - layer

    def ask(w: float, normal) -> tuple:
        at = np.zeros(2)
        at[layer] = expit(w)
        squares, growth = evaluate(at, setting, normal)
        squares, growth = squares[:, layer], growth[:, other]
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
        w = newton(lambda w, part=part: ask(w, part)[0], w, x1=w + SLOPE, tol=NEAR, maxiter=STEPS)
    F, change, alpha, moved = ask(w, normal)
    F_up, _, alpha_up, _ = ask(w + SLOPE, normal)
    climb = (alpha_up - alpha) / (F_up - F)
    return _of_logs(alpha - climb * F, moved - climb * change)


def _of_logs(log: float, changes: np.ndarray) -> Value:
    value = math.exp(log)
    return Value(value, value * float(changes.std(ddof=1)) / math.sqrt(len(changes)))
