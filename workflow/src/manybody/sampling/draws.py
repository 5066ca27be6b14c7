"""Random numbers that belong to a chain and a sweep, whatever batch the chain moves in."""

import numpy as np
import torch
from torch import Tensor

from manybody.data.vector_loops import LANES, exponential, get, put, spread, where_greater
from manybody.io.compiled import njit
from manybody.io.seeds import stream_key

LEAST = -700.0  # of an exponent; what is rarer than exp(LEAST) times the most likely is not drawn


def unigram(tokens: np.ndarray, vocabulary: int) -> np.ndarray:
    """Frequencies (|V|,) of tokens (N, L), half a count added to each, so that none is 0."""
    counts = np.bincount(np.asarray(tokens).reshape(-1), minlength=vocabulary) + 0.5
    return counts / counts.sum()


class Draws:
    """For each sweep, the positions a chain visits and its uniform numbers, unrelated for two names
    `stream`. A sweep has one Philox stream, read in the order of the chains: the numbers of chain c
    are the same for any number of chains beyond c, any grouping and any restart."""

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

    def sweeps(self, numbers: range) -> tuple[np.ndarray, np.ndarray]:
        """The same of S sweeps: positions (C, S, L), uniforms (C, S, L, 2)."""
        visits, uniforms = zip(*map(self.sweep, numbers), strict=True)
        return np.stack(visits, axis=1), np.stack(uniforms, axis=1)

    def _stream(self, number: int, purpose: int) -> np.random.Generator:
        entropy = np.random.SeedSequence(self.seed, spawn_key=(*self.stream, number, purpose))
        return np.random.Generator(np.random.Philox(entropy))


def propose(
    logits: Tensor, uniforms: np.ndarray, current: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Tokens (n,) drawn from softmax of logits (n, |V|) by inversion, and h[drawn] - h[current]."""
    if logits.device.type != "cpu":
        return invert_on_tensors(logits, uniforms, current)
    # One layout, as `invert` is compiled for each.
    uniforms, current = np.ascontiguousarray(uniforms), np.ascontiguousarray(current)
    drawn, gains = np.empty_like(current), np.empty_like(uniforms)
    invert(logits.contiguous().numpy(), uniforms, current, drawn, gains)
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


@njit(nogil=True, cache=True)
def invert(logits, uniforms, current, drawn, gains):
    """Fills `drawn` (n,) and `gains` (n,); every row is summed on its own, in double precision."""
    vocabulary = logits.shape[1]
    lanes = np.zeros((1, (vocabulary + LANES - 1) // LANES, LANES))
    weights = lanes.reshape(-1)
    least, none = spread(lanes, LEAST), spread(lanes, 0.0)
    for m in range(len(logits)):
        row = logits[m]
        top, total = np.float64(row.max()), 0.0
        for v in range(vocabulary):
            weights[v] = row[v] - top
        for n in range(lanes.shape[1]):
            given = get(lanes, 0, n)
            put(lanes, 0, n, where_greater(least, given, none, exponential(lanes, given)))
        for v in range(vocabulary):
            total += weights[v]
            weights[v] = total
        token = np.searchsorted(weights[:vocabulary], uniforms[m] * total, side="right")
        drawn[m] = min(token, vocabulary - 1)
        gains[m] = np.float64(row[drawn[m]]) - np.float64(row[current[m]])


def log_sums(logits: Tensor) -> Tensor:
    """log sum_v exp(logits) (...,) float64 of logits (..., |V|)."""
    if logits.device.type != "cpu":
        return logits.logsumexp(-1).double()
    found = torch.empty(logits.shape[:-1], dtype=torch.float64)
    sum_exponentials(logits.flatten(0, -2).contiguous().numpy(), found.view(-1).numpy())
    return found


@njit(nogil=True, cache=True)
def sum_exponentials(logits, out):
    """out (n,) = log sum_v exp(logits) of logits (n, |V|), in their precision."""
    vocabulary = logits.shape[1]
    lanes = np.full((1, (vocabulary + LANES - 1) // LANES + 1, LANES), -np.inf, logits.dtype)
    weights, blocks = lanes.reshape(-1), lanes.shape[1] - 1
    for m in range(len(logits)):
        row = logits[m]
        for v in range(vocabulary):
            weights[v] = row[v]
        most = get(lanes, 0, 0)
        for n in range(1, blocks):
            given = get(lanes, 0, n)
            most = where_greater(given, most, given, most)
        put(lanes, 0, blocks, most)
        top = lanes[0, blocks].max()
        shift, total = spread(lanes, top), spread(lanes, 0.0)
        for n in range(blocks):
            total = total + exponential(lanes, get(lanes, 0, n) - shift)
        put(lanes, 0, blocks, total)
        out[m] = np.float64(top) + np.log(np.float64(lanes[0, blocks].sum()))
