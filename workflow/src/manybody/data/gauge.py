"""Distance of inferred factored attention from the true couplings, in a fixed gauge.

The masked loss of logits_k = sum_j A_kj V s_j does not change under (A, V) -> (c A, V / c) for any
c but 0, nor under V -> V + 1 w^T, so no error here depends on either. The diagonal of A is left
out too: it multiplies the masked token, which is zero. The truth is J (L, L) and beta U
(|V|, |V|): A = beta J and V = U up to the gauge (docs/science/potts.md, section 2). numpy only.
"""

from typing import NamedTuple

import numpy as np


class CouplingError(NamedTuple):
    """Errors of a map A against the true J, over the off-diagonal entries."""

    scale: float  # c = <A, J> / <A, A>: c A is nearest to J
    error: float  # |c A - J|^2 / |J|^2
    pearson: float  # of c A and J, so that the sign of A does not matter
    mean_square: float  # |c A - J|^2 / (L (L - 1))


def coupling_error(attention: np.ndarray, couplings: np.ndarray) -> CouplingError:
    """Errors of A (L, L) against J (L, L), sign and scale of A fixed by the best fit.

    A map that has nothing in common with J, such as zero, has error 1 and correlation 0 or NaN.
    """
    first, second = _off_diagonal(attention), _off_diagonal(couplings)
    scale = _best_scale(first, second)
    squared = float(((scale * first - second) ** 2).sum())
    return CouplingError(
        scale=scale,
        error=squared / float(second @ second),
        pearson=_correlation(scale * first, second),
        mean_square=squared / len(first),
    )


def symmetrised(attention: np.ndarray) -> np.ndarray:
    """(A + A^T) / 2: the best estimate of J, which is symmetric."""
    attention = np.asarray(attention, np.float64)
    return (attention + attention.T) / 2


def renormalised(attention: np.ndarray) -> np.ndarray:
    """A (..., L, L) with its diagonal dropped and rows that sum to 1 again."""
    attention = np.array(attention, np.float64)
    sites = np.arange(attention.shape[-1])
    attention[..., sites, sites] = 0
    return attention / attention.sum(-1, keepdims=True)


def centred(values: np.ndarray) -> np.ndarray:
    """V (|V|, |V|) less its column means, which is the same for every V + 1 w^T.

    Rows are the colours that the logits belong to, columns those that are attended to.
    """
    values = np.asarray(values, np.float64)
    return values - values.mean(axis=0, keepdims=True)


def value_error(
    values: np.ndarray, colours: np.ndarray, frequencies: np.ndarray, scale: float | None = None
) -> float:
    """sum_b f_b |V_b / c - U_b|^2 / sum_b f_b |U_b|^2 over columns b, both matrices centred.

    `colours` is beta U. `frequencies` (|V|,) are the shares f_b of colours in the data: a colour
    that does not occur says nothing about its column. `scale` c is that of `coupling_error`, whose
    inverse scales V in the same gauge; None takes the scale at which V is nearest to beta U.
    """
    weights = np.sqrt(np.asarray(frequencies, np.float64))
    first = (centred(values) * weights).ravel()
    second = (centred(colours) * weights).ravel()
    factor = _best_scale(first, second) if scale is None else 1 / scale
    return float(((factor * first - second) ** 2).sum() / (second @ second))


def colour_frequencies(tokens: np.ndarray, vocabulary: int) -> np.ndarray:
    """Share (|V|,) of each colour in tokens (N, L)."""
    counts = np.bincount(np.asarray(tokens, np.int64).ravel(), minlength=vocabulary)
    return counts / counts.sum()


def _off_diagonal(matrix: np.ndarray) -> np.ndarray:
    matrix = np.asarray(matrix, np.float64)
    return matrix[~np.eye(len(matrix), dtype=bool)]


def _best_scale(first: np.ndarray, second: np.ndarray) -> float:
    """c for which c * first is nearest to second."""
    square = float(first @ first)
    return float(first @ second) / square if square else 0.0


def _correlation(first: np.ndarray, second: np.ndarray) -> float:
    first, second = first - first.mean(), second - second.mean()
    size = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / size if size else float("nan")
