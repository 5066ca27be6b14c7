"""A family: an alignment without the columns and the sequences that have too many gaps, whose
document says which columns of the file its sites are, and where in the reference record.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path

import numpy as np

from manybody.data import SourceError, alignment, sequence_weights

OCCUPANCY, COVERAGE, IDENTITY = 0.7, 0.5, 0.8  # the defaults of EVcouplings
# Effective sequences a site: below FEW the best pairs of proteins are mostly noise, below ENOUGH
# many contacts are missed (docs/your-alignment.md).
FEW, ENOUGH = 1.0, 5.0


@dataclass(frozen=True)
class Family:
    """N sequences of L sites: names and tokens (N, L), their weights and clusters (N,) at the
    identity of the document `about`, the document `whole` of all columns of the file, and the
    file's consensus structure, a sign a column, if it has one."""

    names: list[str]
    tokens: np.ndarray
    weights: np.ndarray
    clusters: np.ndarray
    about: dict
    whole: dict
    structure: str | None

    @property
    def vocabulary(self) -> int:
        return len(self.about["alphabet"])


def read(
    path: str | Path,
    form: str | None = None,
    alphabet: str | None = None,
    reference: str | None = None,
    *,
    occupancy: float = OCCUPANCY,
    coverage: float = COVERAGE,
    identity: float = IDENTITY,
    threads: int = 1,
) -> Family:
    """The family in a file; format and alphabet are found in it where they are None.

    Left out are first the sequences that have residues in less than a share `coverage` of the
    columns in which the reference record has one, then the columns in which less than a share
    `occupancy` of the others have one. `SourceError` says what cannot be read, or that none stay.
    """
    path = Path(path).expanduser()
    form = form or alignment.format_of(path)
    kind = alphabet or alignment.alphabet_of(path, form)
    names, tokens, whole = alignment.load(path, form, kind, alphabet is not None, reference)
    residues = tokens != alignment.GAP
    of_reference = [number is not None for number in whole["numbers"]]
    kept = residues[:, of_reference].sum(axis=1) >= coverage * max(1, sum(of_reference))
    sites = np.flatnonzero(residues[kept].sum(axis=0) / max(1, kept.sum()) >= max(occupancy, 1e-9))
    if kept.sum() < 2 or len(sites) < 2 or not any(of_reference[site] for site in sites):
        raise SourceError(
            f"{path}: {kept.sum()} of {len(kept)} sequences have residues in {coverage:.0%} of "
            f"the columns of {whole['reference']}, and {len(sites)} of {len(of_reference)} columns "
            f"in {occupancy:.0%} of these sequences; expected at least two of each, and a residue "
            f"of {whole['reference']} in one of these columns; lower "
            "`coverage` or `occupancy`, or take another `reference`"
        )
    tokens = np.ascontiguousarray(tokens[kept][:, sites])
    similar = sequence_weights.neighbours(tokens, identity, threads)
    weights = 1 / similar.counts
    structure = alignment.consensus_structure(path) if form == "stockholm" else None
    left_out = dict(columns=len(of_reference) - len(sites), sequences=int((~kept).sum()))
    about = whole | dict(
        source=Path(path.name.removesuffix(".gz")).stem,
        aligned="".join(whole["aligned"][site] for site in sites),
        numbers=[whole["numbers"][site] for site in sites],
        columns=(sites + 1).tolist(), width=len(of_reference), left_out=left_out,
        occupancy=occupancy, coverage=coverage, identity=identity,
        sequences=len(tokens), effective=float(weights.sum()),
    )  # fmt: skip
    about["said"] = whole["said"] + _left_out(about)
    names = list(compress(names, kept))
    return Family(names, tokens, weights, similar.clusters, about, whole, structure)


def _left_out(about: dict) -> list[str]:
    """Sentences on the sequences and the columns that are left out."""
    sequences = (
        f"{about['left_out']['sequences']} sequences left out, with residues in less than "
        f"{about['coverage']:.0%} of the columns of {about['reference']}"
    )
    gone = np.setdiff1d(np.arange(about["width"]) + 1, about["columns"])
    columns = (
        f"{len(gone)} columns left out, in which less than {about['occupancy']:.0%} of the "
        "sequences have a residue"
    )
    if len(gone):
        columns += (
            f": {ranges(gone)}; another fit, of all columns with residues, scores their pairs"
        )
    return [sequences, columns]


def ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers, one or more, in words, as 1-3, 7."""
    runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs)


def depth(about: dict) -> tuple[float, str]:
    """The effective number of sequences a site, and a warning where it is low, '' where not."""
    ratio = about["effective"] / len(about["columns"])
    said = f"{about['effective']:.0f} effective sequences are {ratio:.1f} a site"
    if ratio < FEW:
        return ratio, f"{said}: too few, below {FEW:g} most of the best pairs are noise"
    if ratio < ENOUGH:
        return ratio, f"{said}: few, below {ENOUGH:g} many pairs in contact are missed"
    return ratio, ""
