"""The inner loops of `pseudolikelihood`: losses and gradients of the conditionals, site by site.

A site's logits are sums of rows of a table, one row for each colour that another site can have.
Rows count from those of each site's most frequent colour, whose sum is the same for all sequences
and is added once: only the sites that differ from it are visited. That is exact, and the more
ordered the sequences are, the less is left to do.
"""

import math

import numpy as np

from manybody.data.vector_loops import SUMS
from manybody.io.compiled import njit

GROUP = 64  # sequences whose logits are held at a time
_ROUND = 1.5 * 2.0**52  # adding it rounds to a whole number, in the lowest bits
_LEAST = -708.0  # its exponential is about the least normal number
_INVERSE = 1 / np.log(2)
_HIGH = 0.693359375
_LOW = float(np.log(np.longdouble(2)) - np.longdouble(_HIGH))
_SERIES = tuple(1 / math.factorial(n) for n in range(13, -1, -1))


@njit(nogil=True, cache=True, fastmath={"contract"}, forceinline=True)
def _exponentials(numbers, turns, turn_bits, bits, count):
    """numbers[:count] <= 0 become their exponentials; written so that it compiles to vectors.

    turns is a work array; `turn_bits` and `bits` are turns and numbers seen as integers.
    """
    for q in range(count):
        x = max(numbers[q], _LEAST)
        t = x * _INVERSE + _ROUND
        n = t - _ROUND
        rest = (x - n * _HIGH) - n * _LOW
        total = 0.0
        for coefficient in _SERIES:
            total = total * rest + coefficient
        turns[q] = t
        numbers[q] = total
    for q in range(count):
        bits[q] += turn_bits[q] << 52  # times 2^n, by the exponent's bits


@njit(nogil=True, cache=True, fastmath={"nnan", "nsz", "reassoc"}, forceinline=True)
def _highest(numbers, count):
    """The greatest of numbers[:count], of vectors of the processor: no number of them is NaN."""
    highest = numbers[0]
    for a in range(1, count):
        highest = max(highest, numbers[a])
    return highest


@njit(nogil=True, cache=True, fastmath=SUMS, forceinline=True)
def site(
    own, offsets, rows, sequence_weights, table, base, gradients, of_table, of_base, losses,
    logits, turns, work,
):  # fmt: skip
    """Loss of one site summed over sequences with their weights, and its gradients.

    own (N,): the site's colour; rows[offsets[n]:offsets[n + 1]]: the rows of `table` (R, q) that
    sequence n adds to `base` (q,). The gradients are added to of_table, of_base, and each
    sequence's loss, without its weight, to `losses` (N,).
    """
    vocabulary, count = len(base), len(own)
    bits, turn_bits = logits.view(np.int64), turns.view(np.int64)
    summed = 0.0
    for start in range(0, count, GROUP):
        stop = min(start + GROUP, count)
        place = 0
        for n in range(start, stop):
            for a in range(vocabulary):
                work[a] = base[a]
            for m in range(offsets[n], offsets[n + 1]):
                row = rows[m]
                for a in range(vocabulary):
                    work[a] += table[row, a]
            highest = _highest(work, vocabulary)
            losses[n] += highest - work[own[n]]
            summed += sequence_weights[n] * (highest - work[own[n]])
            for a in range(vocabulary):
                logits[place + a] = work[a] - highest
            place += vocabulary
        _exponentials(logits, turns, turn_bits, bits, place)
        place = 0
        for n in range(start, stop):
            total = 0.0
            for a in range(vocabulary):
                total += logits[place + a]
            loss = np.log(total)
            losses[n] += loss
            summed += sequence_weights[n] * loss
            if gradients:
                scale = sequence_weights[n] / total
                for a in range(vocabulary):
                    work[a] = logits[place + a] * scale
                work[own[n]] -= sequence_weights[n]
                for a in range(vocabulary):
                    of_base[a] += work[a]
                for m in range(offsets[n], offsets[n + 1]):
                    row = rows[m]
                    for a in range(vocabulary):
                        of_table[row, a] += work[a]
            place += vocabulary
    return summed


@njit(nogil=True, cache=True)
def clear(numbers):
    """Sets numbers (R, q) to zero; not by a slice, see `factored`."""
    for row in range(numbers.shape[0]):
        for a in range(numbers.shape[1]):
            numbers[row, a] = 0.0


@njit(nogil=True, cache=True, fastmath=SUMS)
def factored(
    first, last, tokens, sequence_weights, offsets, rows, row_site, row_colour, common,
    attention, values, fields, gradients, site_losses, losses, of_attention, of_values, of_fields,
):  # fmt: skip
    """Sites first..last - 1 of H heads: J_ij(a, b) = sum_h A^h_ij V^h_ab.

    tokens (L, N), attention (H, L, L), values (H, q, q) by b, then a; fields (L, q). Writes
    site_losses (L,), adds to losses (N,), writes rows first.. of of_attention (L, H, L), of_values
    (L, H, q, q) and of_fields (L, q).
    """
    heads, length, vocabulary = len(attention), len(common), fields.shape[1]
    table, of_table = np.empty((len(row_site), vocabulary)), np.empty((len(row_site), vocabulary))
    base, of_base = np.empty(vocabulary), np.empty(vocabulary)
    logits, turns = np.empty(GROUP * vocabulary), np.empty(GROUP * vocabulary)
    work = np.empty(vocabulary)
    for i in range(first, last):
        # Not by a slice: what numpy says of shapes takes seconds to compile.
        for a in range(len(base)):
            base[a] = fields[i, a]
        clear(table)
        for h in range(heads):
            for j in range(length):
                weight = attention[h, i, j] if j != i else 0.0
                for a in range(vocabulary):
                    base[a] += weight * values[h, common[j], a]
            for row in range(len(row_site)):
                j, b = row_site[row], row_colour[row]
                weight = attention[h, i, j] if j != i else 0.0
                for a in range(vocabulary):
                    table[row, a] += weight * (values[h, b, a] - values[h, common[j], a])
        clear(of_table)
        for a in range(vocabulary):
            of_base[a] = 0.0
        site_losses[i] = site(
            tokens[i], offsets, rows, sequence_weights, table, base, gradients,
            of_table, of_base, losses, logits, turns, work,
        )  # fmt: skip
        if not gradients:
            continue
        for a in range(vocabulary):
            of_fields[i, a] = of_base[a]
        for h in range(heads):
            part = of_values[i, h]
            clear(part)
            for j in range(length):
                total, weight, c = 0.0, attention[h, i, j] if j != i else 0.0, common[j]
                for a in range(vocabulary):
                    total += of_base[a] * values[h, c, a]
                    part[c, a] += weight * of_base[a]
                of_attention[i, h, j] = total
            for row in range(len(row_site)):
                j, b = row_site[row], row_colour[row]
                total, weight, c = 0.0, attention[h, i, j] if j != i else 0.0, common[j]
                for a in range(vocabulary):
                    gradient = of_table[row, a]
                    total += gradient * (values[h, b, a] - values[h, c, a])
                    part[b, a] += weight * gradient
                    part[c, a] -= weight * gradient
                of_attention[i, h, j] += total
            of_attention[i, h, i] = 0.0
