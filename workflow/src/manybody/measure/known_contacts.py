"""Pairs of sites known to be in contact: from a list, from distances, or a structure.

In a structure (PDB or mmCIF) two residues of a protein are in contact where their C-beta atoms
(C-alpha of glycine) are nearer than 8 angstrom; two of RNA or DNA where their closest heavy atoms
are. Its chain is aligned with the reference record of the alignment, whose columns are the sites.
"""

import gzip
import math
import warnings
from pathlib import Path

import numpy as np
from Bio.Align import PairwiseAligner, substitution_matrices
from Bio.Data import PDBData
from Bio.PDB.Chain import Chain
from Bio.PDB.MMCIFParser import MMCIFParser
from Bio.PDB.PDBExceptions import PDBConstructionException
from Bio.PDB.PDBParser import PDBParser
from scipy.spatial.distance import cdist

from manybody.io.refusal import Refusal
from manybody.io.sequences import Sequences
from manybody.measure.contacts import TOUCH, write_known

ENDINGS = {".pdb": PDBParser, ".ent": PDBParser, ".cif": MMCIFParser, ".mmcif": MMCIFParser}
# Share of the shorter sequence that must be identical for a chain to be that of the record; chance
# aligns more than half of two stretches of RNA.
IDENTICAL = {"protein": 0.3, "rna": 0.6, "dna": 0.6}
LETTERS = {
    kind: {name.strip(): letter for name, letter in table.items() if len(letter) == 1}
    for kind, table in (
        ("protein", PDBData.protein_letters_3to1_extended),
        ("nucleic", PDBData.nucleic_letters_3to1_extended),
    )
}


class ContactsError(Refusal):
    """A list of contacts, a table of distances or a structure cannot be used: names the file."""


def make(path: str | Path, train: str | Path, out: str | Path, chain: str | None = None) -> None:
    """Writes what a file says of the pairs of sites of the sequences in `train`.

    chain: that of a structure; by default the one that agrees best with the reference record.
    `ContactsError` says what is wrong with the file.
    """
    sequences = Sequences.open(train)
    about = {"file": str(path)}
    if _ending(path) in ENDINGS:
        distances, more = structure_distances(path, sequences.about, chain)
        known, about = ~np.isnan(distances), about | more
        contacts = known & (np.nan_to_num(distances, nan=np.inf) < TOUCH)
    else:
        contacts, known, distances = read_contacts(path, sequences.length)
    write_known(out, contacts, known, distances, about)


def _ending(path: str | Path) -> str:
    return Path(str(path).lower().removesuffix(".gz")).suffix


# --- Structures ----------------------------------------------------------------------------------


def structure_distances(
    path: str | Path, about: dict, chain: str | None = None
) -> tuple[np.ndarray, dict]:
    """Distances (L, L) in angstrom between the columns of an alignment, nan where they are not
    known, and what they are of. `about` is the document of the alignment's sequences."""
    if "aligned" not in about:
        raise ContactsError(
            f"{path} is a structure, but {about.get('source', 'the source')} is no alignment; "
            "expected a list of pairs or a table of distances"
        )
    kind = about["kind"]
    columns = [place for place, number in enumerate(about["numbers"]) if number is not None]
    record = _plain("".join(about["aligned"][place] for place in columns), kind)
    chains = _chains(path, kind)
    if chain is not None and chain not in chains:
        known = ", ".join(f"{name} ({len(found)} residues)" for name, found in chains.items())
        raise ContactsError(f"chain: found {chain}, but {path} has the {kind} chains {known}")
    names = [chain] if chain is not None else list(chains)
    pairs = {name: _aligned(record, _sequence(chains[name], kind), kind) for name in names}
    name = max(names, key=lambda name: pairs[name][1])
    (of_record, of_chain), identical = pairs[name]
    residues = chains[name]
    least = math.ceil(IDENTICAL[kind] * min(len(record), len(residues)))
    if identical < least:
        raise ContactsError(
            f"{path}: chain {name} ({len(residues)} residues) and the record {about['reference']} "
            f"({len(record)} residues) agree in {identical} of them; expected at least {least}. "
            f"Name the record that the structure is of (`reference` of the source), or another "
            f"`chain`"
        )
    between = _distances([residues[place] for place in of_chain], kind)
    distances = np.full((len(about["aligned"]),) * 2, np.nan)
    sites = np.array(columns)[of_record]
    distances[np.ix_(sites, sites)] = between
    np.fill_diagonal(distances, np.nan)
    return distances, dict(
        chain=name, record=about["reference"], residues=len(sites), identical=identical
    )


def _chains(path: str | Path, kind: str) -> dict[str, list]:
    """The residues of each chain of a structure's first model that are of this kind."""
    try:
        opened = gzip.open if str(path).lower().endswith(".gz") else open
        with opened(path, "rt", encoding="utf-8") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            structure = ENDINGS[_ending(path)](QUIET=True).get_structure("", file)
            model = next(iter(structure))
    except (
        OSError,
        EOFError,
        ValueError,
        LookupError,
        TypeError,
        PDBConstructionException,
    ) as error:
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        raise ContactsError(f"{path} cannot be read as a structure: {reason}") from error
    except StopIteration as error:
        raise ContactsError(f"{path} has no atoms: expected a structure") from error
    chains = {chain.id: _residues(chain, kind) for chain in model}
    chains = {name: residues for name, residues in chains.items() if residues}
    if not chains:
        raise ContactsError(
            f"{path} has no chain of {kind}, of which the alignment is (its `alphabet`)"
        )
    return chains


def _letter(residue, kind: str) -> str | None:
    return LETTERS["protein" if kind == "protein" else "nucleic"].get(residue.resname.strip())


def _residues(chain: Chain, kind: str) -> list:
    return [residue for residue in chain if _letter(residue, kind)]


def _sequence(residues: list, kind: str) -> str:
    return _plain("".join(_letter(residue, kind) for residue in residues), kind)


def _plain(letters: str, kind: str) -> str:
    """Upper case, with the letters that the scores of an alignment know."""
    letters = letters.upper()
    if kind == "protein":
        return letters.translate(str.maketrans("JOU", "XXX"))
    return letters.replace("U", "T")


def _aligned(record: str, chain: str, kind: str) -> tuple[tuple[list, list], int]:
    """Places in both sequences that the best alignment puts together, and how many are the same."""
    scores = (
        dict(
            substitution_matrix=substitution_matrices.load("BLOSUM62"),
            open_gap_score=-11, extend_gap_score=-1,
        )
        if kind == "protein"
        else dict(match_score=2, mismatch_score=-3, open_gap_score=-5, extend_gap_score=-2)
    )  # fmt: skip
    aligner = PairwiseAligner(mode="global", **scores)
    aligner.end_gap_score = 0  # either may be a part of the other
    blocks = aligner.align(record, chain)[0].aligned
    first, second = ([n for start, end in side for n in range(start, end)] for side in blocks)
    same = sum(record[a] == chain[b] for a, b in zip(first, second, strict=True))
    return (first, second), same


def _distances(residues: list, kind: str) -> np.ndarray:
    """Distances (N, N) of residues: of one atom each in proteins, of the closest ones elsewhere."""
    if kind == "protein":
        places = np.array([_beta(residue) for residue in residues])
        return cdist(places, places)
    atoms = [_heavy(residue) for residue in residues]
    starts = np.cumsum([0, *map(len, atoms[:-1])])
    every = np.concatenate(atoms)
    return np.array([np.minimum.reduceat(cdist(own, every).min(0), starts) for own in atoms])


def _beta(residue) -> np.ndarray:
    name = next((name for name in ("CB", "CA") if name in residue), None)
    return np.full(3, np.nan) if name is None else residue[name].coord.astype(float)


def _heavy(residue) -> np.ndarray:
    atoms = [atom.coord for atom in residue if atom.element not in ("H", "D")]
    return np.array(atoms or [[np.nan] * 3], dtype=float)


# --- Lists ---------------------------------------------------------------------------------------


def read_contacts(path: str | Path, length: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Contacts and known pairs (L, L, bool), and distances (L, L), symmetric, from a text file.

    Two columns i, j list the contacts, and all pairs are known. Three columns i, j, distance (in
    angstrom, of a PDB structure) make contacts of pairs nearer than 8; pairs without a row are
    unknown, as sites that the structure does not resolve. Sites are columns of the alignment,
    from 1; columns are separated by commas, tabs or spaces; lines from '#' and one line of names
    are passed over. `ContactsError` names the line that is not like this.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ContactsError(f"{path} cannot be read as a list of contacts: {error}") from error
    contacts, known = np.zeros((2, length, length), dtype=bool)
    distances = np.full((length, length), np.nan)
    width = None
    for number, line in enumerate(lines, start=1):
        fields = line.partition("#")[0].replace(",", " ").split()
        if not fields:
            continue
        of_names = width is None and not (fields[0][0].isdigit() or fields[0][0] in "+-")
        width = width or len(fields)
        if of_names and width in (2, 3):
            continue
        try:
            i, j, distance = _pair(fields, width, length)
        except ValueError as error:
            shown = f"{line.strip()[:60]!r}, expected {error}"
            raise ContactsError(f"{path}, line {number}: {shown}") from error
        for sites in ((i, j), (j, i)):
            contacts[sites] |= width == 2 or distance < TOUCH
            known[sites] = True
            distances[sites] = np.fmin(distances[sites], distance)
    if not known.any():
        raise ContactsError(f"{path} lists no pair of sites: expected lines 'i, j' or 'i, j, d'")
    if width == 2:
        known = ~np.eye(length, dtype=bool)
    return contacts, known, distances


def _pair(fields: list[str], width: int, length: int) -> tuple[int, int, float]:
    """Two sites, from 0, and their distance, nan without; `ValueError` says what was expected."""
    if width not in (2, 3):
        raise ValueError("2 columns (i, j) or 3 (i, j, distance)")
    if len(fields) != width:
        raise ValueError(f"{width} columns as in the lines before")
    numbers = [field.isascii() and field.isdigit() and int(field) for field in fields[:2]]
    if not all(1 <= site <= length for site in numbers):
        raise ValueError(f"sites from 1 to L = {length}")
    i, j = (site - 1 for site in numbers)
    if i == j:
        raise ValueError("two different sites")
    if width == 2:
        return i, j, math.nan
    try:
        distance = float(fields[2])
    except ValueError:
        distance = math.nan
    if not 0 <= distance < math.inf:
        raise ValueError("a distance in angstrom, 0 or more")
    return i, j, distance
