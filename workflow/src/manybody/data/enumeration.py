"""The Boltzmann distribution of a small system in full, and a test of samples against it.

All |V|^L energies come from a recursion over sites: the last site with colour a adds to the others
an interaction of one order less, k J_{L ...} U_{a ...}.
"""

import numpy as np
from scipy.special import chdtrc, softmax

from manybody.data.hamiltonian import Hamiltonian

EXPECTED = 10.0  # samples in a cell, enough that their number is nearly normal


def energies(hamiltonian: Hamiltonian) -> np.ndarray:
    """H (without beta) of all states in lexicographic order: (|V|^L,)."""
    return _interactions(hamiltonian.couplings, hamiltonian.colours)


def probabilities(hamiltonian: Hamiltonian) -> np.ndarray:
    """p(s) of all states in lexicographic order: (|V|^L,)."""
    return softmax(-hamiltonian.beta * energies(hamiltonian))


def numbers(tokens: np.ndarray, vocabulary: int) -> np.ndarray:
    """Places of tokens (N, L) in the lexicographic order of all states: (N,)."""
    return np.ravel_multi_index(tokens.T, (vocabulary,) * tokens.shape[1])


def chi_square(probabilities: np.ndarray, found: np.ndarray) -> dict[str, float]:
    """Pearson's test that states of numbers `found` (N,) are drawn from `probabilities` (states,).

    A state that is expected `EXPECTED` times is a cell of its own; the others are joined, in the
    order of their probability, into cells that expect about as many. Returns `chi_square`, its
    `freedom`, the probability `chance` that exact samples have a larger one, and `distance`, the
    total variation between sample and distribution over the cells.
    """
    expected = len(found) * probabilities
    order = np.argsort(-probabilities, kind="stable")
    heavy = np.count_nonzero(expected >= EXPECTED)
    light = expected[order[heavy:]].cumsum() // EXPECTED
    if len(light):
        # States that are left over are too few for a cell and join the one before.
        light = np.minimum(light, light[-1] - 1 if heavy else max(light[-1] - 1, 0))
    cells = np.empty(len(probabilities), np.int64)
    cells[order[:heavy]] = np.arange(heavy)
    cells[order[heavy:]] = heavy + light
    means = len(found) * np.bincount(cells, weights=probabilities)
    counts = np.bincount(cells[found], minlength=len(means))
    value, freedom = float(((counts - means) ** 2 / means).sum()), len(means) - 1
    return dict(
        chi_square=value,
        freedom=freedom,
        chance=float(chdtrc(freedom, value)) if freedom else 1.0,
        distance=float(np.abs(counts - means).sum() / 2 / len(found)),
    )


def _interactions(couplings: np.ndarray, colours: np.ndarray) -> np.ndarray:
    """k! sum over increasing sites of J U for all states; J symmetric, 0 where sites coincide."""
    order, length, vocabulary = couplings.ndim, len(couplings), len(colours)
    if order == 1:
        found = np.zeros(1)
        for own in couplings[:, None] * colours:
            found = np.add.outer(found, own).ravel()
        return found
    if length < order:
        return np.zeros(vocabulary**length)
    rest = (slice(length - 1),) * order
    before = _interactions(couplings[rest], colours)
    found = np.empty((len(before), vocabulary))
    last = order * couplings[-1][rest[1:]]
    for colour in range(vocabulary):
        found[:, colour] = before + _interactions(last, colours[colour])
    return found.ravel()
