"""Gibbs sampling of a `PairModel`, and its partition function.

Chains visit their sites from left to right, each with random numbers of its own: samples do not
depend on the number of threads or of other chains. Probabilities are right to single precision.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from manybody.data.gibbs import begun, in_parts
from manybody.data.pair_gibbs_loops import LANES, scatter
from manybody.data.pair_model import PairModel
from manybody.io.compiled import each
from manybody.sampling.pair_chains_loops import LOWEST, SIDE, count, move

CHUNK = 1024  # chains that a thread takes at a time: many, as each reads all tables
BYTES = 2**16  # of a site's table up to which sites are taken together in groups
PART = 500  # sequences whose distances to all others are taken at once


class Tables(NamedTuple):
    """Arrays of a model for the compiled loops: `fields` (2, L, V, LANES), `tables`, `sizes`."""

    fields: np.ndarray
    tables: np.ndarray
    sizes: tuple[int, int, int]

    @classmethod
    def of(
        cls, fields: np.ndarray, couplings: np.ndarray, base: np.ndarray | None = None
    ) -> "Tables":
        """Tables of h (L, q) and J (L, L, q, q); fields `base` (L, q), or zeros, where beta = 0."""
        length, vocabulary = fields.shape
        width = -(-vocabulary // LANES) * LANES
        size = 1
        while length * vocabulary ** (size + 1) * width * 4 / (size + 1) <= BYTES:
            size += 1
        groups = -(-length // (size * SIDE)) * SIDE
        # By the colour of the other site, so that each is a row: J_ij(a, b) = J_ji(b, a).
        by_colour = np.zeros((length, groups * size, vocabulary, width), np.float32)
        by_colour[:, :length, :, :vocabulary] = couplings.transpose(1, 0, 2, 3)
        by_colour = by_colour.reshape(length, groups, size, vocabulary, width)
        tables = by_colour[:, :, 0]
        for place in range(1, size):
            tables = by_colour[:, :, place, :, None] + tables[:, :, None]
            tables = tables.reshape(length, groups, -1, width)
        both = np.zeros((2, length, width), np.float32)
        base = np.zeros_like(fields) if base is None else base
        both[0] = LOWEST
        both[:, :, :vocabulary] = base, fields - base
        lanes = (width // LANES, LANES)
        return cls(
            both.reshape(2, length, *lanes),
            tables.reshape(length, -1, *lanes),
            (vocabulary, size, groups),
        )


class Chains(NamedTuple):
    """Tokens (n, L) uint8, states (n, 4) of their random numbers, and scores (n,), which follow
    log p + log Z from wherever they are set (nats)."""

    tokens: np.ndarray
    states: np.ndarray
    scores: np.ndarray

    @classmethod
    def begun(
        cls,
        count: int,
        length: int,
        vocabulary: int,
        stream: np.random.SeedSequence,
        initial: np.ndarray | None = None,
    ) -> "Chains":
        """Chains with uniform colours, or from tokens `initial` (count, L), with scores 0."""
        states, tokens = begun(count, length, stream, initial)
        if initial is None:
            scatter(tokens, states, vocabulary)
        return cls(tokens.astype(np.uint8), states, np.zeros(count))

    def move(
        self, tables: Tables, sweeps: int, threads: int = 1, beta: float = 1.0, label: str = ""
    ) -> None:
        """Moves the chains by `sweeps` sweeps of exp(base + beta (log p - base))."""

        def run(part: slice) -> None:
            parts = (array[part] for array in self)
            move(*parts, sweeps, np.float32(beta), tables.fields, tables.tables, tables.sizes)

        in_parts(run, len(self.tokens), CHUNK, threads, label)


def sample(
    model: PairModel, count: int, sweeps: int, seed: int, threads: int = 1, label: str = "chains"
) -> np.ndarray:
    """Tokens (count, L) uint8 of independent chains after `sweeps` sweeps from uniform colours."""
    stream = np.random.SeedSequence(seed)
    chains = Chains.begun(count, model.length, model.vocabulary, stream)
    chains.move(Tables.of(model.fields, model.couplings), sweeps, threads, label=label)
    return chains.tokens


def frequencies(
    tokens: np.ndarray, vocabulary: int, weights: np.ndarray | None = None, threads: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies f_i(a) (L, q) and f_ij(a, b) of the pairs i < j in order (L (L - 1) / 2, q, q) of
    tokens (N, L), which count alike or by weights (N,)."""
    colours = np.ascontiguousarray(np.asarray(tokens).T, np.uint8)
    length = len(colours)
    counted = np.ones(len(tokens), np.int32) if weights is None else np.asarray(weights, np.float64)
    pairs = np.zeros((length * (length - 1) // 2, vocabulary, vocabulary), counted.dtype)
    each(threads, lambda part: count(colours, counted, part, threads, pairs), range(threads))
    pairs = pairs / counted.sum()
    return np.concatenate([pairs[:1].sum(axis=2), pairs[: length - 1].sum(axis=1)]), pairs


def nearest(tokens: np.ndarray, natural: np.ndarray, itself: bool = False) -> np.ndarray:
    """The least share of sites (M,) in which tokens (M, L) differ from one of natural (N, L);
    itself: whether each is among those, and does not count."""
    from scipy.spatial.distance import cdist

    parts = (tokens[start : start + PART] for start in range(0, len(tokens), PART))
    found = [np.partition(cdist(part, natural, "hamming"), int(itself), axis=1) for part in parts]
    return np.concatenate([distances[:, int(itself)] for distances in found])


def log_partition(
    model: PairModel,
    chains: int,
    temperatures: int,
    seed: int,
    threads: int = 1,
    base: np.ndarray | None = None,
) -> tuple[float, float]:
    """log Z of a model and its standard error over chains, in nats, by annealed importance sampling
    (Neal 2001): one sweep at each of as many inverse temperatures, evenly from sites that are
    independent with logits `base` (L, q), those of the zero-sum gauge by default, to the model."""
    base = model.zero_sum().fields if base is None else base
    tables = Tables.of(model.fields, model.couplings, base)
    moved = Chains.begun(chains, model.length, model.vocabulary, np.random.SeedSequence(seed))
    moved.move(tables, 1, threads, beta=0.0)  # a sweep of independent sites is a new draw
    own = base[np.arange(model.length), moved.tokens].sum(axis=1)
    moved.scores[:] = model.scores(moved.tokens) - own
    steps = np.linspace(0.0, 1.0, temperatures + 1)
    logs = np.zeros(chains)
    for before, after in pairwise(steps):
        logs += (after - before) * moved.scores
        if after < 1.0:
            moved.move(tables, 1, threads, beta=after)
    independent = np.logaddexp.reduce(base, axis=1).sum()
    ratios = np.exp(logs - logs.max())
    error = ratios.std(ddof=1) / (ratios.mean() * np.sqrt(chains))
    return float(independent + logs.max() + np.log(ratios.mean())), float(error)
