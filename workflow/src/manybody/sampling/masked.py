"""Chains of any masked model, its masked copies computed one proposal at a time.

The features (what the head reads) of every masked copy of the current state are kept, with the
score of its token. A proposal at i computes the copies j != i of the new state, as it does not
change copy i. So the next proposal distribution costs one product with the head alone.

Scores: "raw" reads one output row a copy; the gauge's mean over the |V| logits is one more row,
the mean row of the linear head; "norm" needs all |V| rows of every copy, |V| d products a copy.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from manybody.io.devices import tensor_cores
from manybody.models.base import Model
from manybody.sampling.footprint import COPIES

PROBES = 16  # moves on which the error of coarse ratios is measured
SIGMAS = 8.0  # the margin in units of that error


class MaskedChains:
    """C chains at `tokens` (C, L); see `backends.Chains`. Caches take C L (d + 1) numbers.

    The model's `special` tokens stay where they are, are not drawn and add nothing to the energy.
    """

    full_batches = True
    ahead = 4  # P(more proposals in a row equal the current token) is about 1/16

    def __init__(self, model: Model, tokens: Tensor, energy: str, gauge: str):
        self.model, self.tokens = model, tokens.clone()
        self.norm = energy == "norm"
        self.mean_row = None if self.norm or gauge == "none" else _mean_row(model)
        self.positions = torch.arange(model.length, device=tokens.device)
        self.special = torch.tensor(model.special, dtype=torch.long, device=tokens.device)
        self.work = COPIES.get(tokens.device.type, COPIES["cpu"])
        self.heads_at_once = max(1, self.work // (24 * model.vocabulary))
        self.rebuild()

    def rebuild(self) -> None:
        every = self.positions.expand(len(self.tokens), -1)
        self.features, self.scores = self._copies(self.tokens, every)

    def logits(self, chains: Tensor, positions: Tensor) -> Tensor:
        return self._drawn(self.model.head(self.features[chains, positions]), chains, positions)

    def _drawn(self, logits: Tensor, chains: Tensor, positions: Tensor) -> Tensor:
        """The logits (n, |V|) that proposals are drawn from: a special token proposes itself."""
        if not len(self.special):
            return logits
        current = self.tokens[chains, positions][:, None]
        held = torch.isin(current, self.special)
        logits = logits.index_fill(1, self.special, -torch.inf)
        alone = torch.full_like(logits, -torch.inf).scatter_(1, current, 0.0)
        return torch.where(held, alone, logits)

    def log_ratio(self, chains: Tensor, positions: Tensor, proposals: Tensor):
        tokens = self.tokens[chains]
        tokens.scatter_(1, positions[:, None], proposals[:, None])
        others = self.positions[:-1].expand(len(chains), -1)
        others = others + (others >= positions[:, None])
        features, scores = self._copies(tokens, others)
        change = scores - self.scores[chains].gather(1, others)
        return change.sum(dim=1), (chains, positions, proposals, tokens, others, features, scores)

    def accept(self, handle, accepted: Tensor) -> None:
        taken = (part[accepted] for part in handle)
        chains, positions, proposals, tokens, others, features, scores = taken
        self.tokens[chains] = tokens
        self.features[chains[:, None], others] = features
        self.scores[chains[:, None], others] = scores
        # The copy masked at i is the same as before, its token is not.
        kept = self.features[chains, positions]
        self.scores[chains, positions] = self._score(kept[:, None], proposals[:, None])[:, 0]

    def energy(self) -> Tensor:
        return -self.scores.sum(dim=1)

    @property
    def copy_bytes(self) -> int:
        """An upper bound on the activations of one masked copy while its features are computed."""
        return self.model.work_size * next(self.model.parameters()).element_size()

    @property
    def copies_at_once(self) -> int:
        """The masked copies that the work space holds."""
        return max(1, self.work // self.copy_bytes)

    def _copies(self, tokens: Tensor, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Features (n, m, d) and scores (n, m) of tokens (n, L) masked at positions (n, m)."""
        count, masks = positions.shape
        size = max(1, self.copies_at_once // max(masks, 1))
        pieces = zip(tokens.split(size), positions.split(size), strict=True)
        features = torch.cat([self._some_copies(*piece) for piece in pieces]).view(count, masks, -1)
        return features, self._score(features, tokens.gather(1, positions))

    def _some_copies(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """Features (n m, d); one sequence at a time where even its copies are too many."""
        rows = torch.arange(len(tokens), device=tokens.device).repeat_interleave(positions.shape[1])
        size = self.copies_at_once
        pieces = zip(rows.split(size), positions.flatten().split(size), strict=True)
        return torch.cat([self._features(tokens, *piece) for piece in pieces])

    def _features(self, *asked: Tensor) -> Tensor:
        return self.model.masked_features(*asked)

    def _score(self, features: Tensor, tokens: Tensor) -> Tensor:
        """Scores, float64, of tokens (n, m) under the logits of features (n, m, d)."""
        if self.norm:
            size = self.heads_at_once
            rows, drawn = features.flatten(0, 1).split(size), tokens.flatten().split(size)
            found = list(map(self._log_probability, rows, drawn))
            scores = torch.cat(found).view_as(tokens)
        else:
            scores = self.model.head_rows(features, tokens).double()
        if self.mean_row is not None:
            weight, shift = self.mean_row
            scores -= (features @ weight).double() + shift
        if len(self.special):
            scores = scores.masked_fill(torch.isin(tokens, self.special), 0.0)
        return scores

    def _log_probability(self, features: Tensor, tokens: Tensor) -> Tensor:
        logits = self.model.head(features)
        chosen = logits.gather(1, tokens[:, None])[:, 0].double()
        return chosen - torch.logsumexp(logits, dim=1).double()


class CoarseChains(MaskedChains):
    """The same with the copies of ratios computed in half precision, whose errors decide nothing.

    log alpha adds up L - 1 differences of logits, each with a relative error of 2^-9 in bfloat16
    and 2^-12 in float16. The driver asks `refine` for every ratio within `margin` nats of its
    threshold, and for those that are not finite, as numbers above 65,504 are not in float16: the
    copies of both states in the model's own type, on a GPU by `split_product`. Proposals, whose
    distribution must be that of the energy, and energies are computed so too. `margin` is `SIGMAS`
    times the root mean square error of moves from the states at which the caches are rebuilt.
    """

    ahead = 1
    exactly = False  # whether copies are computed in the model's own type just now

    def __init__(self, model: Model, tokens: Tensor, energy: str, gauge: str, coarse: str):
        self.coarse = getattr(torch, coarse)
        self.fast_features = model.masked_features
        if tokens.is_cuda:  # norms and residuals, one by one, take as long as products
            self.fast_features = torch.compile(model.masked_features, dynamic=True)
        super().__init__(model, tokens, energy, gauge)

    @property
    def copy_bytes(self) -> int:
        if not self.exactly:
            return self.model.about.coarse_copy_bytes
        # On a GPU a split product has rows three times as long, beside their parts.
        return (1 + self.tokens.is_cuda) * super().copy_bytes

    def rebuild(self) -> None:
        super().rebuild()
        count, length = self.tokens.shape
        chains = torch.arange(min(count, PROBES), device=self.tokens.device)
        positions = chains * max(1, length // PROBES) % length
        proposals = (self.tokens[chains, positions] + 1) % self.model.vocabulary
        coarse, handle = self.log_ratio(chains, positions, proposals)
        self.margin = SIGMAS * (coarse - self.refine(handle, chains)).square().mean().sqrt().item()

    def logits(self, chains: Tensor, positions: Tensor) -> Tensor:
        with self._own_type():
            logits = self.model.head(self._some_copies(self.tokens[chains], positions[:, None]))
            return self._drawn(logits, chains, positions)

    def energy(self, chains: Tensor | None = None) -> Tensor:
        """E of the named chains, or of all, in the model's own type and not from caches."""
        tokens = self.tokens if chains is None else self.tokens[chains]
        with self._own_type():
            _, scores = self._copies(tokens, self.positions.expand(len(tokens), -1))
        return -scores.sum(dim=1)

    def refine(self, handle, which: Tensor) -> Tensor:
        """log alpha (n,) float64 of the moves `which` (n,) of a handle, in the model's own type."""
        chains, _, _, tokens, others = (part[which] for part in handle[:5])
        with self._own_type():
            states = (tokens, self.tokens[chains])
            after, before = (self._copies(state, others)[1] for state in states)
        return (after - before).sum(dim=1)

    @contextmanager
    def _own_type(self) -> Iterator[None]:
        self.exactly = True
        try:
            yield
        finally:
            self.exactly = False

    def _features(self, *asked: Tensor) -> Tensor:
        coarse = torch.autocast(self.tokens.device.type, self.coarse)
        with tensor_cores(split=True) if self.exactly else coarse:
            return self.fast_features(*asked).to(next(self.model.parameters()).dtype)


def _mean_row(model: Model) -> tuple[Tensor, Tensor]:
    """w (d,) and c with mean_a h_a = w . features + c, read off the affine head."""
    weight, size = next(model.parameters()), model.feature_size
    origin = model.head(weight.new_zeros(size)).double()
    rows = [
        (model.head(units).double() - origin).mean(dim=1)
        for units in torch.eye(size, dtype=weight.dtype, device=weight.device).split(256)
    ]
    return torch.cat(rows).to(weight.dtype), origin.mean()
