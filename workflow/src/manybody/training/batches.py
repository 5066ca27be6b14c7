"""Sequences and masks that each step sees: a function of seed, stream and step alone, so that a run
that is resumed, or split over processes, sees the same batches, with no generator to save."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from manybody.io.refusal import Refusal
from manybody.io.seeds import spawn, torch_seed
from manybody.models.objectives import choose_masks, copies_per_sequence, masked_positions


@dataclass
class Batch:
    """S sequences and, where only some positions are masked, N copies with one mask each.

    `sequences` (S,) are rows of the data; `rows` (N,), ascending, says which of them each copy is
    of, `positions` (N,) what it hides. Both are None if every token is predicted.
    """

    sequences: np.ndarray
    rows: Tensor | None = None
    positions: Tensor | None = None

    def part(self, number: int, parts: int) -> "Batch":
        """One of `parts` runs of whole sequences, since copies of one sequence share work."""
        start, stop = (len(self.sequences) * edge // parts for edge in (number, number + 1))
        if self.rows is None:
            return Batch(self.sequences[start:stop])
        mine = (start <= self.rows) & (self.rows < stop)
        return Batch(self.sequences[start:stop], self.rows[mine] - start, self.positions[mine])


class Batches:
    """The batches of one run over `count` sequences of length L, drawn by `seed` in `stream`.

    `recipe["batch"]` counts masked copies for the masked objective (the last sequence of a batch
    may give fewer) and sequences for the next-token objective. Batches run through one permutation
    of the data after the other, without a gap between epochs.

    `sequences` and `predictions` are those of a whole batch. Its summed loss divided by `divisor`
    is what training descends: the mean over predictions, or, with `loss: sum`, the sum over those
    of a sequence averaged over sequences, whose gradient is about L times larger (many-body,
    section 4). Raises `Refusal` for a batch that the recipe or the data cannot fill.
    """

    def __init__(self, count: int, length: int, recipe: dict, seed: int, stream: str = ""):
        self.count, self.length, self.seed, self.stream = count, length, seed, stream
        self.masks = recipe["masks"] if recipe["objective"] == "masked" else None
        batch = recipe["batch"]
        if self.masks is None:
            self.sequences, self.predictions = batch, batch * (length - 1)
        else:
            copies = copies_per_sequence(length, self.masks)
            if batch < copies:
                raise Refusal(
                    f"found {batch} masked copies; expected at least the {copies} of one sequence "
                    f"(masks {self.masks} of {length} positions); raise it",
                    "training.batch",
                )
            if self.masks == "all" and batch % length:
                raise Refusal(
                    f"found {batch}; expected a multiple of the length {length}, as masks: all "
                    f"gives {length} copies of each sequence; choose {batch // length * length}",
                    "training.batch",
                )
            self.sequences, self.predictions = -(-batch // copies), batch
        self.divisor = {"mean": self.predictions, "sum": self.sequences}[recipe.get("loss", "mean")]
        if self.sequences > count:
            most = count if self.masks is None else count * copies
            raise Refusal(
                f"found {batch}, which takes {self.sequences} sequences a step; expected at most "
                f"{most}, as the train split has {count} sequences of length {length}; lower it, "
                f"or give the source more data or a smaller length",
                "training.batch",
            )
        self._orders = {}

    def at(self, step: int) -> Batch:
        epoch, start = divmod(step * self.sequences, self.count)
        chosen = self._order(epoch)[start : start + self.sequences]
        if len(chosen) < self.sequences:
            chosen = np.concatenate([chosen, self._order(epoch + 1)])[: self.sequences]
        return Batch(chosen, *self._copies(step))

    def epoch(self, step: int) -> float:
        """The passes through the data before step `step`."""
        return step * self.sequences / self.count

    def _copies(self, step: int) -> tuple[Tensor, Tensor] | tuple[()]:
        if self.masks is None or self.masks == "all":
            return ()
        draw = torch.Generator().manual_seed(torch_seed(self.seed, "masks", step, self.stream))
        rows, positions = choose_masks(self.sequences, self.length, self.masks, draw)
        surplus = len(rows) - self.predictions
        if surplus == 0:
            return rows, positions
        # The last sequence gives fewer copies: any of them, since positions come sorted.
        copies = len(rows) // self.sequences
        last = len(rows) - copies + torch.randperm(copies, generator=draw)[surplus:].sort().values
        kept = torch.cat([torch.arange(len(rows) - copies), last])
        return rows[kept], positions[kept]

    def _order(self, epoch: int) -> np.ndarray:
        if epoch not in self._orders:
            draw = np.random.default_rng(spawn(self.seed, "order", epoch, self.stream))
            last = {past: order for past, order in self._orders.items() if past == epoch - 1}
            self._orders = {**last, epoch: draw.permutation(self.count)}
        return self._orders[epoch]


def training_set(tokens, recipe: dict):
    """The first `subset` sequences of tokens (N, L), or all where the recipe names no subset."""
    subset = recipe.get("subset")
    if subset is None:
        return tokens
    if not 0 < subset <= len(tokens):
        raise Refusal(
            f"found {subset}; expected 1 to {len(tokens)}, the sequences of the train split; lower "
            f"it, or leave it out",
            "training.subset",
        )
    return tokens[:subset]


def validation_set(available: int, length: int, recipe: dict) -> tuple[np.ndarray, Tensor | None]:
    """Sequences (n,), evenly spaced, and masks (n, m) that every checkpoint is validated on; None
    if every token is predicted.

    They depend on no seed and no stream: losses of all runs and models are over the same tokens.
    """
    wanted = recipe["validation"]
    if not 0 < wanted <= available:
        raise Refusal(
            f"found {wanted}; expected 1 to {available}, the sequences of the validation split; "
            f"lower it, or give the source more data",
            "training.validation",
        )
    sequences = np.arange(wanted) * available // wanted
    if recipe["objective"] != "masked":
        return sequences, None
    masks = recipe.get("validation_masks", recipe["masks"])
    return sequences, masked_positions(wanted, length, masks, torch_seed(0, "validation masks"))
