"""Attention of short sequences, and of one query a sequence, by products of whole matrices.

N sequences, L rows, `heads` heads of c channels, d = heads c channels in all.
"""

import torch
from torch import Tensor
from torch.nn import functional

SHORT = 32  # rows up to which, on a CPU, these products beat torch's fused kernel


def attend(
    query: Tensor, key: Tensor, value: Tensor, scale: float, causal: bool = False, window: int = 0
) -> Tensor:
    """Attention output (N, heads, L, c) of query, key, value (N, heads, L, c).

    causal: a row sees itself and those before it, in all at most `window` rows if that is not 0.
    The softmax runs along the first axis of k q^T, whose columns torch takes side by side.
    """
    *outer, length, _ = query.shape
    if causal and 0 < window < length:
        seen = torch.ones(length, length, dtype=torch.bool, device=query.device)
        seen = seen.tril().triu(1 - window)
        return functional.scaled_dot_product_attention(query, key, value, seen, scale=scale)
    if query.is_cuda or length > SHORT:
        return functional.scaled_dot_product_attention(
            query, key, value, is_causal=causal, scale=scale
        )
    query, key, value = [part.flatten(0, 1) for part in (query, key, value)]
    hidden = query.new_full((length, length), -torch.inf if causal else 0.0).tril(-1)
    shares = torch.baddbmm(hidden, key, query.mT, alpha=scale).softmax(1)
    return torch.bmm(shares.mT, value).unflatten(0, outer)


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
