"""References for tokens that are left out: a distribution, or blocks along frozen paths."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from manybody.io.refusal import Refusal
from manybody.io.seeds import spawn


@dataclass(frozen=True)
class Paths:
    """Orders (M, L) of the positions, and blocks (M, L) of tokens to start from: frozen paths."""

    orders: np.ndarray
    blocks: np.ndarray


@dataclass(frozen=True)
class Reference:
    """The reference of an energy: a distribution mu (|V|,), or frozen paths."""

    mu: np.ndarray | None = None
    paths: Paths | None = None

    @property
    def about(self) -> dict:
        """JSON that says which: the digest of the distribution, the paths as they are."""
        if self.paths is None:
            return dict(law=hashlib.sha256(self.mu.tobytes()).hexdigest())
        return dict(orders=self.paths.orders.tolist(), blocks=self.paths.blocks.tolist())


def unigram(tokens: np.ndarray, vocabulary: int) -> np.ndarray:
    """Frequencies (|V|,) of tokens (N, L), half a count added to each, so that none is 0."""
    counts = np.bincount(np.asarray(tokens).reshape(-1), minlength=vocabulary) + 0.5
    return counts / counts.sum()


def draw_paths(
    length: int, paths: int, seed: int, *, mu: np.ndarray | None = None, blocks=None
) -> Paths:
    """`paths` orders at random, and as many blocks: draws of mu (|V|,), or rows of `blocks` (N, L).

    A function of `seed`, so that all clones with one `chain_seed` have the same paths.
    """
    generator = np.random.default_rng(spawn(seed, "paths"))
    orders = generator.permuted(np.tile(np.arange(length), (paths, 1)), axis=1)
    if mu is not None:
        return Paths(orders, generator.choice(len(mu), (paths, length), p=mu / mu.sum()))
    if paths > len(blocks):
        raise Refusal(
            f"found {paths}, each with a block of its own; expected at most the "
            f"{len(blocks)} validation sequences; lower it",
            "paths",
        )
    rows = np.sort(generator.choice(len(blocks), paths, replace=False))
    return Paths(orders, np.asarray(blocks[rows], dtype=np.int64))


def reference(
    energy: str, paths: int | None, seed: int, model, tokens: Callable[[str], np.ndarray]
) -> Reference | None:
    """The reference of `energy`; `tokens` reads those (N, L) of a split of the model's source.

    mu is the unigram distribution of training; frozen paths of "reference" start from draws of it,
    those of "brook" from validation sequences. None for energies that compare with nothing.
    """
    if energy in ("raw", "norm"):
        return None
    if energy == "brook":
        return Reference(paths=draw_paths(model.length, paths, seed, blocks=tokens("validation")))
    mu = unigram(tokens("train"), model.vocabulary)
    if paths is None:
        return Reference(mu=mu)
    return Reference(paths=draw_paths(model.length, paths, seed, mu=mu))
