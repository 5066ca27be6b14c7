"""What a figure of contacts reads: a table of `evaluation.contacts`, and what is true.

files: `contacts` (the table) and, where something is known, `known`: the table of known contacts of
`evaluation.contacts`, or `hamiltonians`: the one that the sequences were sampled from. block:
`separation` is the least j - i of the pairs that count.
"""

import math
from dataclasses import dataclass

import numpy as np

from manybody.data.hamiltonian import Hamiltonian
from manybody.measure import contacts


@dataclass
class Truth:
    """Contacts and known pairs (L, L, bool); the Hamiltonian if they were planted."""

    contacts: np.ndarray
    known: np.ndarray
    hamiltonian: Hamiltonian | None = None


@dataclass
class Data:
    """Scores (L, L) of all pairs, `corrected` and `as it is`; what they are of; what is true; the
    least j - i of the pairs that count."""

    scores: dict[str, np.ndarray]
    about: dict
    truth: Truth | None
    separation: int

    def pairs(self, matrix: np.ndarray) -> np.ndarray:
        """Entries of the known pairs that count."""
        first, second = np.triu_indices(len(matrix), max(1, self.separation))
        return matrix[first, second][self.truth.known[first, second]]

    @property
    def asked(self) -> int:
        """As many pairs as there are contacts; at least one."""
        return max(1, int(self.pairs(self.truth.contacts).sum()))

    @property
    def chance(self) -> float:
        """Share of contacts among all known pairs."""
        known = self.pairs(self.truth.contacts)
        return float(known.mean()) if len(known) else math.nan

    @property
    def apart(self) -> str:
        """Which pairs count, in words."""
        return f", |i − j| ≥ {self.separation}" if self.separation > 1 else ""


def read(files, block: dict) -> Data:
    """What the figure is about, from the files of its rule."""
    (path,) = files["contacts"]
    frame, about = contacts.read_scores(path)
    truth = None
    for known in files.get("known", []):
        truth = Truth(*contacts.read_known(known))
    for path in files.get("hamiltonians", []):
        truth = _planted(path, about["length"])
    scores = {
        name: contacts.as_matrix(frame, column, about["length"])
        for name, column in (("corrected", "apc"), ("as it is", "score"))
    }
    return Data(scores, about, truth, block.get("separation", 1))


def _planted(path, length: int) -> Truth:
    """The pairs that a Hamiltonian of two-body interactions couples."""
    hamiltonian = Hamiltonian.load(path)
    return Truth(hamiltonian.couplings != 0, ~np.eye(length, dtype=bool), hamiltonian)
