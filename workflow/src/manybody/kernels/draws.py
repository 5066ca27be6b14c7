"""The inner loop of `draws.propose` for a CPU: a handful of rows without tensor operations."""

import math

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def invert(logits, uniforms, current, drawn, gains):
    """Fills `drawn` (n,) and `gains` (n,); every row is summed on its own, in double precision."""
    vocabulary = logits.shape[1]
    weights = np.empty(vocabulary)
    for m in range(len(logits)):
        row = logits[m]
        top, total = np.float64(row.max()), 0.0
        for v in range(vocabulary):
            total += math.exp(row[v] - top)
            weights[v] = total
        token = np.searchsorted(weights, uniforms[m] * total, side="right")
        drawn[m] = min(token, vocabulary - 1)
        gains[m] = np.float64(row[drawn[m]]) - np.float64(row[current[m]])
