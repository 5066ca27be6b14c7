"""Pairs of sites known to be in contact: from a list, from distances, or a structure.

In a structure (PDB or mmCIF) two residues of a protein are in contact where their C-beta atoms
(C-alpha of glycine) are nearer than 8 angstrom; two of RNA or DNA where their closest heavy atoms
are. Its chain is aligned with the reference record of the alignment, whose columns are the sites.
"""

import io
import itertools
import math
import re
from collections import Counter, defaultdict, namedtuple
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from Bio.Align import PairwiseAligner, substitution_matrices
from Bio.Data import PDBData
from Bio.PDB.MMCIF2Dict import MMCIF2Dict
from scipy.spatial.distance import cdist

from manybody.data import SourceError, alignment
from manybody.io.sequences import Sequences
from manybody.measure.contacts import TOUCH, write_known

LIKELY = 0.5  # probability from which a predicted pair counts as a contact
# Lines of CASP's RR that list no pair: of a key, or of the sequence
CASP = r"(?i:PFRMAT|TARGET|AUTHOR|REMARK|METHOD|RMODE|MODEL|TER|END|ENDMDL)\b.*|([A-Za-z-]+)"
# Columns of a list of pairs, by how its lines look: i and j are sites, d a distance, p a
# probability. A base is in files of RNA (bpseq, ct), where j is 0 if it is not paired.
LAYOUTS = {
    r"\S+ \S+": "i j",
    r"\S+ [A-Za-z] \d+": "i base j",
    r"\S+ \S+ \S+": "i j d",
    r"\S+ \S+ \S+ \S+ \S+": "i j 0 8 p",
    # CASP's RR since 2020, with the probabilities of ten ranges of distances
    r"[1-9]\d* [1-9]\d*( \S+){11}": "i j p " + " ".join(f"range_{n}" for n in range(1, 11)),
    r"\S+ [A-Za-z]( \d+){4}": "i base before after j number",
    r"\S+ [A-Za-z]( \d+){6}": "i base before after j number before_stacked after_stacked",
}
NEAREST = 2.0  # angstrom: no table of distances has only less
BOND = 1.0  # angstrom: atoms of two residues are farther apart
# What values of pairs may be. Programs write 0, -1 or 999 for a distance that is not known.
RANGES = {
    "d": (
        1e-6,
        998.0,
        "a distance in angstrom, more than 0 and less than 999; leave out pairs that are not known "
        "(nan in a matrix)",
    ),
    "p": (0.0, 1.0, "a probability from 0 to 1"),
    None: (0.0, 1.0, None),
}
# Names that a list gives to its column of distances or of probabilities, the first that fits.
VALUES = {"d|dist|distance": "d", "(?!seq).*dist.*": "d", "p|prob|probability|contact": "p"}
WIDTHS = (
    "2 columns (i, j) or 3 (i, j, distance), 5 of CASP's RR (i j 0 8 p), or a first line of names "
    "with i, j and d or p, and numbers with a decimal point"
)
ANYTHING = [*"-.X?*"]  # what a letter of a list may be where the record has another one
CLOSES = {")": "(", "]": "[", "}": "{", ">": "<"}  # brackets of a secondary structure
BRACKETS = r"[-.,:_~]*[(<[{][-.,:_~(){}[\]<>A-Za-z]*"
ENDINGS = (".pdb", ".ent", ".cif", ".mmcif")
OTHER_ENDINGS = (".gro", ".pqr", ".mol2", ".sdf", ".xyz", ".bcif", ".mmtf")
# Share of the shorter sequence that must be identical for a chain to be that of the record: chance
# aligns more than half of two stretches of RNA. Of n residues it is at least 4.8 n^-0.63, about the
# curve of Rost (1999).
IDENTICAL = {"protein": 0.3, "rna": 0.7, "dna": 0.7}
# Residues as simulations name them: protonation states, ends of nucleic acids (not the ions and
# ligands that are called the same).
SIMULATED = {
    "protein": dict(
        HID="H", HIE="H", HIP="H", HSD="H", HSE="H", HSP="H", HIN="H", CYX="C", CYM="C", CYN="C",
        ASH="D", ASPH="D", GLH="E", GLUH="E", LYN="K", LSN="K", TYM="Y", ARN="R",
    ),
    "nucleic": dict(ADE="A", CYT="C", GUA="G", URA="U", THY="T")
    | {f"{d}{base}{n}": base for d in ("", "R", "D") for base in "ACGTU" for n in ("", "3", "5")},
}  # fmt: skip
LETTERS = {
    kind: {name.strip(): letter for name, letter in table.items()}
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
# In a line of PDB: record, atom, location, residue, chain, number, place, occupancy, element
PDB = re.compile(
    "(ATOM  |HETATM).{6}(.{4})(.)(.{3}).(.)(.{5}).{3}(.{8})(.{8})(.{8})(.{6}).{16}(..)"
)
# Columns of _atom_site in mmCIF in lower case, and those that stand in for them; programs leave
# many out.
CIF = (
    "pdbx_pdb_model_num", "auth_asym_id label_asym_id", "auth_seq_id label_seq_id",
    "pdbx_pdb_ins_code", "label_comp_id auth_comp_id", "group_pdb", "label_atom_id auth_atom_id",
    "label_alt_id", "occupancy", "type_symbol", "cartn_x", "cartn_y", "cartn_z",
)  # fmt: skip
WORDS = {"protein": 4, "rna": 8, "dna": 8}  # letters in a row that few sequences share by chance
ALIGNMENTS = 64  # equally good ones, of which one is chosen
WATER = ("HOH", "WAT", "DOD", "H2O", "SOL", "TIP", "TIP3", "TP3", "T3P", "SPC")


class OtherRecord(SourceError):
    """No chain of a structure is that of the reference record."""


def make(
    path: str | Path, train: str | Path, out: str | Path, chain: str | None = None
) -> list[str]:
    """Writes what a file says of the pairs of sites of the sequences in `train`, and returns
    sentences on what was used and passed over; chain: that of a structure, by default the one that
    agrees best with the reference record. `SourceError` says what is wrong with the file."""
    sequences = Sequences.open(train)
    *pairs, more = read(path, sequences.about, sequences.length, chain)
    write_known(out, *pairs, {"file": str(path)} | more)
    return more["said"]


def read(
    path: str | Path, about: dict, length: int, chain: str | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict]:
    """Contacts and known pairs (L, L, bool), distances (L, L) in angstrom, nan where there is none,
    and what they are of, from a structure or a list; `about` is the document of the alignment."""
    if _is_structure(path):
        distances, more = structure_distances(path, about, chain)
        return distances < TOUCH, ~np.isnan(distances), distances, more
    record, numbers = about.get("aligned", ""), about.get("numbers", ())
    *found, said = read_contacts(path, length, record, numbers)
    return *found, {"said": said}


def of_brackets(path: str | Path, signs: str, length: int) -> np.ndarray:
    """The pairs (L, L, bool) of a secondary structure in brackets, or A and a of pseudoknots.
    `SourceError` names the file that has it where it is not one of L columns."""
    contacts = np.zeros((length, length), bool)
    for i, j in _pairs_of_brackets(path, "#=GC SS_cons", signs, length):
        contacts[i - 1, j - 1] = contacts[j - 1, i - 1] = True
    return contacts


def _text(path: str | Path) -> str:
    return alignment.read_text(Path(path)).replace("\0", "")


def _is_structure(path: str | Path) -> bool:
    """True if a file is a structure by its ending or by what stands in it."""
    ending = Path(str(path).lower().removesuffix(".gz")).suffix
    if ending in OTHER_ENDINGS:
        raise SourceError(
            f"{path} is a structure of the format {ending}; expected PDB or mmCIF; convert it, "
            "as by gemmi, Open Babel (obabel) or gmx editconf"
        )
    text = _text(path)
    return ending in ENDINGS or re.search(r"(?m)^(ATOM |(?i:_atom_site)\.)", text) is not None


# --- Structures ----------------------------------------------------------------------------------


def structure_distances(
    path: str | Path, about: dict, chain: str | None = None
) -> tuple[np.ndarray, dict]:
    """Distances (L, L) in angstrom between the columns of an alignment, nan where they are not
    known, and what they are of. `about` is the document of the alignment's sequences."""
    if "aligned" not in about:
        raise SourceError(
            f"{path} is a structure, but {about.get('source', 'the source')} is no alignment; "
            "expected a list of pairs or a table of distances"
        )
    kind = about["kind"]
    columns = np.flatnonzero(pd.notna(about["numbers"]))
    record = "".join(about["aligned"][place] for place in columns)
    whole, said = _chains(path, kind)
    chains = {name: found[found["letter"] != ""] for name, found in whole.items()}
    chains = {name: found for name, found in chains.items() if len(found)}
    if not chains:
        raise SourceError(
            f"{path} has no chain of {kind}, of which the alignment is (its `alphabet`)"
        )
    if chain is not None and chain not in chains:
        known = ", ".join(
            f"{name or 'without a name'} ({len(found)} residues)" for name, found in chains.items()
        )
        raise SourceError(
            f"chain: found {chain}, but {path} has the {kind} chains {known} (auth_asym_id in "
            "mmCIF); name one of them, or leave `chain` out"
        )
    # Programs append what they build later: the order of the numbers may be that of the chain.
    every = [
        (name, order, *aligned(record, "".join(order["letter"]), kind, [*order["number"]]))
        for name, found in chains.items()
        for order in (found, found.sort_values("number", kind="stable"))
        if chain in (None, name) and (order is found or not found["number"].is_monotonic_increasing)
    ]
    name, residues, (of_record, of_chain), identical = max(every, key=lambda one: one[3])
    named = f"chain {name or 'without a name'}"
    size = min(len(record), len(residues))
    least = math.ceil(size * min(1.0, max(IDENTICAL[kind], 4.8 * size**-0.63)))
    if identical < least:
        raise OtherRecord(
            f"{path}: {named} ({len(residues)} residues) and the record {about['reference']} "
            f"({len(record)} residues) agree in {identical} of them; expected at least {least}. "
            f"Give the sequence that the structure is of, or name its record (`reference`), or "
            "another `chain`"
        )
    between = _distances(residues["atoms"].iloc[of_chain], kind)
    if np.isnan(between).all():
        raise SourceError(
            f"{path}: {named} has no atom CB or CA at a residue of the record "
            f"{about['reference']}; expected a structure with atoms, not a coarser one"
        )
    if np.count_nonzero(np.diag(between, 1) < BOND) > len(of_chain) / 2:
        raise SourceError(
            f"{path}: most residues of {named} are nearer than {BOND:g} to the next one; expected "
            "coordinates in angstrom: if these are in nanometres, multiply them by ten"
        )
    distances = np.full((len(about["aligned"]),) * 2, np.nan)
    sites = columns[of_record]
    distances[np.ix_(sites, sites)] = between
    np.fill_diagonal(distances, np.nan)
    steps = residues[["number", "part"]].iloc[of_chain[0] : of_chain[-1] + 1].diff()
    said += (
        _passed(whole[name], kind)
        + [f"residues of {named} taken in the order of their numbers, which the file does not have"]
        * (residues is not chains[name])
        + [
            f"the numbers of {named} go back, or TER ends it, between residues of the record: if "
            "these are of several copies, distances between copies are wrong; give each copy a "
            "chain of its own"
        ]
        * bool((steps["number"] < 0).any() or steps["part"].iloc[1:].any())
    )
    lacking = np.setdiff1d(columns, sites[np.isfinite(between).any(axis=0)]) + 1
    said.append(
        f"{named}, one of {len(chains)}, has {len(residues)} residues; "
        f"{len(columns) - len(lacking)} of the {len(columns)} of the record {about['reference']} "
        f"are known{'; not those of columns ' * (len(lacking) > 0)}"
        f"{', '.join(map(str, lacking[:10]))}{', ...' * (len(lacking) > 10)}; {identical} of the "
        f"{len(of_record)} aligned residues are the same"
    )
    return distances, dict(
        chain=name, record=about["reference"], residues=len(sites), identical=identical, said=said
    )


def record_like(path: str | Path, names: list[str], rows: list[str], kind: str) -> str:
    """The name of the record that has most words in common with the chains of a structure, the
    first such; rows: aligned letters."""
    size = WORDS[kind]

    def words(letters: str) -> set[str]:
        letters = _plain(re.sub("[-.~]", "", letters), kind)
        return {letters[start : start + size] for start in range(len(letters) - size + 1)}

    chains, _ = _chains(path, kind)
    own = {word for chain in chains.values() for word in words("".join(chain["letter"]))}
    return names[np.argmax([len(own & words(row)) for row in rows])]


# An atom as the file has it: its residue's number with insertion code (`site`) and name, whether it
# is HETATM (`ligand`), its alternative location ('' without), how many lines TER stand before it.
Atom = namedtuple("Atom", "model chain site residue name other ligand occupancy element place part")
# The names of a residue, the likeliest first, the atoms of that one by name, and its letter, X or N
# of one whose name is unknown and that has a backbone, none of what is no residue; its number, and
# the part of its first atom.
Residue = namedtuple("Residue", "names atoms letter number part")


def _pdb_atoms(text: str) -> Iterator[Atom]:
    """Atoms of a PDB file. Remarks, and numbers that nothing uses, are not read."""
    model = part = 0
    for line in text.splitlines():
        part += line.startswith("TER")
        model += line.startswith(("MODEL", "END"))
        if found := PDB.match(f"{line:80}"):
            kind, name, other, residue, chain, site, *place, occupancy, element = found.groups()
            yield Atom(
                str(model), chain.strip(), site, residue.strip().upper(), name.strip().upper(),
                other.strip(), kind == "HETATM", occupancy, element.strip(), _place(place), part,
            )  # fmt: skip


def _cif_atoms(text: str) -> Iterator[Atom]:
    """Atoms of an mmCIF file, in whose names case does not count; programs leave out columns, of
    which only places are needed. Further blocks of data, of which PyMOL writes one for each object,
    are further models."""
    blocks = re.split(r"(?mi)^(?=data_\S*[ \t]*$)", text)
    for number, block in enumerate(one for one in blocks if "_atom_site." in one.lower()):
        table = {name.lower(): one for name, one in MMCIF2Dict(io.StringIO(block)).items()}
        given = [[table.get(f"_atom_site.{name}", []) for name in one.split()] for one in CIF]
        columns = [next((one for one in found if {*one} - {*".?"}), []) for found in given]
        if len({*map(len, columns)} - {0}) > 1:
            raise ValueError("its last atom lacks values")
        for values in itertools.zip_longest(*columns, fillvalue="."):
            model, chain, site, code, residue, group, name, other, occupancy, element, *place = (
                values
            )
            yield Atom(
                f"{number} {model}", chain, site + code, residue.upper(), name.upper(),
                other.strip(".?"), group == "HETATM", occupancy, element.strip(".?"),
                _place(value.partition("(")[0] for value in place), 0,
            )  # fmt: skip


def _place(fields: Iterable[str]) -> tuple[np.float32, ...]:
    return tuple(np.float32(_value(field)) for field in fields)


def _chains(path: str | Path, kind: str) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """The residues of each chain of a structure's first model, as rows, and sentences on what else
    the file holds."""
    text = _text(path)
    parse = _cif_atoms if re.search(r"(?mi)^_atom_site\.", text) else _pdb_atoms
    try:
        given = list(parse(text))
    except (ValueError, IndexError) as error:
        raise SourceError(
            f"{path} cannot be read as a structure: it is cut or damaged "
            f"({' '.join(str(error).split())[:120]}); expected PDB or mmCIF; fetch or save it again"
        ) from error
    # Programs write one place for all atoms whose place they do not know, as 0 or 9999.
    spots = {(a.model, a.chain, a.place, a.name, a.site) for a in given if not a.ligand}
    counts = Counter(spot[:4] for spot in spots)
    shared = {spot[:3] for spot, sites in counts.items() if sites > 1}
    atoms = [
        a for a in given if np.isfinite(a.place).all() and (a.model, a.chain, a.place) not in shared
    ]
    if not atoms:
        raise SourceError(
            f"{path} cannot be read as a structure: it has no atoms (lines ATOM with coordinates "
            "in columns 31 to 54, or _atom_site of mmCIF)"
        )
    models, lost = len({atom.model for atom in atoms}), len(given) - len(atoms)
    said = [f"the first of {models} models is used"] * (models > 1) + [
        f"atoms passed over whose coordinates are no numbers, or those of another residue: {lost}"
    ] * (lost > 0)
    parts, latest = defaultdict(list), {}
    for atom in (atom for atom in atoms if atom.model == atoms[0].model):
        same = latest.get((atom.chain, atom.site), [])
        # Numbers may begin again in one chain: an atom that is there, or another residue. Some
        # programs call all hydrogens of a residue the same.
        named = [] if re.match(r"\d*[HD]", atom.name) else [one[3:6] for one in same]
        if (
            not same
            or atom[3:6] in named
            or (not atom.other and {one.residue for one in same} != {atom.residue})
        ):
            latest[atom.chain, atom.site] = same = []
            parts[atom.chain].append(same)
        same.append(atom)
    kind = "protein" if kind == "protein" else "nucleic"
    return {
        name: pd.DataFrame([_residue(same, kind) for same in found])
        for name, found in parts.items()
    }, said


def _residue(atoms: list[Atom], kind: str) -> Residue:
    ordered = sorted(atoms[::-1], key=lambda atom: np.nan_to_num(_value(atom.occupancy), nan=1))
    likeliest = ordered[-1]
    own = {a.name.replace("*", "'"): a for a in ordered if a.residue == likeliest.residue}
    names = list(dict.fromkeys([likeliest.residue, *(atom.residue for atom in atoms)]))
    known = LETTERS[kind] if likeliest.ligand else SIMULATED[kind] | LETTERS[kind]
    other = ANY[kind] if BACKBONE[kind][likeliest.ligand] <= own.keys() else ""
    number = int(re.search(r"-?\d+|$", atoms[0].site)[0] or 0)
    return Residue(names, own, known.get(names[0], other), number, atoms[0].part)


def _passed(chain: pd.DataFrame, kind: str) -> list[str]:
    """Sentences on what is not as it seems in a chain, and on what is left out of it."""
    protein, names, letter = kind == "protein", chain["names"], chain["letter"]
    name, residue, size = names.str[0], letter != "", chain["atoms"].str.len()
    found = {
        "residues without C-beta, whose C-alpha counts": name[
            protein & residue & (letter != "G") & chain["atoms"].str.get("CB").isna()
        ],
        "residues of several names, of which that of highest occupancy counts": names[
            names.str.len() > 1
        ].str.join("/"),
        "residues of unknown names, which count as any residue": name[
            letter == ANY["protein" if protein else "nucleic"]
        ],
        "residues of less than 8 atoms, the closest of which may be far apart": name[
            (not protein) & residue & (size < 8)
        ],
        "passed over (ligands, ions and the like)": name[~residue & ~name.isin(WATER)],
    }
    return [
        f"{what}: {alignment.listed(Counter(some))}" for what, some in found.items() if len(some)
    ]


def _plain(letters: str, kind: str) -> str:
    """Upper case, with the letters that the scores of an alignment know."""
    unknown = ("JOU?", "XXXX") if kind == "protein" else ("U", "T")
    return letters.upper().translate(str.maketrans(*unknown))


def aligned(
    record: str, chain: str, kind: str, numbers: Sequence[int] = ()
) -> tuple[np.ndarray, int]:
    """Places (2, n) in both sequences that the best alignment puts together, and how many have the
    same letter. Of alignments that are equally good, as where residues are missing beside a letter
    that comes twice, that counts which agrees most with the `numbers` of the chain's residues."""
    record, chain = _plain(record, kind), _plain(chain, kind)
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
    pairs = [
        one.indices[:, (one.indices >= 0).all(axis=0)]
        for one in itertools.islice(aligner.align(record, chain), ALIGNMENTS)
    ]

    def breaks(pair: np.ndarray) -> int:
        """Steps of which the numbers say another length than the record."""
        return np.count_nonzero(np.diff(pair[0]) != np.diff(np.array(numbers)[pair[1]]))

    pair = min(pairs, key=breaks) if numbers else pairs[0]
    return pair, sum(record[a] == chain[b] for a, b in pair.T)


def _distances(residues: Iterable[dict[str, Atom]], kind: str) -> np.ndarray:
    """Distances (N, N) of residues, given by their atoms: of one atom each in proteins, of the
    closest ones elsewhere."""
    places = [_places(atoms, kind) for atoms in residues]
    starts = np.cumsum([0, *map(len, places[:-1])])
    every = np.concatenate(places)
    return np.array([np.minimum.reduceat(cdist(own, every).min(0), starts) for own in places])


def _places(atoms: dict[str, Atom], kind: str) -> np.ndarray:
    """Places (atoms, 3) of C-beta or C-alpha in proteins, of the heavy atoms elsewhere."""
    if kind == "protein":
        chosen = [atoms[name] for name in ("CB", "CA") if name in atoms][:1]
    else:
        chosen = [
            atom
            for name, atom in atoms.items()
            if (atom.element or name.strip("0123456789'")[:1]).upper() not in ("H", "D")
        ]
    return np.array([atom.place for atom in chosen] or [[np.nan] * 3], dtype=float)


# --- Lists ---------------------------------------------------------------------------------------


def read_contacts(
    path: str | Path, length: int, record: str = "", numbers: Sequence[int | None] = ()
) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    """Contacts and known pairs (L, L, bool), distances (L, L) in angstrom, nan where there is none,
    and sentences on what was read, of a file that is no structure.

    Two columns i, j list the contacts, and all pairs are known. Three, i, j, distance (angstrom),
    make contacts of pairs nearer than 8, and pairs without a row are unknown. A probability p, as
    in CASP's RR, i, j, (d1, d2,) p, makes contacts of pairs with .5 or more. A line of names with
    i, j and perhaps d or p says which columns these are. L rows of L numbers, with labels or
    without, are all distances, or 1 for contacts and 0 for others. Secondary structures of RNA
    (dot-bracket, bpseq, ct, the SS_cons of a Stockholm file) list their pairs. Sites are columns of
    the alignment, from 1; commas, semicolons, tabs or spaces separate columns; lines from '#' are
    passed over. Columns of letters, A_i and A_j of EVcouplings, i_id and j_id of GREMLIN, or others
    that end in i and j, have those of the aligned `record` (L) there. RR counts residues of this
    record from 1, or has their `numbers` (L, None at gaps) where only these fit; its sites are
    columns where its sequence has L letters. `SourceError` names the line that is not like this.
    """
    text = alignment.consensus_structure(Path(path)) or _text(path)
    if text.lstrip().startswith("# STOCKHOLM"):
        raise SourceError(
            f"{path} is a Stockholm file without a line #=GC SS_cons; expected one, which lists "
            "the pairs; add it, or give the pairs as a list or in brackets"
        )
    lines = pd.Series(dict(enumerate(text.splitlines(), start=1)), dtype=object)
    rows = lines.str.replace("#.*", "", regex=True).str.strip(" \t").str.rstrip(",;")
    rows = rows.str.replace(r"\s*[,;]\s*|\s+", " ", regex=True)
    rows = rows.str.replace(r"(?<!\S)[\"']+|[\"']+(?!\S)", "", regex=True)
    rows = rows[rows != ""]
    signs = lines[rows.index].str.split().str[0]
    first = next(iter(rows.index[signs.str.fullmatch(BRACKETS)]), None)
    table, left_out, letters = _matrix(rows, length), rows[:0], ""
    if table is None and first:
        pairs = _pairs_of_brackets(path, first, lines[first], length)
        table = pd.DataFrame(pairs, [first] * len(pairs), ["i", "j"])
        left_out = rows.drop(first)
        words = left_out.str.extract(rf"^([A-Za-z]{{{length}}})(?: |$)", expand=False)
        letters = "".join(words.dropna()[:1])
    elif table is None:
        # Of CASP's RR some programs write no header, only the sequence and the columns.
        casp = (rows.str.count(" ").isin([4, 12]) | rows.str.match(r"(?i)PFRMAT RR( |$)")).any()
        passed = rows[rows.str.fullmatch(CASP) & casp]
        letters = "".join(passed.str.replace(CASP, r"\1", regex=True))
        before, names, rows = _named(rows.drop(passed.index), casp)
        left_out = pd.concat([passed, before])
        odd = rows.index[rows.str.count(" ") + 1 != len(names)]
        if len(odd):
            raise _unlike(
                path,
                odd[0],
                lines[odd[0]],
                f"{len(names)} columns as before"
                if names
                else f"{WIDTHS}, or a matrix of {length} x {length}: distances, or 1 and 0 alone; "
                "with labels, its first field is empty or a word",
            )
        columns = zip(*rows.str.split(" "), strict=True)
        table = pd.DataFrame(dict(zip(names, columns, strict=False)), rows.index)
    # Files of bpseq and ct have a line for each base.
    letters = "".join(table["base"]) if "base" in table else letters
    own = dict(enumerate(record.upper().replace("U", "T"), start=1))
    of_casp = not {"8", "range_1"}.isdisjoint(table) or any(left_out.str.match("(?i)PFRMAT( |$)"))
    counted, by = range(1, length + 1), "columns of the alignment"
    if of_casp and own and len(letters) != length:
        counted = [site for site, letter in own.items() if letter not in alignment.GAPS]
        by = "residues of the reference, from 1" if len(counted) < length else by
    if len(letters) not in (0, len(counted)):
        raise SourceError(
            f"{path}: its sequence has {len(letters)} residues, expected the {length} "
            f"columns of the alignment{f' or {len(counted)} residues of the reference' * of_casp}, "
            "which its sites would be; renumber the sites by them, and leave one structure in the "
            "file"
        )
    value = next((name for name in ("d", "p") if name in table), None)
    used = table.columns.intersection(["i", "j", "0", "8", value])
    table[used] = table[used].apply(pd.to_numeric, errors="coerce")
    table = table[table["j"] != 0] if "base" in table else table
    if table.empty:
        raise SourceError(f"{path} lists no pair of sites: expected lines 'i, j' or 'i, j, d'")
    ways = {by: dict(enumerate(counted, start=1))}
    if of_casp:
        ways["residues of the reference, as its range numbers them"] = {
            number: site for site, number in enumerate(numbers, start=1) if number is not None
        }
    sites = table[["i", "j"]]
    by = max(ways, key=lambda one: sites.isin([*ways[one]]).all(axis=None))
    table[["i", "j"]] = sites = sites.apply(lambda column: column.map(ways[by]))
    fits = sites.notna().all(axis=1)
    given = table[value] if value else fits.astype(float)
    least, most, expected = RANGES[value]
    checks = [
        (
            fits,
            f"sites from 1 to L = {len(counted)}, numbers alone of {by} (add 1 if yours start at "
            "0)",
        ),
        (table["i"] != table["j"], "two different sites"),
        (given.between(least, most), expected),
        # As R4RNA lists helices, from the pair (i, j) inwards
        (~fits if "length" in table else fits, "a row for each pair, and no column `length`"),
    ]
    for site in "ij" if own else "":
        if f"a_{site}" in table:
            letter = table[f"a_{site}"].str.split("_").str[-1].str.upper().str.replace("U", "T")
            real = table[site].map(own)
            same = (real == letter) | letter.isin(ANYTHING) | real.isin(ANYTHING)
            expected = (
                f"in A_{site}, {site}_id or the like the letter of the reference record in that "
                "column; renumber the sites by its columns, from 1, or take the record that they "
                "are of as the `reference`"
            )
            checks.append((same | ~letter.str.isalpha(), expected))
    if "0" in table:
        near = (table["0"] == 0) & (table["8"] == TOUCH)
        checks.append((near, f"0 {TOUCH:g}, the distances between which pairs are in contact here"))
    for fits, expected in checks:
        if not fits.all():
            raise _unlike(path, fits.idxmin(), lines[fits.idxmin()], expected)
    i, j = np.sort(sites.to_numpy(int), axis=1).T - 1
    near = given < TOUCH if value == "d" else given >= LIKELY
    contacts, known = np.zeros((2, length, length), dtype=bool)
    distances = np.full((length, length), np.nan)
    for pairs in ((i, j), (j, i)):
        known[pairs] = True
        np.logical_or.at(contacts, pairs, near)
        np.fmin.at(distances, pairs, table.get("d", np.nan))
    # No list of contacts has half of all pairs, no structure 60 of each site on average; nor are
    # all of so many distances short.
    half = length * (length - 1) / 2
    most = {"d": min(max(half, known.sum()), 60 * length), "p": 2 * half}.get(value, half)
    found = contacts.sum() // 2
    if 2 * found >= most or (value == "d" and given.max() < NEAREST):
        raise SourceError(
            f"{path}: {found} pairs of sites in contact, with values up to "
            f"{given.max():g}; expected the pairs in contact alone, distances in angstrom "
            "(ten times those in nanometres) or probabilities; a first line i, j, d or i, j, p "
            "says which these are"
        )
    said = f"{known.sum() // 2} pairs listed, {found} of them in contact"
    said += f"; sites by {by}" * (
        list(numbers) not in ([], [*range(1, length + 1)])
        and (of_casp or not (letters or "a_i" in table))
    )
    if value != "d":
        inside = np.isin(np.arange(1, length + 1), counted)
        known = inside & inside[:, None] & ~np.eye(length, dtype=bool)
    counts = {
        "columns where the sequence in the file has another letter than the reference record (is "
        "it of the same columns?)": sum(
            own.get(place, "X") not in [letter, *ANYTHING]
            for place, letter in zip(counted, letters.upper().replace("U", "T"), strict=False)
        ),
        "pairs that are not listed": "unknown" if value == "d" else "not in contact",
        "pairs with several values, of which the nearest counts": np.count_nonzero(
            given.groupby([i, j]).nunique() > 1
        ),
        "lines passed over of header or sequence": len(left_out),
    }
    left = table.columns.difference([*used, "a_i", "a_j"], sort=False)
    return (
        contacts,
        known,
        distances,
        [
            said,
            *(f"{what}: {count}" for what, count in counts.items() if count),
            *[f"columns passed over: {', '.join(left)}"] * (len(left) > 0),
        ],
    )


def _unlike(path: str | Path, number: int | str, line: str, expected: str) -> SourceError:
    return SourceError(f"{path}, line {number}: {line.strip()[:60]!r}, expected {expected}")


def _named(rows: pd.Series, casp: bool) -> tuple[pd.Series, list[str], pd.Series]:
    """The rows before the pairs, the names of the columns, by a line of names or by how the rows
    look, and the rows of pairs; no names for rows that look like no list of pairs."""
    first = [*rows[:1].str.lower().str.split(" ").explode()]
    if {"i", "j"} <= {*first}:
        values = [
            (name, VALUES[one]) for one in VALUES for name in first if re.fullmatch(one, name)
        ]
        known = dict(values[:1], i_id="a_i", j_id="a_j")  # of GREMLIN, as 1_M
        known |= {  # as aa_i or wt_j, of letters alone
            name: f"a_{name[-1]}"
            for name, *column in zip(first, *rows[1:].str.split(" "), strict=False)
            if re.fullmatch(r"[a-z]+_?[ij]", name)
            and re.fullmatch("( [A-Za-z])+", " ".join(["", *column]))
        }
        return rows[:0], [known.get(name, name) for name in first], rows[1:]
    start = int(len(first) in (2, 3) and not re.match(r"[\d+-]", first[0]))
    last = _layout(rows[-1:])
    if "base" in last:
        start = [_layout([row]) for row in rows].index(last)
    names = _layout(rows[start:])
    return rows[:start], ["i", "j", "p"] if casp and len(names) == 3 else names, rows[start:]


def _layout(rows: Iterable[str]) -> list[str]:
    """The names of the columns of the first of these rows."""
    first = next(iter(rows), "")
    return next((LAYOUTS[one].split() for one in LAYOUTS if re.fullmatch(one, first)), [])


def _matrix(rows: pd.Series, length: int) -> pd.DataFrame | None:
    """The pairs of a table of distances, or those with 1 where all are 1 or 0, that a matrix (L, L)
    stands for, with labels or without, by line; what is not known is nan there. None if the rows
    are no matrix."""
    fields = rows.str.split(" ")
    if {len(rows), *fields[1:].str.len()} == {length + 1} and _names_columns(
        fields.iloc[0], length
    ):
        fields = fields[1:].str[1:]
    if length < 6 or {len(fields), *fields.str.len()} != {length}:
        return None
    text = np.array([*fields])
    i, j = np.nonzero((np.char.lower(text) != "nan") & ~np.eye(length, dtype=bool))
    values = pd.to_numeric(text[i, j], errors="coerce")
    table = pd.DataFrame(dict(i=i + 1, j=j + 1, d=values), fields.index[i])
    if not np.isin(values, [0, 1]).all():
        return table
    # A list has no unknown pairs.
    return table[["i", "j"]][values == 1] if len(table) == length * (length - 1) else None


def _names_columns(fields: list[str], length: int) -> bool:
    """True if the first row of a matrix has labels: it lacks the corner, or has no number there, or
    its numbers count on, as those of no distances do."""
    values = pd.to_numeric(pd.Series(fields), errors="coerce")
    of_words = np.isnan(values[0]) and fields[0].lower() != "nan"
    return len(fields) == length or of_words or (np.diff(values[-length:]) == 1).all()


def _pairs_of_brackets(
    path: str | Path, number: int | str, line: str, length: int
) -> list[tuple[int, int]]:
    """The pairs of sites, from 1, of a secondary structure, which starts the line."""
    opened, pairs, signs = defaultdict(list), [], line.split()[0]
    for site, sign in enumerate(signs, start=1):
        if sign in CLOSES.values() or sign.isupper():
            opened[sign].append(site)
        elif sign in CLOSES or sign.islower():
            pairs.append(((opened[CLOSES.get(sign, sign.upper())] or [0]).pop(), site))
    alone = sum(map(len, opened.values())) + sum(first == 0 for first, _ in pairs)
    if len(signs) != length or alone:
        raise _unlike(
            path,
            number,
            line,
            f"L = {length} signs, one for each column (. where the record has a gap), and a "
            f"partner of each bracket; found {len(signs)} signs, and {alone} brackets without a "
            "partner; correct the line, or delete it from a Stockholm file",
        )
    return pairs


def _value(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
