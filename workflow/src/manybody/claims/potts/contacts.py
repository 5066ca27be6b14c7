"""What a table of contacts says: whether the best pairs are true contacts.

files: `contacts` (one table of `evaluation.contacts`) and, where the block names one, `truth`: a
list of contacts or a table of distances, or the Hamiltonian that the sequences were sampled from
(`truth: {hamiltonian: source}`). block: `separation` is the least j - i of the pairs that count.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from manybody.claims import verdicts
from manybody.claims.potts import setting
from manybody.evaluation import contacts
from manybody.sources.hamiltonian import Hamiltonian

# How well the couplings of the default setting are found from 3000 sequences (potts, section 5).
CORRELATION = 0.98  # of scores and |J|, at least
SHARE = 0.9  # of contacts among as many of the best pairs, at least


@dataclass
class Truth:
    """Contacts and known pairs (L, L, bool); the Hamiltonian if they were planted."""

    contacts: np.ndarray
    known: np.ndarray
    law: Hamiltonian | None = None


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
    law = Hamiltonian.load(path)
    couplings = law.couplings
    if couplings.shape != (length, length):
        raise ValueError(
            f"truth: {path} has couplings of shape {couplings.shape}, the scores are of L = "
            f"{length} sites; name the source of two-body interactions that the model was fitted to"
        )
    return Truth(couplings != 0, ~np.eye(length, dtype=bool), law)


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from the files of the figure's rule."""
    source = context.get("sources", {}).get(block.get("source"), {})
    return verdicts.table(claims(read(files, block), source))


def claims(data: Data, source: dict) -> list[dict]:
    """Whether true contacts are found by the best pairs; none where nothing is known.

    Where the default setting was planted these are gates, correlation and share; the couplings or
    contacts of any other family decide nothing but whether more are found than by chance. source:
    its entry in the config.
    """
    truth = data.truth
    if truth is None:
        return []
    known = data.pairs(truth.contacts)
    if not known.any():
        claim = "contacts: the best pairs are true contacts more often than by chance"
        reason = f"none of the {len(known)} known pairs{data.apart} is a contact"
        return [verdicts.not_run(claim, reason)]
    count, chance, rows = data.asked, data.chance, []
    # Enough samples of the setting whose numbers are known, and all pairs are asked for.
    default = (
        truth.law is not None and data.separation <= 1 and data.about["sequences"] >= setting.M
    )
    default = default and not setting.departure(source, truth.law.beta)
    for name, matrix in data.scores.items():
        (share,) = contacts.precision(matrix, truth.contacts, data.separation, [count], truth.known)
        share = float(share)
        error = contacts.binomial_error(share, count)
        if default:
            planted = data.pairs(np.abs(truth.law.couplings))
            r = float(np.corrcoef(data.pairs(matrix), planted)[0, 1])
            of_r = (1 - r**2) / math.sqrt(len(planted) - 1)
            claim = f"inverse Potts: Pearson r of the score ({name}) and the planted |J|"
            rows.append(setting.above(claim, r, of_r, CORRELATION, "statistical"))
            claim = (
                f"inverse Potts: share of planted contacts among the best {count} pairs ({name})"
            )
            rows.append(setting.above(claim, share, error, SHARE, "statistical"))
        else:
            claim = (
                f"contacts: share of true ones among the best {count} pairs{data.apart} "
                f"({name}), {share:.3g}, above that of all known pairs, {chance:.3g}"
            )
            rows.append(verdicts.gap(claim, share - chance, error))
    return rows
