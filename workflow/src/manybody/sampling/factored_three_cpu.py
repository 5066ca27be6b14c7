"""The inner loops of `factored_three` for a CPU; shapes and symbols as there.

Every step is a sum of weighted rows (`add_rows`), done chain by chain in arrays that stay in cache:
the matrices are too small for calls of a linear algebra library to pay.
"""

import numpy as np
from numba import njit

# Sums may be regrouped (by the compiler, once) so that they use vector instructions.
_SUMS = {"reassoc", "contract", "nsz"}


@njit(fastmath=_SUMS, nogil=True, cache=True)
def add_rows(total, weights, rows):
    """total (d) += weights (m) @ rows (m, d), four rows at a time."""
    count = len(weights)
    done = count - count % 4
    for q in range(0, done, 4):
        w0, w1, w2, w3 = weights[q], weights[q + 1], weights[q + 2], weights[q + 3]
        for y in range(len(total)):
            total[y] += (w0 * rows[q, y] + w1 * rows[q + 1, y]) + (
                w2 * rows[q + 2, y] + w3 * rows[q + 3, y]
            )
    for q in range(done, count):
        for y in range(len(total)):
            total[y] += weights[q] * rows[q, y]


@njit(fastmath=_SUMS, nogil=True, cache=True)
def mix(weights, rows, out):
    """out (m, d) = weights (m, L) @ rows (L, d)."""
    out[:] = 0.0
    for k in range(len(out)):
        add_rows(out[k], weights[k], rows)


@njit(fastmath=_SUMS, nogil=True, cache=True)
def dot(x, y):
    total = x[0] - x[0]
    for v in range(len(x)):
        total += x[v] * y[v]
    return total


@njit(nogil=True, cache=True)
def masked_features(chains, positions, u, direct, mixing3, to_output, out):
    length, rank = u.shape[2], u.shape[3]
    products = np.empty((rank, rank), u.dtype)
    weighted = np.empty(length, u.dtype)
    for m in range(len(chains)):
        c, i = chains[m], positions[m]
        rows = u[c, i]
        products[:] = 0.0
        for x in range(rank):
            for k in range(length):
                weighted[k] = mixing3[i, k] * rows[k, x]
            add_rows(products[x], weighted, rows)
        out[m] = direct[c, i]
        add_rows(out[m], products.reshape(rank * rank), to_output)


@njit(nogil=True, cache=True)
def score_changes(
    chains, positions, proposals, tokens, read, summed, forms, mixing1, mixing2, mixing3,
    factor, last_factor, sent, inputs2, inputs3, to_second, to_output, outputs, squares,
    along, across, rises, out,
):  # fmt: skip
    length, rank = along.shape[1], along.shape[2]
    kind = read.dtype
    maps = np.empty((rank, rank), kind)
    read3, across3 = np.empty((length, rank), kind), np.empty((length, rank), kind)
    mixed, step, own = np.empty((length, rank), kind), np.empty(rank, kind), np.empty(rank, kind)
    weighted, row = np.empty(length, kind), np.empty(rank, kind)
    for m in range(len(chains)):
        c, i, b = chains[m], positions[m], proposals[m]
        a = tokens[c, i]
        for x in range(rank):
            step[x] = sent[b, x] - sent[a, x]

        products(step, to_second, tokens[c], sent, maps, across[m], own)
        respond(across[m], own, mixing1, i, inputs2[b], inputs2[a], mixed)
        mix(mixing2, mixed, along[m])

        products(step, to_output, tokens[c], sent, maps, across3, own)
        respond(across3, own, mixing1, i, inputs3[b], inputs3[a], read3)
        mix(mixing3, read3, rises[m])

        total = 0.0
        for j in range(length):
            if j == i:
                continue
            for x in range(rank):
                rises[m, j, x] += last_factor[i, j] * across3[j, x]
            total += dot(rises[m, j], outputs[tokens[c, j]])
        rises[m, i] = 0.0

        form = squares[tokens[c, i]]
        for k in range(length):
            # p_k . (2 X_k + N_k p_k), without the share of copy i in X_k and N_k
            row[:] = 0.0
            add_rows(row, along[m, k], forms[c, k])
            for x in range(rank):
                row[x] += summed[c, k, x] + summed[c, k, x]
            total += dot(row, along[m, k])
            row[:] = 0.0
            add_rows(row, along[m, k], form)
            for x in range(rank):
                row[x] += read[c, i, k, x] + read[c, i, k, x]
            total -= mixing3[i, k] * dot(row, along[m, k])

        for j in range(length):
            if j == i:
                continue
            # 2 kappa_j . sum_k A_jk gamma_jk (Mu_jk + M_j p_k), and
            # (sum_k A_jk gamma_jk^2) kappa_j . M_j kappa_j
            square = 0.0
            for k in range(length):
                weighted[k] = mixing3[j, k] * factor[i, j, k]
                square += weighted[k] * factor[i, j, k]
            own[:] = 0.0
            add_rows(own, weighted, read[c, j])
            total += 2.0 * dot(own, across[m, j])
            own[:] = 0.0
            add_rows(own, weighted, along[m])
            row[:] = 0.0
            add_rows(row, across[m, j], squares[tokens[c, j]])
            total += 2.0 * dot(own, row) + square * dot(across[m, j], row)
        out[m] = total


@njit(nogil=True, cache=True)
def products(step, table, tokens, sent, maps, across, own):
    """across_j = beta(step, q_j) and own = beta(step, step)."""
    rank = len(step)
    maps[:] = 0.0
    add_rows(maps.reshape(rank * rank), step, table)
    across[:] = 0.0
    for j in range(len(across)):
        add_rows(across[j], sent[tokens[j]], maps)
    own[:] = 0.0
    add_rows(own, step, maps)


@njit(fastmath=_SUMS, nogil=True, cache=True)
def respond(across, own, mixing1, position, new, old, out):
    """Change of Q^m x^(1) (L, d) in the copies that see the token, but for their own mask."""
    mix(mixing1, across, out)
    for k in range(len(out)):
        alpha = mixing1[k, position]
        for x in range(len(own)):
            out[k, x] = alpha * (out[k, x] + out[k, x] + alpha * own[x])
    for x in range(len(own)):
        out[position, x] += new[x] - old[x]


@njit(fastmath=_SUMS, nogil=True, cache=True)
def replace_tokens(
    chains, positions, proposals, tokens, u, read, summed, forms, direct, mixing3, factor, squares,
    along, across, rises,
):  # fmt: skip
    length, rank = along.shape[1], along.shape[2]
    row, of_copy = np.empty(rank, u.dtype), np.empty(rank, u.dtype)
    for m in range(len(chains)):
        c, i, b = chains[m], positions[m], proposals[m]
        a = tokens[c, i]
        for j in range(length):
            if j == i:
                continue
            form = squares[tokens[c, j]]
            of_copy[:] = 0.0
            add_rows(of_copy, across[m, j], form)
            for k in range(length):
                row[:] = 0.0
                add_rows(row, along[m, k], form)
                gamma, weight = factor[i, j, k], mixing3[j, k]
                for x in range(rank):
                    change = row[x] + gamma * of_copy[x]
                    u[c, j, k, x] += along[m, k, x] + gamma * across[m, j, x]
                    read[c, j, k, x] += change
                    summed[c, k, x] += weight * change
            for x in range(rank):
                direct[c, j, x] += rises[m, j, x]
        form = squares[b]
        for k in range(length):
            weight = mixing3[i, k]
            row[:] = 0.0
            add_rows(row, u[c, i, k], form)
            for x in range(rank):
                summed[c, k, x] += weight * (row[x] - read[c, i, k, x])
                read[c, i, k, x] = row[x]
                for y in range(rank):
                    forms[c, k, x, y] += weight * (squares[b, x, y] - squares[a, x, y])
        tokens[c, i] = b
