"""The parameters of an exact factored model, and its masked copies, made explicitly.

The caches of the fast forms start from them. From five layers on, or with a rank near |V|, what a
token changes (`any_depth`) costs more than the copies themselves, in the model's own precision and
a few at a time, so that their squares stay in a processor's cache: `ExplicitChains`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from manybody.models.factored.network import Factored
from manybody.models.linear import linear
from manybody.sampling.footprint import Sizes
from manybody.sampling.masked import MaskedChains

# Bytes of one array of copies: as much as stays in the cache of a processor, or fills a GPU.
BATCH = {"cpu": 2**20, "cuda": 2**29}


@dataclass(frozen=True)
class Parameters(Sizes):
    """Weights in double precision, or what `read` was asked for; layers from 0, d is the rank,
    or |V| for full values.

    `mixing[l]` is A (L, L); `left[l]` is P (|V|, d); `right[l]` is Q^T (|V|, d): row s is what
    token s sends into layer l. For full values P = V and Q is the identity. `score_left` and
    `score_bias` give the scored logits: the last layer's own, or, with the gauge fixed, less their
    mean over tokens, which is the model of the centred P and bias. `precision` is the model's own.
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
        return x if self.full else linear(x, self.right[layer].T)

    def value_rows(self, layer: int) -> Tensor:
        """V^T (|V|, |V|): row b is V[:, b]."""
        if self.full:
            return self.left[layer].T.contiguous()
        return self.right[layer] @ self.left[layer].T

    def score_rows(self) -> Tensor:
        """The last layer's V (|V|, |V|) as it is scored: row a reads out logit a."""
        return self.score_left if self.full else self.score_left @ self.right[self.layers - 1].T

    def in_own_precision(self) -> "Parameters":
        """The same numbers in the precision of the model."""
        kept = {}
        for name in ("mixing", "left", "right"):
            kept[name] = [part.to(self.precision) for part in getattr(self, name)]
        for name in ("bias", "score_left", "score_bias"):
            kept[name] = getattr(self, name).to(self.precision)
        return replace(self, **kept)


@torch.no_grad()
def read(model: Factored, gauge: str, precision: torch.dtype = torch.float64) -> Parameters:
    """The parameters of `model` with the raw score in `gauge` ("none" or "mean")."""
    mixing = [model.mixing(layer).detach().to(precision) for layer in range(model.layers)]
    left = [p.detach().to(precision) for p in model.left]
    if model.rank is None:
        right = [torch.eye(model.vocabulary, dtype=precision, device=left[0].device)] * len(left)
    else:
        right = [q.detach().to(precision).T.contiguous() for q in model.right]
    bias = left[0].new_zeros(model.vocabulary)
    if model.bias is not None:
        bias = model.bias.detach().to(precision)
    score_left, score_bias = left[-1], bias
    if gauge == "mean":
        score_left = score_left - score_left.mean(0)
        score_bias = score_bias - score_bias.mean()
    sizes = vars(Sizes.of(model.description)).values()
    own = model.left[0].dtype
    return Parameters(*sizes, mixing, left, right, bias, score_left, score_bias, own)


@torch.no_grad()
def all_copies(parameters: Parameters, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Inputs of the squared layers 2, 3, ..., u (layers, C, L copies, L positions, d), and the
    features (C, L, d) of every copy's masked position."""
    count, length = tokens.shape
    squares, width = max(parameters.layers - 2, 0), parameters.rank
    inputs = parameters.left[0].new_empty(squares, count, length, length, width)
    features = parameters.left[0].new_empty(count, length, width)
    chains = torch.arange(count, device=tokens.device).repeat_interleave(length)
    masked = torch.arange(length, device=tokens.device).repeat(count)
    for some, batch in _copies(parameters, tokens, chains, masked):
        for kept, found in zip((*inputs, features), batch, strict=True):
            kept[chains[some], masked[some]] = found
    return inputs, features


@torch.no_grad()
def _copies(
    parameters: Parameters, tokens: Tensor, chains: Tensor, masked: Tensor
) -> Iterator[tuple[slice, list[Tensor]]]:
    """The copies of tokens[chains] (m, L), chains ascending, that mask `masked` (m,), some at a
    time: which, and what the squared layers above the first and, last, the masked position read."""
    last, first, sent = parameters.layers - 1, parameters.mixing[0], parameters.right[0]
    each = first.element_size() * parameters.length * parameters.vocabulary
    size = max(1, BATCH[first.device.type] // each)
    for start in range(0, len(chains), size):
        some = slice(start, start + size)
        rows, at = chains[some], masked[some]
        states, copies = tokens[rows], torch.arange(len(rows), device=tokens.device)
        ones = torch.ones_like(states, dtype=first.dtype)
        ones[copies, at] = 0.0
        if last:  # z_k = sum_j A1_kj G_j of the first layer, less the masked A1_ki G_i
            before = rows[0].item()
            z = linear(first @ sent[tokens[before : rows[-1].item() + 1]], parameters.left[0])
            own = linear(sent[states[copies, at]], parameters.left[0])
            x = z[rows - before].addcmul_(first.T[at][..., None], own[:, None], value=-1.0)
            x.square_()
        else:
            x = first.new_zeros(*states.shape, parameters.vocabulary)
        x.scatter_add_(2, states[..., None], ones[..., None])
        found = []
        for layer in range(1, last):
            found.append(parameters.mixing[layer] @ parameters.project(layer, x))
            y = linear(found[-1], parameters.left[layer])
            x.addcmul_(y, y)
        gathered = (parameters.mixing[last][at][:, None] @ x).squeeze(1)
        yield some, [*found, parameters.project(last, gathered)]


class ExplicitChains(MaskedChains):
    """C chains under either energy; see `backends.Chains`."""

    def __init__(self, model: Factored, tokens: Tensor, energy: str, gauge: str):
        self.parameters = read(model, "none", model.left[0].dtype)
        super().__init__(model, tokens, energy, gauge)

    def _some_copies(self, tokens: Tensor, positions: Tensor) -> Tensor:
        rows = torch.arange(len(tokens), device=tokens.device).repeat_interleave(positions.shape[1])
        pieces = _copies(self.parameters, tokens, rows, positions.flatten())
        return torch.cat([found[-1] for _, found in pieces])
