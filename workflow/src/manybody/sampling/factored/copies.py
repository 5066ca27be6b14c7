"""All masked copies of chains, made explicitly: what the caches of the fast forms start from."""

import torch
from torch import Tensor

from manybody.sampling.factored.parameters import Parameters

BATCH = 2**20
"""Bytes of one array of copies at a time: as much as stays in the cache of a processor."""


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


@torch.no_grad()
def features(parameters: Parameters, tokens: Tensor, rows: Tensor, positions: Tensor) -> Tensor:
    """Features (N, d) at `positions` (N,) of sequences tokens[rows], that position masked."""
    size = copies_at_once(parameters)
    pieces = zip(rows.split(size), positions.split(size), strict=True)
    return torch.cat([_copies(parameters, tokens[row], masked)[1] for row, masked in pieces])


def copies_at_once(parameters: Parameters) -> int:
    each = parameters.left[0].element_size() * parameters.length * parameters.vocabulary
    return max(1, BATCH // each)


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
