"""Chains of factored attention of any depth, by what one new token changes (both energies).

All L masked copies of a chain are kept: u^m_jk = sum_k' A^m_kk' Q^m x^(m-1)_jk', the d numbers that
layer m squares at position k of copy j, and f_j, the features of the masked position of copy j.
A token b for a at i adds G = V1[:, b] - V1[:, a] to the first layer, whose squares then change by

    copy j, position k:   alpha_k G * (2 W_k + alpha_k G) - 2 alpha_k A1_kj G * G_j,
                          alpha_k = A1_ki,  W = A1 G,  G_j = V1[:, s_j],

a part that no copy tells apart and one vector for each copy. So u^m changes, as far as it reads the
first square, by delta_jk = along_k + factor_jk * across_j (exact; docs/science/nlp-clones.md,
section 7, item 1, with its tables K reduced to the row that a proposal touches), and the second
square is a bilinear form with these 2 L vectors. Higher squares take all L^2 changes.
Copy i does not see the token and does not change. On a CPU the same runs in compiled loops
(`deep_loops`).

Layer l adds (P^l u)^2 to the stream, which every layer m above reads as Q^m (P^l u)^2, a quadratic
map of the d numbers u. If u becomes u + delta, it changes by the bilinear form

    beta(delta, u + u'),   beta(x, y) = Q^m (P^l x * P^l y),   u' = u + delta.

`TableSquare` keeps beta as a symmetric d x d x d table, so that nothing depends on |V|;
`DirectSquare` keeps P^l u and goes through all |V| channels: better for d near |V|.
"""

import torch
from torch import Tensor

from manybody.sampling import footprint
from manybody.sampling.factored.copies import Parameters, all_copies
from manybody.sampling.footprint import has_tables


class DeepChains:
    """C chains under either energy; see `backends.Chains`.

    `head` maps features to logits in the model's own precision; everything else is double.
    """

    def __init__(self, parameters: Parameters, tokens: Tensor, energy: str):
        self.parameters, self.tokens, self.energy_name = parameters, tokens.clone(), energy
        self.full_batches = parameters.layers > 2 or energy == "norm"
        self.head_left = parameters.left[-1].T.to(parameters.precision)
        self.head_bias = parameters.bias.to(parameters.precision)
        self.squares = [
            (TableSquare if has_tables(parameters, layer) else DirectSquare)(parameters, layer)
            for layer in range(1, parameters.layers - 1)
        ]
        if parameters.layers > 1:
            self.first = _FirstSquare(parameters)
        self.rebuild()

    def rebuild(self) -> None:
        inputs, self.features = all_copies(self.parameters, self.tokens)
        self.states = [square.open(u) for square, u in zip(self.squares, inputs, strict=True)]
        self.scores = self._scores(self.features, self.tokens)

    def logits(self, chains: Tensor, positions: Tensor) -> Tensor:
        return self._head(self.features[chains, positions])

    def energy(self) -> Tensor:
        return -self.scores.sum(1)

    @torch.no_grad()
    def log_ratio(self, chains: Tensor, positions: Tensor, proposals: Tensor):
        each = footprint.proposal_bytes(self.parameters, self.energy_name)
        size = max(1, footprint.PROPOSALS // each)
        moves = (some.split(size) for some in (chains, positions, proposals))
        parts = [self._propose(*some) for some in zip(*moves, strict=True)]
        return torch.cat([ratios for ratios, _ in parts]), [part for _, part in parts]

    def accept(self, handle, accepted: Tensor) -> None:
        for part in handle:
            here, accepted = accepted[: len(part[0])], accepted[len(part[0]) :]
            self._take(*(values[here] for values in part))

    def _take(self, chains, positions, proposals, features, scores, *changes) -> None:
        self.tokens[chains, positions] = proposals
        for state, change in zip(self.states, changes, strict=True):
            state[chains] += change
        self.features[chains] = features
        self.scores[chains] = scores

    def _propose(self, chains: Tensor, positions: Tensor, proposals: Tensor):
        """Ratios (n,) of proposals, and what `_take` needs of them."""
        tokens = self.tokens[chains]
        changes, features = self._changes(chains, tokens, positions, proposals)
        features = self.features[chains] + clear(features, positions)
        tokens = tokens.scatter(1, positions[:, None], proposals[:, None])
        scores = self._scores(features, tokens)
        rises = clear(scores - self.scores[chains], positions)
        return rises.sum(1), (chains, positions, proposals, features, scores, *changes)

    def _changes(self, chains, tokens, positions, proposals):
        """Changes of the states of the squared layers, and of the features (n, L, d)."""
        parameters, last = self.parameters, self.parameters.layers - 1
        old = tokens.gather(1, positions[:, None]).squeeze(1)
        if last == 0:
            direct = parameters.right[0][proposals] - parameters.right[0][old]
            return [], parameters.mixing[0].T[positions][..., None] * direct[:, None]
        along, across = self.first.change(tokens, positions, old, proposals)
        features = along[-1] + self.first.last_factor[positions][..., None] * across[-1]
        changes = []
        pending: list[list[Tensor]] = [[] for _ in range(last)]
        for layer, square in enumerate(self.squares, start=1):
            factor = self.first.factors[layer - 1][positions]
            m = layer - 1
            delta = torch.addcmul(along[m][:, None], factor[..., None], across[m][:, :, None])
            clear(delta, positions)
            vectors = (along[m], across[m], factor) if layer == 1 else None
            if layer > 1:
                read = sum(pending[layer][1:], pending[layer][0])
                delta = delta + parameters.mixing[layer] @ read
            state, read, rise = square.change(self.states[m][chains], delta, positions, vectors)
            changes.append(state)
            features = features + rise
            for target, part in zip(square.targets, [] if read is None else read, strict=True):
                pending[target].append(part)
        return changes, features

    def _scores(self, features: Tensor, tokens: Tensor) -> Tensor:
        """Scores (n, L) of the current tokens."""
        parameters = self.parameters
        if self.energy_name == "raw":
            scores = (features * parameters.score_left[tokens]).sum(-1)
            return scores + parameters.score_bias[tokens]
        scores = (features * parameters.left[-1][tokens]).sum(-1) + parameters.bias[tokens]
        return scores - self._head(features).logsumexp(-1).double()

    def _head(self, features: Tensor) -> Tensor:
        return features.to(self.head_left.dtype) @ self.head_left + self.head_bias


class _FirstSquare:
    """The answer of the first square to a token, as every layer above reads it."""

    def __init__(self, parameters: Parameters):
        self.parameters = parameters
        first, last = parameters.mixing[0], parameters.layers - 1
        length, rank = parameters.length, parameters.rank
        self.table = None
        cost = rank**3 + length * rank**2
        if not parameters.full and cost < length * parameters.vocabulary * rank:
            self.table = acting_tables(parameters, 0, range(1, last + 1))
        else:
            self.sent = parameters.value_rows(0)
        # factor^m_jk = -2 sum_k' A^m_kk' A1_k'i A1_k'j, indexed [i, j, k]; last layer: k = j only.
        self.factors = [
            -2.0 * torch.einsum("kq,qi,qj->ijk", parameters.mixing[m], first, first)
            for m in range(1, last)
        ]
        self.last_factor = -2.0 * torch.einsum(
            "jq,qi,qj->ij", parameters.mixing[last], first, first
        )

    def change(self, tokens: Tensor, positions: Tensor, old: Tensor, proposals: Tensor):
        """`along` and `across` (layers - 1, n, L, d) of the layers above the first."""
        parameters, rows = self.parameters, torch.arange(len(tokens), device=tokens.device)
        across, own = self._products(tokens, old, proposals)
        alpha = parameters.mixing[0].T[positions][..., None]
        mixed = (parameters.mixing[0] @ across).mul_(2.0)
        read = alpha * (mixed + alpha * own[:, :, None])
        along = []
        for m in range(1, parameters.layers):
            direct = parameters.right[m][proposals] - parameters.right[m][old]
            read[m - 1, rows, positions] += direct
            along.append(parameters.mixing[m] @ read[m - 1])
        return along, across

    def _products(self, tokens: Tensor, old: Tensor, proposals: Tensor):
        """Q^m (G * G_j) (layers - 1, n, L, d) and Q^m G^2 (layers - 1, n, d), m = 2 .. layers."""
        parameters = self.parameters
        if self.table is not None:
            sent = parameters.right[0]
            step = sent[proposals] - sent[old]
            matrices = (step @ self.table).unflatten(-1, (-1, sent.shape[1]))
            both = torch.cat([sent[tokens], step[:, None]], 1)
            products = both @ matrices.mT
            products = products.unflatten(-1, (parameters.layers - 1, -1)).movedim(-2, 0)
        else:
            step = self.sent[proposals] - self.sent[old]
            both = torch.cat([self.sent[tokens], step[:, None]], 1) * step[:, None]
            layers = range(1, parameters.layers)
            products = torch.stack([parameters.project(m, both) for m in layers])
        return products[:, :, :-1], products[:, :, -1]


def clear(values: Tensor, copies: Tensor) -> Tensor:
    """`values` (n, L, ...) with the named copy (n,) of each chain set to zero, in place."""
    values[torch.arange(len(values), device=values.device), copies] = 0.0
    return values


def table(parameters: Parameters, layer: int, target: int, out: Tensor | None = None) -> Tensor:
    """beta (d, d, d) from `layer` to `target`, indexed [x, y, result]; |V| d^2 (d + 1) / 2 MAC."""
    left, right = parameters.left[layer], parameters.right[target]
    rank = left.shape[1]
    beta = left.new_empty(rank, rank, rank) if out is None else out
    for x in range(rank):
        row = (left[:, x:] * left[:, x : x + 1]).T @ right
        beta[x, x:] = row
        beta[x:, x] = row
    return beta


def acting_tables(parameters: Parameters, layer: int, targets: range) -> Tensor:
    """The tables to all `targets` as (d, targets * d * d), indexed [x, (target, result, y)]:
    contracted with x they are matrices beta(x, .) that act on y."""
    rank = parameters.left[layer].shape[1]
    tables = parameters.left[layer].new_empty(rank, len(targets), rank, rank)
    for place, target in enumerate(targets):
        table(parameters, layer, target, tables[:, place].transpose(1, 2))
    return tables.view(rank, -1)


def listing_tables(parameters: Parameters, layer: int, targets: range) -> Tensor:
    """The tables to all `targets` as (d * d, targets * d), indexed [(x, y), (target, result)]."""
    rank = parameters.left[layer].shape[1]
    tables = parameters.left[layer].new_empty(rank, rank, len(targets), rank)
    for place, target in enumerate(targets):
        table(parameters, layer, target, tables[:, :, place])
    return tables.view(rank**2, -1)


class TableSquare:
    """Layer `layer` through tables; its state is u (C, L, L, d)."""

    def __init__(self, parameters: Parameters, layer: int):
        last = parameters.layers - 1
        self.rank = parameters.left[layer].shape[1]
        self.outer = parameters.mixing[last]
        self.targets = range(layer + 1, last)
        self.to_output = table(parameters, layer, last).view(self.rank**2, -1)
        if self.targets:
            tables = acting_tables if layer == 1 else listing_tables
            self.between = tables(parameters, layer, self.targets)

    def open(self, u: Tensor) -> Tensor:
        return u

    def change(
        self, u: Tensor, delta: Tensor, masked: Tensor, vectors: tuple | None
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """For u (n, L copies, L positions, d) and its change delta: the change of the state, of
        what each target reads (targets, n, L, L, d), and of the last layer's features (n, L, d).

        Where only the first square lies below, delta_jk = along_k + factor_jk * across_j, given as
        `vectors` along and across (n, L, d) and factor (n, L, L): 2 L vectors instead of L^2. The
        copy that masks the changed position, `masked` (n,), never changes.
        """
        both = u.mul(2.0).add_(delta)
        weighted = self.outer[:, :, None] * delta
        products = (weighted.mT @ both).flatten(2)
        read = self._between(both, delta, masked, vectors) if self.targets else None
        return delta, read, products @ self.to_output

    def _between(self, both: Tensor, delta: Tensor, masked: Tensor, vectors) -> Tensor:
        if vectors is None:
            products = (delta[..., :, None] * both[..., None, :]).flatten(-2)
            read = products @ self.between
        else:
            along, across, factor = vectors
            # The matrices beta(x, .), (n, L, targets * d, d), of vectors x (n, L, d).
            of_position, of_copy = (
                (x @ self.between).unflatten(-1, (-1, self.rank)) for x in (along, across)
            )
            read = (both.transpose(1, 2) @ of_position.mT).transpose(1, 2)
            read = torch.addcmul(read, factor[..., None], both @ of_copy.mT)
            clear(read, masked)
        return read.unflatten(-1, (len(self.targets), self.rank)).movedim(-2, 0)


class DirectSquare:
    """Layer `layer` through all channels; its state is P u (C, L, L, |V|)."""

    def __init__(self, parameters: Parameters, layer: int):
        self.parameters, self.layer = parameters, layer
        self.targets = range(layer + 1, parameters.layers - 1)

    def open(self, u: Tensor) -> Tensor:
        return u @ self.parameters.left[self.layer].T

    def change(
        self, state: Tensor, delta: Tensor, masked: Tensor, vectors: tuple | None
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """As `TableSquare.change`, for the state (n, L, L, |V|)."""
        parameters, left = self.parameters, self.parameters.left[self.layer].T
        if vectors is None:
            step = delta @ left
        else:
            along, across, factor = vectors
            of_copy = (across @ left)[:, :, None]
            step = torch.addcmul((along @ left)[:, None], factor[..., None], of_copy)
            clear(step, masked)
        squares = state.mul(2.0).add_(step).mul_(step)
        last = parameters.layers - 1
        gathered = (parameters.mixing[last][:, None, :] @ squares).squeeze(-2)
        read = None
        if self.targets:
            read = torch.stack([parameters.project(target, squares) for target in self.targets])
        return step, read, parameters.project(last, gathered)
