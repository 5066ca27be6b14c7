"""The inner loop of `draws.propose` for a CPU: a handful of rows without tensor operations."""

import numpy as np

from manybody.data.vector_loops import LANES, exponential, get, put, spread, where_greater
from manybody.io.compiled import njit

LEAST = -700.0  # of an exponent; what is rarer than exp(LEAST) times the most likely is not drawn


@njit(nogil=True, cache=True)
def invert(logits, uniforms, current, drawn, gains):
    """Fills `drawn` (n,) and `gains` (n,); every row is summed on its own, in double precision."""
    vocabulary = logits.shape[1]
    lanes = np.zeros((1, (vocabulary + LANES - 1) // LANES, LANES))
    weights = lanes.reshape(-1)
    least, none = spread(lanes, LEAST), spread(lanes, 0.0)
    for m in range(len(logits)):
        row = logits[m]
        top, total = np.float64(row.max()), 0.0
        for v in range(vocabulary):
            weights[v] = row[v] - top
        for n in range(lanes.shape[1]):
            given = get(lanes, 0, n)
            put(lanes, 0, n, where_greater(least, given, none, exponential(lanes, given)))
        for v in range(vocabulary):
            total += weights[v]
            weights[v] = total
        token = np.searchsorted(weights[:vocabulary], uniforms[m] * total, side="right")
        drawn[m] = min(token, vocabulary - 1)
        gains[m] = np.float64(row[drawn[m]]) - np.float64(row[current[m]])
