"""Chains of factored attention of three layers and more in compiled loops for a CPU.

The sums that `any_depth` takes over tensors of many proposals, made proposal by proposal in
arrays that stay in cache. Every square goes through its tables. The raw score of a proposal reads
sum_k Aout_jk delta_jk . M_j (u_jk + u'_jk) for each square, M_j as in `three_layers`, so that
only accepted proposals need their features.
"""

import torch
from torch import Tensor

from manybody.sampling import footprint
from manybody.sampling.factored import deep_loops as kernels
from manybody.sampling.factored.any_depth import DeepChains, Proposals
from manybody.sampling.factored.copies import all_copies
from manybody.sampling.factored.parameters import Parameters
from manybody.sampling.factored.squares import table


class LoopedChains(DeepChains):
    """C chains under either energy; see `chains.Chains`."""

    def __init__(self, parameters: Parameters, tokens: Tensor, energy: str):
        super().__init__(parameters, tokens, energy)
        last, rank = parameters.layers - 1, parameters.right[0].shape[1]
        between = torch.zeros(last - 1, last - 1, rank, rank**2, dtype=torch.float64)
        for layer in range(1, last):
            for target in range(layer + 1, last):
                between[layer - 1, target - 1] = table(parameters, layer, target).view(rank, -1)
        first = [table(parameters, 0, target).view(rank, -1) for target in range(1, last + 1)]
        to_output = [square.to_output for square in self.squares]
        self.scores_first = (
            energy == "raw" and footprint.score_bytes(parameters) <= footprint.TABLES
        )
        forms = between.new_empty(0, 0, rank**2)
        if self.scores_first:
            forms = torch.stack([parameters.score_left @ squares.T for squares in to_output])
        stacks = (parameters.mixing, self.first.factors, parameters.right, first, to_output)
        rest = (between, self.first.last_factor, forms, parameters.score_left)
        self._arrays = tuple(part.numpy() for part in (*map(torch.stack, stacks), *rest))

    def rebuild(self) -> None:
        self.inputs, self.features = all_copies(self.parameters, self.tokens)
        self.states = list(self.inputs)
        self.scores, self.normalizers = self._scores(self.features, self.tokens)

    def _propose(self, chains: Tensor, positions: Tensor, proposals: Tensor):
        if not self.scores_first:
            return super()._propose(chains, positions, proposals)
        moves = (chains, positions, proposals)
        deltas, rises, ratios = self._run(*moves)
        return ratios, Proposals(*moves, list(deltas), rises, None, None)

    def _changes(self, chains, tokens, positions, proposals):
        deltas, rises, _ = self._run(chains, positions, proposals)
        return list(deltas), rises

    def _run(self, *moves: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Changes of the states (squares, n, L, L, d) and of the features (n, L, d), and, where
        scores come first, the ratios (n,), for which those features are not completed."""
        squares, _, *shape = self.inputs.shape
        deltas = self.inputs.new_empty(squares, len(moves[0]), *shape)
        rises, ratios = deltas.new_empty(len(moves[0]), *shape[1:]), deltas.new_empty(len(moves[0]))
        given, found = (*moves, self.tokens, self.inputs), (deltas, rises, ratios)
        kernels.deep_changes(*map(Tensor.numpy, given), *self._arrays, *map(Tensor.numpy, found))
        return deltas, rises, ratios

    def _take(self, moves: Proposals) -> None:
        if self.scores_first:
            mixing, _, _, _, to_output, *_ = self._arrays
            deltas = torch.stack(moves.states)
            given = map(Tensor.numpy, (moves.chains, self.inputs, deltas))
            kernels.complete_rises(*given, mixing, to_output, moves.features.numpy())
            moves.features += self.features[moves.chains]
            tokens = self.tokens[moves.chains]
            tokens.scatter_(1, moves.positions[:, None], moves.tokens[:, None])
            moves.scores, _ = self._scores(moves.features, tokens)
        super()._take(moves)
