"""Loss and gradients of all L masked copies of one to three layers of factored attention, compiled.

The closed forms of `Factored` (`exact`, one head, full values), LANES sequences at a time, forward
and back, in arrays that stay in the first levels of cache.
"""

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from manybody.data.vector_loops import LANES
from manybody.io.compiled import each
from manybody.models.base import compiled_loss
from manybody.models.factored.loss_loops import CHUNK, WORK, do_chunks


def all_masked_loss(tokens: Tensor, attention, values, bias) -> tuple[Tensor, Tensor]:
    """Loss (B * L,) in nats and correctness (B * L, bool) of every token, it alone masked.

    tokens (B, L) int64; lists of n matrices A (L, L) and V (|V|, |V|); bias (|V|,) or None.
    """
    arrays = _arrays(tokens, attention, values, bias)
    weights = [*attention, *values] if bias is None else [*attention, *values, bias]

    def compute(shares: Tensor | None, gradients: bool):
        given = None if shares is None else shares.numpy()
        loss, correct, found = all_masked(*arrays, given, gradients)
        if gradients:
            of_attention, of_values, of_bias = map(torch.from_numpy, found)
            found = [*of_attention, *of_values, of_bias][: len(weights)]
        return torch.from_numpy(loss), torch.from_numpy(correct), found

    return compiled_loss(compute, *weights)


def set_gradients(tokens: Tensor, weight: float, attention, values, bias) -> tuple[Tensor, Tensor]:
    """Summed loss and number correct of `all_masked_loss`; sets `.grad` of weight times the sum,
    of weights that are parameters, without a graph: it takes as long as a small model's products.
    """
    attention, values = list(attention), list(values)  # a list of parameters is slow to read
    loss, correct, of_sum = all_masked(*_arrays(tokens, attention, values, bias), None, True)
    with np.errstate(over="ignore", invalid="ignore"):
        of_attention, of_values, of_bias = (part * part.dtype.type(weight) for part in of_sum)
    for parameter, part in zip([*attention, *values], [*of_attention, *of_values], strict=True):
        parameter.grad = torch.from_numpy(part)
    if bias is not None:
        bias.grad = torch.from_numpy(of_bias)
    return torch.from_numpy(loss).sum(), torch.from_numpy(correct).sum()


def _arrays(tokens: Tensor, attention, values, bias) -> tuple[np.ndarray, ...]:
    """Tokens, A (n, L, L), V (n, |V|, |V|) and the bias (|V|,) as `all_masked` takes them."""
    mixing, readers = (
        np.stack([matrix.detach().numpy() for matrix in matrices])
        for matrices in (attention, values)
    )
    offset = np.zeros_like(readers[0, 0]) if bias is None else bias.detach().numpy().copy()
    return tokens.contiguous().numpy(), mixing, readers, offset


@np.errstate(over="ignore", invalid="ignore")  # a diverged loss is the caller's to judge
def all_masked(tokens, attention, values, bias, loss_weights, gradients: bool):
    """Losses and correctness (B * L,); gradients of the losses summed with loss_weights (B * L,).

    Arrays: tokens (B, L) int64, A (n, L, L), V (n, |V|, |V|), bias (|V|,), float32 or float64;
    loss_weights None are ones. Takes torch's threads; the result does not depend on their number.
    """
    batch, length = tokens.shape
    kind = attention.dtype
    chunks = -(-batch // CHUNK)
    mixing, squares = attention, np.zeros((1, length), kind)
    if len(attention) == 1:
        mixing = attention.copy()
        np.fill_diagonal(mixing[0], 0)
    elif len(attention) == 2:
        back = attention[0].T
        mixed = attention[1] * back
        mixing = np.concatenate([attention, mixed[None]])
        squares = (mixed * back).sum(1)[None]
    loss, correct = np.empty((batch, length), kind), np.empty((batch, length), np.bool_)
    loss_weights = (
        np.ones((batch, length), kind)
        if loss_weights is None
        else loss_weights.reshape(batch, length)
    )
    parts = [
        np.empty((chunks if gradients else 0, *weight.shape), kind)
        for weight in (mixing, values, bias[None], squares)
    ]
    arrays = (
        tokens, loss_weights, mixing, np.ascontiguousarray(mixing.swapaxes(1, 2)),
        values, np.ascontiguousarray(values.swapaxes(1, 2)), bias, squares,
        loss, correct, *parts,
    )  # fmt: skip
    threads = max(1, min(torch.get_num_threads(), chunks))
    edges = [chunks * part // threads for part in range(threads + 1)]
    each(threads, lambda part: _chunks(*part, gradients, arrays), pairwise(edges))
    if not gradients:
        return loss.ravel(), correct.ravel(), None
    of_mixing, of_values, of_bias, of_squares = (part.sum(0) for part in parts)
    of_attention = of_mixing[: len(attention)]
    if len(attention) == 1:
        np.fill_diagonal(of_attention[0], 0)
    elif len(attention) == 2:
        # squares_i = sum_j A2_ij A1_ji^2 and mixed_ij = A2_ij A1_ji
        share = of_squares[0, :, None] * back
        of_attention[1] += (of_mixing[2] + share) * back
        of_attention[0] += ((of_mixing[2] + 2 * share) * attention[1]).T
    return loss.ravel(), correct.ravel(), (of_attention, of_values, of_bias[0])


def _chunks(first: int, last: int, gradients: bool, arrays: tuple) -> None:
    _, _, mixing, _, values, *_ = arrays
    matrices, length, _ = mixing.shape
    layers, vocabulary, kind = len(values), values.shape[1], values.dtype
    shapes = (
        (WORK, length, vocabulary), (3, length), (matrices, length, length),
        (layers, vocabulary, vocabulary), (1, vocabulary), (1, length),
    )  # fmt: skip
    work = [np.empty((*shape, LANES), kind) for shape in shapes]
    depth = 0 if layers == 2 else None, 0 if layers == 3 else None
    do_chunks(first, last, gradients, *arrays, *work, *depth)
