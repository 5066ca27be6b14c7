"""The sampler that the fast ones are measured against, and the definitions they are tested with.

`NaiveSampler` is the sampler a careful person writes first: all chains in one batch, one forward
of explicitly masked copies a proposal, the cancelled ratio, the scores of the current state kept,
b = a skipped, one output row scored a copy. It knows nothing of what copies share.
"""

from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
import torch
from torch import Tensor

from manybody.models.base import Model
from manybody.models.bert.network import Bert
from manybody.sampling.draws import propose


def energy(model: Model, tokens: Tensor, kind: str = "raw", gauge: str = "none") -> Tensor:
    """E (C,) float64 of tokens (C, L) straight from the definition, by the model's `forward`."""
    places = [torch.full_like(tokens[:, 0], position) for position in range(model.length)]
    logits = torch.stack([_masked_logits(model, tokens, at) for at in places], dim=1)
    return -_scored(logits, tokens, kind, gauge).sum(dim=1)


def long_log_ratio(
    model: Model,
    tokens: Tensor,
    positions: Tensor,
    proposals: Tensor,
    kind: str = "raw",
    gauge: str = "none",
) -> Tensor:
    """log alpha (C,) with nothing cancelled: E(s) - E(s') + log q(s|s') - log q(s'|s)."""
    chains = torch.arange(len(tokens), device=tokens.device)
    changed = tokens.clone()
    changed[chains, positions] = proposals
    back = _masked_logits(model, changed, positions).log_softmax(dim=1)
    forth = _masked_logits(model, tokens, positions).log_softmax(dim=1)
    change = energy(model, tokens, kind, gauge) - energy(model, changed, kind, gauge)
    return change + back[chains, tokens[chains, positions]] - forth[chains, proposals]


def reference_energies(model: Model, law: np.ndarray) -> np.ndarray:
    """E*_mu (|V|^L,) of all states, first position slowest, by every subset and replacement.

    Eq. 2 of controls: a subset K of the other L - 1 positions weighs 1 / (L C(L - 1, |K|)).
    """
    length, vocabulary = model.length, model.vocabulary
    states = np.indices((vocabulary,) * length).reshape(length, -1).T

    def mean(values: np.ndarray, axis: int) -> np.ndarray:
        return np.expand_dims(np.tensordot(values, law, (axis, 0)), axis)

    total = np.zeros((vocabulary,) * length)
    for i in range(length):
        at = torch.full((len(states),), i)
        logits = _masked_logits(model, torch.from_numpy(states), at).numpy()
        own = np.take(logits.reshape(*total.shape, vocabulary), 0, axis=i)
        own = np.moveaxis(own, -1, i)
        own = own - mean(own, i)
        others = [axis for axis in range(length) if axis != i]
        for kept in range(length):
            for chosen in combinations(others, kept):
                part = own
                for axis in set(others) - set(chosen):
                    part = mean(part, axis)
                total -= part / (length * comb(length - 1, kept))
    return total.reshape(-1)


def _scored(logits: Tensor, own: Tensor, kind: str, gauge: str) -> Tensor:
    """Scores (...,) float64 of tokens `own` (...,) by logits (..., |V|)."""
    if kind == "norm":
        logits = logits.log_softmax(dim=-1)
    elif gauge == "mean":
        logits = logits - logits.mean(dim=-1, keepdim=True)
    return logits.gather(-1, own[..., None])[..., 0].double()


def _masked_logits(model: Model, tokens: Tensor, positions: Tensor) -> Tensor:
    """Logits (C, |V|), float64, at `positions` (C,) of tokens (C, L), each masked there."""
    places = torch.arange(model.length, device=tokens.device)
    logits = model(tokens, places == positions[:, None])
    return logits[torch.arange(len(tokens), device=tokens.device), positions].double()


class NaiveSampler:
    """C chains at `tokens` (C, L) that all move at the same position."""

    def __init__(self, model: Model, tokens: Tensor, kind: str = "raw", gauge: str = "none"):
        self.model, self.tokens, self.how = model, tokens.clone(), (kind, gauge)
        self.places = torch.arange(model.length, device=tokens.device)
        every = self.places.expand(len(tokens), -1)
        self.scores = self._scores(self.tokens, every)

    def energy(self) -> Tensor:
        """E (C,) from the kept scores."""
        return -self.scores.sum(dim=1)

    def step(self, position: int, uniforms: np.ndarray) -> None:
        """One proposal of every chain at `position` from its two uniform numbers (C, 2)."""
        at = torch.full_like(self.tokens[:, :1], position)
        logits = self.model.head(_features(self.model, self.tokens, at))[:, 0]
        current = self.tokens[:, position].cpu().numpy()
        drawn, _ = propose(logits, uniforms[:, 0], current)
        real = np.flatnonzero(drawn != current)
        if not real.size:
            return
        moving = torch.from_numpy(real).to(logits.device)
        proposals = torch.from_numpy(drawn[real]).to(logits.device)
        changed = self.tokens[moving]
        changed[:, position] = proposals
        others = self.places[self.places != position]
        scores = self._scores(changed, others.expand(len(moving), -1))
        ratios = (scores - self.scores[moving][:, others]).sum(dim=1)
        accepted = torch.from_numpy(np.log(uniforms[real, 1])).to(logits.device) < ratios
        taken = moving[accepted]
        self.tokens[taken] = changed[accepted]
        self.scores[taken[:, None], others] = scores[accepted]
        # The copy masked at `position` is the same as before, its token is not.
        self.scores[taken, position] = _scored(logits[taken], proposals[accepted], *self.how)

    def _scores(self, tokens: Tensor, positions: Tensor) -> Tensor:
        features = _features(self.model, tokens, positions)
        own = tokens.gather(1, positions)
        if self.how == ("raw", "none"):
            return self.model.head_rows(features, own).double()
        return _scored(self.model.head(features), own, *self.how)


def _features(model: Model, tokens: Tensor, positions: Tensor) -> Tensor:
    """Inputs of the head (n, m, d), of tokens (n, L) masked at positions (n, m), copy by copy."""
    count, masks = positions.shape
    copies = tokens.repeat_interleave(masks, dim=0)
    hidden = torch.arange(model.length, device=tokens.device) == positions.reshape(-1, 1)
    if isinstance(model, Bert):
        features = _bert_features(model, copies, hidden, positions.flatten())
    else:
        features = _factored_features(model, copies, hidden, positions.flatten())
    return features.view(count, masks, -1)


def _bert_features(model, copies: Tensor, hidden: Tensor, positions: Tensor) -> Tensor:
    """The library's own encoder on all rows of all copies, of which the masked rows are read."""
    output = _library(model)(copies.masked_fill(hidden, model.vocabulary)).last_hidden_state
    return output[torch.arange(len(copies), device=copies.device), positions]


@lru_cache(maxsize=1)
def _library(model):
    return model.as_transformers().roberta_prelayernorm.to(model.output.weight)


def _factored_features(model, copies: Tensor, hidden: Tensor, positions: Tensor) -> Tensor:
    """Layer by layer; the linear last layer mixes for the masked row alone. One head only."""
    if model.heads > 1:
        raise ValueError(f"the naive sampler reads one head, the model has {model.heads}")
    weights = model.mixing(0)
    x = torch.nn.functional.one_hot(copies, model.vocabulary).to(weights.dtype)
    x.masked_fill_(hidden[..., None], 0.0)
    for layer in range(model.layers - 1):
        mixed = x if model.rank is None else _values(model, layer, copies, hidden, x)
        mixed = (model.mixing(layer) @ mixed) @ model.left[layer].T
        x = x + mixed.square_()
        if model.variant == "paper":
            x = model.norms[layer](x)
    mixed = (model.mixing(-1)[positions][:, None] @ x)[:, 0]
    return mixed if model.rank is None else mixed @ model.right[-1].T


def _values(model, layer: int, copies: Tensor, hidden: Tensor, x: Tensor) -> Tensor:
    """Q x (n, L, r); the first layer's inputs are one-hot, so that Q x are columns of Q."""
    if layer:
        return x @ model.right[layer].T
    return model.right[0].T[copies].masked_fill_(hidden[..., None], 0.0)
