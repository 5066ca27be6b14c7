"""All states of a small Hamiltonian and their probabilities, as the definition has them."""

from itertools import product

import numpy as np

from manybody.sources.hamiltonian import Hamiltonian


def all_states(vocabulary: int, length: int) -> np.ndarray:
    return np.array(list(product(range(vocabulary), repeat=length)))


def boltzmann(hamiltonian: Hamiltonian, states: np.ndarray) -> np.ndarray:
    weights = -hamiltonian.beta * hamiltonian.energies(states)
    weights = np.exp(weights - weights.max())
    return weights / weights.sum()
