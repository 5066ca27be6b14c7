"""Factored attention with H heads a layer: the features of masked copies (variant `exact`).

A layer is sum_h A^h x V^h, V^h = P^h Q^h. Masking position i changes layer 1's output by a matrix
of rank H: row k of the copy is Z_k - sum_h A^h_ki G^h_i with G^h_i = V^h[:, s_i]. What the layers
read is stacked: all Q^h as one (H r, |V|) matrix, all P^h side by side as (|V|, H r). The features
of a copy are those of every head, H d numbers.

B sequences, m masked positions (all L where `positions` is None: then arrays that do not depend on
the sequence have no B), L rows of a copy, d = r, or |V| where values are full.
"""

import torch
from torch import Tensor
from torch.nn import functional

from manybody.models.factored.squares import squares


def features(model, tokens: Tensor, positions: Tensor | None) -> Tensor:
    """Features (B, m, H d) of the copies of tokens (B, L) that mask positions (B, m), or all."""
    last = _rows(model.mixing(-1), positions)
    places = torch.arange(model.length, device=tokens.device)
    masked = (places if positions is None else positions)[..., None] == places  # ([B], m, L)
    read = _gather(model, tokens, last.masked_fill(masked[..., None, :], 0.0))
    if model.layers > 1:
        inner = _closed if model.layers == 2 else _copies
        summed = inner(model, tokens, positions, masked, last)
        if model.rank is not None:
            summed = torch.einsum("bmhv,hrv->bmhr", summed, model.right[-1])
        read = read + summed
    return read.flatten(-2)


def _gather(model, tokens: Tensor, weights: Tensor) -> Tensor:
    """sum_j w_ij Q^h s_j (B, m, H, d) for weights ([B], m, H, L)."""
    if model.rank is not None:
        sent = _sent(model, tokens, model.right[-1])
        return torch.einsum("bmhl,blhr->bmhr", weights.expand(len(tokens), -1, -1, -1), sent)
    weights = weights.expand(len(tokens), -1, -1, -1)
    zeros = weights.new_zeros(*weights.shape[:-1], model.vocabulary)
    return zeros.scatter_add(-1, tokens[:, None, None].expand_as(weights), weights)


def _closed(model, tokens: Tensor, positions, masked: Tensor, last: Tensor) -> Tensor:
    """Two layers: sum_k A2_ik (Z_k - sum_h A1^h_ki G^h_i)^2 for each head of A2, (B, m, H, |V|).

    The square is expanded (many-body, eq. 7), with one mixed term for each head of layer 1 and a
    Gram matrix (H, H) of the rows that masking takes away.
    """
    values = _values(model, tokens)
    z = torch.einsum("hkj,bjhv->bkv", model.mixing(0), values)
    taken = _chosen(values, positions)[:, :, None]  # G (B, m, 1, H, |V|)
    back = _rows(model.mixing(0).mT, positions)
    mixed = last[..., :, None, :] * back[..., None, :, :]  # ([B], m, H of A2, H of A1, L)
    gram = mixed @ back[..., None, :, :].mT
    crossed = gram @ taken - 2 * (mixed.flatten(-4, -2) @ z).unflatten(1, mixed.shape[-4:-1])
    squared = (last.flatten(-3, -2) @ z.square()).unflatten(1, last.shape[-3:-1])
    return squared + (crossed * taken).sum(-2)


def _copies(model, tokens: Tensor, positions, masked: Tensor, last: Tensor) -> Tensor:
    """Three layers or more: sum over l, k of A^n_ik (y^(l)_k)^2 in each copy, (B, m, H, |V|).

    y^(l) (B, m, L, |V|) is layer l's output before its square. Between squares everything is what
    the heads read, H d wide: the input of layer l is Q^l (x + sum over earlier l' of (y^(l'))^2).
    """
    mixed = _first(model, tokens, positions)
    inner = range(1, model.layers - 1)
    kept = (~masked).to(mixed.dtype)[..., None]
    readers = {layer: _reader(model, layer) for layer in inner}
    inputs = {
        layer: functional.embedding(tokens, reader.T)[:, None] * kept
        for layer, reader in readers.items()
    }
    last = last.expand(len(tokens), -1, -1, -1)
    summed = 0.0
    for layer in range(model.layers - 1):
        if layer:
            mixed = _mix(model, layer, inputs.pop(layer))
        left = None
        if model.rank is not None:
            left = model.left[layer].transpose(0, 1).flatten(1)
        following = torch.cat([readers[later] for later in inputs]) if inputs else None
        part, read = squares(mixed, left, last, following)
        summed = summed + part
        if inputs:
            for later, more in zip(inputs, read.chunk(len(inputs), -1), strict=True):
                inputs[later] = inputs[later] + more
    return summed


def _first(model, tokens: Tensor, positions) -> Tensor:
    """Layer 1 of each copy before its square: (B, m, L, |V|), or (B, m, L, H r) for P to read."""
    back = _rows(model.mixing(0).mT, positions).mT  # ([B], m, L, H)
    attention = model.mixing(0)
    if model.rank is None:
        values = _values(model, tokens)
        z = torch.einsum("hkj,bjhv->bkv", attention, values)
        return z[:, None] - back @ _chosen(values, positions)
    sent = _sent(model, tokens, model.right[0])
    z = torch.einsum("hkj,bjhr->bkhr", attention, sent)
    taken = back[..., None] * _chosen(sent, positions)[:, :, None]
    return (z[:, None] - taken).flatten(-2)


def _mix(model, layer: int, read: Tensor) -> Tensor:
    """The heads' A applied to what they read (B, m, L, H d): y (B, m, L, |V|), or (.., H r)."""
    attention = model.mixing(layer)
    heads = read.unflatten(-1, (model.heads, -1)).transpose(-2, -3)  # (B, m, H, L, d)
    if model.rank is None:
        return attention.transpose(0, 1).flatten(1) @ heads.flatten(-3, -2)
    return (attention @ heads).transpose(-2, -3).flatten(-2)


def _values(model, tokens: Tensor) -> Tensor:
    """V^h s_j (B, L, H, |V|) of layer 1."""
    if model.rank is None:
        return _sent(model, tokens, model.left[0])
    sent = _sent(model, tokens, model.right[0])
    return torch.einsum("blhr,hvr->blhv", sent, model.left[0])


def _sent(model, tokens: Tensor, matrices: Tensor) -> Tensor:
    """Columns (B, L, H, c) at tokens (B, L) of matrices (H, c, |V|)."""
    return functional.embedding(tokens, matrices.flatten(0, 1).T).unflatten(-1, (model.heads, -1))


def _reader(model, layer: int) -> Tensor:
    """Matrices that an inner layer applies before it mixes positions: Q^h or V^h, (H d, |V|)."""
    return (model.left[layer] if model.rank is None else model.right[layer]).flatten(0, 1)


def _rows(matrices: Tensor, positions: Tensor | None) -> Tensor:
    """Row i of each head's L x L matrix, for each copy: (B, m, H, L), or (L, H, L) for all."""
    rows = matrices.transpose(0, 1)
    if positions is None:
        return rows
    return functional.embedding(positions, rows.flatten(1)).unflatten(-1, rows.shape[1:])


def _chosen(rows: Tensor, positions: Tensor | None) -> Tensor:
    """rows (B, L, H, c) at positions (B, m), or all."""
    if positions is None:
        return rows
    return rows.gather(1, positions[..., None, None].expand(-1, -1, *rows.shape[2:]))
