"""The inner loops of `two_layers` for a CPU; shapes and symbols as there.

One pass over rows of |V| numbers with nothing allocated: small numbers of chains are not held up by
the cost of starting tensor operations. Arithmetic follows the type of the arrays that are read.
"""

import numpy as np

from manybody.io.compiled import njit

# Sums over tokens may be regrouped (by the compiler, once) so that they use vector instructions.
_SUMS = {"reassoc", "contract", "nsz"}


@njit(fastmath=_SUMS, nogil=True, cache=True)
def masked_values(chains, positions, tokens, w, mixing1, mixing2, sent, out):
    """out (n, |V|): sum_k A2_ik x_k of the copy of chains[m] (n,) that masks i = positions[m] (n,),
    where x_k is the one-hot s_k (0 for k = i) plus (W_k - A1_ki G_i)^2. w (C, L, |V|)."""
    length, vocabulary = w.shape[1], w.shape[2]
    for m in range(len(chains)):
        c, i = chains[m], positions[m]
        g = sent[tokens[c, i]]
        total = out[m]
        total[:] = 0.0
        for k in range(length):
            own, weight, row = mixing1[k, i], mixing2[i, k], w[c, k]
            for v in range(vocabulary):
                value = row[v] - own * g[v]
                total[v] += weight * value * value
        for k in range(length):
            if k != i:
                total[tokens[c, k]] += mixing2[i, k]


@njit(fastmath=_SUMS, nogil=True, cache=True)
def score_changes(
    chains, positions, proposals, tokens, w, s, u, mixing1, mixing2, loop, sent, read, out
):
    """out (n,): what the raw score of chains[m] rises by if positions[m] takes proposals[m].

    tokens (C, L); the caches w, s, u (C, L, |V|); mixing1, mixing2, loop (L, L); sent, read
    (|V|, |V|).
    """
    length, vocabulary = w.shape[1], w.shape[2]
    for m in range(len(chains)):
        c, i, b = chains[m], positions[m], proposals[m]
        a = tokens[c, i]
        g_old, g_new, r_old = sent[a], sent[b], read[a]
        total = 0.0
        total += s[c, i, b] - s[c, i, a] - mixing2[i, i] * (r_old[b] - r_old[a])
        for k in range(length):
            own, weight, w_row, s_row = mixing1[k, i], mixing2[i, k], w[c, k], s[c, k]
            part = own - own
            for v in range(vocabulary):
                change = own * (g_new[v] - g_old[v])
                part += (s_row[v] - weight * r_old[v]) * change * (w_row[v] + w_row[v] + change)
            total += part
        u_row, own = u[c, i], loop[i, i]
        part = own - own
        for v in range(vocabulary):
            part += (g_new[v] - g_old[v]) * (u_row[v] - own * r_old[v] * g_old[v])
        out[m] = total - 2.0 * part


@njit(fastmath=_SUMS, nogil=True, cache=True)
def replace_tokens(
    chains, positions, proposals, accepted, tokens, w, s, u, copies, mixing1, mixing2, loop, sent,
    read,
):  # fmt: skip
    """`copies` are what the other loops read: w, s and u themselves or in single precision."""
    length, vocabulary = w.shape[1], w.shape[2]
    w_copy, s_copy, u_copy = copies
    for m in np.flatnonzero(accepted):
        c, i, b = chains[m], positions[m], proposals[m]
        a = tokens[c, i]
        g_old, g_new, r_old, r_new = sent[a], sent[b], read[a], read[b]
        for k in range(length):
            own, weight, around = mixing1[k, i], mixing2[i, k], loop[k, i]
            for v in range(vocabulary):
                w[c, k, v] += own * (g_new[v] - g_old[v])
                w_copy[c, k, v] = w[c, k, v]
            for v in range(vocabulary):
                s[c, k, v] += weight * (r_new[v] - r_old[v])
                s_copy[c, k, v] = s[c, k, v]
            for v in range(vocabulary):
                u[c, k, v] += around * (r_new[v] * g_new[v] - r_old[v] * g_old[v])
                u_copy[c, k, v] = u[c, k, v]
        tokens[c, i] = b


@njit(fastmath=_SUMS, nogil=True, cache=True)
def raw_scores(tokens, w, s, u, mixing2, alone, sent, read, own, out):
    """sum_i h_i[s_i] (C,), `own` (|V|,) weighing what a token adds by itself, biases left out."""
    count, length, vocabulary = w.shape
    for c in range(count):
        total = 0.0
        for k in range(length):
            a = tokens[c, k]
            total += s[c, k, a] - mixing2[k, k] * read[a, a] + alone[k] * own[a]
            g, part = sent[a], 0.0
            for v in range(vocabulary):
                part += s[c, k, v] * w[c, k, v] * w[c, k, v] - 2.0 * u[c, k, v] * g[v]
            total += part
        out[c] = total
