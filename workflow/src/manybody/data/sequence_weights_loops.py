"""The compiled loop of `sequence_weights`: which pairs of sequences are similar."""

import numpy as np

from manybody.io.compiled import njit

BLOCK = 32  # rows that stay in the first level of cache while all others pass by
STRIDE = 64  # columns between two looks at whether a pair is still similar
MOST = 127  # largest colour: a byte's highest bit is needed for comparing
_WORDS = STRIDE // 8  # a byte for each column
_CARRY = np.uint64(0x7F7F7F7F7F7F7F7F)  # added to a byte, sets its highest bit unless it was 0
_HIGH = np.uint64(0x8080808080808080)
_SEVEN = np.uint64(7)
_ONES = np.uint64(0x0101010101010101)  # times this, the highest byte is the sum of all bytes
_TOP = np.uint64(56)


@njit(nogil=True, cache=True)
def scan(words, allowed, first, step, counts, parents):
    """Counts, for the pairs of every `step`-th block of rows, those with few differences.

    words: (N, W / 8) uint64, eight colours up to MOST in each, W a multiple of STRIDE; columns
        beyond L are all equal
    allowed: differences of a pair that is still similar
    counts: (N,) int64, similar others of each row, added to
    parents: (N,) int64, a forest whose trees are joined where rows are similar; roots are the
        smallest rows of their trees
    """
    rows, width = words.shape
    for start in range(first * BLOCK, rows, step * BLOCK):
        stop = min(start + BLOCK, rows)
        for other in range(stop):
            for row in range(max(start, other + 1), stop):
                differences = 0
                for word in range(0, width, _WORDS):
                    found = np.uint64(0)  # in each byte, the differences of its columns
                    for k in range(word, word + _WORDS):
                        bits = ((words[row, k] ^ words[other, k]) + _CARRY) & _HIGH
                        found += bits >> _SEVEN
                    differences += np.int64((found * _ONES) >> _TOP)
                    if differences > allowed:
                        break
                if differences <= allowed:
                    counts[row] += 1
                    counts[other] += 1
                    join(parents, row, other)


@njit(nogil=True, cache=True)
def join(parents, one, other):
    """Makes one tree of the trees of two rows."""
    one, other = root(parents, one), root(parents, other)
    parents[max(one, other)] = min(one, other)


@njit(nogil=True, cache=True)
def root(parents, row):
    """The root of a row's tree; halves the path to it."""
    while parents[row] != row:
        parents[row] = parents[parents[row]]
        row = parents[row]
    return row


@njit(cache=True)
def labels(forests):
    """The smallest row of each row's tree (N,), the trees of forests (F, N) being joined."""
    parents = np.arange(forests.shape[1])
    for forest in forests:
        for row in range(len(parents)):
            join(parents, row, forest[row])
    for row in range(len(parents)):
        parents[row] = root(parents, row)
    return parents
