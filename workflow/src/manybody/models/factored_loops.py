"""Loss and gradients of all L masked copies of one to three layers of factored attention, compiled.

The closed forms of `Factored` (`exact`, one head, full values), LANES sequences at a time in arrays
(rows, |V|, LANES) that stay in the first levels of cache. Each group of sequences goes forward and
back at once: nothing is kept for a later backward pass. Symbols: X one-hot tokens, G values of the
first layer, Z = A1 G what it gives with nothing masked; in the copy that masks i, row k of it is
Z_k - A1_ki G_i (many-body, section 4).
"""

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import torch
from numba import njit
from torch import Tensor
from torch.autograd.function import once_differentiable

from manybody.models.lanes import (
    LANES,
    add_mixed,
    add_mixed_column,
    add_products,
    exponential,
    get,
    put,
    spread,
    where_greater,
)

CHUNK = 64  # sequences whose gradients are summed before those of other chunks are added


def all_masked_loss(tokens: Tensor, attention, values, bias) -> tuple[Tensor, Tensor]:
    """Loss (B * L,) in nats and correctness (B * L, bool) of every token, it alone masked.

    tokens (B, L) int64; lists of n matrices A (L, L) and V (|V|, |V|); bias (|V|,) or None.
    Raises `IndexError` for a token that is none of the |V|.
    """
    if tokens.numel():
        least, most = (int(end) for end in tokens.aminmax())
        if least < 0 or most >= len(values[0]):
            raise IndexError(
                f"tokens run from {least} to {most}, expected 0 to {len(values[0]) - 1}"
            )
    given = [*attention, *values] if bias is None else [bias, *attention, *values]
    gradients = torch.is_grad_enabled() and any(weight.requires_grad for weight in given)
    return AllMaskedLoss.apply(tokens, gradients, bias, *attention, *values)


class AllMaskedLoss(torch.autograd.Function):
    """`all_masked_loss`, and whether its gradients will be asked for.

    The gradients of the summed loss are made
    with the loss. A backward pass that weights all losses alike scales them; any other makes
    them anew.
    """

    @staticmethod
    def forward(ctx, tokens: Tensor, gradients: bool, bias: Tensor | None, *matrices: Tensor):
        layers = len(matrices) // 2
        attention = torch.stack(matrices[:layers])
        values = torch.stack(matrices[layers:])
        offset = values.new_zeros(values.shape[-1]) if bias is None else bias.detach()
        ctx.given = tokens, attention, values, offset
        ctx.biased = bias is not None
        loss, correct, ctx.of_sum = all_masked(*ctx.given, None, gradients)
        ctx.mark_non_differentiable(correct)
        return loss, correct

    @staticmethod
    @once_differentiable
    def backward(ctx, of_loss: Tensor, _):
        if of_loss.numel() and of_loss.stride() == (0,):
            factor = of_loss[0]
            gradients = [part * factor for part in ctx.of_sum]
        else:
            gradients = all_masked(*ctx.given, of_loss, True)[2]
        of_attention, of_values, of_bias = gradients
        of_bias = of_bias if ctx.biased else None
        return None, None, of_bias, *of_attention.unbind(), *of_values.unbind()


def all_masked(
    tokens: Tensor,
    attention: Tensor,
    values: Tensor,
    bias: Tensor,
    weights: Tensor | None,
    gradients: bool,
) -> tuple[Tensor, Tensor, tuple[Tensor, ...] | None]:
    """Losses and correctness (B * L,), and gradients of the losses summed with weights (B * L,).

    tokens (B, L), A (n, L, L), V (n, |V|, |V|), bias (|V|,), float32 or float64; weights None are
    ones. Runs on as many threads as torch; the result does not depend on their number.
    """
    batch, length = tokens.shape
    kind = attention.dtype
    chunks = -(-batch // CHUNK)
    loss = torch.empty(batch, length, dtype=kind)
    correct = torch.empty(batch, length, dtype=torch.bool)
    if weights is None:
        weights = torch.ones(batch, length, dtype=kind)
    parts = [
        torch.zeros(chunks if gradients else 0, *weight.shape, dtype=kind)
        for weight in (attention, values, bias)
    ]
    arrays = [
        array.detach().contiguous().numpy()
        for array in (
            tokens, weights.view(batch, length), attention, values, bias, loss, correct, *parts,
        )
    ]  # fmt: skip
    threads = min(torch.get_num_threads(), chunks)
    if threads <= 1:
        do_chunks(0, chunks, gradients, *arrays)
    else:
        edges = [chunks * part // threads for part in range(threads + 1)]
        waiting = [
            _pool(threads - 1).submit(do_chunks, edges[part], edges[part + 1], gradients, *arrays)
            for part in range(1, threads)
        ]
        do_chunks(0, edges[1], gradients, *arrays)
        for one in waiting:
            one.result()
    summed = tuple(part.sum(0) for part in parts) if gradients else None
    return loss.flatten(), correct.flatten(), summed


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="factored-loops")


@njit(nogil=True, cache=True)
def do_chunks(
    first, last, gradients, tokens, weights, attention, values, bias, loss, correct,
    of_attention, of_values, of_bias,
):  # fmt: skip
    """Chunks first..last - 1 of the sequences: their losses, and their gradients by chunk."""
    layers, length, _ = attention.shape
    vocabulary = len(bias)
    kind = attention.dtype
    shape = (length, vocabulary, LANES)
    x, features = np.empty(shape, kind), np.empty(shape, kind)
    errors, of_features = np.empty(shape, kind), np.empty(shape, kind)
    scores = np.empty((3, length, LANES), kind)  # loss, correct, weight of each copy
    first_v = np.empty(shape, kind)
    z, of_z, of_first = np.empty(shape, kind), np.empty(shape, kind), np.empty(shape, kind)
    work = np.empty((6, length, vocabulary, LANES), kind)
    lanes_attention = np.zeros((layers + 1, length, length, LANES), kind)
    lanes_values = np.zeros((layers, vocabulary, vocabulary, LANES), kind)
    lanes_bias = np.zeros((1, vocabulary, LANES), kind)
    lanes_square = np.zeros((1, length, LANES), kind)
    mixed, squares = np.zeros((length, length), kind), np.zeros(length, kind)
    offdiagonal = attention[layers - 1].copy()
    for i in range(length):
        offdiagonal[i, i] = 0
    if layers == 2:
        for i in range(length):
            for j in range(length):
                mixed[i, j] = attention[1, i, j] * attention[0, j, i]
                squares[i] += mixed[i, j] * attention[0, j, i]
    for chunk in range(first, last):
        stop = min(len(tokens), (chunk + 1) * CHUNK)
        lanes_attention[:] = 0
        lanes_values[:] = 0
        lanes_bias[:] = 0
        lanes_square[:] = 0
        for start in range(chunk * CHUNK, stop, LANES):
            _read(tokens, weights, start, stop, x, scores)
            if layers == 1:
                _one_layer(
                    gradients, x, scores, offdiagonal, values[0], bias, features, errors,
                    of_features, lanes_attention[0], lanes_values[0],
                )  # fmt: skip
            elif layers == 2:
                _two_layers(
                    gradients, x, scores, attention, mixed, squares, values, bias, features,
                    errors, of_features, first_v, z, of_z, of_first, work, lanes_attention,
                    lanes_values, lanes_square,
                )  # fmt: skip
            else:
                _three_layers(
                    gradients, x, scores, attention, values, bias, features, errors,
                    of_features, first_v, z, of_z, of_first, work, lanes_attention, lanes_values,
                )  # fmt: skip
            for lane in range(min(LANES, stop - start)):
                for i in range(length):
                    loss[start + lane, i] = scores[0, i, lane]
                    correct[start + lane, i] = scores[1, i, lane] > 0
            if gradients:
                for i in range(length):
                    for a in range(vocabulary):
                        put(lanes_bias, 0, a, get(lanes_bias, 0, a) + get(errors, i, a))
        if gradients:
            for layer in range(layers):
                _add_lanes(lanes_attention[layer], of_attention[chunk, layer])
                _add_lanes(lanes_values[layer], of_values[chunk, layer])
            _add_lanes(lanes_bias, of_bias[chunk : chunk + 1])
            if layers == 1:
                for i in range(length):
                    of_attention[chunk, 0, i, i] = 0
            elif layers == 2:
                of_mixed, of_squares = np.zeros((length, length), kind), np.zeros((1, length), kind)
                _add_lanes(lanes_attention[2], of_mixed)
                _add_lanes(lanes_square, of_squares)
                for i in range(length):
                    for j in range(length):
                        back, given = attention[0, j, i], of_mixed[i, j]
                        given += of_squares[0, i] * back
                        of_attention[chunk, 1, i, j] += given * back
                        given += of_squares[0, i] * back
                        of_attention[chunk, 0, j, i] += given * attention[1, i, j]


@njit(nogil=True, cache=True)
def _read(tokens, weights, start, stop, x, scores):
    """One-hot tokens and weights of LANES sequences; those beyond the end weigh nothing."""
    x[:] = 0
    for lane in range(LANES):
        place = min(start + lane, stop - 1)
        for i in range(len(x)):
            x[i, tokens[place, i], lane] = 1
            scores[2, i, lane] = weights[place, i] if start + lane < stop else 0


@njit(nogil=True, cache=True)
def _one_layer(
    gradients, x, scores, attention, values, bias, features, errors, of_features,
    lanes_attention, lanes_values,
):  # fmt: skip
    features[:] = 0
    add_mixed(attention, x, features)
    for i in range(len(x)):
        _predict(i, gradients, x, scores, values, bias, features, errors, of_features)
    if gradients:
        add_products(errors.transpose(1, 0, 2), features.transpose(1, 0, 2), lanes_values)
        add_products(of_features, x, lanes_attention)


@njit(nogil=True, cache=True)
def _two_layers(
    gradients, x, scores, attention, mixed, squares, values, bias, features, errors,
    of_features, first, z, of_z, of_first, work, lanes_attention, lanes_values, lanes_square,
):  # fmt: skip
    """Equation 7 of many-body: nothing is done once per copy."""
    length, vocabulary, _ = x.shape
    inputs, crossed, of_crossed, of_inputs = work[0], work[1], work[2], work[3]
    first[:] = 0
    z[:] = 0
    features[:] = 0
    crossed[:] = 0
    add_mixed(values[0], x.transpose(1, 0, 2), first.transpose(1, 0, 2))
    add_mixed(attention[0], first, z)
    for k in range(length):
        for a in range(vocabulary):
            put(inputs, k, a, get(z, k, a) * get(z, k, a) + get(x, k, a))
    add_mixed(attention[1], inputs, features)
    add_mixed(mixed, z, crossed)
    for i in range(length):
        own, square = attention[1, i, i], squares[i]
        for a in range(vocabulary):
            v = get(first, i, a)
            more = v * (v * square - (get(crossed, i, a) + get(crossed, i, a)))
            put(features, i, a, get(features, i, a) + (more - get(x, i, a) * own))
        _predict(i, gradients, x, scores, values[1], bias, features, errors, of_features)
    if not gradients:
        return
    add_products(errors.transpose(1, 0, 2), features.transpose(1, 0, 2), lanes_values[1])
    add_products(of_features, inputs, lanes_attention[1])
    of_inputs[:] = 0
    add_mixed(attention[1].T, of_features, of_inputs)
    for i in range(length):
        square = squares[i]
        of_own, of_square = get(lanes_attention[1], i, i), get(lanes_square, 0, i)
        for a in range(vocabulary):
            g, v = get(of_features, i, a), get(first, i, a)
            of_own = of_own - g * get(x, i, a)
            of_square = of_square + g * (v * v)
            half = g * (v * square - get(crossed, i, a))
            put(of_first, i, a, half + half)
            put(of_crossed, i, a, (g + g) * (v * -1))
            half = get(of_inputs, i, a) * get(z, i, a)
            put(of_z, i, a, half + half)
        put(lanes_attention[1], i, i, of_own)
        put(lanes_square, 0, i, of_square)
    add_products(of_crossed, z, lanes_attention[2])
    add_mixed(mixed.T, of_crossed, of_z)
    _first_layer_back(x, attention[0], first, of_z, of_first, lanes_attention[0], lanes_values[0])


@njit(nogil=True, cache=True)
def _three_layers(
    gradients, x, scores, attention, values, bias, features, errors, of_features, first, z, of_z,
    of_first, work, lanes_attention, lanes_values,
):  # fmt: skip
    """Copy by copy: y = (Z - A1 G_i)^2 + X, then (A2 y V2^T)^2 is added."""
    length, vocabulary, _ = x.shape
    own, y, mixed, deep, of_mixed = work[0], work[1], work[2], work[3], work[4]
    mixed_t, deep_t = mixed.transpose(1, 0, 2), deep.transpose(1, 0, 2)
    of_mixed_t = of_mixed.transpose(1, 0, 2)
    first_a, second_a, third_a = attention[0], attention[1], attention[2]
    second_v, third_v = values[1], values[2]
    second_at, second_vt = second_a.T, second_v.T
    lanes_first_a, lanes_second_a, lanes_third_a = (
        lanes_attention[0], lanes_attention[1], lanes_attention[2],
    )  # fmt: skip
    lanes_second_v = lanes_values[1]
    first[:] = 0
    z[:] = 0
    of_z[:] = 0
    add_mixed(values[0], x.transpose(1, 0, 2), first.transpose(1, 0, 2))
    add_mixed(first_a, first, z)
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
        add_mixed(second_a, y, mixed)
        add_mixed(second_v, mixed_t, deep_t)
        for a in range(vocabulary):
            total = zero
            for k in range(length):
                q = get(deep, k, a)
                total = total + (get(y, k, a) + q * q) * third_a[i, k]
            put(features, i, a, total)
        _predict(i, gradients, x, scores, third_v, bias, features, errors, of_features)
        if not gradients:
            continue
        for k in range(length):
            weight, total = third_a[i, k], get(lanes_third_a, i, k)
            for a in range(vocabulary):
                g, q = get(of_features, i, a), get(deep, k, a)
                total = total + g * (get(y, k, a) + q * q)
                half = g * (q * weight)
                put(deep, k, a, half + half)
                put(of_mixed, k, a, zero)
            put(lanes_third_a, i, k, total)
        add_products(deep_t, mixed_t, lanes_second_v)
        add_mixed(second_vt, deep_t, of_mixed_t)
        add_products(of_mixed, y, lanes_second_a)
        for k in range(length):
            weight = third_a[i, k]
            for a in range(vocabulary):
                put(y, k, a, get(of_features, i, a) * weight)
        add_mixed(second_at, of_mixed, y)  # y holds its own gradient from here on
        for a in range(vocabulary):
            put(of_first, i, a, zero)
        for k in range(length):
            back, total = first_a[k, i], get(lanes_first_a, k, i)
            for a in range(vocabulary):
                half = get(y, k, a) * get(own, k, a)
                given = half + half
                put(of_z, k, a, get(of_z, k, a) + given)
                put(of_first, i, a, get(of_first, i, a) - given * back)
                total = total - given * get(first, i, a)
            put(lanes_first_a, k, i, total)
    if gradients:
        add_products(errors.transpose(1, 0, 2), features.transpose(1, 0, 2), lanes_values[2])
        _first_layer_back(x, first_a, first, of_z, of_first, lanes_first_a, lanes_values[0])


@njit(nogil=True, cache=True)
def _first_layer_back(x, attention, first, of_z, of_first, lanes_attention, lanes_values):
    """From the gradients of Z, and of G where it is used apart from Z."""
    add_products(of_z, first, lanes_attention)
    add_mixed(attention.T, of_z, of_first)
    add_products(of_first.transpose(1, 0, 2), x.transpose(1, 0, 2), lanes_values)


@njit(nogil=True, cache=True)
def _predict(i, gradients, x, scores, values, bias, features, errors, of_features):
    """Loss and correctness of copy i from its features; `errors` = weight * (softmax - X_i)."""
    vocabulary = len(bias)
    for a in range(vocabulary):
        put(errors, i, a, spread(x, bias[a]))
    add_mixed_column(values, features.transpose(1, 0, 2), errors.transpose(1, 0, 2), i)
    zero, best = spread(x, 0.0), get(errors, i, 0)
    chosen, target = get(x, i, 0), best * get(x, i, 0)
    for a in range(1, vocabulary):
        logit, here = get(errors, i, a), get(x, i, a)
        target = target + logit * here
        chosen = where_greater(logit, best, here, chosen)
        best = where_greater(logit, best, logit, best)
    total = zero
    for a in range(vocabulary):
        weight = exponential(x, get(errors, i, a) - best)
        put(errors, i, a, weight)
        total = total + weight
    put(scores, 0, i, total)
    put(scores, 1, i, chosen)
    if gradients:
        put(of_features, i, 0, total)
        for lane in range(LANES):
            of_features[i, 0, lane] = scores[2, i, lane] / of_features[i, 0, lane]
        inverse, weight = get(of_features, i, 0), get(scores, 2, i)
        for a in range(vocabulary):
            put(errors, i, a, get(errors, i, a) * inverse - get(x, i, a) * weight)
            put(of_features, i, a, zero)
        add_mixed_column(values.T, errors.transpose(1, 0, 2), of_features.transpose(1, 0, 2), i)
    for lane in range(LANES):
        scores[0, i, lane] = np.log(scores[0, i, lane])
    put(scores, 0, i, get(scores, 0, i) + (best - target))


@njit(nogil=True, cache=True)
def _add_lanes(lanes, out):
    """out (m, k) += the sums over lanes of (m, k, LANES), in one order."""
    for i in range(len(out)):
        for j in range(out.shape[1]):
            total = out[i, j]
            for lane in range(LANES):
                total += lanes[i, j, lane]
            out[i, j] = total
