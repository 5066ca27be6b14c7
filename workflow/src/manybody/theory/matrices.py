"""Checks of a matrix before it is used."""

import numpy as np


def symmetric(name: str, matrix: np.ndarray) -> np.ndarray:
    """`matrix` in double precision; `ValueError` unless it is square, finite and symmetric."""
    matrix = np.asarray(matrix, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
        raise ValueError(f"{name}: found shape {matrix.shape}, expected a square matrix")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name}: found numbers that are not finite")
    apart = float(np.abs(matrix - matrix.T).max())
    if apart > 1e-12 * np.abs(matrix).max():
        raise ValueError(f"{name}: found a matrix that differs from its transpose by {apart:.3g}")
    return matrix
