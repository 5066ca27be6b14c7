"""Features of masked copies of factored attention, and the squares between its layers.

A layer is sum_h A^h x V^h, or A x P Q. Masking position i changes layer 1's output by a matrix of
rank H: row k of the copy is Z_k - sum_h A^h_ki G^h_i with G^h_i = V^h[:, s_i]. What the layers read
is stacked: all V^h as one (H |V|, |V|) matrix. The features of a copy are those of every head, H d
numbers. One head, whose arrays have no H, goes its own way where that is faster.

B sequences, m masked positions (all L where `positions` is None: then arrays that do not depend on
the sequence have no B), L rows of a copy, d = r, or |V| where values are full.
"""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

# A table of all |V| x |V| first-layer values is made where it saves work and is no larger.
TABLE = 2**24
# Numbers in the |V| wide arrays: a core's cache holds them, or on other devices they fill it.
CACHED = 2**17
BLOCK = 2**25


def features(model, tokens: Tensor, positions: Tensor | None) -> Tensor:
    """Features (B, m, H d) of the copies of tokens (B, L) that mask positions (B, m), or all."""
    last = _rows(model.mixing(-1), positions)
    places = torch.arange(model.length, device=tokens.device)
    masked = (places if positions is None else positions)[..., None] == places  # ([B], m, L)
    if model.norms:
        return _read(model, _normed(model, tokens, positions, masked, last))
    if model.heads == 1:
        read = _gather(model, tokens, last.masked_fill(masked, 0.0))
        if model.layers == 1:
            return read
        if model.layers == 2:
            return read + _read(model, _closed(model, tokens, positions, last))
        summed = _copies(model, tokens, positions, masked, last[..., None, :])
        return read + _read(model, summed.squeeze(-2))
    read = _gather(model, tokens, last.masked_fill(masked[..., None, :], 0.0))
    if model.layers > 1:
        read = read + _copies(model, tokens, positions, masked, last)
    return read.flatten(-2)


def _gather(model, tokens: Tensor, weights: Tensor) -> Tensor:
    """sum_j w_ij Q^h s_j (B, m, [H], d) for weights ([B], m, [H], L)."""
    if model.rank is not None:
        return weights @ functional.embedding(tokens, model.right[-1].T)
    weights = weights.expand(len(tokens), *[-1] * model.left[-1].ndim)
    zeros = weights.new_zeros(*weights.shape[:-1], model.vocabulary)
    index = tokens[:, None] if model.heads == 1 else tokens[:, None, None]
    return zeros.scatter_add(-1, index.expand_as(weights), weights)


def _read(model, summed: Tensor) -> Tensor:
    """Q^n of one head applied to (..., |V|); full values are applied by the head."""
    return summed if model.rank is None else summed @ model.right[-1].T


def _closed(model, tokens: Tensor, positions: Tensor | None, last: Tensor) -> Tensor:
    """Two layers: sum_k A2_ik (Z_k - A1_ki G_i)^2 (B, m, |V|), expanded (many-body, eq. 7)."""
    z, values = _first(model, tokens, positions)
    back = _rows(model.mixing(0).T, positions)
    mixed = last * back
    return (
        last @ z.square()
        - 2 * values * (mixed @ z)
        + (mixed * back).sum(-1, keepdim=True) * values.square()
    )


def _copies(model, tokens: Tensor, positions, masked: Tensor, last: Tensor) -> Tensor:
    """Three layers or more, or two of several heads: sum over l, k of A^n_ik (y^(l)_k)^2 in each
    copy, (B, m, H, |V|); y^(l) (B, m, L, |V|) is layer l's output before its square. Between
    squares all is what the heads read, H d wide: the input of layer l is Q^l (x + sum over earlier
    l' of (y^(l'))^2). last ([B], m, H, L): rows of the last layer's maps."""
    mixed = _first_copies(model, tokens, positions)
    kept = (~masked).to(mixed.dtype)[..., None]
    readers = {layer: _reader(model, layer) for layer in range(1, model.layers - 1)}
    inputs = {
        layer: functional.embedding(tokens, reader.T)[:, None] * kept
        for layer, reader in readers.items()
    }
    last = last.expand(len(tokens), -1, -1, -1)
    summed = 0.0
    for layer in range(model.layers - 1):
        if layer:
            mixed = _mix(model, layer, inputs.pop(layer))
        left = None if model.rank is None else model.left[layer]
        following = torch.cat([readers[later] for later in inputs]) if inputs else None
        part, read = squares(mixed, left, last, following)
        summed = summed + part
        if inputs:
            for later, more in zip(inputs, read.chunk(len(inputs), -1), strict=True):
                inputs[later] = inputs[later] + more
    return summed


def _normed(
    model, tokens: Tensor, positions: Tensor | None, masked: Tensor, last: Tensor
) -> Tensor:
    """With LayerNorm: sum_k A^n_ik x^(n-1)_k in each copy, (B, m, |V|), by explicit copies."""
    z, values = _first(model, tokens, positions)
    back = _rows(model.mixing(0).T, positions)
    y = torch.addcmul(z[:, None], back[..., None], values[:, :, None], value=-1)
    kept = (~masked).to(y.dtype)[..., None].expand(*y.shape[:3], 1)
    index = tokens[:, None, :, None].expand(*y.shape[:3], 1)
    x = model.norms[0](y.square().scatter_add(-1, index, kept))
    for layer in range(1, model.layers - 1):
        x = model.norms[layer](x + model.mix(layer, x).square())
    return (last[..., None, :] @ x).squeeze(-2)


def _first(model, tokens: Tensor, positions: Tensor | None) -> tuple[Tensor, Tensor]:
    """Layer 1 of one head unmasked: Z (B, L, |V|), and G (B, m, |V|) where positions are masked."""
    attention, left = model.mixing(0), model.left[0]
    if model.rank is None:
        table = left.T
    elif _table_pays(model, tokens):
        table = model.right[0].T @ left.T
    else:
        columns = functional.embedding(tokens, model.right[0].T)
        return attention @ columns @ left.T, _chosen(columns, positions) @ left.T
    values = functional.embedding(tokens, table)
    return attention @ values, _chosen(values, positions)


def _table_pays(model, tokens: Tensor) -> bool:
    """True if G by a |V| x |V| table and A G cost less than P (A (Q x)), per number of Z."""
    if model.vocabulary**2 > TABLE:
        return False
    return model.length + model.rank * model.vocabulary / tokens.numel() < model.rank / 2


def _first_copies(model, tokens: Tensor, positions) -> Tensor:
    """Layer 1 of each copy before its square: (B, m, L, |V|), or (B, m, L, r) for P to read."""
    if model.heads == 1:
        back = _rows(model.mixing(0).T, positions)
        values = functional.embedding(tokens, _reader(model, 0).T)
        z, taken = model.mixing(0) @ values, _chosen(values, positions)
        return torch.addcmul(z[:, None], back[..., None], taken[:, :, None], value=-1)
    back = _rows(model.mixing(0).mT, positions).mT  # ([B], m, L, H)
    columns = functional.embedding(tokens, model.left[0].flatten(0, 1).T)
    values = columns.unflatten(-1, (model.heads, -1))  # (B, L, H, |V|)
    z = torch.einsum("hkj,bjhv->bkv", model.mixing(0), values)
    return z[:, None] - back @ _chosen(values, positions)


def _mix(model, layer: int, read: Tensor) -> Tensor:
    """The heads' A applied to what they read (B, m, L, H d): y (B, m, L, |V|), or (.., r)."""
    attention = model.mixing(layer)
    if model.heads == 1:
        return attention @ read
    heads = read.unflatten(-1, (model.heads, -1)).transpose(-2, -3)  # (B, m, H, L, d)
    return attention.transpose(0, 1).flatten(1) @ heads.flatten(-3, -2)


def _reader(model, layer: int) -> Tensor:
    """Matrices that an inner layer applies before it mixes positions: Q or V^h, (H d, |V|)."""
    matrices = model.left[layer] if model.rank is None else model.right[layer]
    return matrices if model.heads == 1 else matrices.flatten(0, 1)


def _rows(matrices: Tensor, positions: Tensor | None) -> Tensor:
    """Row i of each head's L x L matrix, for each copy: (B, m, [H], L), or (L, [H], L) for all."""
    rows = matrices if matrices.ndim == 2 else matrices.transpose(0, 1)
    if positions is None:
        return rows
    return functional.embedding(positions, rows.flatten(1)).unflatten(-1, rows.shape[1:])


def _chosen(rows: Tensor, positions: Tensor | None) -> Tensor:
    """rows (B, L, ...) at positions (B, m), or all."""
    if positions is None:
        return rows
    index = positions.view(*positions.shape, *[1] * (rows.ndim - 2))
    return rows.gather(1, index.expand(-1, -1, *rows.shape[2:]))


class Squares(torch.autograd.Function):
    """(P z)^2 of copies z (C, L, r): its sums over rows and its products with what follows.

    Returns sum_k w_k (P z_k)^2 (C, h, |V|) for h rows of weights w (C, h, L), and Q (P z_k)^2
    (C, L, q) for readers Q (q, |V|). P (|V|, r) None means z itself; Q None gives an empty second
    result. The |V| wide arrays are of a few copies at a time and made again on the way back, so
    that they stay in a core's cache and memory does not grow with C * L * |V|.
    """

    @staticmethod
    def forward(ctx, z: Tensor, left: Tensor | None, weights: Tensor, readers: Tensor | None):
        ctx.save_for_backward(z, left, weights, readers)
        copies, length, _ = z.shape
        wide = z.shape[-1] if left is None else left.shape[0]
        summed = z.new_empty(copies, weights.shape[1], wide)
        read = z.new_empty(copies, length, 0 if readers is None else readers.shape[0])
        for part in _parts(z, wide):
            y = z[part] if left is None else z[part] @ left.T
            s = y * y
            torch.bmm(weights[part], s, out=summed[part])
            if readers is not None:
                torch.mm(s.flatten(0, 1), readers.T, out=read[part].flatten(0, 1))
        return summed, read

    @staticmethod
    @once_differentiable
    def backward(ctx, of_summed: Tensor, of_read: Tensor):
        z, left, weights, readers = ctx.saved_tensors
        wide = of_summed.shape[-1]
        of_z, of_weights = torch.empty_like(z), torch.empty_like(weights)
        of_left = None if left is None else torch.zeros_like(left)
        of_readers = None if readers is None else torch.zeros_like(readers)
        for part in _parts(z, wide):
            y = z[part] if left is None else z[part] @ left.T
            s = y * y
            if weights.shape[1] == 1:  # a product with one column, not with a matrix
                of_weights[part, 0] = (s @ of_summed[part, 0, :, None]).squeeze(-1)
                of_s = weights[part].mT * of_summed[part]
            else:
                of_weights[part] = of_summed[part] @ s.mT
                of_s = weights[part].mT @ of_summed[part]
            if readers is not None:
                given = of_read[part].flatten(0, 1)
                of_readers.addmm_(given.T, s.flatten(0, 1))
                of_s.flatten(0, 1).addmm_(given, readers)
            of_y = of_s.mul_(y)  # half of it: the factor 2 goes to the small results
            if left is None:
                of_z[part] = of_y
            else:
                flat = of_y.flatten(0, 1)
                of_left.addmm_(flat.T, z[part].flatten(0, 1))
                torch.mm(flat, left, out=of_z[part].flatten(0, 1))
        of_z.mul_(2)
        if left is not None:
            of_left.mul_(2)
        return of_z, of_left, of_weights, of_readers


def squares(z: Tensor, left: Tensor | None, weights: Tensor, readers: Tensor | None):
    """`Squares` of z (..., L, r), weights (..., h, L), in the precision that autocast asks for."""
    device = z.device.type
    given = (z, left, weights, readers)
    if torch.is_autocast_enabled(device):
        kind = torch.get_autocast_dtype(device)
        given = tuple(None if part is None else part.to(kind) for part in given)
    z, left, weights, readers = given
    with torch.autocast(device, enabled=False):
        summed, read = Squares.apply(
            z.flatten(0, -3), left, weights.reshape(-1, *weights.shape[-2:]), readers
        )
    return summed.unflatten(0, z.shape[:-2]), read.unflatten(0, z.shape[:-2])


def _parts(z: Tensor, wide: int) -> list[slice]:
    """Slices of the copies of z (C, L, r) whose |V| wide arrays stay within bounds."""
    size = max(1, (CACHED if z.device.type == "cpu" else BLOCK) // (z.shape[1] * wide))
    return [slice(start, start + size) for start in range(0, len(z), size)]
