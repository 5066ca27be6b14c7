"""Gibbs sampling of pair interactions with incremental conditionals, compiled.

Equations 1 and 5 of docs/science/potts.md are the distribution and its conditionals. Chains are as
in `gibbs`. J may be sparse: only a visit that changes the colour has work for each neighbour.
"""

from typing import NamedTuple

import numpy as np

from manybody.data.gibbs import begun, in_parts
from manybody.data.hamiltonian import Hamiltonian
from manybody.data.pair_gibbs_loops import LANES, move, move_wide, scatter

CHUNK = 64  # chains that a thread takes at a time
WIDEST = 40.0  # logits up to which exp(logit) and products of two of them fit single precision
BYTES = 2**30  # of tables; if they were larger, logits are kept instead of weights


class Samples(NamedTuple):
    """Tokens (chains, L) int64 after the last sweep; the share of visits that changed a colour in
    each sweep (sweeps,); H after each sweep (chains, sweeps), or (chains, 0) unless asked for."""

    tokens: np.ndarray
    changed: np.ndarray
    energies: np.ndarray


def sample(
    hamiltonian: Hamiltonian,
    chains: int,
    sweeps: int,
    stream: np.random.SeedSequence,
    threads: int = 1,
    label: str = "potts",
    *,
    initial: np.ndarray | None = None,
    energies: bool = False,
) -> Samples:
    """Chains of a Hamiltonian of order 2 after `sweeps` sweeps from uniform colours, or from tokens
    `initial` (chains, L). Probabilities are right to single precision."""
    length, vocabulary = hamiltonian.length, hamiltonian.vocabulary
    loops, *tables = prepare(hamiltonian)
    states, tokens = begun(chains, length, stream, initial)
    traced = np.zeros((chains, sweeps if energies else 0))
    changes = np.zeros((-(-chains // CHUNK), sweeps), dtype=np.int64)

    def run(part: slice) -> None:
        if initial is None:
            scatter(tokens[part], states[part], vocabulary)
        loops(tokens[part], states[part], changes[part.start // CHUNK], traced[part], *tables)

    in_parts(run, chains, CHUNK, threads, label)
    return Samples(tokens, changes.sum(axis=0) / (chains * length), traced)


def prepare(hamiltonian: Hamiltonian) -> tuple:
    """The loops that fit the size of the logits, and their `graph`, `tables` and `colours`."""
    length, vocabulary, colours = hamiltonian.length, hamiltonian.vocabulary, hamiltonian.colours
    couplings = (hamiltonian.couplings + hamiltonian.couplings.T) / 2  # symmetric to the last digit
    sites, others = np.nonzero(couplings)
    offsets = np.searchsorted(sites, np.arange(length + 1))
    first, second = np.nonzero(np.triu(couplings))
    numbers = np.zeros((length, length), dtype=np.int64)
    numbers[first, second] = numbers[second, first] = np.arange(len(first))
    parts = (part.astype(np.uint32) for part in (offsets, others, numbers[sites, others]))
    graph = (*parts, couplings[sites, others])
    # -2 beta U: what J = 1 adds to a colour's logit (row), by the neighbour's colour (column).
    # A number added to all logits of a site changes nothing, so they are centred at zero.
    coupled = -2.0 * hamiltonian.beta * colours.T
    coupled = coupled.T - (coupled.max(axis=1) + coupled.min(axis=1)) / 2
    reach = np.abs(couplings).sum(axis=1) * np.abs(coupled).max()
    width = -(-vocabulary // LANES) * LANES
    if reach.max() > WIDEST or 8 * len(first) * vocabulary * width > BYTES:
        return move_wide, graph, np.ascontiguousarray(coupled), colours
    logits = np.zeros((len(first), vocabulary, width))
    logits[:, :, :vocabulary] = couplings[first, second, None, None] * coupled.T
    boltzmann = np.zeros((length, width), dtype=np.float32)
    boltzmann[:, :vocabulary] = 1.0
    factors, reciprocals = (np.exp(sign * logits).astype(np.float32) for sign in (1.0, -1.0))
    return move, graph, (factors, reciprocals, boltzmann), colours
