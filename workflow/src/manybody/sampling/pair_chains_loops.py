"""The compiled loops of `pair_chains`.

A site is visited for many chains one after the other, so that its table stays in the cache, and its
logits are summed anew at every visit: one row of the table for each group of sites, by the colours
that the group has. So nothing drifts, and a visit costs the same whether the colour changes or not.
"""

import numpy as np
from numba.extending import intrinsic

from manybody.data.pair_gibbs_loops import pick, single
from manybody.data.vector_loops import exponential, folded, get, put, spread, where_greater
from manybody.io.compiled import njit

SIDE = 4  # rows that are added up side by side: the number of groups is a multiple of it
LOWEST = -1e30  # a logit that no colour has


@intrinsic
def total(typing, lanes):
    """The sum of lanes."""

    def generate(context, builder, signature, arguments):
        return folded(builder, arguments[0], builder.fadd)

    return lanes.dtype(lanes), generate


@intrinsic
def largest(typing, lanes):
    """The largest of lanes."""

    def generate(context, builder, signature, arguments):
        def larger(first, second):
            return builder.select(builder.fcmp_ordered(">", first, second), first, second)

        return folded(builder, arguments[0], larger)

    return lanes.dtype(lanes), generate


@njit(nogil=True, cache=True)
def move(tokens, states, scores, sweeps, beta, fields, tables, sizes):
    """Moves chains `tokens` (n, L) by sweeps, sites from left to right. The logits of a site are
    base + beta (own + the sum of rows of its table).

    states: (n, 4) uint64, of the random numbers; they are moved on
    scores: (n,) float64; the change of sum_i own_i(s_i) + sum_{i < j} J_ij(s_i, s_j) is added
    fields: base and own (L, V, LANES) float32; the base of lanes beyond |V| is LOWEST
    tables: (L, rows, V, LANES) float32: what a group of neighbouring sites gives to the colours of
        a site, one row for all colours of the group, those of its first site counting ones
    sizes: |V|, sites in a group, number of groups, which is a multiple of SIDE
    """
    base, own = fields[0], fields[1]
    vocabulary, size, groups = sizes
    chains, length = tokens.shape
    vectors, states_of_group = base.shape[1], vocabulary**size
    rows = np.empty((chains, groups), np.int32)
    colours = np.empty((length, chains), np.uint8)
    for c in range(chains):
        for g in range(groups):
            rows[c, g] = g * states_of_group
        for i in range(length):
            colours[i, c] = tokens[c, i]
            rows[c, i // size] += vocabulary ** (i % size) * tokens[c, i]
    found = np.empty((1, vectors, base.shape[2]), np.float32)
    weights = np.empty_like(found)
    gained, line = found.reshape(-1), weights.reshape(-1)
    for _ in range(sweeps):
        for i in range(length):
            table, group, unit = tables[i], i // size, vocabulary ** (i % size)
            for c in range(chains):
                top, v = spread(found, LOWEST), 0
                while v + 3 <= vectors:
                    one, two, three = get(own, i, v), get(own, i, v + 1), get(own, i, v + 2)
                    four, five, six = spread(found, 0.0), spread(found, 0.0), spread(found, 0.0)
                    for g in range(0, groups, 2):
                        row, other = rows[c, g], rows[c, g + 1]
                        one = one + get(table, row, v)
                        two = two + get(table, row, v + 1)
                        three = three + get(table, row, v + 2)
                        four = four + get(table, other, v)
                        five = five + get(table, other, v + 1)
                        six = six + get(table, other, v + 2)
                    put(found, 0, v, one + four)
                    put(found, 0, v + 1, two + five)
                    put(found, 0, v + 2, three + six)
                    v += 3
                while v < vectors:
                    one, two = get(own, i, v), get(table, rows[c, 0], v)
                    three, four = get(table, rows[c, 1], v), get(table, rows[c, 2], v)
                    one = one + get(table, rows[c, 3], v)
                    for g in range(SIDE, groups, SIDE):
                        one = one + get(table, rows[c, g], v)
                        two = two + get(table, rows[c, g + 1], v)
                        three = three + get(table, rows[c, g + 2], v)
                        four = four + get(table, rows[c, g + 3], v)
                    put(found, 0, v, (one + two) + (three + four))
                    v += 1
                for v in range(vectors):
                    one = get(base, i, v) + get(found, 0, v) * beta
                    put(weights, 0, v, one)
                    top = where_greater(one, top, one, top)
                highest, sums = largest(top), spread(found, 0.0)
                for v in range(vectors):
                    one = exponential(weights, get(weights, 0, v) - highest)
                    put(weights, 0, v, one)
                    sums = sums + one
                new = pick(line, -1, single(states[c]) * total(sums))
                new, old = min(new, vocabulary - 1), np.int64(colours[i, c])
                if new != old:
                    colours[i, c] = new
                    rows[c, group] += (new - old) * unit
                    scores[c] += gained[new] - gained[old]
    for c in range(chains):
        for i in range(length):
            tokens[c, i] = colours[i, c]


@njit(nogil=True, cache=True)
def count(colours, weights, first, step, pairs):
    """Sets f_ij(a, b) times the sum of weights (N,), of every `step`-th site i and all j > i.

    colours: (L, N); pairs: (L (L - 1) / 2, |V|, |V|), pairs i < j in order
    """
    length, samples = colours.shape
    vocabulary = pairs.shape[1]
    found = np.zeros((SIDE, vocabulary, vocabulary), weights.dtype)
    for i in range(first, length - 1, step):
        offset = i * (2 * length - i - 1) // 2 - i - 1
        for start in range(i + 1, length, SIDE):
            found[:] = 0
            # Sites beyond the last are the last, counted again.
            one, two = start, min(start + 1, length - 1)
            three, four = min(start + 2, length - 1), min(start + 3, length - 1)
            for n in range(samples):
                a, weight = colours[i, n], weights[n]
                found[0, a, colours[one, n]] += weight
                found[1, a, colours[two, n]] += weight
                found[2, a, colours[three, n]] += weight
                found[3, a, colours[four, n]] += weight
            for side in range(min(SIDE, length - start)):
                for a in range(vocabulary):
                    for b in range(vocabulary):
                        pairs[offset + start + side, a, b] = found[side, a, b]
