"""All states of a small Hamiltonian and their probabilities, as the definition has them."""

from itertools import product

import numpy as np

from manybody.data import enumeration
from manybody.data.hamiltonian import Hamiltonian


def all_states(vocabulary: int, length: int) -> np.ndarray:
    return np.array(list(product(range(vocabulary), repeat=length)))


def boltzmann(hamiltonian: Hamiltonian, states: np.ndarray) -> np.ndarray:
    weights = -hamiltonian.beta * hamiltonian.energies(states)
    weights = np.exp(weights - weights.max())
    return weights / weights.sum()


def distance(tokens: np.ndarray, law: np.ndarray, vocabulary: int) -> float:
    """Total variation between samples (N, L) and the probabilities of all states."""
    counts = np.bincount(enumeration.numbers(tokens, vocabulary), minlength=len(law))
    return np.abs(counts / len(tokens) - law).sum() / 2


def floor(law: np.ndarray, count: int) -> float:
    """What that distance is on average for `count` exact samples."""
    exact = np.random.default_rng(0).multinomial(count, law, size=20) / count
    return np.abs(exact - law).sum(axis=1).mean() / 2
