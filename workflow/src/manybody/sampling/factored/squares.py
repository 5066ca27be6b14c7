"""Changes in the layers above a squared layer whose input changes.

Layer l adds (P^l u)^2 to the stream, which every layer m above reads as Q^m (P^l u)^2, a quadratic
map of the d numbers u. If u becomes u + delta, it changes by the bilinear form

    beta(delta, u + u'),   beta(x, y) = Q^m (P^l x * P^l y),   u' = u + delta.

`TableSquare` keeps beta as a symmetric d x d x d table, so that nothing depends on |V|;
`DirectSquare` keeps P^l u and goes through all |V| channels: better for d near |V|.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from manybody.sampling.factored.parameters import Parameters
from manybody.sampling.footprint import has_tables


@dataclass
class Change:
    """Changes delta (n, L copies, L positions, d) of the input u of a squared layer.

    Where only the first square lies below, delta_jk = along_k + factor_jk * across_j, with `along`
    and `across` (n, L, d) and `factor` (n, L, L): 2 L vectors instead of L^2. The copy that masks
    the changed position, `masked` (n,), never changes.
    """

    delta: Tensor
    masked: Tensor
    along: Tensor | None = None
    across: Tensor | None = None
    factor: Tensor | None = None


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
        self.to_output = listing_tables(parameters, layer, range(last, last + 1))
        if self.targets:
            tables = acting_tables if layer == 1 else listing_tables
            self.between = tables(parameters, layer, self.targets)

    def open(self, u: Tensor) -> Tensor:
        return u

    def change(self, u: Tensor, change: Change) -> tuple[Tensor, Tensor | None, Tensor]:
        """For u (n, L, L, d): the change of the state, of what each target reads
        (targets, n, L, L, d), and of the last layer's features (n, L, d)."""
        delta = change.delta
        both = u.mul(2.0).add_(delta)
        weighted = self.outer[:, :, None] * delta
        products = (weighted.mT @ both).flatten(2)
        read = self._between(change, both) if self.targets else None
        return delta, read, products @ self.to_output

    def _between(self, change: Change, both: Tensor) -> Tensor:
        if change.along is None:
            products = (change.delta[..., :, None] * both[..., None, :]).flatten(-2)
            read = products @ self.between
        else:
            of_position = self._matrices(change.along)
            of_copy = self._matrices(change.across)
            read = (both.transpose(1, 2) @ of_position.mT).transpose(1, 2)
            read = torch.addcmul(read, change.factor[..., None], both @ of_copy.mT)
            clear(read, change.masked)
        return read.unflatten(-1, (len(self.targets), self.rank)).movedim(-2, 0)

    def _matrices(self, x: Tensor) -> Tensor:
        """beta(x, .) as matrices (n, L, targets * d, d) of x (n, L, d)."""
        return (x @ self.between).unflatten(-1, (-1, self.rank))


class DirectSquare:
    """Layer `layer` through all channels; its state is P u (C, L, L, |V|)."""

    def __init__(self, parameters: Parameters, layer: int):
        self.parameters, self.layer = parameters, layer
        self.targets = range(layer + 1, parameters.layers - 1)

    def open(self, u: Tensor) -> Tensor:
        return u @ self.parameters.left[self.layer].T

    def change(self, state: Tensor, change: Change) -> tuple[Tensor, Tensor | None, Tensor]:
        """As `TableSquare.change`, for the state (n, L, L, |V|)."""
        parameters, left = self.parameters, self.parameters.left[self.layer].T
        if change.along is None:
            step = change.delta @ left
        else:
            across = (change.across @ left)[:, :, None]
            step = torch.addcmul((change.along @ left)[:, None], change.factor[..., None], across)
            clear(step, change.masked)
        squares = state.mul(2.0).add_(step).mul_(step)
        last = parameters.layers - 1
        gathered = (parameters.mixing[last][:, None, :] @ squares).squeeze(-2)
        read = None
        if self.targets:
            read = torch.stack([parameters.project(target, squares) for target in self.targets])
        return step, read, parameters.project(last, gathered)


def cheaper(parameters: Parameters, layer: int) -> type[TableSquare] | type[DirectSquare]:
    """The form with fewer operations for a proposal, if its tables fit."""
    return TableSquare if has_tables(parameters, layer) else DirectSquare
