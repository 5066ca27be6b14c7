"""Weights of aligned sequences: 1 / number of sequences that are similar, the sequence itself among
them (Morcos et al. 2011). Two sequences are similar when the share of columns in which they agree,
gaps counted as any colour, is at least the identity asked for.

Their Parquet file has one column `weight` (float64) in the order of the sequences, names the digest
of their tokens and is refused for others.
"""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from manybody.io.parquet import Refused, read_table, write_table
from manybody.io.sequences import Sequences

KIND = "sequence weights"
SCHEMA = pa.schema([pa.field("weight", pa.float64(), nullable=False)])
ROUNDING = 1e-9  # of identity * L, whose product is rounded


class Neighbours(NamedTuple):
    """For each of N sequences: how many are similar, itself included, and the number of the first
    sequence of its cluster, which is linked by pairs that are similar."""

    counts: np.ndarray
    clusters: np.ndarray


def neighbours(tokens: np.ndarray, identity: float, threads: int = 1) -> Neighbours:
    """Exact counts over all pairs of tokens (N, L); the same for any number of threads."""
    from manybody.data.sequence_weights_loops import MOST, STRIDE, labels, scan
    from manybody.io.compiled import each

    rows, length = tokens.shape
    if tokens.max(initial=0) > MOST:
        raise ValueError(f"tokens up to {tokens.max()}, expected at most {MOST}")
    padded = np.pad(tokens.astype(np.uint8, order="C"), ((0, 0), (0, -length % STRIDE)))
    words = padded.view(np.uint64)
    # Two are similar from so many equal columns on.
    allowed = length - math.ceil(identity * length - ROUNDING)
    counts = np.zeros((threads, rows), np.int64)
    forests = np.tile(np.arange(rows), (threads, 1))
    each(
        threads,
        lambda part: scan(words, allowed, part, threads, counts[part], forests[part]),
        range(threads),
    )
    return Neighbours(1 + counts.sum(axis=0), labels(forests))


def write(path: str | Path, weights: np.ndarray, train: str | Path, about: dict) -> None:
    """Writes the weights (N,) of the N sequences in the file `train`, atomically."""
    document = {"kind": KIND, "tokens": Sequences.open(train).sha256, "about": about}
    write_table(path, pa.table({"weight": weights}, SCHEMA), document)


def read(path: str | Path, sequences: Sequences) -> np.ndarray:
    """The weights (N,) of `sequences`; `Refused` if the file is of other sequences."""
    table, document = read_table(path, KIND, SCHEMA)
    if document["tokens"] != sequences.sha256:
        raise Refused(path, f"its weights are not those of the sequences in {sequences.path}")
    return table["weight"].to_numpy()
