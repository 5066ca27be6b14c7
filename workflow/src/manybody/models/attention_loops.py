"""The compiled loops of `attention`: heads of a few short rows, one after the other in cache.

N sequences, L rows, c channels a head. Each array is given as two views of one memory, in lanes
along its last axis and as numbers. As numbers:

    mixed (N, L, 3 heads, c): queries, keys and values
    shares (N, heads, L, L up to whole lanes): of row j in the output of row i, indexed [j, i]
    seen (N, L, heads, c): the output
    turned (c, L up to whole lanes): work space, 0 beyond L
"""

from manybody.data.vector_loops import (
    BORROWED,
    _tile,
    clear,
    exponential,
    get,
    put,
    spread,
    where_greater,
)
from manybody.io.compiled import njit


@njit(nogil=True, cache=True, **BORROWED)
def forward(first, last, scale, mixed, shares, seen, hidden, turned, _):
    """Sets shares and seen; hidden is -inf where row j is hidden from row i, else 0."""
    length, heads = seen[0].shape[1:3]
    # Products of smaller shares would be no normal numbers, which take a hundred times as long.
    least, none = spread(seen[0], 1e-30), spread(seen[0], 0.0)
    for n in range(first, last):
        for h in range(heads):
            own, out = shares[0][n, h], seen[0][n, :, h]
            for i in range(length):
                for x in range(len(turned[1])):
                    turned[1][x, i] = mixed[1][n, i, h, x] * scale
            for j in range(length):
                for column in range(own.shape[1]):
                    put(own, j, column, get(hidden[0], j, column))
            _add(mixed[1][n, :, heads + h], turned[0], own)
            for column in range(own.shape[1]):
                best = get(own, 0, column)
                for j in range(1, length):
                    score = get(own, j, column)
                    best = where_greater(score, best, score, best)
                total = spread(own, 0.0)
                for j in range(length):
                    share = exponential(own, get(own, j, column) - best)
                    put(own, j, column, share)
                    total = total + share
                inverse = spread(own, 1.0) / total
                for j in range(length):
                    share = get(own, j, column) * inverse
                    put(own, j, column, where_greater(share, least, share, none))
            clear(out)
            _add(shares[1][n, h, :, :length].T, mixed[0][n, :, 2 * heads + h], out)


@njit(nogil=True, cache=True, **BORROWED)
def backward(first, last, scale, mixed, shares, of_seen, of_mixed, turned, of_shares):
    """Sets of_mixed, the gradient of `mixed`, by that of `seen`; of_shares is work space."""
    length, heads = of_seen[0].shape[1:3]
    weights, square = of_shares[1][:, :length], of_shares[0]
    for n in range(first, last):
        for h in range(heads):
            own, of_query = shares[0][n, h], of_mixed[0][n, :, h]
            of_key, of_value = of_mixed[0][n, :, heads + h], of_mixed[0][n, :, 2 * heads + h]
            clear(of_query)
            clear(of_key)
            clear(of_value)
            clear(square)
            for i in range(length):
                for x in range(len(turned[1])):
                    turned[1][x, i] = of_seen[1][n, i, h, x]
            _add(shares[1][n, h, :, :length], of_seen[0][n, :, h], of_value)
            _add(mixed[1][n, :, 2 * heads + h], turned[0], square)
            for column in range(own.shape[1]):
                mean = spread(own, 0.0)
                for j in range(length):
                    mean = mean + get(own, j, column) * get(square, j, column)
                for j in range(length):
                    rise = (get(square, j, column) - mean) * scale
                    put(square, j, column, get(own, j, column) * rise)
            _add(weights.T, mixed[0][n, :, heads + h], of_query)
            _add(weights, mixed[0][n, :, h], of_key)


@njit(nogil=True, cache=True, **BORROWED)
def _add(weights, rows, out):
    """out (m, c, LANES) += weights (m, k) @ rows (k, c, LANES), of a few columns."""
    # Eight sums, which hide how long one takes, fit in 16 registers with two factors and a weight.
    for column in range(0, out.shape[1], 2):
        for row in range(0, len(out), 4):
            _tile(weights, rows, out, 0, row, column, 4, 2, 1)
