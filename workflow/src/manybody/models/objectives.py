"""Objectives of training and tests: masked tokens, one mask a copy, or next tokens.

Losses are cross-entropies in nats. B sequences of L tokens give N masked copies; a share of the
positions or all of them are masked, each in its own copy (nlp-clones, section 3).
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from manybody.models.base import Model


class SequenceSums(NamedTuple):
    """Per sequence (B,), on the CPU: summed loss (float64, nats), correct and all predictions."""

    loss_sum: Tensor
    correct: Tensor
    predictions: Tensor


def copies_per_sequence(length: int, masks: float | str) -> int:
    """Number of copies of a sequence: `masks` is a share of its L positions, or "all"."""
    if masks == "all":
        return length
    return max(1, round(masks * length))


def choose_masks(
    sequences: int, length: int, masks: float | str, generator: torch.Generator | None = None
) -> tuple[Tensor, Tensor]:
    """`rows`, `positions` (N,): which position of which sequence is masked in each copy.

    The copies of a sequence are adjacent, their positions distinct and ascending, drawn uniformly
    from `generator` (a CPU generator), which masks = "all" does not touch.
    """
    copies = copies_per_sequence(length, masks)
    rows = torch.arange(sequences).repeat_interleave(copies)
    if copies == length:
        return rows, torch.arange(length).repeat(sequences)
    keys = torch.rand(sequences, length, generator=generator)
    return rows, keys.argsort(dim=1, stable=True)[:, :copies].sort(dim=1).values.flatten()


def masked_positions(
    sequences: int, length: int, positions: float | str, seed: int
) -> Tensor | None:
    """Masked positions (N, m) of N sequences, ascending; None for all L. Those of the first
    sequences do not depend on the number of all."""
    if positions == "all":
        return None
    _, chosen = choose_masks(sequences, length, positions, torch.Generator().manual_seed(seed))
    return chosen.view(sequences, -1)


def masked_loss(
    model: Model,
    tokens: Tensor,
    rows: Tensor | None = None,
    positions: Tensor | None = None,
    together: bool = False,
) -> tuple[Tensor, Tensor]:
    """Loss (N,) in nats and correctness (N, bool) of the masked token of each copy.

    tokens (B, L); copy n masks `positions[n]` of sequence `rows[n]` alone. Without these all L
    positions are asked, sequence by sequence. together: one copy hides the masks of a sequence.
    """
    if rows is None:
        compiled = model.all_masked_loss(tokens)
        if compiled is not None:
            return compiled
        targets = tokens.flatten()
        logits = model.head(model.all_masked_features(tokens)).flatten(0, 1)
    else:
        targets = tokens[rows, positions]
        if together:
            hidden = torch.zeros_like(tokens, dtype=torch.bool)
            hidden[rows, positions] = True
            logits = model(tokens, hidden)[rows, positions]
        else:
            logits = model.masked_logits(tokens, rows, positions)
    return _cross_entropy(logits, targets)


def next_token_loss(model: Model, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """Loss (B * (L - 1),) in nats and correctness of tokens 2..L of each sequence, in order."""
    return _cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())


@torch.no_grad()
def sequence_sums(
    model: Model, tokens: Tensor, positions: Tensor | None = None, numbers: int | None = None
) -> SequenceSums:
    """Test loss of each sequence (B, L), without `special` tokens: masked, or next-token if causal.

    positions: (B, m), the masks of each sequence; None for all L. `numbers` bounds the widest work
    array, by default for a core's cache or an accelerator; batches may change the last bits.
    """
    device = next(model.parameters()).device
    total, length = tokens.shape
    copies = 1 if model.about.causal else length if positions is None else positions.shape[1]
    if numbers is None:
        numbers = 2**19 if device.type == "cpu" else 2**28
    size = max(1, numbers // (copies * model.activation_size))
    parts = []
    special = torch.tensor(model.special, dtype=torch.long, device=device)
    for start in range(0, total, size):
        part = tokens[start : start + size].to(device).long()
        targets = part[:, 1:] if model.about.causal else part
        if model.about.causal:
            loss, right = next_token_loss(model, part)
        elif positions is None:
            loss, right = masked_loss(model, part)
        else:
            masks = positions[start : start + size].to(device).long()
            rows = torch.arange(len(part), device=device).repeat_interleave(copies)
            loss, right = masked_loss(model, part, rows, masks.flatten())
            targets = part.gather(1, masks)
        text = ~torch.isin(targets, special)
        losses = loss.view(text.shape).where(text, 0).double().sum(1)
        correct = (right.view(text.shape) & text).sum(1)
        parts.append((losses, correct, text.sum(1)))
    return SequenceSums(*(torch.cat(sums).cpu() for sums in zip(*parts, strict=True)))


def _cross_entropy(logits: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Loss and correctness (N,) of logits (N, |V|); half-precision logits are widened first."""
    if logits.dtype in (torch.bfloat16, torch.float16):
        logits = logits.float()
    loss = functional.cross_entropy(logits, targets, reduction="none")
    return loss, logits.detach().argmax(-1) == targets
