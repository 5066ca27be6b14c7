"""Contacts from couplings: scores of pairs of sites, and how many of the best ones are contacts.

Factored attention of H heads has the pair couplings J_ij(a, b) = sum_h A^h_ij V^h_ab. A pair's
score is the Frobenius norm of (J_ij(a, b) + J_ji(b, a)) / 2 in the zero-sum gauge, in which every
row and column of a coupling sums to zero and its norm is least. The average product correction
subtracts what a site shares with all others (Dunn et al. 2008; docs/science/potts.md, section 5).
"""

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from manybody import models
from manybody.data.pair_model import PairModel, of_pairs, zero_sum
from manybody.io import parquet
from manybody.io.manifest import Manifest
from manybody.io.sequences import Sequences
from manybody.io.tables import Table, write_csv
from manybody.io.tensor_files import read_tensor

CONTACTS = Table(
    "contacts",
    pa.schema({"i": pa.int64(), "j": pa.int64(), "score": pa.float64(), "apc": pa.float64()}),
)
KNOWN = Table(
    "known contacts",
    pa.schema({"i": pa.int64(), "j": pa.int64(), "contact": pa.bool_(), "distance": pa.float64()}),
)
TOUCH = 8.0  # angstrom: pairs nearer than this are contacts


# --- Scores --------------------------------------------------------------------------------------


def score_run(manifest: str | Path, train: str | Path) -> tuple[np.ndarray, dict]:
    """Frobenius scores (L, L) of a run of one-layer factored attention, and their document. `train`
    has its training sequences, which say whether a colour is a gap: it is left out of the norm."""
    run, sequences = Manifest.read(manifest, "model"), Sequences.open(train)
    gap, full = sequences.about.get("gap"), models.about(run.about["description"]).full
    if full:
        scores = blocks(run).norms(gap)
        heads = run.about["recipe"]["optimizer"].get("heads", "full")
    else:
        attention, values = factors(run)
        scores, heads = frobenius(attention, values, gap), len(attention)
    about = {key: run.about[key] for key in ("source", "model", "seed") if key in run.about}
    used = run.about.get("sequences", run.about["recipe"].get("subset", len(sequences)))
    weighted = run.about["recipe"].get("sequence_weights") == "identity"
    about |= dict(gauge="zero-sum", gap=gap, sequences=used, heads=heads, weighted=weighted)
    if weighted:
        about["effective"] = run.about.get("effective", sequences.about["effective"])
    about["sites"] = site_names(sequences.about, sequences.length)
    return scores, about


def site_names(about: dict, length: int) -> list[str]:
    """Names of the sites: residue and number of an alignment's reference record, as G24, `-` where
    it has a gap; their numbers, from 1, of sequences from elsewhere. `about` is their document."""
    if "aligned" not in about:
        return [str(site) for site in range(1, length + 1)]
    return [
        "-" if number is None else f"{letter.upper()}{number}"
        for letter, number in zip(about["aligned"], about["numbers"], strict=True)
    ]


def blocks(run: Manifest) -> PairModel:
    """Full couplings of a run at its last step."""
    read = partial(read_tensor, run.file(f"step-{run.about['steps'][-1]}.safetensors"))
    fields = read("bias")
    return PairModel(fields, of_pairs(read("couplings"), len(fields)), {})


def factors(run: Manifest) -> tuple[np.ndarray, np.ndarray]:
    """A (H, L, L) and V (H, |V|, |V|) of a run at its last step, in double precision."""
    model = models.about(run.about["description"])
    checkpoint = run.file(f"step-{run.about['steps'][-1]}.safetensors")
    return model.pair_factors(partial(read_tensor, checkpoint))


def frobenius(attention: np.ndarray, values: np.ndarray, gap: int | None = None) -> np.ndarray:
    """Norms (L, L) of the symmetrised couplings of A (H, L, L) and V (H, q, q), zero-sum gauge.

    The colour `gap` counts for the gauge and not in the norm: stretches of gaps couple neighbours
    whatever the structure. The diagonal is zero. The norm of sum_h (A^h_ij V^h + A^h_ji V^h^T) / 2
    needs the products <V^h, V^g> and <V^h, V^g^T> only: no array is larger than (H, L, L).
    """
    values = zero_sum(np.asarray(values, np.float64))
    if gap is not None:
        values = np.delete(np.delete(values, gap, axis=1), gap, axis=2)
    heads = len(values)
    flat, turned = values.reshape(heads, -1), values.swapaxes(1, 2).reshape(heads, -1)
    first = np.asarray(attention, np.float64)
    second = first.swapaxes(1, 2)
    same = np.einsum("hij,hij->ij", first, np.tensordot(flat @ flat.T, first, axes=1))
    crossed = np.einsum("hij,hij->ij", first, np.tensordot(flat @ turned.T, second, axes=1))
    scores = np.sqrt(np.maximum(same + same.T + crossed + crossed.T, 0.0)) / 2
    np.fill_diagonal(scores, 0.0)
    return scores


def apc(scores: np.ndarray) -> np.ndarray:
    """F_ij - F_i. F_.j / F_.., with means over pairs of different sites; zero on the diagonal."""
    scores = np.array(scores, np.float64)
    np.fill_diagonal(scores, 0.0)
    means = scores.sum(axis=1) / (len(scores) - 1)
    overall = means.mean()
    corrected = scores - np.outer(means, means) / overall if overall else scores
    np.fill_diagonal(corrected, 0.0)
    return corrected


def pairs(scores: np.ndarray) -> pd.DataFrame:
    """Scores (L, L) and their correction, `apc`: one row for each i < j (from 1)."""
    i, j = np.triu_indices(len(scores), 1)
    return pd.DataFrame(dict(i=i + 1, j=j + 1, score=scores[i, j], apc=apc(scores)[i, j]))


def write_scores(path: str | Path, scores: np.ndarray, about: dict) -> None:
    """Writes the table of `pairs` of scores (L, L), atomically."""
    CONTACTS.write(path, pairs(scores), {**about, "length": len(scores)})


def write_list(path: str | Path, frame: pd.DataFrame, sites: list[str]) -> None:
    """Writes a table of scores as CSV, the highest corrected score first, with the sites' names."""
    ranked = frame.sort_values("apc", ascending=False, kind="stable")
    for place, column in enumerate("ij", start=2):
        ranked.insert(place, f"site_{column}", np.array(sites)[ranked[column] - 1])
    ranked.insert(0, "rank", range(1, len(ranked) + 1))
    write_csv(ranked, path, digits=None)


def as_matrix(frame: pd.DataFrame, column: str, length: int, lacking: float = 0.0) -> np.ndarray:
    """A column of a table of pairs as a symmetric matrix (L, L), `lacking` where no row is."""
    matrix = np.full((length, length), lacking)
    i, j = frame[["i", "j"]].to_numpy().T - 1
    matrix[i, j] = matrix[j, i] = frame[column]
    return matrix


# --- Precision -----------------------------------------------------------------------------------


def best_pairs(
    scores: np.ndarray, minimum_separation: int = 1, known: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Sites i < j (from 0) of all pairs with j - i >= minimum_separation, by falling score, then by
    i, then j. Only pairs in `known` (L, L) if that is given."""
    every = np.ones(scores.shape, dtype=bool) if known is None else known
    first, second = np.nonzero(np.triu(every, max(1, minimum_separation)))
    order = np.argsort(-scores[first, second], kind="stable")
    return first[order], second[order]


def precision(
    scores: np.ndarray,
    contacts: np.ndarray,
    minimum_separation: int = 1,
    known: np.ndarray | None = None,
) -> np.ndarray:
    """Share of contacts (L, L, bool) among the n best pairs, for n = 1, 2, ..."""
    first, second = best_pairs(scores, minimum_separation, known)
    return contacts[first, second].cumsum() / np.arange(1, len(first) + 1)


def binomial_error(share: float, count: int) -> float:
    """Standard error of a share of `count` pairs; at 0 and 1 that of one pair more or less."""
    inside = min(max(share, 1 / (count + 1)), count / (count + 1))
    return math.sqrt(inside * (1 - inside) / count)


# --- Known contacts ------------------------------------------------------------------------------


def write_known(
    path: str | Path, contacts: np.ndarray, known: np.ndarray, distances: np.ndarray, about: dict
) -> None:
    """Writes which pairs are known, which of them are contacts (L, L, bool), and their distances
    (L, L) in angstrom, nan where there is none, atomically."""
    first, second = np.nonzero(np.triu(known, 1))
    columns = [first + 1, second + 1, contacts[first, second], distances[first, second]]
    document = {"kind": KNOWN.kind, "about": {**about, "length": len(known)}}
    parquet.write_table(path, pa.table(columns, schema=KNOWN.schema), document)


class Truth(NamedTuple):
    """Contacts and known pairs (L, L, bool), and sentences on them."""

    contacts: np.ndarray
    known: np.ndarray
    said: Sequence[str] = ()


def read_known(path: str | Path) -> Truth:
    """Contacts and known pairs, both symmetric, that `write_known` wrote."""
    table, about = KNOWN.read(path)
    # 1 of a contact, 0 of another pair that is known, -1 of one that is not
    found = as_matrix(table, "contact", about["length"], -1)
    return Truth(found == 1, found >= 0)
