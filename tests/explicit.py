"""What models are tested against: each copy written out, masked at one position, put through."""

import torch
from torch.nn.functional import cross_entropy


def logits(model, tokens, rows, positions):
    """Logits (N, |V|) of sequence `rows` (N,) of tokens (B, L), masked at `positions` (N,) alone.

    By the model's plain forward.
    """
    mask = torch.arange(tokens.shape[1]) == positions[:, None]
    return model(tokens[rows], mask)[mask]


def masked(model, tokens, rows=None, positions=None):
    """Loss and hit of each copy (N,), in double precision from the logits on.

    By default of the L copies of every sequence.
    """
    if rows is None:
        rows, positions = torch.ones_like(tokens).nonzero(as_tuple=True)
    found, targets = logits(model, tokens, rows, positions).double(), tokens[rows, positions]
    return cross_entropy(found, targets, reduction="none"), found.argmax(-1) == targets
