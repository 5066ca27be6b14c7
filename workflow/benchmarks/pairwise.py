"""Gibbs sampling of any Potts model with fields and pair couplings, a matrix for each pair.

    P(s) ~ exp(sum_i h_i(s_i) + sum_{i<j} J_ij(s_i, s_j)),   J_ij(a, b) = J_ji(b, a)

For planted couplings that do not factorise into J_ij U_ab. Chains are independent and start from
uniform colours; sites are visited from left to right; each chain draws from its own stream, so
that samples do not depend on the number of threads.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit

CHUNK = 64  # chains that a thread takes at a time


def sample(
    couplings: np.ndarray,
    fields: np.ndarray,
    chains: int,
    sweeps: int,
    stream: np.random.SeedSequence,
    threads: int = 1,
) -> np.ndarray:
    """Tokens (chains, L) int64 after `sweeps` sweeps.

    couplings (L, L, q, q), indexed i, j, a, b, in units of the logits, symmetric and 0 for i = j;
    fields (L, q).
    """
    length, vocabulary = fields.shape
    coupled = couplings.any(axis=(2, 3))
    degree = max(1, int(coupled.sum(axis=1).max()))
    neighbours = np.full((length, degree), -1, np.int64)
    for i in range(length):
        found = np.flatnonzero(coupled[i])
        neighbours[i, : len(found)] = found
    # Row b of [i, j] is what colour b of j adds to the logits of i.
    rows = np.ascontiguousarray(couplings.transpose(0, 1, 3, 2), np.float64)
    fields = np.ascontiguousarray(fields, np.float64)
    tokens = np.empty((chains, length), np.int64)
    parts = [slice(start, start + CHUNK) for start in range(0, chains, CHUNK)]
    streams = stream.spawn(len(parts))

    def run(part: slice, stream: np.random.SeedSequence) -> None:
        rng = np.random.default_rng(stream)
        own = tokens[part]
        own[:] = rng.integers(0, vocabulary, own.shape)
        for _ in range(sweeps):
            _sweep(own, rng.random(own.shape), rows, neighbours, fields)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, parts, streams))
    return tokens


@njit(nogil=True, cache=True)
def _sweep(tokens, draws, rows, neighbours, fields):
    vocabulary = fields.shape[1]
    logits = np.empty(vocabulary)
    for n in range(len(tokens)):
        for i in range(len(fields)):
            logits[:] = fields[i]
            for j in neighbours[i]:
                if j < 0:
                    break
                row = rows[i, j, tokens[n, j]]
                for a in range(vocabulary):
                    logits[a] += row[a]
            highest, total = logits.max(), 0.0
            for a in range(vocabulary):
                total += np.exp(logits[a] - highest)
                logits[a] = total
            target, a = draws[n, i] * total, 0
            while a < vocabulary - 1 and logits[a] <= target:
                a += 1
            tokens[n, i] = a
