"""The squares between layers of factored attention, whose |V| wide arrays are never kept."""

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

# Numbers in the |V| wide arrays: a core's cache holds them, or on other devices they fill it.
CACHED = 2**17
BLOCK = 2**25


class Squares(torch.autograd.Function):
    """(P z)^2 of copies z (C, L, r): its sums over rows and its products with what follows.

    Returns sum_k w_k (P z_k)^2 (C, h, |V|) for h rows of weights w (C, h, L), and Q (P z_k)^2
    (C, L, q) for readers Q (q, |V|). P (|V|, r) None means z itself; Q None gives an empty second
    result.
    The |V| wide arrays live for a few copies at a time and are made again on the way back, so
    memory does not grow with C * L * |V| and the arrays stay in a core's cache.
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
