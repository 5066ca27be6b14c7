"""The compiled loop of `boltzmann`: one step along the gradient of the likelihood."""

import numpy as np

from manybody.io.compiled import njit


@njit(nogil=True, cache=True)
def step(couplings, fields, observed, sampled, sites, found, rate, ridge, damping):
    """Moves J and h along the gradient of the mean log-likelihood less ridge / 2 times J^2; each
    coupling is divided by the variance of what it weighs if sites were independent, plus `damping`.
    Returns sums of x, y, x^2, y^2 and x y of connected correlations, x of the data and y sampled.

    couplings: (P, q, q) float32, pairs i < j in order; fields (L, q) float64; both are changed
    observed, sampled: connected correlations of the data (P, q, q) float32, f_ij sampled (P, q, q)
    sites, found: f_i (L, q) float64, of the data and sampled

    Couplings count colours from their means f_i in the data, so that fields need not follow them:
    h takes back what a step in J gives to a site on average.
    """
    length, vocabulary = fields.shape
    sums, pair = np.zeros(5), 0
    for i in range(length):
        for j in range(i + 1, length):
            for a in range(vocabulary):
                own, spread = sites[i, a], sites[i, a] * (1 - sites[i, a])
                for b in range(vocabulary):
                    other = sites[j, b]
                    x = np.float64(observed[pair, a, b])
                    # The mean of (colours of i - own) (colours of j - other) over the samples.
                    y = sampled[pair, a, b] - own * found[j, b] - other * found[i, a] + own * other
                    old = np.float64(couplings[pair, a, b])
                    gained = x - y - ridge * old
                    gained *= rate / (spread * other * (1 - other) + damping)
                    couplings[pair, a, b] = old + gained
                    fields[i, a] -= gained * other
                    fields[j, b] -= gained * own
                    y = sampled[pair, a, b] - found[i, a] * found[j, b]
                    sums[0] += x
                    sums[1] += y
                    sums[2] += x * x
                    sums[3] += y * y
                    sums[4] += x * y
            pair += 1
    for i in range(length):
        for a in range(vocabulary):
            spread = sites[i, a] * (1 - sites[i, a])
            fields[i, a] += rate * (sites[i, a] - found[i, a]) / (spread + damping)
    return sums
