"""The parameters of an exact factored model as the incremental forms read them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from manybody.models.factored.network import Factored
from manybody.sampling.footprint import Sizes


@dataclass(frozen=True)
class Parameters(Sizes):
    """Copies in double precision, or what `read` was asked for; layers count from 0, d is the rank,
    or |V| for full values.

    `mixing[l]` is A (L, L); `left[l]` is P (|V|, d); `right[l]` is Q^T (|V|, d): row s is what
    token s sends into layer l. For full values P = V and Q is the identity (`full`).
    `precision` is the model's own.
    `score_left` and `score_bias` give the scored logits: the last layer's own, or, with the gauge
    fixed, less their mean over tokens, which is the model of the centred P and bias.
    """

    mixing: list[Tensor]
    left: list[Tensor]
    right: list[Tensor]
    bias: Tensor
    score_left: Tensor
    score_bias: Tensor
    precision: torch.dtype

    def project(self, layer: int, x: Tensor) -> Tensor:
        """Q x (..., d) of x (..., |V|)."""
        return x if self.full else x @ self.right[layer]

    def value_rows(self, layer: int) -> Tensor:
        """V^T (|V|, |V|): row b is V[:, b]."""
        if self.full:
            return self.left[layer].T.contiguous()
        return self.right[layer] @ self.left[layer].T

    def score_rows(self) -> Tensor:
        """The last layer's V (|V|, |V|) as it is scored: row a reads out logit a."""
        last = self.layers - 1
        return self.score_left if self.full else self.score_left @ self.right[last].T


@torch.no_grad()
def read(model: Factored, gauge: str, precision: torch.dtype = torch.float64) -> Parameters:
    """The parameters of `model` with the raw score in `gauge` ("none" or "mean")."""
    mixing = [model.mixing(layer).detach().to(precision) for layer in range(model.layers)]
    left = [p.detach().to(precision) for p in model.left]
    if model.rank is None:
        unit = torch.eye(model.vocabulary, dtype=precision, device=left[0].device)
        right = [unit] * len(left)
    else:
        right = [q.detach().to(precision).T.contiguous() for q in model.right]
    bias = left[0].new_zeros(model.vocabulary) if model.bias is None else model.bias.to(precision)
    score_left, score_bias = left[-1], bias
    if gauge == "mean":
        score_left = score_left - score_left.mean(0)
        score_bias = score_bias - score_bias.mean()
    return Parameters(
        **vars(Sizes.of(model.description)),
        mixing=mixing,
        left=left,
        right=right,
        bias=bias.detach(),
        score_left=score_left,
        score_bias=score_bias.detach(),
        precision=model.left[0].dtype,
    )
