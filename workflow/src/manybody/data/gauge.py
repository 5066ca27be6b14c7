"""Distance of inferred factored attention from the true couplings, in a fixed gauge.

The masked loss of logits_k = sum_j A_kj V s_j does not change under (A, V) -> (c A, V / c), so no
error here depends on c, nor on the diagonal of A, which multiplies the masked token, zero. The
truth is J (L, L): A = beta J up to the gauge (docs/science/potts.md, section 2).
"""

from typing import NamedTuple

import numpy as np


class CouplingError(NamedTuple):
    """Errors of a map A against the true J, over the off-diagonal entries."""

    scale: float  # c = <A, J> / <A, A>: c A is nearest to J
    error: float  # |c A - J|^2 / |J|^2
    pearson: float  # of c A and J, so that the sign of A does not matter


def coupling_error(attention: np.ndarray, couplings: np.ndarray) -> CouplingError:
    """Errors of A (L, L) against J (L, L), sign and scale of A fixed by the best fit. A map with
    nothing in common with J, such as zero, has error 1 and correlation 0 or NaN."""
    first, second = _off_diagonal(attention), _off_diagonal(couplings)
    square = float(first @ first)
    scale = float(first @ second) / square if square else 0.0
    squared = float(((scale * first - second) ** 2).sum())
    one, other = scale * first - (scale * first).mean(), second - second.mean()
    size = float(np.sqrt((one @ one) * (other @ other)))
    return CouplingError(
        scale=scale,
        error=squared / float(second @ second),
        pearson=float(one @ other) / size if size else float("nan"),
    )


def symmetrised(attention: np.ndarray) -> np.ndarray:
    """(A + A^T) / 2: the best estimate of J, which is symmetric."""
    attention = np.asarray(attention, np.float64)
    return (attention + attention.T) / 2


def _off_diagonal(matrix: np.ndarray) -> np.ndarray:
    matrix = np.asarray(matrix, np.float64)
    return matrix[~np.eye(len(matrix), dtype=bool)]
