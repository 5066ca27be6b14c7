"""The inner loops of `sampling.factored.by_order`; shapes and symbols as there."""

from manybody.io.compiled import njit

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
def weigh(
    chains, positions, tokens, w, s, mixing1, mixing2, weights, base, outward, inward, mean, g,
    rho, products, pairs, single, out, sent,
):  # fmt: skip
    """All that value b of positions[m] (n,) in chains[m] (n,) is weighed by: single, out and sent
    (n, |V|), which are base_i + c0, o as of `seen`, and c1.

    As `seen`; s (C, L, |V|), base (L, |V|), rho, products = rho * g and pairs (|V|, |V|); the
    coefficients (L, L) in `outward` and `inward`, of which those that are 0 cost nothing.
    """
    length, vocabulary = w.shape[1], w.shape[2]
    direct, linear, square, triple = outward
    second, third = weights
    for m in range(len(chains)):
        c, i = chains[m], positions[m]
        g_own, r_own, s_own, read = g[tokens[c, i]], rho[tokens[c, i]], s[c, i], mixing2[i, i]
        alone, seen_by, shown = single[m], out[m], sent[m]
        for v in range(vocabulary):
            alone[v] = base[i, v] + second * (s_own[v] - read * r_own[v])
        seen_by[:] = 0.0
        shown[:] = 0.0
        for j in range(length):
            if j == i:
                continue
            t = tokens[c, j]
            x, y = linear[i, j], square[i, j]
            if x != 0.0 or y != 0.0:
                row = g[t]
                for v in range(vocabulary):
                    seen_by[v] += (x * mean[v] + y * row[v]) * row[v]
            x, y, z = inward[0][j, i], inward[1][j, i], inward[2][i, j]
            if y != 0.0 or z != 0.0:
                row, pair = products[t], pairs[t]
                for v in range(vocabulary):
                    alone[v] += y * pair[v]
                for v in range(vocabulary):
                    shown[v] -= z * row[v]
            if x != 0.0:
                row = rho[t]
                for v in range(vocabulary):
                    shown[v] += x * mean[v] * row[v]
        for k in range(length):
            w_row, s_row = w[c, k], s[c, k]
            back, read, weight = mixing1[k, i], mixing2[i, k], triple[i, k]
            cross = third * back
            for v in range(vocabulary):
                value = w_row[v] - back * g_own[v]
                seen_by[v] += weight * value * value
                shown[v] += cross * (s_row[v] - read * r_own[v]) * value
        for j in range(length):
            if j != i:
                seen_by[tokens[c, j]] += direct[i, j]


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
