"""Factored attention with x^2 between the layers (simplicity, eq. 3).

One layer maps x to y_i = sum_j A_ij V x_j, where A (L x L) and V (|V| x |V|) are trained and do
not depend on the input. Layers 1..n-1 are squared and added to their input; the last is linear, so
the logits are polynomials of degree 2^(n-1) in the context's one-hots and couple at most
2^(n-1) + 1 tokens.
"""

import math

import torch
from torch import Tensor, nn

from manybody.models.base import Model


class Factored(Model):
    """n layers of factored attention; `exact` bounds the order, `paper` adds LayerNorm.

    `attention[l]` is A^(l+1), (L, L). Values are V = P Q with `left[l]` = P (|V|, r) and
    `right[l]` = Q (r, |V|); with `rank=None` they are full: `left[l]` = V (|V|, |V|), `right` is
    empty. `bias` is (|V|,) or None. A masked position is the zero vector.
    """

    def __init__(
        self,
        vocabulary: int,
        length: int,
        layers: int,
        rank: int | None = None,
        bias: bool = True,
        variant: str = "exact",
    ):
        super().__init__(
            "factored", vocabulary, length, layers=layers, rank=rank, bias=bias, variant=variant
        )
        self.layers, self.rank, self.variant = layers, rank, variant
        inner = vocabulary if rank is None else rank
        self.attention = nn.ParameterList(
            torch.randn(length, length) / math.sqrt(length) for _ in range(layers)
        )
        scales = [0.12] * (layers - 1) + [0.1]
        self.left = nn.ParameterList(
            torch.randn(vocabulary, inner) * scale / math.sqrt(inner) for scale in scales
        )
        self.right = nn.ParameterList(
            torch.randn(rank, vocabulary) for _ in range(layers) if rank is not None
        )
        self.bias = nn.Parameter(torch.zeros(vocabulary)) if bias else None
        self.norms = nn.ModuleList(
            nn.LayerNorm(vocabulary) for _ in range(layers - 1) if variant == "paper"
        )

    @property
    def order(self) -> int:
        return 2 ** (self.layers - 1) + 1

    def forward(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        x = nn.functional.one_hot(tokens, self.vocabulary).to(self.attention[0].dtype)
        if mask is not None:
            x = x.masked_fill(mask[..., None], 0.0)
        for layer in range(self.layers - 1):
            x = x + self._mix(layer, x).square()
            if self.variant == "paper":
                x = self.norms[layer](x)
        logits = self._mix(self.layers - 1, x)
        return logits if self.bias is None else logits + self.bias

    def _mix(self, layer: int, x: Tensor) -> Tensor:
        """A x V^T for x (..., L, |V|)."""
        if self.rank is not None:
            x = x @ self.right[layer].T
        return self.attention[layer] @ x @ self.left[layer].T
