"""What a figure of contacts reads: a table of `evaluation.contacts`, and what is true.

files: `contacts` (the table) and, where the block names one, `truth`: a list of contacts or a table
of distances, or the Hamiltonian that the sequences were sampled from (`truth: {hamiltonian:
source}`). block: `separation` is the least j - i of the pairs that count.
"""

import math
from dataclasses import dataclass

import numpy as np

from manybody.evaluation import contacts
from manybody.sources.hamiltonian import Hamiltonian


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
    if "truth" in block:
        (given,) = files["truth"]
        truth = _read_truth(given, block["truth"], about["length"])
    scores = {
        name: contacts.as_matrix(frame, column, about["length"])
        for name, column in (("corrected", "apc"), ("as it is", "score"))
    }
    return Data(scores, about, truth, block.get("separation", 1))


def _read_truth(path, named: str | dict, length: int) -> Truth:
    """The contacts in a file, or the pairs that a Hamiltonian of two-body interactions couples."""
    if not isinstance(named, dict):
        return Truth(*contacts.read_contacts(path, length))
    hamiltonian = Hamiltonian.load(path)
    couplings = hamiltonian.couplings
    if couplings.shape != (length, length):
        raise ValueError(
            f"truth: {path} has couplings of shape {couplings.shape}, the scores are of L = "
            f"{length} sites; name the source of two-body interactions that the model was fitted to"
        )
    return Truth(couplings != 0, ~np.eye(length, dtype=bool), hamiltonian)
