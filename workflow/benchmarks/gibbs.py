"""How much faster kept logits make a Gibbs sweep than numpy anew, and two threads than one.

Both baselines move all chains together, site by site, in single precision and with the tables they
need laid out beforehand; what they draw is compared with the exact conditionals in the tests:
  one-hot   h = sum_j X_j (J_i . X X) U in stages, each a matrix product over one-hot colours
  bincount  J summed into colour bins by `numpy.bincount`, bins x U as one matrix product
They run in processes of their own, which tell numpy's linear algebra to use one thread: that is
read once, when numpy is loaded.
"""

import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np

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


class OneHot:
    """All chains at a site: J times the colours in stages, the last k-1 sites one after another."""

    chains = 32  # the fastest

    def __init__(self, hamiltonian: Hamiltonian):
        self.order, self.vocabulary = hamiltonian.order, hamiltonian.vocabulary
        # Ordered tuples count each subset (k-1)! times, and k! of H come down to k.
        self.couplings = (hamiltonian.order * hamiltonian.couplings).astype(np.float32)
        self.colours = (-hamiltonian.beta * hamiltonian.colours).astype(np.float32)

    def logits(self, tokens: np.ndarray, site: int) -> np.ndarray:
        """tokens (N, L) int64 -> (N, |V|)."""
        count, length = tokens.shape
        onehot = np.eye(self.vocabulary, dtype=np.float32)[tokens]
        # (L^(k-2), L) @ (N, L, |V|): the last site of every tuple becomes its colour.
        found = self.couplings[site].reshape(-1, length) @ onehot
        colours = self.vocabulary
        for _ in range(self.order - 2):
            found = found.reshape(count, -1, length, colours)
            transposed = onehot.transpose(0, 2, 1)[:, None]
            found = (transposed @ found).reshape(count, -1, self.vocabulary * colours)
            colours *= self.vocabulary
        return found.reshape(count, -1) @ self.colours.reshape(self.vocabulary, -1).T


BASELINES = {"one-hot numpy": OneHot, "bincount numpy": Bincount}


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
    rates = {name: [] for name in ("one thread", "two threads", *BASELINES)}
    chains = gibbs.CHUNK * max(4, round(_ours(hamiltonian, 256, 1) * SECONDS / 15 / gibbs.CHUNK))
    for _ in range(BLOCKS):
        rates["one thread"].append(_ours(hamiltonian, chains, 1))
        rates["two threads"].append(_ours(hamiltonian, chains, 2))
        for name, rate in _baselines(colours).items():
            rates[name].append(rate)
    medians = {name: statistics.median(found) for name, found in rates.items()}
    ours = medians["one thread"]
    pairs = [(name, ours, medians[name], 1) for name in BASELINES]
    pairs.append(("one thread", medians["two threads"], ours, 2))
    return [
        dict(
            what=f"gibbs {colours} against {name}", ours=mine, baseline=other, ratio=mine / other,
            unit="chain-sweeps/s", threads=threads,
        )
        for name, mine, other, threads in pairs
    ]  # fmt: skip


def _ours(hamiltonian: Hamiltonian, chains: int, threads: int) -> float:
    """Chain-sweeps a second, compilation and tables left out."""
    stream = np.random.SeedSequence(1)
    gibbs.sample(hamiltonian, threads, 1, stream, threads, "warm up")
    begin = time.perf_counter()
    gibbs.sample(hamiltonian, chains, SOURCE["sweeps"], stream, threads, "benchmark")
    return chains * SOURCE["sweeps"] / (time.perf_counter() - begin)


def _baselines(colours: str) -> dict[str, float]:
    """What `baselines` returns, in a process with one thread."""
    given = {f"{name}_NUM_THREADS": "1" for name in THREADS}
    environment = {**os.environ, **given, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "benchmarks.gibbs", colours]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(done.stdout)


def baselines(colours: str) -> dict[str, float]:
    """Chain-sweeps a second of each baseline with the U called `colours`."""
    hamiltonian, _ = draw({**SOURCE, "colours": COLOURS[colours]})
    return {name: _rate(kind(hamiltonian), hamiltonian) for name, kind in BASELINES.items()}


def _rate(sampler, hamiltonian: Hamiltonian) -> float:
    rng = np.random.default_rng(1)
    shape = (sampler.chains, hamiltonian.length)
    tokens = rng.integers(0, hamiltonian.vocabulary, shape)
    sweep(sampler, tokens, rng)
    begin = time.perf_counter()
    for _ in range(SWEEPS):
        sweep(sampler, tokens, rng)
    return SWEEPS * sampler.chains / (time.perf_counter() - begin)


if __name__ == "__main__":
    print(json.dumps(baselines(sys.argv[1])))
