"""The three inner loops of `factored_two` for a CPU; shapes and symbols as there.

One pass over rows of |V| numbers with nothing allocated: the arrays of one chain stay in cache, and
small numbers of chains are not held up by the cost of starting tensor operations.
"""

from numba import njit

# Sums over tokens may be regrouped (by the compiler, once) so that they use vector instructions.
_SUMS = {"reassoc", "contract", "nsz"}


@njit(fastmath=_SUMS, nogil=True)
def masked_values(chains, positions, tokens, w, mixing1, mixing2, sent, out):
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


@njit(fastmath=_SUMS, nogil=True)
def score_changes(
    chains, positions, proposals, tokens, w, s, u, mixing1, mixing2, loop, sent, read, out
):
    length, vocabulary = w.shape[1], w.shape[2]
    for m in range(len(chains)):
        c, i, b = chains[m], positions[m], proposals[m]
        a = tokens[c, i]
        g_old, g_new, r_old = sent[a], sent[b], read[a]
        total = s[c, i, b] - s[c, i, a] - mixing2[i, i] * (r_old[b] - r_old[a])
        for k in range(length):
            own, weight, w_row, s_row = mixing1[k, i], mixing2[i, k], w[c, k], s[c, k]
            part = 0.0
            for v in range(vocabulary):
                change = own * (g_new[v] - g_old[v])
                part += (s_row[v] - weight * r_old[v]) * change * (2.0 * w_row[v] + change)
            total += part
        u_row, own = u[c, i], loop[i, i]
        part = 0.0
        for v in range(vocabulary):
            part += (g_new[v] - g_old[v]) * (u_row[v] - own * r_old[v] * g_old[v])
        out[m] = total - 2.0 * part


@njit(fastmath=_SUMS, nogil=True)
def replace_tokens(
    chains, positions, proposals, tokens, w, s, u, mixing1, mixing2, loop, sent, read
):
    length, vocabulary = w.shape[1], w.shape[2]
    for m in range(len(chains)):
        c, i, b = chains[m], positions[m], proposals[m]
        a = tokens[c, i]
        g_old, g_new, r_old, r_new = sent[a], sent[b], read[a], read[b]
        for k in range(length):
            own, weight, around = mixing1[k, i], mixing2[i, k], loop[k, i]
            w_row, s_row, u_row = w[c, k], s[c, k], u[c, k]
            for v in range(vocabulary):
                w_row[v] += own * (g_new[v] - g_old[v])
                s_row[v] += weight * (r_new[v] - r_old[v])
                u_row[v] += around * (r_new[v] * g_new[v] - r_old[v] * g_old[v])
        tokens[c, i] = b
