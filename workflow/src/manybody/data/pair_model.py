"""The Potts model of a family of sequences: fields, and a block of couplings a pair of sites.

    log p(s) = sum_i h_i(s_i) + sum_{i < j} J_ij(s_i, s_j) - log Z

A high score is a likely sequence, the energy is minus the score (docs/science/potts.md, section 5).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from manybody.io.atomic import ArtifactError
from manybody.io.sequences import rows_of
from manybody.io.tensor_files import read_about, read_tensor, write_document

BLOCK = 2**22  # numbers that are gathered at a time


def zero_sum(values: np.ndarray) -> np.ndarray:
    """Matrices (..., q, q) less the means of their rows and columns."""
    values = values - values.mean(axis=-1, keepdims=True)
    return values - values.mean(axis=-2, keepdims=True)


@dataclass(frozen=True)
class PairModel:
    """Fields h (L, q) and couplings J (L, L, q, q), indexed i, j, a, b, in nats.

    J_ij(a, b) = J_ji(b, a), J_ii = 0. `about`, a JSON document, has of an alignment its `alphabet`,
    a letter for each colour, the number `gap` of the gap and the reference (`aligned`, `numbers`).
    """

    fields: np.ndarray
    couplings: np.ndarray
    about: dict

    def __post_init__(self):
        of_couplings = (self.length,) * 2 + self.fields.shape[1:] * 2
        fit = self.fields.ndim == 2 and self.couplings.shape == of_couplings
        if not fit or not np.isfinite(self.fields).all():
            raise ValueError(
                f"fields: shape {self.fields.shape}, couplings: shape {self.couplings.shape}; "
                "expected (L, q), finite numbers, and (L, L, q, q)"
            )

    @property
    def length(self) -> int:
        return len(self.fields)

    @property
    def vocabulary(self) -> int:
        return self.fields.shape[1]

    def _rows(self, tokens: np.ndarray) -> np.ndarray:
        """Tokens (N, L); `ValueError` for another length, or tokens beyond the q colours."""
        rows = rows_of(tokens, self.vocabulary)
        if rows.shape[1] != self.length:
            raise ValueError(f"tokens: {rows.shape[1]} sites, expected the model's {self.length}")
        return rows

    def logits(self, tokens: np.ndarray) -> np.ndarray:
        """h_i(a) + sum_j J_ij(a, s_j): tokens (N, L) -> (N, L, q), in nats."""
        tokens = self._rows(tokens)
        # By the colour of the other site, so that each is one gather of rows.
        rows = self.couplings.transpose(1, 3, 0, 2)
        found = np.empty((*tokens.shape, self.vocabulary))
        step = max(1, BLOCK // (self.length * self.vocabulary))
        for start in range(0, len(tokens), step):
            part = tokens[start : start + step]
            found[start : start + step] = self.fields
            for site in range(self.length):
                found[start : start + step] += rows[site][part[:, site]]
        return found

    def scores(self, tokens: np.ndarray) -> np.ndarray:
        """log p(s) + log Z of tokens (N, L): (N,), in nats, summed in double precision."""
        from manybody.data.pair_model_loops import add_scores

        tokens = self._rows(tokens)
        found = np.zeros(len(tokens))
        parts = map(np.ascontiguousarray, (self.fields, self.couplings, tokens.T.astype(np.uint16)))
        add_scores(*parts, found)
        return found

    def zero_sum(self) -> "PairModel":
        """The same distribution; rows and columns of each J_ij, and fields of a site, sum to 0."""
        fields = self.fields + self.couplings.mean(axis=-1).sum(axis=1)
        fields = fields - fields.mean(axis=1, keepdims=True)
        return PairModel(fields, zero_sum(self.couplings), self.about)

    def norms(self, gap: int | None = None) -> np.ndarray:
        """Frobenius norms (L, L) of the couplings in the zero-sum gauge, for which alone the colour
        `gap` counts. No second copy of the couplings is made."""
        kept = np.arange(self.vocabulary) != gap
        norms = np.empty((self.length, self.length), self.couplings.dtype)
        for site, blocks in enumerate(self.couplings):
            norms[site] = np.sqrt((zero_sum(blocks)[:, kept][..., kept] ** 2).sum(axis=(1, 2)))
        return norms

    def save(self, path: str | Path) -> None:
        """Writes `fields`, `couplings` of pairs i < j (L (L - 1) / 2, q, q) and `about`."""
        first, second = np.triu_indices(self.length, 1)
        named = dict(
            fields=np.ascontiguousarray(self.fields),
            couplings=np.ascontiguousarray(self.couplings[first, second]),
        )
        write_document(path, named, self.about)

    @classmethod
    def load(cls, path: str | Path) -> "PairModel":
        """Reads what `save` wrote; `ArtifactError` names a file that is no such model."""
        fields, pairs = read_tensor(path, "fields"), read_tensor(path, "couplings")
        length = len(fields)
        if fields.ndim != 2 or pairs.shape != (length * (length - 1) // 2, *fields.shape[1:] * 2):
            raise ArtifactError(
                f"{path} is refused: its fields have shape {fields.shape} and its couplings "
                f"{pairs.shape}; expected (L, q) and (L (L - 1) / 2, q, q). Make it again"
            )
        return cls(fields, of_pairs(pairs, length), read_about(path))


def of_pairs(pairs: np.ndarray, length: int) -> np.ndarray:
    """Couplings (L, L, q, q) from those of the pairs i < j (L (L - 1) / 2, q, q)."""
    couplings = np.zeros((length, length, *pairs.shape[1:]), pairs.dtype)
    first, second = np.triu_indices(length, 1)
    couplings[first, second] = pairs
    couplings[second, first] = pairs.transpose(0, 2, 1)
    return couplings
