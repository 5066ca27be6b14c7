"""What the numbers of state evolution should be at an entry's own parameters, computed another way.

Tables of `state_evolution` rest on scrambled Sobol points, fits of what vanishes on average, and
roots between places. Here nothing of this enters: independent normal numbers and plain averages for
gains, and a square lattice for the eigenvalues at Q = 0. Both share the channel's integral with the
tables, since that of `plain` takes a hundred times as long; the identities of `exact` hold it
against adaptive quadrature.
"""

import math
from collections.abc import Sequence

import numpy as np

from manybody.theory.multi_index import channel
from manybody.theory.multi_index.samples import Setting, growth_values, overlap_matrix

REACH, SPACING = 6.5, 0.25  # of the lattice of x, in units of (1 + c) sqrt(V)
BLOCK = 2**15  # samples at once


def eigenvalues(setting: Setting) -> np.ndarray:
    """lambda_1 and lambda_2 at Q = 0, (2,), by the trapezoid rule over a square lattice of x.

    Softmax only: x of linear attention has tails that no such lattice reaches.
    """
    variance = 1 + setting.regulariser
    # The spacing resolves both scales of x: c where c is small, else the sum of the two tokens.
    side = np.arange(-REACH, REACH, SPACING * min(1, 2 * setting.skip)) + SPACING / 3
    x = (1 + setting.skip) * math.sqrt(variance) * np.stack(np.meshgrid(side, side), axis=-1)
    x = x.reshape(-1, 2)  # shifted off the line x_1 = x_2
    found = channel.posterior(
        x,
        np.zeros((len(x), 2, 2)),
        variance * np.eye(2),
        setting.skip,
        setting.activation,
        threads=setting.threads,
    )
    weight = np.exp(found.log_z - found.log_z.max())
    guesses = (growth_values(found, k, variance) for k in range(2))
    sums = [(weight * (guess**2).sum(axis=(1, 2))).sum() for guess in guesses]
    return np.array(sums) / weight.sum() / variance**2


def gains(
    overlaps: Sequence[float], setting: Setting, samples: int, seed: np.random.SeedSequence
) -> tuple[np.ndarray, np.ndarray]:
    """G_11 and G_22, (2,), at Q = diag(overlaps) and their standard errors, of independent samples.

    Of each there are two plain averages, E |g|^2 and T / V - E tr Cov / V^2 (Nishimori). Their mean
    is taken with the weights that make its error least.
    """
    Q = np.diag(overlap_matrix(overlaps))
    variance = 1 - Q + setting.regulariser
    generator = np.random.default_rng(seed)
    count, sums, squares = 0, np.zeros((2, 2)), np.zeros((2, 2, 2))
    while count < samples:
        size = min(BLOCK, samples - count)
        normal = generator.standard_normal((2, size, 2, 2))
        omega, noise = np.sqrt(Q)[:, None] * normal[0], np.sqrt(variance)[:, None] * normal[1]
        x = channel.index(omega + noise, setting.skip, setting.activation)
        found = channel.posterior(
            x,
            omega,
            np.diag(variance),
            setting.skip,
            setting.activation,
            threads=setting.threads,
        )
        first = ((found.mean / variance[:, None]) ** 2).sum(axis=2)  # (n, 2)
        covariance = np.einsum("nktkt->nk", found.covariance)
        both = np.stack([first, 2 / variance - covariance / variance**2], axis=2)  # (n, 2, 2)
        sums += both.sum(axis=0)
        squares += np.einsum("nka,nkb->kab", both, both)
        count += size
    means = sums / count
    values, errors = np.empty(2), np.empty(2)
    for k in range(2):
        covariance = (squares[k] / count - np.outer(means[k], means[k])) / (count - 1)
        gap = covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1]
        share = (covariance[1, 1] - covariance[0, 1]) / gap if gap > 0 else 0.5
        weights = np.array([share, 1 - share])
        values[k] = weights @ means[k]
        errors[k] = math.sqrt(max(weights @ covariance @ weights, 0.0))
    return values, errors
