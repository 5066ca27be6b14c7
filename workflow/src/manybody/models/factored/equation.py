"""Eq. 4 of potts as it is written, in numpy and double precision."""

import numpy as np


def logits(attention: np.ndarray, values: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """sum_{j != k} A_kj V s_j (N, L, |V|) of tokens (N, L).

    attention: A (L, L), of which the diagonal is not looked at. values: V (|V|, |V|).
    """
    others = np.where(np.eye(len(attention), dtype=bool), 0.0, attention)
    return others @ values.T[tokens]
