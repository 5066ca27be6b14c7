"""The compiled loops of `models.factored_loss`.

Symbols: X one-hot tokens, G values of the first layer, Z = A1 G what it gives with nothing masked;
in the copy that masks i, row k of it is Z_k - A1_ki G_i (docs/science/many-body.md, section 4).
"""

import numpy as np

from manybody.data.vector_loops import (
    BORROWED,
    LANES,
    add_mixed,
    add_mixed_column,
    add_products,
    clear,
    exponential,
    get,
    put,
    spread,
    where_greater,
)
from manybody.io.compiled import njit

CHUNK = 64  # sequences whose gradients are summed before those of other chunks are added
WORK = 13  # arrays (L, |V|, LANES) of a group of sequences


@njit(nogil=True, cache=True, **BORROWED)
def do_chunks(
    first, last, gradients, tokens, loss_weights, mixing, mixing_t, values, values_t, bias, squares,
    loss, correct, of_mixing, of_values, of_bias, of_squares,
    work, scores, lanes_mixing, lanes_values, lanes_bias, lanes_squares, two, three,
):  # fmt: skip
    """Chunks first..last - 1 of the sequences: their losses, and their gradients by chunk.

    two, three: None, but for the one that says how many layers there are. numba leaves out what
    hangs on a None, so each depth is compiled when it is first used, in half the time of all.
    """
    layers, length, vocabulary = len(values), work.shape[1], work.shape[2]
    x, features, errors, of_features = work[0], work[1], work[2], work[3]
    arrays = (
        work[4], work[5], work[6], work[7], work[8], work[9], work[10], work[11], work[12]
    )  # fmt: skip
    last_v, last_vt = values[layers - 1], values_t[layers - 1]
    for chunk in range(first, last):
        stop = min(len(tokens), (chunk + 1) * CHUNK)
        lanes_mixing[:] = 0.0
        lanes_values[:] = 0.0
        clear(lanes_bias)
        clear(lanes_squares)
        for start in range(chunk * CHUNK, stop, LANES):
            _read(tokens, loss_weights, start, stop, x, scores)
            if two is not None:
                _two_layers(
                    gradients, x, scores, mixing, mixing_t, values, values_t, bias, squares,
                    features, errors, of_features, arrays, lanes_mixing, lanes_values,
                    lanes_squares,
                )  # fmt: skip
            elif three is not None:
                _three_layers(
                    gradients, x, scores, mixing, mixing_t, values, values_t, bias, features,
                    errors, of_features, arrays, lanes_mixing, lanes_values,
                )  # fmt: skip
            else:
                clear(features)
                add_mixed(mixing[0], x, features, 0)
                for i in range(length):
                    _predict(
                        i, gradients, x, scores, last_v, last_vt, bias, features, errors,
                        of_features,
                    )  # fmt: skip
                if gradients:
                    add_products(of_features, x, lanes_mixing[0], 0)
            if gradients:
                add_products(errors, features, lanes_values[layers - 1], 1)
                for i in range(length):
                    for a in range(vocabulary):
                        put(lanes_bias, 0, a, get(lanes_bias, 0, a) + get(errors, i, a))
            for lane in range(min(LANES, stop - start)):
                for i in range(length):
                    loss[start + lane, i] = np.log(scores[2, i, lane]) + scores[0, i, lane]
                    correct[start + lane, i] = scores[1, i, lane] > 0
        if gradients:
            for layer in range(len(mixing)):
                _sum_lanes(lanes_mixing[layer], of_mixing[chunk, layer])
            for layer in range(layers):
                _sum_lanes(lanes_values[layer], of_values[chunk, layer])
            _sum_lanes(lanes_bias, of_bias[chunk])
            _sum_lanes(lanes_squares, of_squares[chunk])


@njit(nogil=True, cache=True, **BORROWED)
def _read(tokens, loss_weights, start, stop, x, scores):
    """One-hot tokens and weights of LANES sequences; those beyond the end weigh nothing."""
    clear(x)
    for lane in range(LANES):
        place = min(start + lane, stop - 1)
        for i in range(len(x)):
            x[i, tokens[place, i], lane] = 1
            scores[0, i, lane] = loss_weights[place, i] if start + lane < stop else 0


@njit(nogil=True, cache=True, **BORROWED)
def _two_layers(
    gradients, x, scores, mixing, mixing_t, values, values_t, bias, squares, features, errors,
    of_features, arrays, lanes_mixing, lanes_values, lanes_squares,
):  # fmt: skip
    """Equation 7 of many-body: nothing is done once per copy."""
    length, vocabulary, _ = x.shape
    first, z, of_z, of_first, inputs, crossed, of_crossed, of_inputs, _ = arrays
    last_v, last_vt, lanes_last = values[1], values_t[1], lanes_mixing[1]
    clear(first)
    clear(z)
    clear(features)
    clear(crossed)
    add_mixed(values[0], x, first, 1)
    add_mixed(mixing[0], first, z, 0)
    for k in range(length):
        for a in range(vocabulary):
            put(inputs, k, a, get(z, k, a) * get(z, k, a) + get(x, k, a))
    add_mixed(mixing[1], inputs, features, 0)
    add_mixed(mixing[2], z, crossed, 0)
    for i in range(length):
        own, square = mixing[1, i, i], squares[0, i]
        for a in range(vocabulary):
            v = get(first, i, a)
            more = v * (v * square - (get(crossed, i, a) + get(crossed, i, a)))
            put(features, i, a, get(features, i, a) + (more - get(x, i, a) * own))
        _predict(
            i, gradients, x, scores, last_v, last_vt, bias, features, errors, of_features
        )  # fmt: skip
    if not gradients:
        return
    add_products(of_features, inputs, lanes_last, 0)
    clear(of_inputs)
    add_mixed(mixing_t[1], of_features, of_inputs, 0)
    for i in range(length):
        square = squares[0, i]
        of_own, of_square = get(lanes_last, i, i), get(lanes_squares, 0, i)
        for a in range(vocabulary):
            g, v = get(of_features, i, a), get(first, i, a)
            of_own = of_own - g * get(x, i, a)
            of_square = of_square + g * (v * v)
            half = g * (v * square - get(crossed, i, a))
            put(of_first, i, a, half + half)
            put(of_crossed, i, a, (g + g) * (v * -1.0))
            half = get(of_inputs, i, a) * get(z, i, a)
            put(of_z, i, a, half + half)
        put(lanes_last, i, i, of_own)
        put(lanes_squares, 0, i, of_square)
    add_products(of_crossed, z, lanes_mixing[2], 0)
    add_mixed(mixing_t[2], of_crossed, of_z, 0)
    _first_layer_back(
        x, mixing_t[0], first, of_z, of_first, lanes_mixing[0], lanes_values[0]
    )  # fmt: skip


@njit(nogil=True, cache=True, **BORROWED)
def _three_layers(
    gradients, x, scores, mixing, mixing_t, values, values_t, bias, features, errors, of_features,
    arrays, lanes_mixing, lanes_values,
):  # fmt: skip
    """Copy by copy: y = (Z - A1 G_i)^2 + X, then (A2 y V2^T)^2 is added."""
    length, vocabulary, _ = x.shape
    first, z, of_z, of_first, own, y, mixed, deep, of_mixed = arrays
    first_a, second_a, third_a, second_at = mixing[0], mixing[1], mixing[2], mixing_t[1]
    second_v, second_vt, last_v, last_vt = values[1], values_t[1], values[2], values_t[2]
    lanes_first, lanes_second, lanes_third = lanes_mixing[0], lanes_mixing[1], lanes_mixing[2]
    lanes_second_v = lanes_values[1]
    clear(first)
    clear(z)
    clear(of_z)
    add_mixed(values[0], x, first, 1)
    add_mixed(first_a, first, z, 0)
    zero = spread(x, 0.0)
    for i in range(length):
        for k in range(length):
            back, kept = first_a[k, i], 0.0 if k == i else 1.0
            for a in range(vocabulary):
                value = get(z, k, a) - get(first, i, a) * back
                put(own, k, a, value)
                put(y, k, a, value * value + get(x, k, a) * kept)
                put(mixed, k, a, zero)
                put(deep, k, a, zero)
        add_mixed(second_a, y, mixed, 0)
        add_mixed(second_v, mixed, deep, 1)
        for a in range(vocabulary):
            total = zero
            for k in range(length):
                q = get(deep, k, a)
                total = total + (get(y, k, a) + q * q) * third_a[i, k]
            put(features, i, a, total)
        _predict(
            i, gradients, x, scores, last_v, last_vt, bias, features, errors, of_features
        )  # fmt: skip
        if not gradients:
            continue
        for k in range(length):
            weight, total = third_a[i, k], get(lanes_third, i, k)
            for a in range(vocabulary):
                g, q = get(of_features, i, a), get(deep, k, a)
                total = total + g * (get(y, k, a) + q * q)
                half = g * (q * weight)
                put(deep, k, a, half + half)
                put(of_mixed, k, a, zero)
            put(lanes_third, i, k, total)
        add_products(deep, mixed, lanes_second_v, 1)
        add_mixed(second_vt, deep, of_mixed, 1)
        add_products(of_mixed, y, lanes_second, 0)
        for k in range(length):
            weight = third_a[i, k]
            for a in range(vocabulary):
                put(y, k, a, get(of_features, i, a) * weight)
        add_mixed(second_at, of_mixed, y, 0)  # y holds its own gradient from here on
        for a in range(vocabulary):
            put(of_first, i, a, zero)
        for k in range(length):
            back, total = first_a[k, i], get(lanes_first, k, i)
            for a in range(vocabulary):
                half = get(y, k, a) * get(own, k, a)
                given = half + half
                put(of_z, k, a, get(of_z, k, a) + given)
                put(of_first, i, a, get(of_first, i, a) - given * back)
                total = total - given * get(first, i, a)
            put(lanes_first, k, i, total)
    if gradients:
        _first_layer_back(x, mixing_t[0], first, of_z, of_first, lanes_first, lanes_values[0])


@njit(nogil=True, cache=True, **BORROWED)
def _first_layer_back(x, mixing_t, first, of_z, of_first, lanes_mixing, lanes_values):
    """From the gradients of Z, and of G where it is used apart from Z."""
    add_products(of_z, first, lanes_mixing, 0)
    add_mixed(mixing_t, of_z, of_first, 0)
    add_products(of_first, x, lanes_values, 1)


@njit(nogil=True, cache=True, **BORROWED)
def _predict(
    i, gradients, x, scores, values, values_t, bias, features, errors, of_features
):  # fmt: skip
    """Copy i from its features: `errors` = weight * (softmax - X_i), and what goes to `scores`.

    scores[0], the weight of the copy, becomes the greatest logit minus the token's; the loss is
    that plus the logarithm of scores[2]. scores[1] is above 0 where the token has the greatest.
    """
    vocabulary = len(bias)
    for a in range(vocabulary):
        put(errors, i, a, spread(x, bias[a]))
    add_mixed_column(values, features, errors, i)
    zero, best = spread(x, 0.0), get(errors, i, 0)
    chosen, target = get(x, i, 0), best * get(x, i, 0)
    for a in range(1, vocabulary):
        logit, here = get(errors, i, a), get(x, i, a)
        target = target + logit * here
        chosen = where_greater(logit, best, here, chosen)
        best = where_greater(logit, best, logit, best)
    total = zero
    for a in range(vocabulary):
        share = exponential(x, get(errors, i, a) - best)
        put(errors, i, a, share)
        total = total + share
    weight = get(scores, 0, i)
    put(scores, 0, i, best - target)
    put(scores, 1, i, chosen)
    put(scores, 2, i, total)
    if gradients:
        scale = weight / total
        for a in range(vocabulary):
            put(errors, i, a, get(errors, i, a) * scale - get(x, i, a) * weight)
            put(of_features, i, a, zero)
        add_mixed_column(values_t, errors, of_features, i)


@njit(nogil=True, cache=True, **BORROWED)
def _sum_lanes(lanes, out):
    """out (m, k) = the sums over lanes of (m, k, LANES), in one order."""
    for i in range(len(out)):
        for j in range(out.shape[1]):
            total = lanes[i, j, 0]
            for lane in range(1, LANES):
                total += lanes[i, j, lane]
            out[i, j] = total
