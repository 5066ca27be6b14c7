"""Attention between the factored limit and input-dependent maps (potts, eq. 2)."""

from functools import partial

from manybody.models import description


class About(description.About):
    network = "Interpolated"
    display_name = "interpolated attention"
    maps = "averaged"

    @property
    def label(self) -> str:
        return f"{self.display_name}, a = {self.description['a']:g}"

    def equation(self, tensor):
        a = self.description["a"]
        names = ("scores", "values", "mask") if a else ("scores", "values")
        scores, values, *mask = (tensor(name).astype("float64") for name in names)
        return partial(logits, a, scores, values, mask[0] if a else None)


def logits(a, scores, values, mask, tokens):
    """Eq. 2 of potts as it is written: logits (N, L, |V|) of every site of tokens (N, L), it alone
    masked.

    Arrays of numpy. scores: W (d, d). values: V (|V|, d). mask: (d,), what stands for the masked
    token's one-hot; None at a = 0, where that is zero. Position and token share the first entries
    of R^d.
    """
    import numpy as np

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
