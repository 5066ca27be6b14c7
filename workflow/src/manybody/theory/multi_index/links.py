"""Deep attention as a function of its indices Z = W X / sqrt D
(docs/science/multi-index.md, section 1).

X (D, T) holds the tokens of a sample. A layer with queries q and keys k, weights (r, D) applied to
its input, does X -> X [c I + A]^T with A = softmax of the rows of q^T k, a row for each token that
attends. Every X_l is X B_l^T, so that the T x T mixing matrices B_l carry all that happens:

    B_0 = I,   B_l = [c I + A(B_{l-1} q_l^T k_l B_{l-1}^T)] B_{l-1},
    y = A(B_{L-1} q_L^T k_L B_{L-1}^T),

with the indices q_l = Q_l X / sqrt D and k_l = K_l X / sqrt D (r, T). The last layer has neither
skip nor values. Tied weights are q = k = z.

Indices have the shape (..., L, r, T): any number of samples, layers, ranks and tokens. The
attention is `softmax`, or `linear`: the scores themselves.
"""

import numpy as np


def attention(scores: np.ndarray, kind: str = "softmax") -> np.ndarray:
    """Scores (..., T, T) to weights; softmax over the last axis, the attended token."""
    if kind == "linear":
        return scores
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def mixing(
    queries: np.ndarray,
    keys: np.ndarray,
    skip: float,
    share: float = 1.0,
    kind: str = "softmax",
) -> np.ndarray:
    """B_L (..., T, T) after all L layers of the indices, each c I + share * A.

    It is also the answer of a sequence-to-sequence model, X_L = X B_L^T: of T << D independent
    tokens X, known to the learner, X_L tells B_L and nothing else.
    """
    queries, keys = _indices(queries, keys)
    tokens = queries.shape[-1]
    mixed = np.broadcast_to(np.eye(tokens), (*queries.shape[:-3], tokens, tokens))
    for layer in range(queries.shape[-3]):
        weights = attention(_scores(mixed, queries, keys, layer), kind)
        mixed = skip * mixed + share * (weights @ mixed)
    return mixed


def untied(
    queries: np.ndarray,
    keys: np.ndarray,
    skip: float,
    share: float = 1.0,
    kind: str = "softmax",
) -> np.ndarray:
    """y (..., T, T), the attention of the last layer, from queries and keys (..., L, r, T)."""
    queries, keys = _indices(queries, keys)
    before = mixing(queries[..., :-1, :, :], keys[..., :-1, :, :], skip, share, kind)
    return attention(_scores(before, queries, keys, -1), kind)


def tied(z: np.ndarray, skip: float, share: float = 1.0, kind: str = "softmax") -> np.ndarray:
    """y (..., T, T) from the indices z (..., L, r, T) of weights that are queries and keys.

    share = 1/c with skip = 1 is the model whose layers are divided by c (see `large_depth`).
    """
    return untied(z, z, skip, share, kind)


def multi_head(
    queries: np.ndarray,
    keys: np.ndarray,
    skip: float,
    readouts: np.ndarray,
    kind: str = "softmax",
) -> np.ndarray:
    """y (..., T, T) = sum over heads of readouts[h] times the last attention of head h.

    queries, keys: (..., H, L, r, T); the same array twice is the tied model. A head acts on its
    own block of D / H features (its rows of W are zero outside), so that it keeps a mixing matrix
    of its own, and heads meet only in the trainable `readouts` (H,). That these stand behind the
    last layer, one number a head, is inferred: the specification leaves their place open.
    """
    queries, keys = _indices(queries, keys)
    readouts = np.asarray(readouts, dtype=float)
    return np.tensordot(untied(queries, keys, skip, kind=kind), readouts, ([-3], [0]))


def large_depth(z: np.ndarray, skip: float) -> np.ndarray:
    """y (..., T, T) to first order in 1/c, of the tied model whose layers are divided by c.

    The last layer's z^T z, and its product with a committee S = sum of softmax(z_l^T z_l) of the
    other layers, which are interchangeable: y = softmax of z^T z + (S z^T z + z^T z S^T) / c. The
    scores are off by O((L / c)^2). z: (..., L, r, T).
    """
    z, _ = _indices(z, z)
    scores = np.swapaxes(z, -1, -2) @ z
    last = scores[..., -1, :, :]
    mixed = attention(scores[..., :-1, :, :]).sum(axis=-3) @ last
    return attention(last + (mixed + np.swapaxes(mixed, -1, -2)) / skip)


def _scores(mixed, queries, keys, layer):
    """B q^T k B^T (..., T, T) of one layer."""
    q, k = queries[..., layer, :, :], keys[..., layer, :, :]
    return np.swapaxes(q @ np.swapaxes(mixed, -1, -2), -1, -2) @ k @ np.swapaxes(mixed, -1, -2)


def _indices(queries, keys):
    queries, keys = np.asarray(queries, dtype=float), np.asarray(keys, dtype=float)
    if queries.ndim < 3 or queries.shape != keys.shape:
        raise ValueError(
            f"indices: found the shapes {queries.shape} and {keys.shape}, expected two equal "
            f"shapes (..., L, r, T)"
        )
    return queries, keys
