"""Gibbs sampling of many-body data with exact conditionals (eq. 3), compiled.

Chains are independent: each starts from uniform colours, visits its sites from left to right and
draws every colour from its exact conditional, with random numbers of its own. So the samples are
the same for any number of threads, and those of the first chains for any number of chains.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from manybody.hamiltonian import Hamiltonian
from manybody.progress import Progress
from manybody.sampling.gibbs_loops import sample_chains
from manybody.tuples import colour_bins, sorted_colours

CHUNK = 64  # chains that a thread takes at a time


def sample(
    hamiltonian: Hamiltonian,
    chains: int,
    sweeps: int,
    stream: np.random.SeedSequence,
    threads: int = 1,
    label: str = "gibbs",
) -> tuple[np.ndarray, np.ndarray]:
    """Tokens (chains, L) int64 after `sweeps` sweeps, and the share of visits that changed a
    colour in each sweep (sweeps,)."""
    tables = prepare(hamiltonian)
    length = hamiltonian.length
    states = stream.generate_state(4 * chains, np.uint64).reshape(chains, 4)
    tokens = np.empty((chains, length), dtype=np.int64)
    changes = np.zeros((chains, sweeps), dtype=np.int64)
    parts = [slice(start, start + CHUNK) for start in range(0, chains, CHUNK)]

    def run(part: slice) -> int:
        sample_chains(tokens[part], states[part], changes[part], hamiltonian.order, *tables)
        return len(tokens[part])

    with ThreadPoolExecutor(threads) as pool, Progress(chains, "chains", label) as progress:
        for done in pool.map(run, parts):
            progress.update(done)
    return tokens, changes.sum(axis=0) / (chains * length)


def prepare(hamiltonian: Hamiltonian) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`weights`, `prefixes` and `table` of `gibbs_loops`; single precision, as the logits are."""
    order, vocabulary = hamiltonian.order, hamiltonian.vocabulary
    tuples, weights, _ = hamiltonian.packed
    # Ascending subsets in colexicographic order: sorted by their last site, then the one before.
    colex = np.lexsort(tuples[-1].T)
    rows = sorted_colours(vocabulary, order - 2)
    table = -hamiltonian.beta * hamiltonian.colours[:, :, *rows.T].reshape(
        vocabulary, vocabulary, -1
    )
    needed = (table != 0).any(axis=(0, 1))
    numbers = np.where(needed, np.cumsum(needed) - 1, needed.sum())
    prefixes = numbers[colour_bins(vocabulary, order - 2)]
    prefixes = prefixes.reshape((-1, vocabulary) if order > 2 else (1, 1))
    return (
        weights[:, colex].astype(np.float32),
        prefixes.astype(np.uint32),
        np.ascontiguousarray(table[:, :, needed], dtype=np.float32),
    )
