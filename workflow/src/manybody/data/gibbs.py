"""Gibbs sampling of many-body data with exact conditionals (eq. 3), compiled.

Chains are independent. Each starts from uniform colours, or from given tokens, and visits its sites
from left to right, with random numbers of its own. So samples do not depend on the number of
threads, nor those of the first chains on the number of chains.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import factorial

import numpy as np

from manybody.data.gibbs_loops import CHUNK, sample_chains
from manybody.data.hamiltonian import Hamiltonian, colour_bins, site_tuples, sorted_colours
from manybody.data.vector_loops import LANES
from manybody.io.progress import Progress


def sample(
    hamiltonian: Hamiltonian,
    chains: int,
    sweeps: int,
    stream: np.random.SeedSequence,
    threads: int = 1,
    label: str = "gibbs",
    *,
    initial: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Tokens (chains, L) int64 after `sweeps` sweeps from uniform colours, or from tokens `initial`
    (chains, L), and the share of visits that changed a colour in each sweep (sweeps,)."""
    model = prepare(hamiltonian)
    vectors = (0,) * model[0].shape[2]
    states, tokens = begun(chains, hamiltonian.length, stream, initial)
    changes = np.zeros((chains, sweeps), dtype=np.int64)

    def run(part: slice) -> None:
        given = tokens[part], states[part], changes[part]
        sample_chains(*given, hamiltonian.order, vectors, model, initial is None)

    in_parts(run, chains, CHUNK, threads, label)
    return tokens, changes.sum(axis=0) / tokens.size


def begun(
    chains: int, length: int, stream: np.random.SeedSequence, initial: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """States (chains, 4) of the random numbers, and tokens (chains, L), `initial` if given."""
    states = stream.generate_state(4 * chains, np.uint64).reshape(chains, 4)
    tokens = np.empty((chains, length), dtype=np.int64)
    if initial is not None:
        tokens[:] = initial
    return states, tokens


def in_parts(
    run: Callable[[slice], None], chains: int, size: int, threads: int, label: str
) -> None:
    """Calls `run` for parts of up to `size` chains, on threads; no progress if `label` is empty."""
    parts = [slice(first, min(first + size, chains)) for first in range(0, chains, size)]
    with ThreadPoolExecutor(threads) as pool, Progress(chains, "chains", label) as progress:
        for part, _ in zip(parts, pool.map(run, parts), strict=True):
            progress.update(part.stop - part.start)


def prepare(hamiltonian: Hamiltonian) -> tuple[np.ndarray, ...]:
    """The `model` of `gibbs_loops`; in single precision, as the logits are."""
    order, length, vocabulary = hamiltonian.order, hamiltonian.length, hamiltonian.vocabulary
    subsets = np.moveaxis(site_tuples(length, order - 2), 2, 0)
    weights = np.zeros((length, subsets.shape[2], -(-length // LANES) * LANES), np.float32)
    sites = np.arange(length)[:, None]
    weights[:, :, :length] = factorial(order) * hamiltonian.couplings[sites, *subsets]
    weights = weights.reshape(*weights.shape[:2], -1, LANES)

    colours = sorted_colours(vocabulary, order - 2)
    found = hamiltonian.colours[:, :, *colours.T].reshape(vocabulary, vocabulary, -1)
    needed = (found != 0).any(axis=(0, 1))
    bins = needed.sum()
    table = np.zeros((vocabulary + 1, vocabulary, -(-(bins + 3) // LANES) * LANES), np.float32)
    table[:-1, :, :bins] = -hamiltonian.beta * found[:, :, needed]
    wanted = (table != 0).any(axis=1)[:, : bins + 1].astype(np.uint8)
    table = table.reshape(*table.shape[:2], -1, LANES)

    numbers = np.where(needed, np.cumsum(needed) - 1, bins)[colour_bins(vocabulary, order - 2)]
    # Subsets with a padded site go to a bin that adds nothing to any colour.
    prefixes = np.full((vocabulary + 1,) * (order - 2), bins, np.uint32)
    prefixes[(slice(vocabulary),) * (order - 2)] = numbers
    prefixes = prefixes.reshape((-1, vocabulary + 1) if order > 2 else (1, 1))
    # In one order of memory whatever the prefixes: loops are compiled anew for another.
    meets = np.ascontiguousarray(wanted[:, prefixes].any(axis=2), np.uint8)
    return weights, prefixes, wanted, meets, table
