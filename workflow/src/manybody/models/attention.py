"""Attention of short sequences in compiled loops, and of one query a sequence by whole matrices.

N sequences, L rows, `heads` heads of c channels, d = heads c channels in all.
"""

from functools import cache
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from manybody.data.vector_loops import LANES
from manybody.io.compiled import each
from manybody.models import attention_loops

SHORT = 32  # rows up to which, on a CPU, the loops beat torch's fused kernel


def attend(mixed: Tensor, heads: int, scale: float, causal=False, window: int = 0) -> Tensor:
    """Attention output (N, L, d) of queries, keys and values side by side, mixed (N, L, 3 d).

    causal: a row sees itself and those before it, in all at most `window` rows if that is not 0.
    """
    length, parts = mixed.shape[1], mixed.unflatten(-1, (3, heads, -1))
    window = window if causal and window < length else 0
    if (
        mixed.device.type == "cpu"
        and length <= SHORT
        and parts.shape[-1] % LANES == 0
        and mixed.dtype in (torch.float32, torch.float64)
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
        and torch.backends.cuda.flash_sdp_enabled()  # on any device; not where operations count
    ):
        return _Attention.apply(parts.flatten(2, 3), scale, causal, window).flatten(2)
    query, key, value = parts.permute(2, 0, 3, 1, 4).unbind()
    seen = _seen(length, causal, window).to(mixed.device) if window else None
    out = functional.scaled_dot_product_attention(
        query, key, value, seen, is_causal=causal and not window, scale=scale
    )
    return out.transpose(1, 2).flatten(2)


def _seen(length: int, causal: bool, window: int) -> Tensor:
    """Whether row i sees row j: (L, L), indexed [i, j]."""
    seen = torch.ones(length, length, dtype=torch.bool)
    return seen.tril().triu(1 - window if window else -length) if causal else seen


@cache
def _hidden(length: int, causal: bool, window: int, kind: type) -> np.ndarray:
    """-inf where row j is hidden from row i, else 0: (L, L up to whole lanes), indexed [j, i]."""
    hidden = np.zeros((length, length + -length % LANES), kind)
    hidden[:, :length][~_seen(length, causal, window).T.numpy()] = -np.inf
    return hidden


class _Attention(torch.autograd.Function):
    """Attention of (N, L, 3 heads, c) by `attention_loops`: (N, L, heads, c), c whole lanes."""

    @staticmethod
    def forward(ctx, mixed: Tensor, scale: float, causal: bool, window: int):
        mixed = mixed.detach().contiguous().numpy()
        count, length, parts, channels = mixed.shape
        hidden = _hidden(length, causal, window, mixed.dtype.type)
        shares = np.empty((count, parts // 3, *hidden.shape), mixed.dtype)
        seen = np.empty((count, length, parts // 3, channels), mixed.dtype)
        ctx.given = mixed, shares, mixed.dtype.type(scale)
        _run(attention_loops.forward, *ctx.given, seen, hidden)
        return torch.from_numpy(seen)

    @staticmethod
    @once_differentiable
    def backward(ctx, of_seen: Tensor):
        of_mixed = np.empty_like(ctx.given[0])
        _run(attention_loops.backward, *ctx.given, of_seen.contiguous().numpy(), of_mixed)
        return torch.from_numpy(of_mixed), None, None, None


def _run(loop, mixed: np.ndarray, shares: np.ndarray, scale, seen: np.ndarray, last: np.ndarray):
    """`loop` of all sequences by torch's threads, each of which has work space of its own."""

    def part(ends):
        turned, square = (np.zeros((n, shares.shape[-1]), mixed.dtype) for n in mixed.shape[3:0:-2])
        arrays = mixed, shares, seen, last, turned, square
        loop(*ends, scale, *[(x.reshape(*x.shape[:-1], -1, LANES), x) for x in arrays])

    threads = max(1, min(torch.get_num_threads(), len(mixed)))
    each(threads, part, pairwise(len(mixed) * part // threads for part in range(threads + 1)))


def attend_copies(mixed: Tensor, length: int, heads: int, scale: float) -> Tensor:
    """Attention output (B L, L, d) of the L copies of each of B sequences, the p-th masked at p.

    mixed (B L + L, 3 d): queries, keys and values of the sequences, then those of the mask symbol
    at L places. Copies of a sequence share scores, but for the masked row and column, and values.
    """
    parts = mixed.unflatten(0, (-1, length)).unflatten(-1, (3, heads, -1)).permute(2, 0, 3, 1, 4)
    (query, key, value), (mask_query, mask_key, mask_value) = parts[:, :-1], parts[:, -1]
    # Scores of row j for row i of copy p: (B, heads, p, i, j), but for j = p, then for i = p.
    scores = (query * scale @ key.mT)[:, :, None].repeat(1, 1, length, 1, 1)
    scores.diagonal(dim1=2, dim2=4).copy_(query * scale @ mask_key.mT)
    own = scores.diagonal(dim1=2, dim2=3)
    own.copy_(key @ mask_query.mT * scale)
    own.diagonal(dim1=2, dim2=3).copy_((mask_key * mask_query).sum(-1) * scale)
    shares = scores.softmax(-1)
    seen = (shares.flatten(2, 3) @ value).unflatten(2, (length, length))
    of_masks = shares.diagonal(dim1=2, dim2=4).mT[..., None]
    seen = torch.addcmul(seen, of_masks, (mask_value - value)[:, :, :, None])
    return seen.permute(0, 2, 3, 1, 4).flatten(0, 1).flatten(2)


def attend_once(
    query: Tensor,
    rows: Tensor,
    key: tuple[Tensor, Tensor],
    value: tuple[Tensor, Tensor],
    heads: int,
) -> Tensor:
    """Attention output (N, d) of one query (N, d) a sequence, on all of its rows (N, L, d).

    Keys are K x_j + b and values V x_j + c: `key` is K (d, d), b (d,), `value` V, c. In each head
    q.k_j = (K^T q).x_j + q.b, and sum_j p_j (V x_j + c) = V sum_j p_j x_j + c: no key and no value
    is computed, so that a row takes 2 heads d multiplications instead of 2 d^2. Shares do not
    depend on q.b, which keeps b in the graph: several processes wait for every gradient.
    """
    split = query.unflatten(-1, (heads, -1))
    asked = torch.bmm(split.transpose(0, 1), key[0].unflatten(0, (heads, -1))).transpose(0, 1)
    shift = (split * key[1].view(heads, -1)).sum(-1, keepdim=True)
    scale = split.shape[-1] ** -0.5
    scores = torch.baddbmm(shift, asked, rows.mT, beta=scale, alpha=scale)
    seen = torch.bmm(scores.softmax(-1), rows).transpose(0, 1)
    seen = torch.bmm(seen, value[0].unflatten(0, (heads, -1)).mT)
    return seen.transpose(0, 1).flatten(1) + value[1]
