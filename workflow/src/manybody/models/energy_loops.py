"""The inner loops of `energy` for a CPU.

Sites are the fastest index throughout: a tuple's couplings to all sites are one row, and what it
adds to the bin of its colours is the addition of two rows. Sequences are taken `GROUP` at a time,
so that the products with U run over rows long enough for vector instructions. All in one file,
since the cache of compiled loops is renewed only with the file that a loop is in.
"""

import numpy as np
from numba import njit

GROUP = 8
# Sums may be regrouped (by the compiler, once) so that they use vector instructions.
_SUMS = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True)
def find_bins(tokens, sites, table, vocabulary, found):
    """found (T): the bin of the colours on each tuple of sites (T, k - 1) of tokens (L)."""
    size = sites.shape[1]
    for t in range(len(sites)):
        code = tokens[sites[t, 0]]
        if size > 1:
            code = code * vocabulary + tokens[sites[t, 1]]
        if size > 2:
            code = code * vocabulary + tokens[sites[t, 2]]
        found[t] = table[code]


@njit(fastmath=_SUMS, nogil=True, cache=True)
def add_products(total, weights, rows):
    """total (n, d) += weights (n, m) @ rows (m, d), four rows at a time."""
    done = len(rows) - len(rows) % 4
    for k in range(len(total)):
        for q in range(0, done, 4):
            w0, w1, w2, w3 = weights[k, q], weights[k, q + 1], weights[k, q + 2], weights[k, q + 3]
            for y in range(total.shape[1]):
                total[k, y] += (w0 * rows[q, y] + w1 * rows[q + 1, y]) + (
                    w2 * rows[q + 2, y] + w3 * rows[q + 3, y]
                )
        for q in range(done, len(rows)):
            for y in range(total.shape[1]):
                total[k, y] += weights[k, q] * rows[q, y]


@njit(fastmath=_SUMS, nogil=True, cache=True)
def add_dots(total, left, right):
    """total (n, m) += left (n, d) @ right (m, d)^T."""
    for k in range(len(left)):
        for q in range(len(right)):
            dot = left[k, 0] - left[k, 0]
            for y in range(left.shape[1]):
                dot += left[k, y] * right[q, y]
            total[k, q] += dot


@njit(fastmath=_SUMS, nogil=True, cache=True)
def forward(tokens, sites, table, weights, colours, found, sums, logits):
    """logits (B, L, |V|) of tokens (B, L), and what the way back needs.

    weights (T, L): the couplings of each tuple of sites (T, k - 1) to every site, 0 to its own.
    colours (|V|, bins). found (B, T): bins of the tuples. sums (groups, bins, GROUP L): the weights
    added up in each bin, for the sequences of a group side by side. With one row in `found` and one
    group in `sums` nothing is kept.
    """
    length, vocabulary, keep = tokens.shape[1], len(colours), len(found) == len(tokens)
    scores = np.empty((vocabulary, GROUP * length), weights.dtype)
    own = np.empty((colours.shape[1], length), weights.dtype)  # of one sequence: the cache holds it
    for start in range(0, len(tokens), GROUP):
        rows = sums[start // GROUP if keep else 0]
        stop = min(start + GROUP, len(tokens))
        rows[:, (stop - start) * length :] = 0.0
        for n in range(start, stop):
            bins = found[n if keep else 0]
            find_bins(tokens[n], sites, table, vocabulary, bins)
            own[:] = 0.0
            for t in range(len(sites)):
                b = bins[t]
                for i in range(length):
                    own[b, i] += weights[t, i]
            rows[:, (n - start) * length : (n - start + 1) * length] = own
        scores[:] = 0.0
        add_products(scores, colours, rows)
        for n in range(start, stop):
            for i in range(length):
                for a in range(vocabulary):
                    logits[n, i, a] = scores[a, (n - start) * length + i]


@njit(fastmath=_SUMS, nogil=True, cache=True)
def backward(found, sums, by_bin, slopes, to_weights, to_colours):
    """Adds to `to_weights` (T, L) and `to_colours` (|V|, bins) what slopes (B, L, |V|) send back.

    by_bin (bins, |V|) are the colours transposed; slopes are the derivatives by the logits.
    """
    length, vocabulary = slopes.shape[1], slopes.shape[2]
    scores = np.empty((vocabulary, GROUP * length), by_bin.dtype)
    rows = np.empty((len(by_bin), GROUP * length), by_bin.dtype)
    own = np.empty((len(by_bin), length), by_bin.dtype)
    for start in range(0, len(slopes), GROUP):
        stop = min(start + GROUP, len(slopes))
        scores[:] = 0.0
        for n in range(start, stop):
            for i in range(length):
                for a in range(vocabulary):
                    scores[a, (n - start) * length + i] = slopes[n, i, a]
        add_dots(to_colours, scores, sums[start // GROUP])
        rows[:] = 0.0
        add_products(rows, by_bin, scores)
        for n in range(start, stop):
            own[:] = rows[:, (n - start) * length : (n - start + 1) * length]
            for t in range(found.shape[1]):
                b = found[n, t]
                for i in range(length):
                    to_weights[t, i] += own[b, i]
