"""The inner loops of `energy` for a CPU.

Sites are the fastest index throughout: a tuple's couplings to all sites are one row, and what it
adds to the bin of its colours is the addition of two rows. Sequences are taken `GROUP` at a time,
so that the products with U run over rows long enough for vector instructions.
"""

import numpy as np

from manybody.data.vector_loops import add_rows
from manybody.io.compiled import njit

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


@njit(fastmath=_SUMS, nogil=True, cache=True, forceinline=True)
def add_products(total, weights, rows):
    """total (n, d) += weights (n, m) @ rows (m, d)."""
    for k in range(len(total)):
        add_rows(total[k], weights[k], rows)


@njit(fastmath=_SUMS, nogil=True, cache=True, forceinline=True)
def add_dots(total, left, right):
    """total (n, m) += left (n, d) @ right (m, d)^T."""
    for k in range(len(left)):
        for q in range(len(right)):
            dot = left[k, 0] - left[k, 0]
            for y in range(left.shape[1]):
                dot += left[k, y] * right[q, y]
            total[k, q] += dot


@njit(fastmath=_SUMS, nogil=True, cache=True, forceinline=True)
def copy_columns(source, first, target, there):
    """The columns of `source` from `first` on into those of `target` from `there` on, as many as
    the narrower has. In a slice's place: what numpy says of shapes takes seconds to compile."""
    width = min(source.shape[1] - first, target.shape[1] - there)
    for k in range(len(source)):
        for y in range(width):
            target[k, there + y] = source[k, first + y]


@njit(fastmath=_SUMS, nogil=True, cache=True, forceinline=True)
def fill_bins(tokens, sites, table, couplings, vocabulary, found, own):
    """own (bins, L): the weights added up in each bin; found (T): the bins of the tuples."""
    find_bins(tokens, sites, table, vocabulary, found)
    own[:] = 0.0
    for t in range(len(sites)):
        b = found[t]
        for i in range(own.shape[1]):
            own[b, i] += couplings[t, i]


@njit(fastmath=_SUMS, nogil=True, cache=True, forceinline=True)
def read_bins(found, own, to_couplings):
    """to_couplings (T, L) += what its bin has for each tuple."""
    for t in range(len(found)):
        b = found[t]
        for i in range(own.shape[1]):
            to_couplings[t, i] += own[b, i]


@njit(fastmath=_SUMS, nogil=True, cache=True)
def losses(
    tokens, sites, table, couplings, colours, by_bin, shares, gradients,
    loss, correct, to_couplings, to_colours,
):  # fmt: skip
    """loss and correct (B, L) of every token; with `gradients`, the gradients of shares * loss.

    couplings (T, L): those of each tuple of sites (T, k - 1) to every site, 0 to its own.
    colours (|V|, bins); by_bin (bins, |V|): the same transposed. The cross-entropy (nats) stands
    between the way there and the way back of a group of sequences, so that all of it stays in
    cache. Gradients are added to to_couplings (T, L) and to_colours (|V|, bins). shares (B, L), or
    (1, L) for all sequences.
    """
    length, vocabulary, width = tokens.shape[1], len(colours), GROUP * tokens.shape[1]
    scores = np.empty((vocabulary, width), couplings.dtype)
    rows = np.empty((len(by_bin), width), couplings.dtype)
    own = np.empty((len(by_bin), length), couplings.dtype)
    found = np.empty((GROUP, len(sites)), np.int32)
    for start in range(0, len(tokens), GROUP):
        stop = min(start + GROUP, len(tokens))
        rows[:, (stop - start) * length :] = 0.0
        for n in range(start, stop):
            fill_bins(tokens[n], sites, table, couplings, vocabulary, found[n - start], own)
            copy_columns(own, 0, rows, (n - start) * length)
        scores[:] = 0.0
        add_products(scores, colours, rows)
        for n in range(start, stop):
            for i in range(length):
                x, token, best = (n - start) * length + i, tokens[n, i], 0
                for a in range(1, vocabulary):
                    if scores[a, x] > scores[best, x]:
                        best = a
                top, own_score = scores[best, x], scores[token, x]
                total = top - top
                for a in range(vocabulary):
                    scores[a, x] = np.exp(scores[a, x] - top)
                    total += scores[a, x]
                loss[n, i] = np.log(total) + top - own_score
                correct[n, i] = best == token
                share = shares[n if len(shares) > 1 else 0, i]
                for a in range(vocabulary):
                    scores[a, x] *= share / total
                scores[token, x] -= share
        if not gradients:
            continue
        scores[:, (stop - start) * length :] = 0.0
        add_dots(to_colours, scores, rows)
        rows[:] = 0.0
        add_products(rows, by_bin, scores)
        for n in range(start, stop):
            copy_columns(rows, (n - start) * length, own, 0)
            read_bins(found[n - start], own, to_couplings)
