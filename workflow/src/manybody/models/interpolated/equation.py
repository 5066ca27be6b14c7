"""Eq. 2 of potts as it is written, in numpy and double precision."""

import numpy as np


def logits(
    a: float, scores: np.ndarray, values: np.ndarray, mask: np.ndarray | None, tokens: np.ndarray
) -> np.ndarray:
    """Logits (N, L, |V|) of every site of tokens (N, L), it alone masked.

    scores: W (d, d). values: V (|V|, d). mask: (d,), what stands for the masked token's one-hot;
    None at a = 0, where that is zero. Position and token share the first entries of R^d.
    """
    length = tokens.shape[1]
    hidden = np.zeros(len(scores)) if mask is None else mask
    found = np.empty((*tokens.shape, len(values)))
    for k in range(length):
        asked = a * hidden
        asked[k] += 1.0
        keys = asked @ scores  # u_k^T W
        match = keys[:length] + a * keys[tokens]
        match[:, k] = keys[k] + a * (keys @ hidden)
        match -= match.max(axis=-1, keepdims=True)
        maps = np.exp(match - np.log(np.exp(match).sum(axis=-1, keepdims=True)))
        sent = values.T[tokens]  # V e_j
        sent[:, k] = values @ hidden
        found[:, k] = np.einsum("nj,njc->nc", maps, sent) + a * maps @ values[:, :length].T
    return found
