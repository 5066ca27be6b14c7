"""The inner loops of `sampling.factored.by_order`; shapes and symbols as there."""

from numba import njit

# Sums over tokens may be regrouped (by the compiler, once) so that they use vector instructions.
_SUMS = {"reassoc", "contract", "nsz"}


@njit(fastmath=_SUMS, nogil=True, cache=True)
def seen(
    chains, positions, tokens, w, mixing1, direct, linear, square, triple, mean, g, out
):  # fmt: skip
    """out (n, |V|): o, what value b of positions[m] (n,) in chains[m] (n,) multiplies by rho_b.

    tokens (C, L); w (C, L, |V|); g (|V|, |V|), mean (|V|,); the coefficients (L, L).
    """
    length, vocabulary = w.shape[1], w.shape[2]
    for m in range(len(chains)):
        c, i = chains[m], positions[m]
        own, total = g[tokens[c, i]], out[m]
        total[:] = 0.0
        for j in range(length):
            if j != i:
                row, x, y = g[tokens[c, j]], linear[i, j], square[i, j]
                for v in range(vocabulary):
                    total[v] += (x * mean[v] + y * row[v]) * row[v]
        for k in range(length):
            row, back, weight = w[c, k], mixing1[k, i], triple[i, k]
            for v in range(vocabulary):
                value = row[v] - back * own[v]
                total[v] += weight * value * value
        for j in range(length):
            if j != i:
                total[tokens[c, j]] += direct[i, j]


@njit(fastmath=_SUMS, nogil=True, cache=True)
def shown(
    chains, positions, tokens, w, s, mixing1, mixing2, direct, linear, square, loop, cross, mean,
    g, rho, pairs, single, sent,
):  # fmt: skip
    """single, sent (n, |V|): c0, and c1, which multiplies g_b: how the others see value b.

    As `seen`; s (C, L, |V|), rho and pairs (|V|, |V|).
    """
    length, vocabulary = w.shape[1], w.shape[2]
    for m in range(len(chains)):
        c, i = chains[m], positions[m]
        g_own, r_own, alone, total = g[tokens[c, i]], rho[tokens[c, i]], single[m], sent[m]
        alone[:] = 0.0
        total[:] = 0.0
        for j in range(length):
            if j != i:
                t = tokens[c, j]
                g_row, r_row, pair = g[t], rho[t], pairs[t]
                a, x, y, z = direct[j, i], linear[j, i], square[j, i], loop[i, j]
                for v in range(vocabulary):
                    alone[v] += a * r_row[v] + y * pair[v]
                for v in range(vocabulary):
                    total[v] += (x * mean[v] - z * g_row[v]) * r_row[v]
        for k in range(length):
            w_row, s_row, weight = w[c, k], s[c, k], cross[i, k]
            back, read = mixing1[k, i], mixing2[i, k]
            for v in range(vocabulary):
                total[v] += weight * (s_row[v] - read * r_own[v]) * (w_row[v] - back * g_own[v])


@njit(fastmath=_SUMS, nogil=True, cache=True)
def replace(chains, positions, values, tokens, w, s, mixing1, mixing2, g, rho):
    """positions[m] (n,) of chains[m] (n,) takes the token values[m] (n,)."""
    length, vocabulary = w.shape[1], w.shape[2]
    for m in range(len(chains)):
        c, i, b = chains[m], positions[m], values[m]
        a = tokens[c, i]
        if a == b:
            continue
        g_old, g_new, r_old, r_new = g[a], g[b], rho[a], rho[b]
        for k in range(length):
            w_row, s_row, own, weight = w[c, k], s[c, k], mixing1[k, i], mixing2[i, k]
            for v in range(vocabulary):
                w_row[v] += own * (g_new[v] - g_old[v])
            for v in range(vocabulary):
                s_row[v] += weight * (r_new[v] - r_old[v])
        tokens[c, i] = b
