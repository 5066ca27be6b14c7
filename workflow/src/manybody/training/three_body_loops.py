"""The compiled loops of `three_body`: scores of triples, logits with tables, gradients."""

import numpy as np

from manybody.data.vector_loops import SUMS
from manybody.io.compiled import njit


@njit(nogil=True, cache=True, fastmath=SUMS)
def screen(own, errors, shares, spread, total, squares, firmness, first, second, scores):
    """Scores of pairs of sites j, k as what the errors at every other site i depend on.

    own (N, L): colours, -1 where not counted. errors (N, L q) float32: w_n (1 - P) at the own
    colour, - w_n P at others. shares (L, q): colour frequencies. spread (L, q): mean squared
    errors. total, squares: sums of w_n, w_n^2. first, second (P,): j and k. Writes scores (P, L),

        sum_abc (g_abc^2 - squares f_abc) / (total f_abc + firmness),  f_abc = spread_i(a) p_j(b)
        p_k(c),  g_abc = sum_n e_ni(a) (1[s_nj = b] - p_j(b)) (1[s_nk = c] - p_k(c)):

    about twice what the log-likelihood gains by them, 0 on average where it gains nothing.
    """
    (count, length), colours = own.shape, shares.shape[1]
    width = length * colours
    sums = np.empty((colours * colours, width), np.float32)
    of_first, of_second = np.empty((2, colours, colours))
    of_all = np.empty(colours)
    for pair in range(len(first)):
        j, k = first[pair], second[pair]
        sums[:] = 0
        for n in range(count):
            if own[n, j] >= 0 and own[n, k] >= 0:
                row = own[n, j] * colours + own[n, k]
                for x in range(width):
                    sums[row, x] += errors[n, x]
        for i in range(length):
            found = 0.0
            if i != j and i != k:
                of_first[:], of_second[:], of_all[:] = 0, 0, 0
                for b in range(colours):
                    for c in range(colours):
                        for a in range(colours):
                            one = sums[b * colours + c, i * colours + a]
                            of_first[b, a] += one
                            of_second[c, a] += one
                            of_all[a] += one
                for b in range(colours):
                    for c in range(colours):
                        here = shares[j, b] * shares[k, c]
                        for a in range(colours):
                            one = sums[b * colours + c, i * colours + a] + here * of_all[a]
                            one -= shares[j, b] * of_second[c, a] + shares[k, c] * of_first[b, a]
                            of_chance = here * spread[i, a]
                            one = one * one - squares * of_chance
                            found += one / (total * of_chance + firmness)
            scores[pair, i] = found


@njit(nogil=True, cache=True, fastmath=SUMS)
def add_tables(own, sites, tables, logits):
    """Adds tables (M, q, q, q) to logits (N, L, q) of sequences own (N, L), -1 for a gap: [b, c, a]
    is what colours b and c of the first two of sites (M, 3) add to that of colour a of the third.
    """
    for n in range(len(own)):
        for m in range(len(sites)):
            b, c, i = own[n, sites[m, 0]], own[n, sites[m, 1]], sites[m, 2]
            if b >= 0 and c >= 0:
                for a in range(logits.shape[2]):
                    logits[n, i, a] += tables[m, b, c, a]


@njit(nogil=True, cache=True, fastmath=SUMS)
def of_tables(own, sites, errors, tables):
    """Adds to tables (M, q, q, q) the gradients of sum errors logits, for errors (N, L, q)."""
    for n in range(len(own)):
        for m in range(len(sites)):
            b, c, i = own[n, sites[m, 0]], own[n, sites[m, 1]], sites[m, 2]
            if b >= 0 and c >= 0:
                for a in range(errors.shape[2]):
                    tables[m, b, c, a] += errors[n, i, a]
