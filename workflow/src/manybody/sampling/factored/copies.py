"""The parameters of an exact factored model, and its masked copies, made explicitly.

The caches of the fast forms start from them. From five layers on, or with a rank near |V|, what a
token changes (`any_depth`) costs more than the copies themselves, a few at a time so that their
sums of squares stay in a processor's cache, in the model's own precision: `ExplicitChains`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from manybody.models.factored.network import Factored
from manybody.sampling.footprint import Sizes
from manybody.sampling.masked import MaskedChains

BATCH = 2**20
"""Bytes of one array of copies at a time: as much as stays in the cache of a processor."""


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


@torch.no_grad()
def all_copies(parameters: Parameters, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs of the squared layers 2, 3, ..., u (layers, C, L copies, L positions, d), and the
    features (C, L, d) of every copy's masked position."""
    count, length = tokens.shape
    width = parameters.right[0].shape[1]
    squares = max(parameters.layers - 2, 0)
    inputs = parameters.left[0].new_empty(squares, count, length, length, width)
    features = parameters.left[0].new_empty(count, length, width)
    copies = torch.arange(count * length, device=tokens.device)
    for some in copies.split(copies_at_once(parameters)):
        chains, masked = some // length, some % length
        batch, features[chains, masked] = _copies(parameters, tokens[chains], masked)
        for kept, u in zip(inputs, batch, strict=True):
            kept[chains, masked] = u
    return inputs, features


def copies_at_once(parameters: Parameters) -> int:
    each = parameters.left[0].element_size() * parameters.length * parameters.vocabulary
    return max(1, BATCH // each)


@torch.no_grad()
def _copies(parameters: Parameters, tokens: Tensor, masked: Tensor) -> tuple[list[Tensor], Tensor]:
    last, rows = parameters.layers - 1, torch.arange(len(tokens), device=tokens.device)
    x = torch.nn.functional.one_hot(tokens, parameters.vocabulary).to(parameters.left[0].dtype)
    x[rows, masked] = 0.0
    read = parameters.right[0][tokens]
    read[rows, masked] = 0.0
    inputs = []
    for layer in range(last):
        u = parameters.mixing[layer] @ (parameters.project(layer, x) if layer else read)
        x += (u @ parameters.left[layer].T).square_()
        inputs.append(u)
    gathered = (parameters.mixing[last][masked][:, None] @ x).squeeze(1)
    return inputs[1:], parameters.project(last, gathered)


class ExplicitChains(MaskedChains):
    """C chains under either energy; see `backends.Chains`."""

    def __init__(self, model: Factored, tokens: Tensor, energy: str, gauge: str):
        self.parameters = read(model, "none", model.left[0].dtype)
        super().__init__(model, tokens, energy, gauge)

    def _some_copies(self, tokens: Tensor, positions: Tensor) -> Tensor:
        rows = torch.arange(len(tokens), device=tokens.device).repeat_interleave(positions.shape[1])
        size = copies_at_once(self.parameters)
        pieces = zip(rows.split(size), positions.flatten().split(size), strict=True)
        found = [_copies(self.parameters, tokens[row], masked)[1] for row, masked in pieces]
        return torch.cat(found)
