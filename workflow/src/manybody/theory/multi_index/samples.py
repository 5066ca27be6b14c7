"""Averages over the samples of two-layer attention (docs/science/multi-index.md, sections 2 to 4).

Two tokens, rank 1, tied weights. omega = sqrt(Q) Xi and Z = omega + sqrt(V) U with V = I - Q + the
regulariser, which is noise of that variance in the data, known to the channel. The eight numbers
(Xi, U) of a sample are scrambled Sobol points and the same for every Q, so that what is computed
from two overlaps, a slope or a crossing, has little noise. Independent scramblings give errors.

Heavy tails are most of the noise: G holds fourth moments of the indices, lambda more. Known
averages take off what they explain (`controlled`): least-squares fits by variables of mean zero,
all of them identities of a posterior (Nishimori) or moments of Gaussians.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri
from scipy.stats import qmc

from manybody.theory.multi_index import channel

FOLDS = 8  # of the samples, for the fit of what vanishes on average


@dataclass(frozen=True)
class Setting:
    """c, softmax or linear, the number added to V in channel and data, and how many threads."""

    skip: float
    activation: str = "softmax"
    regulariser: float = 0.0
    threads: int = 1


@dataclass(frozen=True)
class Averages:
    """At one Q: gain G (2, 2); eigenvalue lambda (2,), not a number for layers whose overlap is not
    0; log_z, E log Z_out up to a constant; nishimori (2, 2), the difference of the two plain
    estimates of G, which is 0 up to noise."""

    gain: np.ndarray
    eigenvalue: np.ndarray
    log_z: float
    nishimori: np.ndarray


def draws(points: int, seed: np.random.SeedSequence, parts: int = 2) -> np.ndarray:
    """Normal numbers (points, parts, 2, 2) by layer and token, of one scrambling of the Sobol
    sequence: for omega and for each Z - omega. points: a power of 2."""
    return normals(points, 4 * parts, seed).reshape(points, parts, 2, 2)


def normals(
    points: int,
    numbers: int,
    seed: np.random.SeedSequence | np.random.Generator,
    edge: float = 1e-12,
) -> np.ndarray:
    """Normal numbers (points, numbers) of one scrambling of the Sobol sequence; points closer than
    `edge` to 0 or 1, where a normal is infinite, count as there."""
    sequence = qmc.Sobol(numbers, scramble=True, rng=np.random.default_rng(seed))
    return ndtri(np.clip(sequence.random(points), edge, 1 - edge))


def overlap_matrix(overlap: Sequence) -> np.ndarray:
    """Q (2, 2) from a matrix or from its diagonal (2,)."""
    Q = np.asarray(overlap, dtype=float)
    return np.diag(Q) if Q.shape == (2,) else Q


def averages(overlap: Sequence, setting: Setting, normal: np.ndarray) -> Averages:
    """Averages at Q (2, 2), or its diagonal (2,), over `normal` (n, 2, 2, 2) of `draws`.

    G is diagonal if Q is, as the channel is even in each layer. `ValueError` unless 0 <= Q <= I.
    """
    Q = overlap_matrix(overlap)
    variance = np.eye(2) - Q + setting.regulariser * np.eye(2)
    omega = root(Q) @ normal[:, 0]
    noise = root(variance) @ normal[:, 1]  # Z - omega
    x = channel.index(omega + noise, setting.skip, setting.activation)
    found = channel.posterior(
        x, omega, variance, setting.skip, setting.activation, threads=setting.threads
    )
    inverse = np.linalg.inv(variance)
    g, truth = inverse @ found.mean, inverse @ noise
    product = g @ g.mT
    covariance = np.einsum("nktlt->nkl", found.covariance)
    # The means of both controls are 0: E E[(Z - omega)^2 | y] = 2 V, E E[f | y] f = E E[f | y]^2.
    second = 2 * inverse - inverse @ covariance @ inverse - product
    cross = g @ truth.mT
    tower = (cross + cross.mT) / 2 - product

    diagonal = Q[0, 1] == 0
    entries = [(0, 0), (1, 1)] if diagonal else [(0, 0), (1, 1), (0, 1)]
    scale = np.sqrt(np.outer(np.diag(variance), np.diag(variance)))
    zeros = np.column_stack(
        [part[:, j, k] * scale[j, k] for part in (second, tower) for j, k in entries]
    )
    gain = np.zeros((2, 2))
    for j, k in entries:
        gain[j, k] = gain[k, j] = controlled(product[:, j, k], zeros)
    eigenvalue = np.full(2, np.nan)
    if diagonal:
        for k in np.flatnonzero(np.diag(Q) == 0):
            eigenvalue[k] = _eigenvalue(k, noise, found, variance, zeros)
    return Averages(gain, eigenvalue, float(found.log_z.mean()), second.mean(axis=0))


def _eigenvalue(k, noise, found, variance, zeros) -> float:
    """lambda_k = E sum_ts ((E[z_t z_s | y] / V - delta_ts) / V)^2, of a layer whose omega is 0."""
    v = variance[k, k]
    guess = growth_values(found, k, v)
    z = noise[:, k] / np.sqrt(v)
    truth = z[:, :, None] * z[:, None, :] - np.eye(2)
    values = (guess**2).sum(axis=(1, 2))
    tower = (guess * truth).sum(axis=(1, 2)) - values
    # Moments of the true index: |z|^2 has mean 2, |z|^4 has 8, and (truth : truth) has 6.
    radius = (z**2).sum(axis=1)
    moments = np.column_stack([tower, radius - 2, radius**2 - 8, z[:, 0] * z[:, 1]])
    return controlled(values, np.column_stack([zeros, moments])) / v**2


def growth_values(found: channel.Posterior, layer: int, variance: float) -> np.ndarray:
    """E[z_t z_s | y] / V - delta_ts of each sample, (n, 2, 2), of a layer whose omega is 0."""
    mean = found.mean[:, layer]
    squares = found.covariance[:, layer, :, layer] + mean[:, :, None] * mean[:, None, :]
    return squares / variance - np.eye(2)


def controlled(values: np.ndarray, zeros: np.ndarray) -> float:
    """Mean of `values` (n,) less what `zeros` (n, m), of mean zero, explain of them.

    Each of FOLDS parts of the samples takes the least-squares slopes of the others: slopes fitted
    to a sample's own values follow its tail, and the mean would be off by a share of its error.
    The parts are runs of the Sobol sequence, each of which covers the space as the whole does.
    """
    scale = np.sqrt((zeros**2).mean(axis=0))
    zeros = zeros[:, scale > 0] / scale[scale > 0]
    if not zeros.shape[1]:
        return float(values.mean())
    parts = np.array_split(np.column_stack([np.ones(len(values)), zeros, values]), FOLDS)
    squares = np.array([part.T @ part for part in parts])
    others = squares.sum(axis=0) - squares
    inverse = np.linalg.pinv(others[:, :-1, :-1], rcond=1e-12, hermitian=True)
    coefficients = np.einsum("fij,fj->fi", inverse, others[:, :-1, -1])[:, 1:]
    explained = 0.0
    for part, coefficient in zip(parts, coefficients, strict=True):
        explained += (part[:, 1:-1] @ coefficient).sum()
    return float((values.sum() - explained) / len(values))


def root(matrix: np.ndarray) -> np.ndarray:
    """Symmetric square root of a matrix (2, 2) >= 0."""
    if matrix[0, 1] == 0:
        return np.diag(np.sqrt(np.maximum(np.diag(matrix), 0)))
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def mean_error(values: Sequence) -> tuple[np.ndarray, np.ndarray]:
    """Mean over independent scramblings, and its standard error (not a number for one)."""
    values = np.asarray(values, dtype=float)
    if len(values) < 2:
        return values[0], np.full_like(values[0], np.nan)
    with np.errstate(invalid="ignore"):  # of infinite values
        return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


# --- Errors of prediction -------------------------------------------------------------------------
#
# At overlaps near 1 nearly all of an error comes from the few samples whose last index changes its
# sign: 2^19 are needed for 1 %, and cost little time.


def prediction_errors(
    overlap: Sequence, setting: Setting, normal: np.ndarray
) -> tuple[float, float]:
    """Plug-in and posterior-mean error at Q, squares summed over the four entries of y.

    Plug-in: E |g(Z) - g(omega)|^2, of a student that takes omega ~ N(0, Q) for Z ~ N(omega, I - Q).
    Posterior mean: E |y - E[y | omega]|^2, the least possible, by half the squared difference of
    two y of one omega. Neither has the regulariser. normal: of `draws`, with two Z - omega.
    """
    Q = overlap_matrix(overlap)
    omega, noise = root(Q) @ normal[:, 0], root(np.eye(2) - Q)
    indices = [omega, *(omega + noise @ normal[:, part] for part in (1, 2))]
    kind = setting.activation
    student, first, second = (
        channel.outputs(channel.index(z, setting.skip, kind), kind) for z in indices
    )
    pairs = [(first, student), (second, student), (first, second)]
    plug_in, other, apart = (float(((y - found) ** 2).sum()) for y, found in pairs)
    return (plug_in + other) / (2 * len(normal)), apart / (2 * len(normal))
