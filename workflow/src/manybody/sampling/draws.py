"""Random numbers that belong to a chain and a sweep, whatever batch the chain moves in."""

import numpy as np
import torch
from torch import Tensor

from manybody.io.seeds import stream_key


class Draws:
    """For each sweep, the positions a chain visits and its uniform numbers.

    One Philox stream a sweep, read in the order of the chains: the numbers of chain c are the same
    for any number of chains beyond c, any grouping and any restart. Those of two names `stream`
    have nothing in common.
    """

    def __init__(self, seed: int, chains: int, length: int, order: str, stream: str = ""):
        self.seed, self.chains, self.length, self.order = seed, chains, length, order
        self.stream = stream_key(stream)

    def sweep(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Positions (C, L) int64 visited in sweep `number` (1, 2, ...), uniforms (C, L, 2)."""
        uniforms = self._stream(number, 0).random((self.chains, self.length, 2))
        if self.order == "left-to-right":
            visits = np.broadcast_to(np.arange(self.length), (self.chains, self.length))
        else:
            keys = self._stream(number, 1).random((self.chains, self.length))
            visits = np.argsort(keys, axis=1, kind="stable")
        return visits, uniforms

    def swaps(self, number: int, pairs: int) -> np.ndarray:
        """Uniforms (C, pairs) for swaps after sweep `number`."""
        return self._stream(number, 2).random((self.chains, pairs))

    def _stream(self, number: int, purpose: int) -> np.random.Generator:
        entropy = np.random.SeedSequence(self.seed, spawn_key=(*self.stream, number, purpose))
        return np.random.Generator(np.random.Philox(entropy))


def propose(
    logits: Tensor, uniforms: np.ndarray, current: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Tokens (n,) drawn from softmax of logits (n, |V|) by inversion, and h[drawn] - h[current]."""
    if logits.device.type != "cpu":
        return invert_on_tensors(logits, uniforms, current)
    # Compiled loops: imported where they are used.
    from manybody.sampling.draw_loops import invert

    drawn, gains = np.empty_like(current), np.empty_like(uniforms)
    invert(logits.numpy(), uniforms, current, drawn, gains)
    return drawn, gains


def invert_on_tensors(
    logits: Tensor, uniforms: np.ndarray, current: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The same on all rows at once, for a GPU."""
    logits = logits.double()
    weights = (logits - logits.amax(dim=1, keepdim=True)).exp_().cumsum_(dim=1)
    targets = torch.from_numpy(uniforms).to(logits.device)[:, None] * weights[:, -1:]
    drawn = torch.searchsorted(weights, targets, right=True).clamp_(max=logits.shape[1] - 1)
    pair = torch.cat([drawn, torch.from_numpy(current).to(logits.device)[:, None]], dim=1)
    chosen = logits.gather(1, pair)
    return drawn[:, 0].cpu().numpy(), (chosen[:, 0] - chosen[:, 1]).cpu().numpy()
