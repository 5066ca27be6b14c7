"""The compiled loops of `gibbs`.

At a visit of site i, numbers with one colour tuple share one row of U, so J is first summed by
colours. With k - 1 = 3 other sites j < k < l, the triples of one l are the pairs among the sites
before it, a prefix of the same list of pairs for every l. So the loop over l has an inner loop over
pairs that is long and reads J in order; a pair's bin of colours is looked up once a visit, and
pairs whose colours U couples to nothing (most of Potts' U) are left out of the list.
"""

import math

import numpy as np
from numba import njit

# The compiler may regroup the sum over bins (once, the same for all) to use vector instructions.
_SUMS = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True)
def sample_chains(tokens, states, changes, order, weights, prefixes, table):
    """Fills `tokens` (n, L) with what the chains of `states` (n, 4) reach after changes.shape[1]
    sweeps from uniform colours; counts changed colours in `changes` (n, sweeps).

    order: k
    weights: (L, T) float32, k! J_it, subsets t of the other sites in colexicographic order
    prefixes: uint32, bin of k-2 colours, below table.shape[2] where U needs it: (|V|, |V|), or
        (1, |V|) for k = 3 and (1, 1) for k = 2
    table: (|V|, |V|, bins) float32, -beta U_{a c b}: logit of colour a, last colour c, bin b
    """
    sites, vocabulary = tokens.shape[1], len(table)
    others = np.empty(sites - 1, np.uint32)
    listed = np.empty((2, sites * sites), np.uint32)
    ends = np.empty(sites, np.int64)
    sums = np.zeros((vocabulary, table.shape[2]), np.float32)
    totals = np.empty(vocabulary)
    for n in range(len(tokens)):
        chain, state = tokens[n], states[n]
        for i in range(sites):
            chain[i] = int(uniform(state) * vocabulary)
        for sweep in range(changes.shape[1]):
            for i in range(sites):
                for j in range(i):
                    others[j] = chain[j]
                for j in range(i + 1, sites):
                    others[j - 1] = chain[j]
                list_prefixes(order, others, prefixes, table.shape[2], listed, ends)
                sum_by_colours(order, others, weights[i], listed, ends, sums)
                logits(sums, table, totals)
                colour = draw(totals, uniform(state))
                changes[n, sweep] += colour != chain[i]
                chain[i] = colour


@njit(nogil=True, cache=True)
def list_prefixes(order, others, prefixes, bins, listed, ends):
    """Lists number and bin of the (k-2)-subsets that U needs; ends[l]: how many lie before l."""
    count = 0
    if order == 2:
        listed[0, 0], listed[1, 0] = 0, 0
        ends[:] = 1
    elif order == 3:
        for last in range(len(others)):
            ends[last] = count
            number = prefixes[0, others[last]]
            listed[0, count], listed[1, count] = last, number
            count += number < bins
    else:
        pair = 0
        for last in range(len(others)):
            ends[last] = count
            row = prefixes[others[last]]
            for j in range(last):
                number = row[others[j]]
                listed[0, count], listed[1, count] = pair, number
                count += number < bins
                pair += 1


@njit(nogil=True, cache=True)
def sum_by_colours(order, others, weights, listed, ends, sums):
    """sums[c, b] = sum of the weights of subsets with last colour c and colours b before it."""
    sums[:] = 0
    start = 0
    for last in range(order - 2, len(others)):
        row = sums[others[last]]
        for p in range(ends[last]):
            row[listed[1, p]] += weights[start + listed[0, p]]
        start += 1 if order == 2 else (last if order == 3 else last * (last - 1) // 2)


@njit(fastmath=_SUMS, nogil=True, cache=True)
def logits(sums, table, totals):
    flat = sums.reshape(-1)
    for a in range(len(totals)):
        row = table[a].reshape(-1)
        total = np.float32(0)
        for b in range(len(flat)):
            total += row[b] * flat[b]
        totals[a] = total


@njit(nogil=True, cache=True)
def draw(totals, target):
    """A colour from softmax of `totals` (overwritten) by inversion of the uniform `target`."""
    top, total = totals.max(), 0.0
    for a in range(len(totals)):
        total += math.exp(totals[a] - top)
        totals[a] = total
    colour = 0
    while colour < len(totals) - 1 and totals[colour] <= target * total:
        colour += 1
    return colour


@njit(nogil=True, cache=True)
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
