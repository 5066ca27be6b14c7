"""What a new token changes in chains of three layers and more, in compiled loops for a CPU.

The sums that `factored_deep` and `factored_squares` take over tensors of many proposals, made
proposal by proposal in arrays that stay in cache. Every square goes through its tables.
"""

import torch
from torch import Tensor

from manybody.sampling import factored_cpu as kernels
from manybody.sampling.factored_squares import table
from manybody.sampling.factored_weights import Weights


class Loops:
    """The factors (arrays [i, j, k], and [i, j] of the last layer) are those of `factored_deep`."""

    def __init__(self, weights: Weights, factors: list[Tensor], last_factor: Tensor):
        last, rank = weights.layers - 1, weights.right[0].shape[1]
        between = torch.zeros(last - 1, last - 1, rank, rank**2, dtype=torch.float64)
        for layer in range(1, last):
            for target in range(layer + 1, last):
                between[layer - 1, target - 1] = table(weights, layer, target).view(rank, -1)
        first = [table(weights, 0, target).view(rank, -1) for target in range(1, last + 1)]
        to_output = [table(weights, layer, last).view(-1, rank) for layer in range(1, last)]
        stacks = map(torch.stack, (weights.mixing, factors, weights.right, first, to_output))
        self._arrays = tuple(map(Tensor.numpy, (*stacks, between, last_factor)))

    def changes(self, states: Tensor, tokens: Tensor, *moves: Tensor) -> tuple[Tensor, Tensor]:
        """Changes of `states` (squares, C, L, L, d), which come as (squares, n, L, L, d), and of
        the features (n, L, d), by the moves: chains, positions and new tokens (n,)."""
        squares, _, *shape = states.shape
        deltas = states.new_empty(squares, len(moves[0]), *shape)
        rises = states.new_empty(len(moves[0]), *shape[1:])
        given = map(Tensor.numpy, (*moves, tokens, states))
        kernels.deep_changes(*given, *self._arrays, deltas.numpy(), rises.numpy())
        return deltas, rises
