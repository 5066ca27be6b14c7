"""The compiled loops of `three_body`: scores of triples, logits with T, losses and gradients."""

import numpy as np

from manybody.data.vector_loops import SUMS
from manybody.io.compiled import njit


@njit(nogil=True, cache=True, fastmath=SUMS)
def screen(own, errors, shares, spread, total, squares, firmness, first, second, scores):
    """Scores of pairs of sites j, k as what the errors at every other site i depend on.

    own (N, L): colours, -1 where a sequence does not count. errors (N, L q) float32: w_n (1 - P) at
    the own colour, - w_n P at others. shares (L, q): frequencies of colours. spread (L, q): mean
    squared errors. total and squares: sums of w_n and w_n^2. first, second (P,): j and k. Writes
    scores (P, L),

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
def errors(own, weights, logits, losses):
    """Losses (N,) of sequences own (N, L), -1 for a gap, summed over their sites, in nats. Logits
    (N, L, q) become minus the gradients of the weighted losses: w_n (1[s_ni = a] - P_i(a))."""
    for n in range(len(own)):
        losses[n] = 0.0
        for i in range(own.shape[1]):
            here, total, weight = logits[n, i], 0.0, weights[n]
            if own[n, i] < 0:
                here[:] = 0.0
                continue
            highest = here.max()
            losses[n] += highest - here[own[n, i]]
            for a in range(len(here)):
                here[a] = np.exp(here[a] - highest)
                total += here[a]
            losses[n] += np.log(total)
            for a in range(len(here)):
                here[a] *= -weight / total
            here[own[n, i]] += weight


@njit(nogil=True, cache=True, fastmath=SUMS)
def add_tables(own, sites, tables, logits):
    """Adds three-body terms to logits (N, L, q) of sequences own (N, L), -1 for a gap.

    sites (M, 3) and tables (M, q, q, q), [b, c, a]: what colours b and c of the first two sites add
    to the logit of colour a of the third.
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


@njit(nogil=True, cache=True)
def _gather(own, shares, weights, centred, total, squares):
    """Of one sequence and head: v_i z_i (L, q), z the one-hots less their means, 0 for a gap; its
    sum over sites and the sum of its outer squares."""
    total[:], squares[:] = 0, 0
    for i in range(len(own)):
        for a in range(len(total)):
            centred[i, a] = 0.0
            if own[i] >= 0:
                centred[i, a] = weights[i] * ((own[i] == a) - shares[i, a])
            total[a] += centred[i, a]
        for a in range(len(total)):
            for b in range(len(total)):
                squares[a, b] += centred[i, a] * centred[i, b]


@njit(nogil=True, cache=True)
def _products(total, squares, centred, products):
    """sum_{j < k} of the symmetrised products of two other sites' vectors, for one site: (q, q)."""
    for b in range(len(total)):
        for c in range(len(total)):
            both = (total[b] - centred[b]) * (total[c] - centred[c])
            products[b, c] = 0.5 * (both - squares[b, c] + centred[b] * centred[c])


@njit(nogil=True, cache=True, fastmath=SUMS)
def add_heads(own, shares, weights, values, logits):
    """Adds sum_h v_i sum_{j < k} v_j v_k U(a, z_j, z_k) to logits (N, L, q), for `weights` v (H, L)
    and `values` U (H, q, q, q), which are symmetric."""
    length, colours = shares.shape
    centred, products = np.empty((length, colours)), np.empty((colours, colours))
    total, squares = np.empty(colours), np.empty((colours, colours))
    for n in range(len(own)):
        for h in range(len(weights)):
            _gather(own[n], shares, weights[h], centred, total, squares)
            for i in range(length):
                _products(total, squares, centred[i], products)
                for b in range(colours):
                    for c in range(colours):
                        factor = weights[h, i] * products[b, c]
                        for a in range(colours):
                            logits[n, i, a] += factor * values[h, b, c, a]


@njit(nogil=True, cache=True, fastmath=SUMS)
def of_heads(own, shares, weights, values, errors, of_weights, of_values):
    """Adds to of_weights (H, L) and of_values (H, q, q, q) the gradients of sum errors logits."""
    length, colours = shares.shape
    centred, products = np.empty((length, colours)), np.empty((colours, colours))
    total, squares = np.empty(colours), np.empty((colours, colours))
    slopes, bends = np.empty((length, colours)), np.empty((length, colours, colours))
    slope, bend = np.empty(colours), np.empty((colours, colours))
    for n in range(len(own)):
        for h in range(len(weights)):
            _gather(own[n], shares, weights[h], centred, total, squares)
            slope[:], bend[:] = 0, 0
            for i in range(length):
                _products(total, squares, centred[i], products)
                slopes[i] = 0
                for b in range(colours):
                    for c in range(colours):
                        found = 0.0
                        for a in range(colours):
                            found += errors[n, i, a] * values[h, b, c, a]
                            of_values[h, b, c, a] += (
                                weights[h, i] * products[b, c] * errors[n, i, a]
                            )
                        of_weights[h, i] += found * products[b, c]
                        found *= weights[h, i]
                        bends[i, b, c] = found
                        bend[b, c] += found
                        slopes[i, b] += found * (total[c] - centred[i, c])
                    slope[b] += slopes[i, b]
            # v_j is in the products of all other sites i.
            for j in range(length):
                if own[n, j] < 0:
                    continue
                for b in range(colours):
                    found = slope[b] - slopes[j, b]
                    for c in range(colours):
                        found -= (bend[b, c] - bends[j, b, c]) * centred[j, c]
                    of_weights[h, j] += found * ((own[n, j] == b) - shares[j, b])
