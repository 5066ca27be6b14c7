"""A family: an alignment of which the columns and the sequences with too many gaps are left out.

Its format and alphabet are read from the file where they are not given. The document of a family
says which columns of the file its sites are, and where these are in the reference record.
"""

from dataclasses import dataclass
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
    identity of the document `about`, and the document `whole` of all columns of the file.

    `structure` is the file's own consensus structure, a sign a column of the file, None without.
    """

    names: list[str]
    tokens: np.ndarray
    weights: np.ndarray
    clusters: np.ndarray
    about: dict
    whole: dict
    structure: str | None

    @property
    def sites(self) -> np.ndarray:
        """The columns of the file (L,), from 0, that the sites are."""
        return np.array(self.about["columns"]) - 1

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
    `occupancy` of the others have one. `SourceError` says what cannot be read, or that nothing is
    left.
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
        said=[*whole["said"], *_left_out(left_out, whole, occupancy, coverage, sites)],
    )  # fmt: skip
    return Family(
        [name for name, stays in zip(names, kept, strict=True) if stays],
        tokens,
        weights,
        similar.clusters,
        about,
        whole,
        structure,
    )


def _left_out(
    left_out: dict, whole: dict, occupancy: float, coverage: float, sites: np.ndarray
) -> list[str]:
    gone = np.setdiff1d(np.arange(len(whole["numbers"])), sites) + 1
    return [
        f"{left_out['sequences']} sequences left out, with residues in less than {coverage:.0%} "
        f"of the columns of {whole['reference']}",
        f"{left_out['columns']} columns left out, in which less than {occupancy:.0%} of the "
        f"sequences have a residue{': ' * bool(len(gone))}{ranges(gone.tolist())}"
        + "; another fit, of all columns with residues, scores their pairs"
        * bool(len(gone)),
    ]


def ranges(numbers: list[int]) -> str:
    """Ascending numbers in words, as 1-3, 7."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in found)


def depth(about: dict) -> tuple[float, str]:
    """The effective number of sequences a site, and a warning where it is low, '' where not."""
    ratio = about["effective"] / len(about["columns"])
    said = f"{about['effective']:.0f} effective sequences are {ratio:.1f} a site"
    if ratio < FEW:
        return ratio, f"{said}: too few, below {FEW:g} most of the best pairs are noise"
    if ratio < ENOUGH:
        return ratio, f"{said}: few, below {ENOUGH:g} many pairs in contact are missed"
    return ratio, ""
