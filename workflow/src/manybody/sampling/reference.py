"""References for tokens that are left out: a distribution, or blocks along frozen paths; and chains
under the mean of frozen Brook paths, for any masked model.

docs/science/controls.md, section 1, eq. 3. A path is an order pi of the positions and a block r:

    E_{pi,r}(s) = - sum_k ( h_{pi_k}(c_k)[s_{pi_k}] - h_{pi_k}(c_k)[r_{pi_k}] ),

c_k = s on pi_1 .. pi_{k-1}, r on pi_{k+1} .. pi_L, a mask at pi_k. If the conditionals are
compatible with one distribution exp(-H), this is H(s) - H(r) for any path, and the mean over paths
removes what is not compatible. A token at pi_j changes no term before j, term j in the token that
is read alone, and the later ones: half of the L forward passes of a path on average.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from manybody.io.seeds import spawn
from manybody.models.base import Model
from manybody.sampling.masked import MaskedChains


@dataclass(frozen=True)
class Paths:
    """Orders (M, L) of the positions, and blocks (M, L) of tokens to start from: frozen paths."""

    orders: np.ndarray
    blocks: np.ndarray


@dataclass(frozen=True)
class Reference:
    """The reference of an energy: a distribution mu (|V|,), or frozen paths."""

    mu: np.ndarray | None = None
    paths: Paths | None = None

    @property
    def about(self) -> dict:
        """JSON that says which: the digest of the distribution, the paths as they are."""
        if self.paths is None:
            return dict(law=hashlib.sha256(self.mu.tobytes()).hexdigest())
        return dict(orders=self.paths.orders.tolist(), blocks=self.paths.blocks.tolist())


def unigram(tokens: np.ndarray, vocabulary: int) -> np.ndarray:
    """Frequencies (|V|,) of tokens (N, L), half a count added to each, so that none is 0."""
    counts = np.bincount(np.asarray(tokens).reshape(-1), minlength=vocabulary) + 0.5
    return counts / counts.sum()


def draw_paths(length: int, paths: int, seed: int, mu: np.ndarray) -> Paths:
    """`paths` orders at random, and as many blocks, draws of mu (|V|,).

    A function of `seed`, so that all clones with one `chain_seed` have the same paths.
    """
    generator = np.random.default_rng(spawn(seed, "paths"))
    orders = generator.permuted(np.tile(np.arange(length), (paths, 1)), axis=1)
    return Paths(orders, generator.choice(len(mu), (paths, length), p=mu / mu.sum()))


def reference(
    energy: str, paths: int | None, seed: int, model, train: Callable[[], np.ndarray]
) -> Reference | None:
    """The reference of `energy`; `train` reads the training tokens (N, L) of the model's source.

    mu is their unigram distribution, frozen paths start from draws of it. None for energies that
    compare with nothing.
    """
    if energy != "reference":
        return None
    mu = unigram(train(), model.vocabulary)
    if paths is None:
        return Reference(mu=mu)
    return Reference(paths=draw_paths(model.length, paths, seed, mu))


class PathChains(MaskedChains):
    """C chains at `tokens` (C, L) under the mean of M paths; see `backends.Chains`.

    Caches take C M L (d + 1) numbers. A proposal costs a forward pass, its ratio M (L - 1) / 2.
    """

    ahead = 1

    def __init__(self, model: Model, tokens: Tensor, paths: Paths):
        device = tokens.device
        self.orders = torch.from_numpy(paths.orders).to(device)  # (M, L)
        self.blocks = torch.from_numpy(paths.blocks).to(device)
        self.ranks = self.orders.argsort(1)  # where in its path a position comes
        self.asked = torch.full((len(tokens),), -1, device=device)  # where `here` is masked
        self.here = next(model.parameters()).new_empty(len(tokens), model.feature_size)
        super().__init__(model, tokens, "raw", "none")

    def rebuild(self) -> None:
        self.asked.fill_(-1)
        (count, length), paths = self.tokens.shape, len(self.orders)
        device = self.tokens.device
        numbers = torch.arange(count * paths * length, device=device)
        chains, rest = numbers // (paths * length), numbers % (paths * length)
        features, scores = self._terms(self.tokens[chains], rest // length, rest % length)
        self.features = features.view(count, paths, length, -1)
        self.scores = scores.view(count, paths, length)

    def logits(self, chains: Tensor, positions: Tensor) -> Tensor:
        return self.model.head(self._copy(chains, positions))

    def _copy(self, chains: Tensor, positions: Tensor) -> Tensor:
        """Features (n, d) of the state itself masked at one position, kept until it changes."""
        new = self.asked[chains] != positions
        if new.any():
            which, where = chains[new], positions[new, None]
            self.here[which] = self._some_copies(self.tokens[which], where)
            self.asked[which] = positions[new]
        return self.here[chains]

    def log_ratio(self, chains: Tensor, positions: Tensor, proposals: Tensor):
        tokens = self.tokens[chains]
        current = tokens.gather(1, positions[:, None])[:, 0]
        tokens.scatter_(1, positions[:, None], proposals[:, None])
        ranks = self.ranks[:, positions].T  # (n, M)
        later = torch.arange(self.model.length, device=tokens.device) > ranks[..., None]
        of, path, place = later.nonzero(as_tuple=True)
        # Of the later terms (m,) of their paths: which proposal they belong to, features, scores.
        features, scores = self._terms(tokens[of], path, place)
        rise = scores - self.scores[chains[of], path, place]
        paths = torch.arange(len(self.orders), device=tokens.device)
        kept = self.features[chains[:, None], paths, ranks]  # (n, M, d)
        # (n, M): the term whose token changes
        changed = proposals[:, None].expand_as(ranks)
        own = self._difference(kept, changed, self.blocks[:, positions].T)
        total = (own - self.scores[chains[:, None], paths, ranks]).sum(1)
        total.index_add_(0, of, rise)
        # What the proposal's distribution adds: h_i[a] - h_i[b] of the state itself.
        both = torch.stack([current, proposals], 1)
        here = self._copy(chains, positions)
        drawn = self.model.head_rows(here[:, None].expand(-1, 2, -1), both).double()
        moves, later = (chains, positions, proposals, own), (of, path, place, features, scores)
        return total / len(paths) + drawn[:, 0] - drawn[:, 1], (moves, later)

    def accept(self, handle, accepted: Tensor) -> None:
        moves, later = handle
        chains, positions, proposals, own = (part[accepted] for part in moves)
        self.tokens[chains, positions] = proposals
        self.asked[chains] = -1
        paths = torch.arange(len(self.orders), device=chains.device)
        self.scores[chains[:, None], paths, self.ranks[:, positions].T] = own
        of, path, place, features, scores = (part[accepted[later[0]]] for part in later)
        where = (moves[0][of], path, place)
        self.features[where] = features
        self.scores[where] = scores

    def energy(self) -> Tensor:
        return -self.scores.sum((1, 2)) / len(self.orders)

    def _terms(self, tokens: Tensor, path: Tensor, place: Tensor) -> tuple[Tensor, Tensor]:
        """Features (n, d) and scores (n,), float64, of terms of tokens (n, L)."""
        positions = self.orders[path, place]
        found = []
        for part in torch.arange(len(path), device=path.device).split(self.copies_at_once):
            # Positions up to here come from s, later ones from r; the masked one is not read.
            of_state = self.ranks[path[part]] <= place[part, None]
            mixed = torch.where(of_state, tokens[part], self.blocks[path[part]])
            found.append(self._some_copies(mixed, positions[part, None]))
        features = torch.cat(found) if found else tokens.new_zeros(0, self.model.feature_size)
        chosen = tokens.gather(1, positions[:, None])[:, 0]
        return features, self._difference(features, chosen, self.blocks[path, positions])

    def _difference(self, features: Tensor, tokens: Tensor, blocks: Tensor) -> Tensor:
        own, other = (self.model.head_rows(features, some).double() for some in (tokens, blocks))
        return own - other
