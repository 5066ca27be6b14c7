"""Pairs of sites known to be in contact: from a list, from distances, or a structure.

In a structure (PDB or mmCIF) two residues of a protein are in contact where their C-beta atoms
(C-alpha of glycine) are nearer than 8 angstrom; two of RNA or DNA where their closest heavy atoms
are. Its chain is aligned with the reference record of the alignment, whose columns are the sites.
"""

import io
import math
import re
from collections import Counter, namedtuple
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from Bio.Align import PairwiseAligner, substitution_matrices
from Bio.Data import PDBData
from Bio.PDB.MMCIF2Dict import MMCIF2Dict
from scipy.spatial.distance import cdist

from manybody.data import SourceError
from manybody.data.alignment import listed, read_text
from manybody.io.refusal import Refusal
from manybody.io.sequences import Sequences
from manybody.measure.contacts import TOUCH, write_known

DISTANCE = ("d", "dist", "distance")  # names of a column of distances
LIKELY = 0.5  # probability from which a predicted pair counts as a contact
CASP = re.compile(r"(PFRMAT|TARGET|AUTHOR|REMARK|METHOD|RMODE|MODEL|END)\b.*|[A-Za-z-]+")
ENDINGS = (".pdb", ".ent", ".cif", ".mmcif")
# Share of the shorter sequence that must be identical for a chain to be that of the record; chance
# aligns more than half of two stretches of RNA.
IDENTICAL = {"protein": 0.3, "rna": 0.6, "dna": 0.6}
# Residues as programs of simulations name them: protonation states, ends of nucleic acids (not the
# ions and ligands that are called the same).
SIMULATED = {
    "protein": dict(
        HID="H", HIE="H", HIP="H", HSD="H", HSE="H", HSP="H", HIN="H", CYX="C", CYM="C", CYN="C",
        ASH="D", ASPH="D", GLH="E", GLUH="E", LYN="K", LSN="K", TYM="Y", ARN="R",
    ),
    "nucleic": dict(ADE="A", CYT="C", GUA="G", URA="U", THY="T")
    | {f"{d}{base}{n}": base for d in ("", "R", "D") for base in "ACGTU" for n in ("", "3", "5")},
}  # fmt: skip
LETTERS = {
    kind: {name.strip(): letter for name, letter in table.items() if len(letter) == 1}
    for kind, table in (
        ("protein", PDBData.protein_letters_3to1_extended),
        ("nucleic", PDBData.nucleic_letters_3to1_extended),
    )
}


# Atoms that make a residue of unknown name one of a chain, and those that make a HETATM one; the
# letter that it counts as.
BACKBONE = {
    "protein": ({"CA", "C"}, {"N", "CA", "C"}),
    "nucleic": ({"C4'", "C1'"}, {"C4'", "C1'", "P", "O3'"}),
}
ANY = {"protein": "X", "nucleic": "N"}
# Columns of _atom_site in mmCIF, and those that stand in for them; programs leave many out.
CIF = (
    "pdbx_PDB_model_num", "auth_asym_id label_asym_id", "auth_seq_id label_seq_id",
    "pdbx_PDB_ins_code", "label_comp_id auth_comp_id", "group_PDB", "label_atom_id auth_atom_id",
    "label_alt_id", "occupancy", "type_symbol",
)  # fmt: skip
WATER = ("HOH", "WAT", "DOD", "H2O", "SOL", "TIP", "TIP3", "TP3", "T3P", "SPC")


class ContactsError(Refusal):
    """A list of contacts, a table of distances or a structure cannot be used: names the file."""


def make(
    path: str | Path, train: str | Path, out: str | Path, chain: str | None = None
) -> list[str]:
    """Writes what a file says of the pairs of sites of the sequences in `train`, and returns
    sentences on what of it was used and passed over.

    chain: that of a structure; by default the one that agrees best with the reference record.
    `ContactsError` says what is wrong with the file.
    """
    sequences = Sequences.open(train)
    about = {"file": str(path)}
    if _is_structure(path):
        distances, more = structure_distances(path, sequences.about, chain)
        known, about = ~np.isnan(distances), about | more
        contacts = known & (np.nan_to_num(distances, nan=np.inf) < TOUCH)
    else:
        contacts, known, distances, about["said"] = read_contacts(path, sequences.length)
    write_known(out, contacts, known, distances, about)
    return about["said"]


def _text(path: str | Path) -> str:
    try:
        return read_text(Path(path)).replace("\0", "")
    except SourceError as error:
        raise ContactsError(f"{path} cannot be read: {error}") from error


def _is_structure(path: str | Path) -> bool:
    """True if a file is a structure by its ending or by what stands in it."""
    known = Path(str(path).lower().removesuffix(".gz")).suffix in ENDINGS
    return known or re.search(r"^(ATOM  |_atom_site\.)", _text(path), re.MULTILINE) is not None


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
    chains, said = _chains(path, kind)
    if chain is not None and chain not in chains:
        known = ", ".join(
            f"{name or 'without a name'} ({len(_of_kind(found, kind))} residues)"
            for name, found in chains.items()
        )
        raise ContactsError(
            f"chain: found {chain}, but {path} has the {kind} chains {known} (auth_asym_id in "
            "mmCIF); name one of them, or leave `chain` out"
        )
    names = [chain] if chain is not None else list(chains)
    whole, chains = chains, {name: _of_kind(found, kind) for name, found in chains.items()}
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
    said += _passed(whole[name], kind)
    lacking = np.setdiff1d(columns, sites[np.isfinite(between).any(axis=0)]) + 1
    more = ", ".join(map(str, lacking[:10])) + ", ..." * (len(lacking) > 10)
    said.append(
        f"chain {name or 'without a name'}, one of {len(chains)}, has {len(residues)} residues; "
        f"{len(columns) - len(lacking)} of the {len(columns)} of the record {about['reference']} "
        f"are known{'; not those of columns ' * (len(lacking) > 0)}{more}"
    )
    return distances, dict(
        chain=name, record=about["reference"], residues=len(sites), identical=identical, said=said
    )


# An atom as the file has it: its residue's number with insertion code (`site`) and name, whether it
# is HETATM (`ligand`), its alternative location ('' without).
Atom = namedtuple("Atom", "model chain site residue ligand name other occupancy element place")
# The names of a residue, the likeliest first, and the atoms of that one by name.
Residue = namedtuple("Residue", "names atoms")


def _pdb_atoms(text: str) -> Iterator[Atom]:
    """Atoms of a PDB file. Remarks, and numbers that nothing uses, are not read."""
    model = 0
    for line in text.splitlines():
        model += line.startswith(("MODEL", "END"))
        if line.startswith(("ATOM  ", "HETATM")):
            place = np.array([float(line[at : at + 8]) for at in (30, 38, 46)], np.float32)
            yield Atom(
                str(model), line[21].strip(), line[22:27], line[17:20].strip(), line[0] == "H",
                line[12:16].strip(), line[16].strip(), line[54:60], line[76:78].strip(), place,
            )  # fmt: skip


def _cif_atoms(text: str) -> Iterator[Atom]:
    """Atoms of an mmCIF file; programs leave out columns, of which only places are needed."""
    table = MMCIF2Dict(io.StringIO(text))
    places = [table.get(f"_atom_site.Cartn_{axis}", []) for axis in "xyz"]
    columns = [
        next((table[name] for name in names if name in table), ["."] * len(places[0]))
        for names in ([f"_atom_site.{name}" for name in one.split()] for one in CIF)
    ]
    for values, place in zip(zip(*columns, strict=True), zip(*places, strict=True), strict=True):
        model, chain, number, code, residue, group, name, other, occupancy, element = values
        yield Atom(
            model, chain, number + code, residue, group == "HETATM", name, other.strip(".?"),
            occupancy, element.strip(".?"), np.array([float(one) for one in place], np.float32),
        )  # fmt: skip


def _chains(path: str | Path, kind: str) -> tuple[dict[str, list[Residue]], list[str]]:
    """The residues of each chain of a structure's first model that has some of this kind, and a
    sentence on other models."""
    text = _text(path)
    parse = _cif_atoms if re.search(r"^_atom_site\.", text, re.MULTILINE) else _pdb_atoms
    try:
        atoms = list(parse(text))
    except (ValueError, IndexError) as error:
        reason = " ".join(str(error).split())[:120]
        raise ContactsError(f"{path} cannot be read as a structure: {reason}") from error
    if not atoms:
        raise ContactsError(
            f"{path} cannot be read as a structure: it has no atoms (lines ATOM, or _atom_site of "
            "mmCIF)"
        )
    models = len({atom.model for atom in atoms})
    said = [f"the first of {models} models is used"] if models > 1 else []
    parts: dict[str, list[list[Atom]]] = {}
    latest: dict[tuple[str, str], list[Atom]] = {}
    for atom in (atom for atom in atoms if atom.model == atoms[0].model):
        same = latest.get((atom.chain, atom.site), [])
        # Numbers may begin again in one chain: an atom that is there, or another residue.
        if not same or any(
            (one.residue, one.name, one.other) == (atom.residue, atom.name, atom.other)
            or (not atom.other and one.residue != atom.residue)
            for one in same
        ):
            latest[atom.chain, atom.site] = same = []
            parts.setdefault(atom.chain, []).append(same)
        same.append(atom)
    chains = {name: [_residue(same) for same in found] for name, found in parts.items()}
    chains = {name: found for name, found in chains.items() if _of_kind(found, kind)}
    if not chains:
        raise ContactsError(
            f"{path} has no chain of {kind}, of which the alignment is (its `alphabet`)"
        )
    return chains, said


def _residue(atoms: list[Atom]) -> Residue:
    ordered = sorted(atoms[::-1], key=lambda atom: np.nan_to_num(_value(atom.occupancy), nan=1))
    names = list(dict.fromkeys(atom.residue for atom in atoms))
    names.sort(key=ordered[-1].residue.__ne__)
    return Residue(names, {a.name.replace("*", "'"): a for a in ordered if a.residue == names[0]})


def _letter(residue: Residue, kind: str) -> str | None:
    """The residue's letter, X or N of one whose name is unknown and that has a backbone."""
    kind = "protein" if kind == "protein" else "nucleic"
    name, ligand = residue.names[0], next(iter(residue.atoms.values())).ligand
    known = LETTERS[kind] if ligand else SIMULATED[kind] | LETTERS[kind]
    other = ANY[kind] if BACKBONE[kind][ligand] <= residue.atoms.keys() else None
    return known.get(name, other)


def _of_kind(residues: list[Residue], kind: str) -> list[Residue]:
    return [residue for residue in residues if _letter(residue, kind)]


def _passed(residues: list[Residue], kind: str) -> list[str]:
    """Sentences on what is not as it seems in a chain, and on what is left out of it."""
    letters = [(residue.names, _letter(residue, kind)) for residue in residues]
    found = {
        "residues of several names, of which that of highest occupancy counts": [
            "/".join(names) for names, _ in letters if len(names) > 1
        ],
        "residues of unknown names, which count as any residue": [
            names[0]
            for names, letter in letters
            if letter == ANY["protein" if kind == "protein" else "nucleic"]
        ],
        "passed over (ligands, ions and the like)": [
            names[0] for names, letter in letters if not letter and names[0] not in WATER
        ],
    }
    return [f"{what}: {listed(Counter(names))}" for what, names in found.items() if names]


def _sequence(residues: list[Residue], kind: str) -> str:
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


def _distances(residues: list[Residue], kind: str) -> np.ndarray:
    """Distances (N, N) of residues: of one atom each in proteins, of the closest ones elsewhere."""
    if kind == "protein":
        places = np.array([_beta(residue) for residue in residues])
        return cdist(places, places)
    atoms = [_heavy(residue) for residue in residues]
    starts = np.cumsum([0, *map(len, atoms[:-1])])
    every = np.concatenate(atoms)
    return np.array([np.minimum.reduceat(cdist(own, every).min(0), starts) for own in atoms])


def _beta(residue: Residue) -> np.ndarray:
    name = next((name for name in ("CB", "CA") if name in residue.atoms), None)
    return np.full(3, np.nan) if name is None else residue.atoms[name].place.astype(float)


def _heavy(residue: Residue) -> np.ndarray:
    elements = {
        name: atom.element or name.strip("0123456789'")[:1] for name, atom in residue.atoms.items()
    }
    atoms = [
        residue.atoms[name].place for name, one in elements.items() if one.upper() not in ("H", "D")
    ]
    return np.array(atoms or [[np.nan] * 3], dtype=float)


# --- Lists ---------------------------------------------------------------------------------------


def read_contacts(
    path: str | Path, length: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Contacts and known pairs (L, L, bool), distances (L, L) in angstrom, nan where there is none,
    and sentences on what was read, of a text file.

    Two columns i, j list the contacts, and all pairs are known. Three columns i, j, distance (in
    angstrom, of a PDB structure) make contacts of pairs nearer than 8; pairs without a row are
    unknown, as sites that the structure does not resolve. A line of names with i, j and perhaps d
    says which columns these are. CASP's format RR, i, j, (d1, d2,) p, makes contacts of pairs with
    a probability of at least .5. L rows of L numbers are all distances, or 1 for contacts and 0
    for others. Sites are columns of the alignment, from 1; columns are separated by commas,
    semicolons, tabs or spaces; lines from '#' and one line of names are passed over.
    `ContactsError` names the line that is not like this.
    """
    lines = enumerate(_text(path).splitlines(), start=1)
    split = (
        (n, line, re.split(r"\s*[,;]\s*|\s+", line.partition("#")[0].strip(" \t").rstrip(",;")))
        for n, line in lines
    )
    rows = [row for row in split if row[2] != [""]]
    if len(rows) == length > 5 and all(len(fields) == length for *_, fields in rows):
        rows = _pairs_of_matrix(rows)
    # Of CASP's RR some programs write no header, only the sequence and five columns.
    casp = any(fields[:2] == ["PFRMAT", "RR"] or len(fields) == 5 for *_, fields in rows)
    of_casp = [row for row in rows if casp and CASP.fullmatch(" ".join(row[2]))]
    letters = [fields[0] for *_, fields in of_casp if len(fields) == 1 and fields != ["END"]]
    if letters and len("".join(letters)) != length:
        raise ContactsError(
            f"{path}: its sequence has {len(''.join(letters))} residues, expected the {length} "
            "columns of the alignment, which its sites would be; renumber the sites by them"
        )
    rows = [row for row in rows if row not in of_casp]
    names = [name.strip("\"'").lower() for name in (rows or [(0, "", [""])])[0][2]]
    wanted = [name for name in names if name in DISTANCE][:1]
    taken = [names.index(name) for name in ("i", "j", *wanted)] if {"i", "j"} <= {*names} else []
    named = taken or (len(names) in (2, 3) and not re.match(r"[\d+-]", names[0]))
    contacts, known = np.zeros((2, length, length), dtype=bool)
    distances = np.full((length, length), np.nan)
    for number, line, fields in rows[bool(named) :]:
        try:
            if len(fields) != len(names):
                raise ValueError(f"{len(names)} columns as in the lines before")
            given = [fields[place] for place in taken] or fields
            i, j, contact, distance = _pair(given, casp and not taken, length)
        except ValueError as error:
            shown = f"{line.strip()[:60]!r}, expected {error}"
            raise ContactsError(f"{path}, line {number}: {shown}") from error
        for sites in ((i, j), (j, i)):
            contacts[sites] |= contact
            known[sites] = True
            distances[sites] = np.fmin(distances[sites], distance)
    if not known.any():
        raise ContactsError(f"{path} lists no pair of sites: expected lines 'i, j' or 'i, j, d'")
    said = [f"{known.sum() // 2} pairs listed, {contacts.sum() // 2} of them in contact"]
    listing = np.isnan(distances).all()
    said += [f"pairs that are not listed: {'not in contact' if listing else 'unknown'}"]
    said += [f"lines passed over of CASP's header and sequence: {len(of_casp)}"] * bool(of_casp)
    left = [name for place, name in enumerate(names) if taken and place not in taken]
    said += [f"columns passed over: {', '.join(left)}"] * bool(left)
    return contacts, ~np.eye(length, dtype=bool) if listing else known, distances, said


def _pairs_of_matrix(rows: list[tuple[int, str, list[str]]]) -> list[tuple[int, str, list[str]]]:
    """The rows of a table of distances, or those of a list of the pairs with 1 where all are 1 or
    0, that a matrix (L, L) stands for; what is not known is nan there."""
    pairs = [
        (number, line, [str(i), str(j), field])
        for i, (number, line, fields) in enumerate(rows, start=1)
        for j, field in enumerate(fields, start=1)
        if i != j and field.lower() != "nan"
    ]
    if {_value(fields[2]) for *_, fields in pairs} <= {0, 1}:
        return [(n, line, fields[:2]) for n, line, fields in pairs if _value(fields[2])]
    return pairs


def _pair(fields: list[str], casp: bool, length: int) -> tuple[int, int, bool, float]:
    """Two sites, from 0, whether they are in contact, and their distance, nan without.

    `ValueError` says what was expected.
    """
    width = len(fields)
    if width not in ((3, 5) if casp else (2, 3)):
        raise ValueError("2 columns (i, j) or 3 (i, j, distance), or 5 of CASP's RR (i j 0 8 p)")
    sites = [_value(field) for field in fields[:2]]
    if not all(site.is_integer() and 1 <= site <= length for site in sites):
        raise ValueError(f"sites from 1 to L = {length}")
    i, j = (int(site) - 1 for site in sites)
    if i == j:
        raise ValueError("two different sites")
    if width == 2:
        return i, j, True, math.nan
    last = _value(fields[-1])
    if casp:
        if width == 5 and [_value(field) for field in fields[2:4]] != [0, TOUCH]:
            raise ValueError(f"0 {TOUCH:g}, the distances between which pairs are in contact here")
        if not 0 <= last <= 1:
            raise ValueError("a probability from 0 to 1 in the last column")
        return i, j, last >= LIKELY, math.nan
    if not 0 <= last < math.inf:
        raise ValueError("a distance in angstrom, 0 or more")
    return i, j, last < TOUCH, last


def _value(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
