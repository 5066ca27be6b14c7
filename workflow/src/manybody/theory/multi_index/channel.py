"""Channel of two-layer attention, two tokens, rank 1 (docs/science/multi-index.md, sections 2, 3).

The indices Z = (z_1, z_2) of a sample, z_l = w_l X / sqrt D with a component a token, have
z_1t, z_2t ~ N(omega_t, V) for each token t. What is seen is h = B(z_1) z_2 up to its sign, with
B(z_1) = c I + A_1 and A_1 = softmax of the rows of z_1 z_1^T, or z_1 z_1^T itself (`linear`): the
output softmax(h h^T) or h h^T does not depend on more. Posterior averages are integrals over z_1,
where z_2 = +-B^-1 x, by the trapezoid rule, whose error falls exponentially as its step shrinks.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from manybody.theory.multi_index.channel_loops import integrate_samples

CHUNK = 64  # samples that a thread takes at a time
ROTATION = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)  # of tokens; its own inverse


@dataclass(frozen=True)
class Posterior:
    """Moments of the indices given the output, for n samples; layers p before tokens T.

    log_z (n,): log Z_out, without terms that depend on the output only; mean (n, 2, 2):
    E[Z | y] - omega; covariance (n, 2, 2, 2, 2): Cov(Z_kt, Z_ls | y) as [k, t, l, s].
    """

    log_z: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray


def posterior(
    x: np.ndarray,
    omega: np.ndarray,
    variance: np.ndarray,
    skip: float,
    activation: str = "softmax",
    threads: int = 1,
    extra: int = 0,
) -> Posterior:
    """Posterior of Z ~ N(omega, V) given h = +-x.

    x (n, 2): the last layer's index h, either sign; omega (n, 2, 2): layers, tokens; variance V
    (2, 2): symmetric, positive definite, so a layer known perfectly is refused; skip: c >= 0 (> 0
    for `linear`). The grid of a sample is refined until two agree; extra: so many more doublings.
    """
    x, omega, variance = finite(x=x, omega=omega, variance=variance)
    if not np.linalg.eigvalsh(variance)[0] > 0:
        raise ValueError(
            f"variance: found {variance.tolist()}, expected a positive definite matrix; for a "
            f"layer known perfectly take a variance that is small instead of 0"
        )
    n = len(x)
    log_z, mean, covariance = np.empty(n), np.empty((n, 4)), np.empty((n, 4, 4))

    def run(part: slice) -> None:
        found = log_z[part], mean[part], covariance[part]
        softmax = activation == "softmax"
        integrate_samples(x[part], omega[part], variance, float(skip), softmax, extra, *found)

    share_out(run, n, CHUNK, threads)
    mean = mean.reshape(n, 2, 2) @ ROTATION
    covariance = np.einsum("nkals,at->nktls", covariance.reshape(n, 2, 2, 2, 2), ROTATION)
    return Posterior(log_z, mean, covariance @ ROTATION)


def finite(**given: np.ndarray) -> list[np.ndarray]:
    """The arrays for compiled loops; `ValueError` for one that is not finite."""
    for name, values in given.items():
        if not np.isfinite(values).all():
            raise ValueError(f"{name}: found a number that is not finite")
    return [np.ascontiguousarray(values, dtype=float) for values in given.values()]


def share_out(run: Callable[[slice], None], count: int, chunk: int, threads: int) -> None:
    """Calls `run` on slices of `chunk` of `count` samples, `threads` at a time."""
    if threads == 1:
        return run(slice(0, count))
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, [slice(first, first + chunk) for first in range(0, count, chunk)]))


def denoiser(posterior: Posterior, variance: np.ndarray) -> np.ndarray:
    """g_out = V^-1 (E[Z | y] - omega), (n, 2, 2)."""
    return np.einsum("kl,nlt->nkt", np.linalg.inv(variance), posterior.mean)


def jacobian(posterior: Posterior, variance: np.ndarray) -> np.ndarray:
    """d g[k, t] / d omega[l, s] = V^-1 Cov(Z_t, Z_s | y) V^-1 - delta_ts V^-1, (n, 2, 2, 2, 2)."""
    inverse = np.linalg.inv(variance)
    found = np.einsum("ka,natbs,bl->nktls", inverse, posterior.covariance, inverse, optimize=True)
    return found - np.einsum("kl,ts->ktls", inverse, np.eye(2))


def index(z: np.ndarray, skip: float, activation: str = "softmax") -> np.ndarray:
    """The last layer's index h = B(z_1) z_2, (n, 2), from indices z (n, 2, 2)."""
    first, last = z[:, 0], z[:, 1]
    scores = first[:, :, None] * first[:, None, :]
    if activation == "softmax":
        scores = np.exp(scores - scores.max(axis=2, keepdims=True))
        scores /= scores.sum(axis=2, keepdims=True)
    return skip * last + np.einsum("nts,ns->nt", scores, last)


def outputs(h: np.ndarray, activation: str = "softmax") -> np.ndarray:
    """y = softmax of the rows of h h^T, or h h^T itself (`linear`), (n, 2, 2), from h (n, 2)."""
    if activation == "linear":
        return h[:, :, None] * h[:, None, :]
    gap = h * (h - h[:, ::-1])  # logit of the weight that a token gives to itself
    rows = np.stack([expit(gap), expit(-gap)], axis=2)
    rows[:, 1] = rows[:, 1, ::-1]
    return rows
