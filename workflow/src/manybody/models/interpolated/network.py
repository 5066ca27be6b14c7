"""Attention between the factored limit and input-dependent maps (potts, eq. 2, section 2).

    logits_k = sum_j A_kj V (e_j + a p_j),   A_k. = softmax_j(u_k^T W u_j),   u_j = p_j + a e_j

with p_j the one-hot of position j and e_j that of its token, both fixed. At a = 0 the map depends
on positions only and the values on tokens only: factored attention with softmax maps.

p and e are added, so both live in one space, as the embeddings of a transformer do: R^d with
d = max(L, |V|), the shorter one-hots padded with zeros (d = L = |V| in the paper). Every a then has
the same W (d, d) and V (|V|, d), and for a > 0 position j and token j share a direction. Side by
side in R^(L + |V|), every a would contain a = 0: the excess loss at a = 1 is 0.017, 0.048 here.

B sequences, L positions, N masked copies.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from manybody.models.base import Model


class Interpolated(Model):
    """Eq. 2 at one value of `a`, 0 or above: learnt are `scores` = W (d, d), `values` = V (|V|, d)
    and, for a > 0, `mask` (d,), the e of a masked token; at a = 0 that is zero, as in factored
    attention."""

    def __init__(self, vocabulary: int, length: int, a: float):
        super().__init__("interpolated", vocabulary, length, a=a)
        self.a = a
        self.size = max(vocabulary, length)
        self.scores = nn.Parameter(torch.randn(self.size, self.size) / math.sqrt(length))
        self.values = nn.Parameter(0.1 * torch.randn(vocabulary, self.size) / math.sqrt(vocabulary))
        self.mask = nn.Parameter(torch.zeros(self.size)) if a else None

    @property
    def activation_size(self) -> int:
        return self.size

    def features(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """Equation 2 as it is written, and any number of masks."""
        maps, sent = self._maps(tokens, mask)
        return maps @ sent

    def masked_features(self, tokens: Tensor, rows: Tensor, positions: Tensor) -> Tensor:
        """sum_j A_kj (e_j + a p_j) (N, d) of the masked row k of each copy."""
        self.check_tokens(tokens)
        return self._features(tokens[rows], positions[:, None])[:, 0]

    def all_masked_features(self, tokens: Tensor) -> Tensor:
        self.check_tokens(tokens)
        return self._features(tokens, torch.arange(self.length, device=tokens.device).expand(1, -1))

    @property
    def readout(self) -> tuple[Tensor, None]:
        return self.values, None

    def parameter_maps(self) -> list[tuple[str, int, Tensor]]:
        """V (|V|, |V|) of the tokens alone."""
        return [("V", 1, self.values[:, : self.vocabulary])]

    @torch.no_grad()
    def attention_maps(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        return self._maps(tokens, mask)[0][None]

    def _maps(self, tokens: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        """A (B, L, L), and what each position sends, e + a p (B, L, d)."""
        self.check_tokens(tokens)
        colours = functional.one_hot(tokens, self.size).to(self.scores.dtype)
        if mask is not None:
            colours = torch.where(mask[..., None], 0.0 if self.mask is None else self.mask, colours)
        places = torch.eye(self.length, self.size).to(colours)
        mixed = places + self.a * colours
        return (mixed @ self.scores @ mixed.mT).softmax(-1), colours + self.a * places

    def _features(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Features (B, m, d) of copies of tokens (B, L) that mask positions (B or 1, m): a one-hot
        picks an entry of W u_k instead of being multiplied."""
        a, length = self.a, self.length
        masked = positions[..., None] == torch.arange(length, device=tokens.device)
        asked = torch.eye(length, self.size, dtype=self.scores.dtype, device=tokens.device)
        if self.mask is not None:
            asked = asked + a * self.mask
        keys = asked @ self.scores  # row k: u_k^T W where k is masked
        rows = functional.embedding(positions, keys)  # (B or 1, m, d)
        scores, index = rows[..., :length], tokens[:, None].expand(-1, positions.shape[1], -1)
        if a:
            columns = rows.expand(len(tokens), -1, -1).gather(-1, index)
            scores = scores + a * torch.where(masked, (rows @ self.mask)[..., None], columns)
        maps = scores.softmax(-1).expand(len(tokens), -1, -1)
        weights = maps.masked_fill(masked, 0.0)
        features = weights.new_zeros(*weights.shape[:2], self.size)
        features = features.scatter_add(-1, index, weights)
        if a:
            own = maps.gather(-1, positions.expand(len(tokens), -1)[..., None])
            sent = functional.pad(a * maps, (0, self.size - length))
            features = features + sent + own * self.mask
        return features
