"""The inner loops of `three_layers` and `any_depth` for a CPU; shapes and symbols as there.

Every step is a sum of weighted rows, done proposal by proposal in arrays that stay in cache: the
matrices are too small for calls of a linear algebra library to pay.
"""

import numpy as np

from manybody.data.vector_loops import add_rows
from manybody.io.compiled import njit

# Sums may be regrouped (by the compiler, once) so that they use vector instructions.
_SUMS = {"reassoc", "contract", "nsz"}


@njit(fastmath=_SUMS, nogil=True, cache=True, forceinline=True)
def add_products(total, weights, rows):
    """total (n, d) += weights (n, m) @ rows (m, d), two by four rows at a time."""
    pairs, count = len(total) - len(total) % 2, len(rows)
    done = count - count % 4
    for k in range(0, pairs, 2):
        for q in range(0, done, 4):
            v0, v1, v2, v3 = weights[k, q], weights[k, q + 1], weights[k, q + 2], weights[k, q + 3]
            w0, w1 = weights[k + 1, q], weights[k + 1, q + 1]
            w2, w3 = weights[k + 1, q + 2], weights[k + 1, q + 3]
            for y in range(total.shape[1]):
                r0, r1, r2, r3 = rows[q, y], rows[q + 1, y], rows[q + 2, y], rows[q + 3, y]
                total[k, y] += (v0 * r0 + v1 * r1) + (v2 * r2 + v3 * r3)
                total[k + 1, y] += (w0 * r0 + w1 * r1) + (w2 * r2 + w3 * r3)
        for q in range(done, count):
            for y in range(total.shape[1]):
                total[k, y] += weights[k, q] * rows[q, y]
                total[k + 1, y] += weights[k + 1, q] * rows[q, y]
    for k in range(pairs, len(total)):
        add_rows(total[k], weights[k], rows)


@njit(nogil=True, cache=True)
def mix(weights, rows, out):
    """out (m, d) = weights (m, L) @ rows (L, d)."""
    out[:] = 0.0
    add_products(out, weights, rows)


@njit(fastmath=_SUMS, nogil=True, cache=True, forceinline=True)
def dot(x, y):
    total = x[0] - x[0]
    for v in range(len(x)):
        total += x[v] * y[v]
    return total


@njit(nogil=True, cache=True)
def masked_features(chains, positions, u, direct, mixing3, to_output, out):
    """out (n, d): features of the copy of chains[m] (n,) that masks positions[m] (n,).

    u (C, L, L, d); direct (C, L, d); mixing3 (L, L); to_output (d^2, d).
    """
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
    """out (n,): what the raw score of chains[m] rises by if positions[m] takes proposals[m].

    Fills along, across and rises (n, L, d), from which `replace_tokens` renews the caches.
    """
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


@njit(fastmath=_SUMS, nogil=True, cache=True, forceinline=True)
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
    chains, positions, proposals, accepted, tokens, u, read, summed, forms, direct, mixing3, factor,
    squares, along, across, rises,
):  # fmt: skip
    """Renews tokens and caches where `accepted` (n,), with what `score_changes` has filled."""
    length, rank = along.shape[1], along.shape[2]
    row, of_copy = np.empty(rank, u.dtype), np.empty(rank, u.dtype)
    for m in np.flatnonzero(accepted):
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


@njit(nogil=True, cache=True)
def deep_changes(
    chains, positions, proposals, tokens, states, mixing, factors, inputs, first, to_output,
    between, last_factor, forms, outputs, deltas, rises, ratios,
):  # fmt: skip
    """`deltas` of the input of every squared layer above the first, `rises` of the features.

    Tables: `first[t]` leads from the first square to the t-th layer above it, `between[s, t]` from
    the s-th of the squares above it to the t-th, `to_output[s]` to the last layer. With `forms`,
    M_a of every token and square (none for the norm energy), `ratios` is the rise of the raw score
    and `rises` lacks what `complete_rises` adds.
    """
    raw = len(forms) > 0
    squares, length, rank = len(states), rises.shape[1], rises.shape[2]
    kind = rises.dtype
    ratios[:] = 0.0
    step, own = np.empty(rank, kind), np.empty(rank, kind)
    maps, mixed = np.empty((rank, rank), kind), np.empty((length, rank), kind)
    along = np.empty((squares + 1, length, rank), kind)
    across = np.empty((squares + 1, length, rank), kind)
    read = np.empty((squares, length, length, rank), kind)
    both = np.empty((length, length, rank), kind)
    turned, heard = np.empty_like(both), np.empty_like(both)
    of_each = np.empty((length, rank, rank), kind)
    weighted, responses = np.empty((rank, length), kind), np.empty((length, rank), kind)
    for n in range(len(chains)):
        c, i, b = chains[n], positions[n], proposals[n]
        a = tokens[c, i]
        for x in range(rank):
            step[x] = inputs[0, b, x] - inputs[0, a, x]
        for t in range(squares + 1):
            products(step, first[t], tokens[c], inputs[0], maps, across[t], own)
            respond(across[t], own, mixing[0], i, inputs[t + 1, b], inputs[t + 1, a], mixed)
            mix(mixing[t + 1], mixed, along[t])
        rise = rises[n]
        for j in range(length):
            for x in range(rank):
                rise[j, x] = along[-1, j, x] + last_factor[i, j] * across[-1, j, x]
        read[:] = 0.0
        for s in range(squares):
            delta = deltas[s, n]
            for j in range(length):
                for k in range(length):
                    for x in range(rank):
                        delta[j, k, x] = along[s, k, x] + factors[s, i, j, k] * across[s, j, x]
                if s:
                    add_products(delta[j], mixing[s + 1], read[s, j])
            delta[i] = 0.0
            state = states[s, c]
            for j in range(length):
                for k in range(length):
                    for x in range(rank):
                        both[j, k, x] = state[j, k, x] + state[j, k, x] + delta[j, k, x]
            for t in range(s + 1, squares):
                if s:
                    for j in range(length):
                        bilinear(delta[j], both[j], between[s, t], of_each, read[t, j])
                    continue
                # delta_jk = along_k + factor_jk across_j: L + L forms instead of L^2.
                forms_of(along[0], between[0, t], of_each)
                for k in range(length):
                    for j in range(length):
                        turned[k, j] = both[j, k]
                    mix(turned[k], of_each[k], heard[k])
                forms_of(across[0], between[0, t], of_each)
                for j in range(length):
                    mix(both[j], of_each[j], responses)
                    for k in range(length):
                        for x in range(rank):
                            read[t, j, k, x] += (
                                heard[k, j, x] + factors[0, i, j, k] * responses[k, x]
                            )
            gather_products(mixing[-1], delta, both, weighted, of_each)
            if raw:
                for j in range(length):
                    form = forms[s, tokens[c, j]]
                    ratios[n] += dot(of_each[j].reshape(rank * rank), form)
            else:
                add_products(rise, of_each.reshape(length, rank * rank), to_output[s])
        rise[i] = 0.0
        if raw:
            for j in range(length):
                ratios[n] += dot(rise[j], outputs[tokens[c, j]])


@njit(nogil=True, cache=True)
def complete_rises(chains, states, deltas, mixing, to_output, rises):
    """Adds to `rises` what goes through the squares above the first, whose input changes."""
    length, rank = rises.shape[1], rises.shape[2]
    weighted = np.empty((rank, length), rises.dtype)
    of_each = np.empty((length, rank, rank), rises.dtype)
    for n in range(len(chains)):
        for s in range(len(states)):
            both = 2.0 * states[s, chains[n]] + deltas[s, n]
            gather_products(mixing[-1], deltas[s, n], both, weighted, of_each)
            add_products(rises[n], of_each.reshape(length, rank * rank), to_output[s])


@njit(nogil=True, cache=True)
def gather_products(mixing, delta, both, weighted, out):
    """out_j (d, d) = sum_k A_jk delta_jk (x) both_jk."""
    for j in range(len(out)):
        for k in range(delta.shape[1]):
            for x in range(delta.shape[2]):
                weighted[x, k] = mixing[j, k] * delta[j, k, x]
        mix(weighted, both[j], out[j])


@njit(nogil=True, cache=True)
def forms_of(vectors, table, out):
    """out (m, d, d): the matrices beta(x, .), [y, result], of vectors x (m, d)."""
    mix(vectors, table, out.reshape(len(out), table.shape[1]))


@njit(nogil=True, cache=True)
def bilinear(left, right, table, forms, total):
    """total (m, d) += beta(left, right), row by row of (m, d)."""
    forms_of(left, table, forms)
    for k in range(len(total)):
        add_rows(total[k], right[k], forms[k])
