"""What models are tested against: each copy written out, masked at one position, put through."""

import torch
from torch.nn.functional import cross_entropy


@torch.no_grad()
def masked(model, tokens, rows, positions):
    """Loss and hit of each copy (N,): sequence `rows` (N,) of tokens (B, L), masked at `positions`.

    By the model's plain forward, in double precision from the logits on.
    """
    copies, mask = tokens[rows], torch.arange(tokens.shape[1]) == positions[:, None]
    logits, targets = model(copies, mask)[mask].double(), copies[mask]
    return cross_entropy(logits, targets, reduction="none"), logits.argmax(-1) == targets
