"""Chains of factored attention of any depth, by what one new token changes (both energies).

All L masked copies of a chain are kept: u^m_jk = sum_k' A^m_kk' Q^m x^(m-1)_jk', the d numbers that
layer m squares at position k of copy j, and f_j, the features of the masked position of copy j.
A token b for a at i adds G = V1[:, b] - V1[:, a] to the first layer, whose squares then change by

    copy j, position k:   alpha_k G * (2 W_k + alpha_k G) - 2 alpha_k A1_kj G * G_j,
                          alpha_k = A1_ki,  W = A1 G,  G_j = V1[:, s_j],

a part that no copy tells apart and one vector for each copy. So u^m changes, as far as it reads the
first square, by delta_jk = along_k + factor_jk * across_j (exact; docs/science/nlp-clones.md,
section 7, item 1, with its tables K reduced to the row that a proposal touches), and the second
square is a bilinear form with these 2 L vectors. Higher squares take all L^2 changes. Copy i does
not see the token and does not change. On a CPU the same runs in compiled loops (`deep_loops`).

Layer l adds (P^l u)^2 to the stream, which every layer m above reads as Q^m (P^l u)^2, a quadratic
map of the d numbers u. If u becomes u + delta, it changes by the bilinear form

    beta(delta, u + u'),   beta(x, y) = Q^m (P^l x * P^l y),   u' = u + delta.

`Square` keeps beta as a symmetric d x d x d table, so that nothing depends on |V|.
"""

import torch
from torch import Tensor

from manybody.models.linear import linear
from manybody.sampling import footprint
from manybody.sampling.draws import log_sums
from manybody.sampling.factored.copies import Parameters, all_copies


class DeepChains:
    """C chains under either energy; see `backends.Chains`.

    The current states are double, so that no error builds up. The logits, and for up to two layers
    what a proposal changes, are computed in the model's own precision.
    """

    ahead = 4  # P(more proposals in a row equal the current token) is about 1/16

    def __init__(self, parameters: Parameters, tokens: Tensor, energy: str):
        self.parameters, self.tokens, self.energy_name = parameters, tokens.clone(), energy
        self.full_batches = parameters.layers > 2 or energy == "norm"
        each = footprint.proposal_bytes(parameters, energy)
        self.at_once = max(1, footprint.PROPOSALS[tokens.device.type] // each)
        single = parameters.in_own_precision()
        self.head = single.left[-1], single.bias
        # The squares of squares of more layers would lose digits move by move.
        self.steps = single if parameters.layers < 3 else parameters
        self.squares = [Square(self.steps, layer) for layer in range(1, parameters.layers - 1)]
        if parameters.layers > 1:
            self.first = self._open_first()
        self.rebuild()

    def _open_first(self):
        return _FirstSquare(self.steps)

    def rebuild(self) -> None:
        inputs, self.features = all_copies(self.parameters, self.tokens)
        self.states = list(inputs)
        self.scores = self._scores(self.features, self.tokens)

    def logits(self, chains: Tensor, positions: Tensor) -> Tensor:
        return self._head(self.features[chains, positions])

    def energy(self) -> Tensor:
        return -self.scores.sum(1)

    @torch.no_grad()
    def log_ratio(self, chains: Tensor, positions: Tensor, proposals: Tensor):
        moves = (chains, positions, proposals)
        pieces = zip(*(some.split(self.at_once) for some in moves), strict=True)
        ratios, parts = zip(*(self._propose(*piece) for piece in pieces), strict=True)
        return ratios[0] if len(ratios) == 1 else torch.cat(ratios), parts

    def accept(self, handle, accepted: Tensor) -> None:
        for here, part in zip(accepted.split(self.at_once), handle, strict=True):
            self._take(here, *part)

    def _take(self, accepted, chains, positions, proposals, features, scores, *changes) -> None:
        for state, change in zip(self.states, changes, strict=True):
            state[chains[accepted]] += change[accepted]
        chains = chains[accepted]
        self.tokens[chains, positions[accepted]] = proposals[accepted]
        self.features[chains] = features[accepted]
        self.scores[chains] = scores[accepted]

    def _propose(self, chains: Tensor, positions: Tensor, proposals: Tensor):
        """Ratios (n,) of proposals, and what `_take` needs of them."""
        tokens = self.tokens[chains]
        changes, features = self._changes(chains, tokens, positions, proposals)
        tokens = tokens.scatter(1, positions[:, None], proposals[:, None])
        scores = self._scores(features, tokens)
        rises = clear(scores - self.scores[chains], positions)
        return rises.sum(1), (chains, positions, proposals, features, scores, *changes)

    def _changes(self, chains, tokens, positions, proposals):
        """Changes of the states, and the features (n, L, d) of the proposals."""
        parameters, last = self.steps, self.parameters.layers - 1
        old = tokens.gather(1, positions[:, None]).squeeze(1)
        if last == 0:
            direct = parameters.right[0][proposals] - parameters.right[0][old]
            rises = parameters.mixing[0].T[positions][..., None] * direct[:, None]
            return [], self.features[chains] + clear(rises, positions)
        along, across = self.first.change(tokens, positions, old, proposals)
        features = along[-1]
        changes = []
        pending = [[] for _ in range(last)]  # of each square, what those below send it
        for m, square in enumerate(self.squares):
            factor = self.first.factors[m][positions]
            delta = torch.addcmul(along[m][:, None], factor[..., None], across[m][:, :, None])
            clear(delta, positions)
            vectors = (along[m], across[m], factor) if m == 0 else None
            if m:
                first, *more = pending[m + 1]
                delta = delta + parameters.mixing[m + 1] @ sum(more, first)
            read, rise = square.change(self.states[m][chains], delta, positions, vectors)
            changes.append(delta)
            features = features + rise
            for target, part in zip(square.targets, read, strict=True):
                pending[target].append(part)
        return changes, self.features[chains] + features

    def _scores(self, features: Tensor, tokens: Tensor) -> Tensor:
        """Scores (n, L) of the current tokens."""
        if self.energy_name == "raw":
            scores = (features * self.parameters.score_left[tokens]).sum(-1)
            return scores + self.parameters.score_bias[tokens]
        logits = self._head(features)
        return logits.gather(-1, tokens[..., None])[..., 0].double() - log_sums(logits)

    def _head(self, features: Tensor) -> Tensor:
        return linear(features.to(self.parameters.precision), *self.head)


class _FirstSquare:
    """The answer of the first square to a token, as every layer above reads it."""

    def __init__(self, parameters: Parameters):
        self.parameters, self.sent = parameters, parameters.value_rows(0)
        (self.ways, self.factors), self.pairs = ways(parameters), None
        if footprint.has_pairs(parameters):
            # Row by row: all |V|^3 products at once would outgrow the table.
            sizes = parameters.layers - 1, *self.sent.shape, parameters.rank
            self.pairs = self.sent.new_empty(sizes)
            for b, row in enumerate(self.sent):
                self.pairs[:, b] = self._read(row * self.sent)

    def _read(self, values: Tensor) -> Tensor:
        """Q^m (layers - 1, ..., d) of values (..., |V|), m = 2 .. layers."""
        layers = range(1, self.parameters.layers)
        return torch.stack([self.parameters.project(m, values) for m in layers])

    def change(self, tokens: Tensor, positions: Tensor, old: Tensor, proposals: Tensor):
        """`along` and `across` (n, L, d) of each layer above the first; of the last, `along` is the
        change of the features."""
        asked = torch.cat([tokens, proposals[:, None]], 1)
        if self.pairs is None:
            step = self.sent[proposals] - self.sent[old]
            answers = self._read(self.sent[asked] * step[:, None])
        else:
            answers = self.pairs[:, proposals[:, None], asked] - self.pairs[:, old[:, None], asked]
        # Q^m (G * G_b) becomes Q^m G^2, as G = G_b - G_a and a is at the position.
        answers[:, :, -1] -= answers[:, torch.arange(len(tokens), device=tokens.device), positions]
        along, across = [], []
        for right, way, answer in zip(self.parameters.right[1:], self.ways, answers, strict=True):
            direct = (right[proposals] - right[old])[:, None]
            along.append(way[positions] @ torch.cat([answer, direct], 1))
            across.append(answer[:, :-1])
        return along, across


def clear(values: Tensor, copies: Tensor) -> Tensor:
    """`values` (n, L, ...) with the named copy (n,) of each chain set to zero, in place."""
    values[torch.arange(len(values), device=values.device), copies] = 0.0
    return values


def ways(parameters: Parameters) -> tuple[list[Tensor], list[Tensor]]:
    """The weights of `along` for a token at i, (L, L, L + 2) indexed [i, k, .], of each layer above
    the first: of G * G_j, 2 sum_q A^m_kq A1_qi A1_qj = -factor_jk; of G^2; of the token's own row.
    And factor^m_jk (L, L, L), indexed [i, j, k], of those but the last.

    Of the last layer copy k reads position k alone: its weight of G * G_k, to which factor_kk
    comes, is 0, and so are all of copy i.
    """
    found, factors, first = [], [], parameters.mixing[0]
    for mixing in parameters.mixing[1:]:
        pairs = 2.0 * torch.einsum("kq,qi,qj->ikj", mixing, first, first)
        own = torch.stack([(mixing @ first.square()).T, mixing.T], 2)
        found.append(torch.cat([pairs, own], 2))
        factors.append(-pairs.mT)
    found[-1].diagonal(dim1=1, dim2=2).zero_()
    found[-1].diagonal(dim1=0, dim2=1).zero_()
    return found, factors[:-1]


def table(parameters: Parameters, layer: int, target: int) -> Tensor:
    """beta (d, d, d) from `layer` to `target`, indexed [x, y, result]; |V| d^2 (d + 1) / 2 MAC."""
    left, right = parameters.left[layer], parameters.right[target]
    beta = left.new_empty(3 * [parameters.rank])
    for x in range(parameters.rank):
        row = (left[:, x:] * left[:, x : x + 1]).T @ right
        beta[x, x:] = row
        beta[x:, x] = row
    return beta


class Square:
    """Layer `layer` through tables; its state is u (C, L, L, d)."""

    def __init__(self, parameters: Parameters, layer: int):
        last = parameters.layers - 1
        self.rank = parameters.rank
        self.outer = parameters.mixing[last]
        self.targets = range(layer + 1, last)
        self.to_output = table(parameters, layer, last).view(self.rank**2, -1)
        if self.targets:
            # [(x, y), (target, result)]; of the first square, as matrices beta(x, .) that act on y:
            # [(target, result, y), x].
            tables = [table(parameters, layer, target) for target in self.targets]
            self.between = (
                torch.stack([one.permute(2, 1, 0) for one in tables]).view(-1, self.rank)
                if layer == 1
                else torch.stack(tables, dim=2).view(self.rank**2, -1)
            )

    def change(
        self, u: Tensor, delta: Tensor, masked: Tensor, vectors: tuple | None
    ) -> tuple[Tensor | tuple[()], Tensor]:
        """For u (n, L copies, L positions, d) and its change delta: the change of what each target
        reads (targets, n, L, L, d), and of the last layer's features (n, L, d).

        Where only the first square lies below, delta_jk = along_k + factor_jk * across_j, given as
        `vectors` along and across (n, L, d) and factor (n, L, L): 2 L vectors instead of L^2. Copy
        `masked` (n,), which masks the changed position, never changes.
        """
        both = u.mul(2.0).add_(delta)
        products = ((self.outer[:, :, None] * delta).mT @ both).flatten(2)
        read = self._between(both, delta, masked, vectors) if self.targets else ()
        return read, products @ self.to_output

    def _between(self, both: Tensor, delta: Tensor, masked: Tensor, vectors) -> Tensor:
        if vectors is None:
            read = (delta[..., :, None] * both[..., None, :]).flatten(-2) @ self.between
        else:
            along, across, factor = vectors
            # The matrices beta(x, .), (n, L, targets * d, d), of vectors x (n, L, d).
            of_position, of_copy = (
                linear(x, self.between).unflatten(-1, (-1, self.rank)) for x in (along, across)
            )
            read = (both.transpose(1, 2) @ of_position.mT).transpose(1, 2)
            read = torch.addcmul(read, factor[..., None], both @ of_copy.mT)
            clear(read, masked)
        return read.unflatten(-1, (len(self.targets), self.rank)).movedim(-2, 0)
