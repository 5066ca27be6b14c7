"""The compiled loops of `pair_fit`: the conditionals of one site.

A site's logits are sums of rows of a table, one row for each word: the colours of a few
neighbouring sites as they occur together. Rows count from those of each place's most frequent word,
whose sum is the same for all sequences and is added once: only words that differ are visited.

Rows are padded to whole vectors of the processor (`vector_loops`), (rows, W, LANES) with W LANES >=
q. The kind of number is that of `couplings`: float32 to fit, float64 to check.
"""

import numpy as np

from manybody.data.vector_loops import SUMS, clear, exponential, get, put, spread
from manybody.io.compiled import njit

GROUP = 64  # sequences whose logits are held at a time
_NEVER = -1e30  # logit of the padding


@njit(nogil=True, cache=True)
def take(vector, site, length, colours, couplings):
    """couplings[j, b, a], what colour b of site j adds to colour a of `site`, from a vector of the
    pairs i < j (a of i, then b of j) and the fields."""
    for j in range(length):
        start = _block(min(site, j), max(site, j), length) * colours * colours
        for b in range(colours):
            for a in range(colours):
                if j == site:
                    couplings[j * colours + b, a] = 0.0
                elif j < site:
                    couplings[j * colours + b, a] = vector[start + b * colours + a]
                else:
                    couplings[j * colours + b, a] = vector[start + a * colours + b]


@njit(nogil=True, cache=True)
def give(couplings, logits, site, length, colours, vector):
    """Adds gradients of one site, as `take` has them, to the vector's."""
    for j in range(length):
        start = _block(min(site, j), max(site, j), length) * colours * colours
        for b in range(colours):
            for a in range(colours):
                if j < site:
                    vector[start + b * colours + a] += couplings[j * colours + b, a]
                elif j > site:
                    vector[start + a * colours + b] += couplings[j * colours + b, a]
    start = length * (length - 1) // 2 * colours * colours + site * colours
    for a in range(colours):
        vector[start + a] += logits[a]


@njit(nogil=True, cache=True, forceinline=True)
def _block(i, j, length):
    """Place of the pair i < j among all pairs."""
    return i * (2 * length - i - 1) // 2 + j - i - 1


@njit(nogil=True, cache=True)
def conditional(
    own, weights, offsets, rows, colours, places, common, couplings, means, logits, strengths,
    of_couplings, of_logits, table, of_table,
):  # fmt: skip
    """Loss of one site, -sum_n w_n log P(own_n | the others), its penalty, half of c_J |J|^2 as the
    pair's other site has the other half, plus c_h |h|^2, and the gradients of their sum.

    own (N,): the site's colours, -1 where a sequence does not count. rows[offsets[n]:offsets[n +
    1]]: the words of sequence n. colours (R, k): those of a word, -1 where there is no input, of
    the sites places[r] k and on. common: each place's most frequent word. couplings (L q, W, LANES)
    of this site, its logits (q,) in the mean sequence, whose colours are means (L q,), strengths
    c_J and c_h. Writes of_couplings and of_logits; table and of_table (R, W, LANES) are for work.
    """
    width, count, each = couplings.shape[1], len(logits), colours.shape[1]
    base, of_base = np.empty_like(couplings[:1]), np.empty_like(couplings[:1])
    for column in range(width):
        put(base, 0, column, spread(base, _NEVER))
    flat = base.reshape(-1)
    for a in range(count):
        flat[a] = logits[a]
    for row in range(len(means)):
        for column in range(width):
            put(base, 0, column, get(base, 0, column) - get(couplings, row, column) * means[row])
    fields = flat[:count].copy()
    frequent = np.empty_like(base)  # the row of the most frequent word of a place
    for r in range(len(places)):
        first = places[r] * each
        if r == 0 or places[r] > places[r - 1]:
            for column in range(width):
                row = _word(couplings, colours[common[places[r]]], first, count, column)
                put(frequent, 0, column, row)
                put(base, 0, column, get(base, 0, column) + row)
        for column in range(width):
            row = _word(couplings, colours[r], first, count, column)
            put(table, r, column, row - get(frequent, 0, column))
    clear(of_table)
    clear(of_base)
    losses = np.zeros(len(own))
    loss = sequences(
        own, weights, offsets, rows, table, base, True, of_table, of_base, losses, count
    )
    # The most frequent word has what the others of its place leave.
    for word in common:
        for column in range(width):
            put(of_table, word, column, get(of_base, 0, column))
    flat, penalty = of_base.reshape(-1), 0.0
    for a in range(count):
        penalty += strengths[1] * fields[a] ** 2
        flat[a] += 2 * strengths[1] * fields[a]
        of_logits[a] = flat[a]
    strength = couplings.dtype.type(strengths[0])
    for row in range(len(means)):
        penalty += 0.5 * strengths[0] * _squares(couplings[row].reshape(-1))
        for column in range(width):
            own = get(couplings, row, column) * strength
            put(of_couplings, row, column, own - get(of_base, 0, column) * means[row])
    for r in range(len(places)):
        word = common[places[r]]
        if r != word:
            for column in range(width):
                rest = get(of_table, word, column) - get(of_table, r, column)
                put(of_table, word, column, rest)
            _give_word(of_table, r, colours[r], places[r] * each, count, of_couplings)
    for word in common:
        _give_word(of_table, word, colours[word], places[word] * each, count, of_couplings)
    return loss, penalty


@njit(nogil=True, cache=True, forceinline=True)
def _word(couplings, colours, first, count, column):
    """What the colours (k,) of the sites from `first` on add together, in one column."""
    total = spread(couplings, 0.0)
    for t in range(len(colours)):
        if colours[t] >= 0:
            total = total + get(couplings, (first + t) * count + colours[t], column)
    return total


@njit(nogil=True, cache=True, forceinline=True)
def _give_word(table, r, colours, first, count, couplings):
    """Adds a row of a table to those of the colours (k,) of the sites from `first` on."""
    for t in range(len(colours)):
        if colours[t] >= 0:
            row = (first + t) * count + colours[t]
            for column in range(table.shape[1]):
                put(couplings, row, column, get(couplings, row, column) + get(table, r, column))


@njit(nogil=True, cache=True, fastmath=SUMS, forceinline=True)
def _squares(numbers):
    total = numbers.dtype.type(0)
    for e in range(len(numbers)):
        total += numbers[e] * numbers[e]
    return total


@njit(nogil=True, cache=True, fastmath=SUMS, forceinline=True)
def sequences(
    own, weights, offsets, rows, table, base, gradients, of_table, of_base, losses, count
):  # fmt: skip
    """A site's weighted loss: logits of sequence n are base (1, W, LANES) plus rows[offsets[n]:
    offsets[n + 1]] of table (R, W, LANES), its colour is own[n], not counted where -1. Adds the
    unweighted losses to losses (N,) and, if asked, the gradients of table and base to theirs."""
    width, triples = table.shape[1], table.shape[1] // 3 * 3
    lanes = np.empty((GROUP, width, table.shape[2]), table.dtype)
    logits = lanes.reshape(GROUP, -1)
    kept = np.empty(GROUP, np.int64)
    loss, n = 0.0, 0
    while n < len(own):
        held = 0
        while held < GROUP and n < len(own):
            if own[n] >= 0:
                kept[held] = n
                held += 1
            n += 1
        for m in range(held):
            first, last = offsets[kept[m]], offsets[kept[m] + 1]
            for column in range(0, triples, 3):
                _sum_three(table, rows, first, last, column, base, lanes, m)
            for column in range(triples, width):
                put(lanes, m, column, _sum_rows(table, rows, first, last, column, base))
        for m in range(held):
            highest = logits[m, 0]
            for a in range(1, count):
                highest = max(highest, logits[m, a])
            depth = np.float64(highest - logits[m, own[kept[m]]])
            losses[kept[m]] += depth
            loss += weights[kept[m]] * depth
            for column in range(width):
                put(lanes, m, column, exponential(lanes, get(lanes, m, column) - highest))
        for m in range(held):
            total, weight = 0.0, weights[kept[m]]
            for a in range(count):
                total += logits[m, a]
            losses[kept[m]] += np.log(total)
            loss += weight * np.log(total)
            if not gradients:
                continue
            scale = weight / total
            for a in range(count):
                logits[m, a] *= scale
            logits[m, own[kept[m]]] -= weight
            first, last = offsets[kept[m]], offsets[kept[m] + 1]
            for column in range(width):
                put(of_base, 0, column, get(of_base, 0, column) + get(lanes, m, column))
            for column in range(0, triples, 3):
                _give_three(lanes, m, rows, first, last, column, of_table)
            for column in range(triples, width):
                more = get(lanes, m, column)
                for place in range(first, last):
                    row = rows[place]
                    put(of_table, row, column, get(of_table, row, column) + more)
    return loss


@njit(nogil=True, cache=True, forceinline=True)
def _sum_three(table, rows, first, last, column, base, lanes, m):
    """Writes base plus rows of a table to lanes[m], in three columns, as those of a protein are: a
    row's place is read once. There are two sums of each, as below."""
    one, two, three = get(base, 0, column), get(base, 0, column + 1), get(base, 0, column + 2)
    four, five, six = spread(table, 0.0), spread(table, 0.0), spread(table, 0.0)
    even = last - (last - first) % 2
    for place in range(first, even, 2):
        row, other = rows[place], rows[place + 1]
        one, four = one + get(table, row, column), four + get(table, other, column)
        two, five = two + get(table, row, column + 1), five + get(table, other, column + 1)
        three, six = three + get(table, row, column + 2), six + get(table, other, column + 2)
    for place in range(even, last):
        row = rows[place]
        one, two = one + get(table, row, column), two + get(table, row, column + 1)
        three = three + get(table, row, column + 2)
    put(lanes, m, column, one + four)
    put(lanes, m, column + 1, two + five)
    put(lanes, m, column + 2, three + six)


@njit(nogil=True, cache=True, forceinline=True)
def _give_three(lanes, m, rows, first, last, column, table):
    """Adds lanes[m] to rows of a table, in three columns."""
    one, two, three = get(lanes, m, column), get(lanes, m, column + 1), get(lanes, m, column + 2)
    for place in range(first, last):
        row = rows[place]
        put(table, row, column, get(table, row, column) + one)
        put(table, row, column + 1, get(table, row, column + 1) + two)
        put(table, row, column + 2, get(table, row, column + 2) + three)


@njit(nogil=True, cache=True, forceinline=True)
def _sum_rows(table, rows, first, last, column, base):
    """base plus rows of a table, in four sums, so that no addition waits for the one before."""
    one, two, three = get(base, 0, column), spread(table, 0.0), spread(table, 0.0)
    four = spread(table, 0.0)
    done = last - (last - first) % 4
    for place in range(first, done, 4):
        one = one + get(table, rows[place], column)
        two = two + get(table, rows[place + 1], column)
        three = three + get(table, rows[place + 2], column)
        four = four + get(table, rows[place + 3], column)
    for place in range(done, last):
        one = one + get(table, rows[place], column)
    return (one + two) + (three + four)
