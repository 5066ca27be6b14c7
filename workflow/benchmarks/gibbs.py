"""Gain of kept logits in a Gibbs sweep over numpy anew, and of two threads over one.

The baseline moves all chains together, site by site, with the tables it needs laid out beforehand:
J is summed into colour bins by `numpy.bincount`, and bins x U is one matrix product. What it draws
is compared with the exact conditionals in the tests. It runs in a process of its own, which tells
numpy's linear algebra to use one thread: that is read once, when numpy is loaded.
"""

import sys
from functools import partial

import numpy as np

from benchmarks.harness import medians, row, said, timed
from manybody.data import gibbs
from manybody.data.hamiltonian import Hamiltonian, colour_bins
from manybody.data.many_body import draw

SOURCE = dict(
    order=4, length=20, vocabulary=10, logit_scale=5.0, sweeps=15, seed=0,
    couplings=dict(vectors=200, variables="signs", probability=0.8),
)  # fmt: skip
COLOURS = {"potts": "potts", "vectors": dict(vectors=200, variables="signs", probability=0.8)}
BLOCKS = 5
SWEEPS = 30  # of a baseline in a block
SECONDS = 1.0  # that ours runs in a block, about
THREADS = ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB")  # <name>_NUM_THREADS


class Bincount:
    """All chains at a site: one `bincount` of J over the colour bins of their triples."""

    chains = 64  # the fastest: work arrays stay in cache

    def __init__(self, hamiltonian: Hamiltonian):
        order = hamiltonian.order
        tuples, weights, folded = hamiltonian.packed
        self.columns = [[np.ascontiguousarray(c) for c in sites.T] for sites in tuples]
        # In the types that `bincount` would otherwise convert them to at each call.
        self.weights = np.tile(weights, (1, self.chains))
        self.bins = colour_bins(hamiltonian.vocabulary, order - 1).ravel().astype(np.intp)
        self.powers = [hamiltonian.vocabulary**m for m in range(order - 1)]
        self.folded = -hamiltonian.beta * folded
        self.offsets = len(folded) * np.arange(self.chains)[:, None]

    def logits(self, tokens: np.ndarray, site: int) -> np.ndarray:
        """tokens (N, L) int64 -> (N, |V|), N up to `chains`."""
        flat = None
        for power, sites in zip(self.powers, self.columns[site], strict=True):
            term = (power * tokens).take(sites, axis=1)
            flat = term if flat is None else np.add(flat, term, out=flat)
        where = self.bins.take(flat)
        where += self.offsets[: len(tokens)]
        count = len(self.folded)
        weights = self.weights[site, : where.size]
        sums = np.bincount(where.ravel(), weights, len(tokens) * count)
        return sums.reshape(-1, count) @ self.folded


def sweep(sampler, tokens: np.ndarray, rng: np.random.Generator) -> None:
    """Moves `tokens` (N, L) by one sweep from left to right, in place."""
    for site in range(tokens.shape[1]):
        logits = sampler.logits(tokens, site)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True)).cumsum(axis=1)
        targets = rng.random((len(tokens), 1), dtype=np.float32) * weights[:, -1:]
        drawn = (weights <= targets).sum(axis=1)
        tokens[:, site] = np.minimum(drawn, weights.shape[1] - 1)


def measure() -> list[dict]:
    """Rows `what, ours, baseline, ratio, unit, threads` in chain-sweeps/s, medians over blocks."""
    rows = []
    for name, colours in COLOURS.items():
        hamiltonian, _ = draw({**SOURCE, "colours": colours})
        rows += _rows(name, hamiltonian)
    return rows


def _rows(colours: str, hamiltonian: Hamiltonian) -> list[dict]:
    chains = gibbs.CHUNK * max(4, round(_ours(hamiltonian, 256, 1) * SECONDS / 15 / gibbs.CHUNK))
    sides = [partial(_ours, hamiltonian, chains, threads) for threads in (1, 2)]
    # `main` of its own process, with one thread
    alone = {f"{each}_NUM_THREADS": "1" for each in THREADS}
    one, two, other = medians([*sides, lambda: float(said(__name__, colours, **alone))], BLOCKS)
    return [
        row(f"gibbs {colours} against bincount numpy", one, other, "chain-sweeps/s"),
        row(f"gibbs {colours} against one thread", two, one, "chain-sweeps/s", 2),
    ]


def _ours(hamiltonian: Hamiltonian, chains: int, threads: int) -> float:
    """Chain-sweeps a second, of the processor if one thread; compilation and tables left out."""
    stream = np.random.SeedSequence(1)
    gibbs.sample(hamiltonian, threads, 1, stream, threads, "warm up")
    sweeps = SOURCE["sweeps"]
    sample = partial(gibbs.sample, hamiltonian, chains, sweeps, stream, threads, "benchmark")
    _, passed, busy = timed(sample)
    return chains * sweeps / (busy if threads == 1 else passed)


def main(colours: str) -> None:
    """Prints chain-sweeps a second of the processor of the baseline with the U called `colours`."""
    hamiltonian, _ = draw({**SOURCE, "colours": COLOURS[colours]})
    sampler, rng = Bincount(hamiltonian), np.random.default_rng(1)
    shape = (sampler.chains, hamiltonian.length)
    tokens = rng.integers(0, hamiltonian.vocabulary, shape)
    sweep(sampler, tokens, rng)
    *_, taken = timed(lambda: [sweep(sampler, tokens, rng) for _ in range(SWEEPS)])
    print(SWEEPS * sampler.chains / taken)


if __name__ == "__main__":
    main(*sys.argv[1:])
