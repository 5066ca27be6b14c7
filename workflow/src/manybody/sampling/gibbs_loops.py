"""The compiled loops of `gibbs`."""

import math

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, inline="always")
def uniform(state):
    """A number in [0, 1) with 53 random bits from xoshiro256++; moves its `state` (4,) uint64."""
    total = state[0] + state[3]
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + state[0]
    shifted = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = (state[3] << np.uint64(45)) | (state[3] >> np.uint64(19))
    return (result >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(nogil=True, cache=True)
def sample_chains(tokens, states, changes, tuples, weights, folded, bins):
    """Fills `tokens` (n, L) with what the chains of `states` (n, 4) reach after changes.shape[1]
    sweeps from uniform colours; counts changed colours in `changes` (n, sweeps)."""
    sites, count, size = tuples.shape
    vocabulary = folded.shape[1]
    flat = bins.reshape(-1)
    sums = np.empty(len(folded), np.float32)
    logits = np.empty(vocabulary)
    for c in range(len(tokens)):
        chain, state = tokens[c], states[c]
        for i in range(sites):
            chain[i] = int(uniform(state) * vocabulary)
        for sweep in range(changes.shape[1]):
            for i in range(sites):
                sums[:] = 0
                for t in range(count):
                    where = 0
                    for m in range(size):
                        where = where * vocabulary + chain[tuples[i, t, m]]
                    sums[flat[where]] += weights[i, t]
                logits[:] = 0
                for b in range(len(sums)):
                    if sums[b] != 0:
                        for a in range(vocabulary):
                            logits[a] += sums[b] * folded[b, a]
                top = logits.max()
                total = 0.0
                for a in range(vocabulary):
                    total += math.exp(logits[a] - top)
                    logits[a] = total
                target = uniform(state) * total
                drawn = 0
                while drawn < vocabulary - 1 and logits[drawn] <= target:
                    drawn += 1
                changes[c, sweep] += drawn != chain[i]
                chain[i] = drawn
