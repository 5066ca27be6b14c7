"""Known contacts: lists, tables of distances, and structures whose chains are put on columns."""

import gzip
import re

import numpy as np
import pandas as pd
import pytest
from Bio.PDB import MMCIFIO, PDBIO
from Bio.PDB.StructureBuilder import StructureBuilder
from scipy.spatial.distance import cdist

from manybody.data import SourceError
from manybody.io import sequences
from manybody.measure.contacts import read_known
from manybody.measure.known_contacts import make, read, read_contacts, structure_distances

# --- Lists ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["i,j\n1,2\n# none\n\n4,2\n", "1\t2\n2 4 # far\n", "1, 2\n4, 2"])
def test_a_list_of_contacts_knows_all_pairs(text, tmp_path):
    (tmp_path / "list").write_text(text)
    contacts, known, *_ = read_contacts(tmp_path / "list", 4)
    assert np.argwhere(np.triu(contacts)).tolist() == [[0, 1], [1, 3]]
    np.testing.assert_array_equal(contacts, contacts.T)
    np.testing.assert_array_equal(known, ~np.eye(4, dtype=bool))


def test_a_table_of_distances_knows_its_own_pairs(tmp_path):
    (tmp_path / "d.tsv").write_text("i\tj\tdistance\n1\t2\t7.9\n1\t3\t8.0\n4\t2\t3e1\n2\t3\t.1\n")
    contacts, known, distances, _ = read_contacts(tmp_path / "d.tsv", 4)
    assert np.argwhere(np.triu(contacts)).tolist() == [[0, 1], [1, 2]]
    assert np.argwhere(np.triu(known)).tolist() == [[0, 1], [0, 2], [1, 2], [1, 3]]
    assert distances[3, 1] == distances[1, 3] == 30
    assert np.isnan(distances[0, 3])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,2\n1,2,3\n", "line 2: '1,2,3', expected 2 columns"),
        ("i j\n1 2\n1\n", "line 3: '1', expected 2 columns"),
        ("1 2 3 4\n", "line 1: .*, expected 2 columns"),
        ("1;2;7,5\n", "line 1: '1;2;7,5', expected .*numbers with a decimal point"),
        ("1,2\n0,3\n", "line 2: '0,3', expected sites from 1 to L = 4"),
        ("1,2\n3,5\n", "line 2: '3,5', expected sites from 1"),
        ("1,2\n-1,3\n", "line 2: '-1,3', expected sites"),
        ("1,2\nA,3\n", "line 2: 'A,3', expected sites"),
        ("1,2\n1.5,3\n", "line 2: '1.5,3', expected sites"),
        ("1,2\n\n3,3\n", "line 3: '3,3', expected two different sites"),
        ("1,2,near\n", "line 1: '1,2,near', expected a distance in angstrom"),
        ("1,2,-1\n", "line 1: '1,2,-1', expected a distance"),
        # Signs of distances that are not known
        ("1,2,7\n1,3,0\n", "line 2: '1,3,0', expected a distance .*leave out pairs that are not"),
        ("1,2,7\n1,3,999\n", "line 2: '1,3,999', expected a distance in angstrom, .*less than 999"),
        ("1,2,nan\n", "line 1: '1,2,nan', expected a distance"),
        ("# nothing\n", "lists no pair"),
    ],
)
def test_malformed_lines_are_refused_by_number(text, message, tmp_path):
    path = tmp_path / "contacts.csv"
    path.write_text(text)
    with pytest.raises(SourceError, match=message) as caught:
        read_contacts(path, 4)
    assert str(path) in str(caught.value)


def listed_pairs(text, folder, length=8, record="", numbers=()) -> tuple:
    """Contacts (i < j, from 1), the number of known pairs, and what is said."""
    (folder / "given").write_bytes(text if isinstance(text, bytes) else text.encode())
    contacts, known, _, said = read_contacts(folder / "given", length, record, numbers)
    return (np.argwhere(np.triu(contacts)) + 1).tolist(), known.sum() // 2, "; ".join(said)


CASP = "{}REMARK of \xb0C\nMODEL 1\nACDE\nFGHI\n{}END\n"
MATRIX = np.full((8, 8), 12.5)
MATRIX[1, 3] = MATRIX[3, 1] = 7.5
GAPPED = (8, "AC--DEF-", [11, 12, None, None, 13, 14, 15, None])  # a reference and its numbers


@pytest.mark.parametrize(
    ("text", "pairs", "known", "said", "of"),
    [(*row[:4], row[4:]) for row in [
        (CASP.format("PFRMAT RR\n", "2 4 0 8 .5\n1 5 0 8 .49\n"), [[2, 4]], 28, "header.*: 6"),
        (CASP.format("PFRMAT RR\n", "2 4 .97\n1 5 .1\n"), [[2, 4]], 28, "2 pairs listed, 1 of"),
        (CASP.format("pfrmat rr\n", f"2 4 .9{' .1' * 10}\n1 5 .4{' .1' * 10}\nTER\n"), [[2, 4]], 28,
         "header.*: 7; columns passed over: range_1, "),
        ("ACDEFGHI\n2 4 0 8.0 .97\n", [[2, 4]], 28, "sequence: 1"),
        (b"\xff\xfe" + "2 4\r".encode("utf-16-le"), [[2, 4]], 28, "not listed: not in contact"),
        (gzip.compress(b"2.0;4.0;\n", mtime=0), [[2, 4]], 28, "1 pairs"),
        (',rank,i,j,"dist"\n0,1,2,4,7.9\n1,2,1,5,8\n', [[2, 4]], 2, "columns passed over: , rank$"),
        ("\n".join(" ".join(map(str, row)) for row in MATRIX), [[2, 4]], 28, "56 pairs|28 pairs"),
        ("\n".join(",".join(map(str, row)) for row in (MATRIX < 8) * 1), [[2, 4]], 28, "1 pairs"),
        ("\n".join(" ".join(map(str, row)) for row in np.where(MATRIX < 8, 7, np.nan)), [[2, 4]], 1,
         "not listed: unknown"),
        (pd.DataFrame(MATRIX, index=list("ACDEFGHI")).to_csv(sep="\t"), [[2, 4]], 28,
         "pairs listed, 1 of"),
        (pd.DataFrame(MATRIX).to_csv(), [[2, 4]], 28, "pairs listed, 1 of"),
        # By residue numbers with a gap
        (pd.DataFrame(MATRIX, *[[5, 6, 7, 9, *range(10, 14)]] * 2).to_csv(), [[2, 4]], 28, "1 of"),
        ('"i","j","prob"\n"2","4",".5"\n"1","5",".4"\n', [[2, 4]], 28, "2 pairs listed, 1 of them"),
        ("ACGUACGU\n.([.)]..\nEHHHHHEE\nS1 2..5 C 5..2 A\n", [[2, 5], [3, 6]], 28, "header.*: 3"),
        (">x\nACGUACGU\n.([.)].. (-3.2)\n", [[2, 5], [3, 6]], 28, "passed over of header.*: 2"),
        ("Organism: x\nAccession Number: y\n1 A 0\n2 C 4\n3 A 0\n4 u 2\n"
         + "".join(f"{n} A 0\n" for n in range(5, 9)), [[2, 4]], 28, "header.*: 2"),
        ("# STOCKHOLM 1.0\na ACGUACGU\nb ACGUACGA\n#=GC SS_cons .<..>...\n//\n", [[2, 5]], 28,
         "1 pairs listed"),
        ("8 dG = -1 name\n1 A 0 2 0 1\n2 C 1 3 4 2\n3 A 2 4 0 3\n4 G 3 5 2 4\n"
         + "".join(f"{n} A {n - 1} {n + 1} 0 {n}\n" for n in range(5, 9)), [[2, 4]], 28, "1 pairs"),
        ("i,j,contact\n2,4,1\n1,5,0\n", [[2, 4]], 28, "2 pairs listed, 1 of them"),
        ("8 dG = -1 name\n1 A 0 2 0 1 0 0\n2 C 1 3 4 2 0 0\n3 A 2 4 0 3 0 0\n4 G 3 5 2 4 0 0\n"
         + "".join(f"{n} A {n - 1} {n + 1} 0 {n} 0 0\n" for n in range(5, 9)), [[2, 4]], 28, "1 p"),
        ("i,j,dist_CB\n2,4,5.1\n1,5,12\n", [[2, 4]], 2, "not listed: unknown"),
        ("i,j,seq_dist,p,CB_distance\n2,4,2,0,5.1\n1,5,4,1,12\n", [[2, 4]], 2, "seq_dist, p$"),
        ("i,j,d\n2,4,9\n1,5,12\n4,2,7\n", [[2, 4]], 2, "several values.*nearest counts: 1$"),
        ("PFRMAT RR\nACDEF\n2 4 0 8 .5\n", [[2, 6]], 10, "by residues .*, from 1; pairs", *GAPPED),
        (f"2 4 .9{' .1' * 10}\n", [[2, 6]], 10, "by residues .*, from 1; pairs", *GAPPED),
        ("12 14 0 8 .5\n", [[2, 6]], 10, "by residues .*, as its range numbers them;", *GAPPED),
        ("PFRMAT RR\nAC--DEF-\n2 4 .5\n", [[2, 4]], 28, "by columns of the alignment;", *GAPPED),
        ("2 4\n", [[2, 4]], 28, "in contact; sites by columns of the alignment;", *GAPPED),
        ("i,A_i,j,A_j\n2,C,6,E\n", [[2, 6]], 28, "1 of them in contact; pairs that", *GAPPED),
    ]],
)  # fmt: skip
def test_lists_as_other_programs_write_them(text, pairs, known, said, of, tmp_path):
    found = listed_pairs(text, tmp_path, *of)
    assert found[:2] == (pairs, known)
    assert re.search(said, found[2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# STOCKHOLM 1.0\na ACDEFGHI\nb ACDEFGHI\n//\n", "Stockholm file without .*SS_cons"),
        ("i\tj\tlength\n2\t8\t3\n", "line 2: .*a row for each pair, and no column `length`"),
        ("PFRMAT RR\nACDEFGH\n2 4 0 8 1\n", "sequence has 7 residues, expected the 8 columns"),
        ("PFRMAT RR\n2 9 0 8 1\n", "line 2: '2 9 0 8 1', expected sites from 1 to L = 8"),
        ("2 4 0 12 .9\n", "line 1: .*, expected 0 8, the distances"),
        ("2 4 0 8 17.3\n", "line 1: .*, expected a probability from 0 to 1"),
        ("i,j\n", "lists no pair"),
        ("..((...)", "line 1: .*, expected L = 8 signs.*partner"),
        ("...(.)).", "expected L = 8 signs.*; found 8 signs, and 1 brackets without a partner"),
        ("2 4 .97\n1 5 .2\n", "in contact, with values up to 0.97; expected .*in angstrom"),
        ("\n".join(f"{i} {j}" for i in range(1, 9) for j in range(1, i)), "28 pairs .*i, j, d"),
        # Of the sequence without the gaps of the alignment
        ("1 A 0\n2 C 4\n3 A 0\n4 u 2\n", "sequence has 4 residues, expected the 8 columns"),
        (
            "\n".join(" ".join("nan" if 3 in (i, j) else "1" for j in range(8)) for i in range(8)),
            "a matrix of 8 x 8: distances, or 1 and 0 alone",
        ),
        ("\n".join(["9.5 " * 10] * 10), "a matrix of 8 x 8"),
        # Of one site more, and none of labels, also where the first is not resolved
        ("\n".join(["9.5 " * 9] * 9), "a matrix of 8 x 8: .*labels"),
        ("\n".join(["nan " * 9, *["nan " + "9.5 " * 8] * 8]), "a matrix of 8 x 8"),
        # Nanometres, of mdtraj, which leaves out the closest pairs of residues
        (
            "i,j,d\n"
            + "\n".join(f"{i},{j},{j - i}.1" for i in range(1, 9) for j in range(i + 3, 9)),
            "15 pairs of sites in contact, with values up to 7.1; .*angstrom",
        ),
        # Scores of most pairs, by names that say neither distance nor probability
        (
            "i,j,cn\n" + "\n".join(f"{i},{j},.1" for i in range(1, 9) for j in range(i + 3, 9)),
            "15 pairs of sites in contact",
        ),
        (b"\x93NUMPY\x01", "is an array of NumPy; expected text.*savetxt"),
    ],
)
def test_what_means_something_else_is_refused(text, message, tmp_path):
    with pytest.raises(SourceError, match=message):
        listed_pairs(text, tmp_path)


def test_scores_of_all_pairs_are_no_distances(tmp_path):
    scores = "".join(f"{i},{j},{20 if j < 2 else 0.1}\n" for i in range(1, 81) for j in range(1, i))
    with pytest.raises(SourceError, match="3081 pairs of sites in contact, with values up to 20"):
        listed_pairs(scores, tmp_path, 80)


# --- Structures ----------------------------------------------------------------------------------

THREE = dict(
    A="ALA", C="CYS", D="ASP", E="GLU", F="PHE", G="GLY", H="HIS", I="ILE", K="LYS", L="LEU",
    M="MET", N="ASN", P="PRO", Q="GLN", R="ARG", S="SER", T="THR", V="VAL", W="TRP", Y="TYR",
)  # fmt: skip
PROTEIN = "MKTAYIAGQRQISFVKSHFSRQGEERLGLIEVQ"
RNA = "GGCUACGUAGCUCAGUUGGUUAGAGC"


@pytest.mark.parametrize(
    "text",
    [
        "i,A_i,j,A_j,fn,cn\n1,a,4,E,0,1\n2,C,5,X,0,1\n",
        "i,i_id,j,j_id,fn,cn\n1,1_a,4,4_E,0,1\n2,2_C,5,5,0,1\n",
        "i,j,aa_i,wt_j\n1,4,a,E\n2,5,C,X\n",
    ],
)
def test_letters_of_a_list_are_those_of_the_record(text, tmp_path):
    (tmp_path / "s").write_text(text)
    assert read_contacts(tmp_path / "s", 5, "ACdE-")[0].sum() == 4
    with pytest.raises(SourceError, match=r"line 3: '2,.*in A_i, i_id or the like the letter"):
        read_contacts(tmp_path / "s", 5, "AADEC")
    assert "columns?): 1; " in listed_pairs("acdEC\n1 4 0 8 .9\n", tmp_path, 5, "AADE-")[2]


def structure(chains: dict, seed=0):
    """Chains of residues at random places: name -> (letters, kind); and the atoms' places."""
    draws, builder, places = np.random.default_rng(seed), StructureBuilder(), {}
    builder.init_structure("made")
    builder.init_model(0)
    builder.init_seg(" ")
    for chain, (letters, kind) in chains.items():
        builder.init_chain(chain)
        places[chain] = []
        for number, letter in enumerate(letters, start=101):
            builder.init_residue(THREE[letter] if kind == "protein" else letter, " ", number, " ")
            centre = draws.uniform(0, 40, 3)
            names = ["CA", "CB"] if kind == "protein" else ["P", "C4'", "N1", "H1"]
            atoms = {name: np.round(centre + draws.normal(size=3), 3) for name in names}
            if letter == "G" and kind == "protein":
                del atoms["CB"]
            for name, place in atoms.items():
                builder.init_atom(name, place, 0.0, 1.0, " ", f" {name:<3}", element=name[0])
            places[chain].append(atoms)
    return builder.get_structure(), places


def save(made, path):
    io = MMCIFIO() if "cif" in path.name else PDBIO()
    io.set_structure(made)
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    io.save(str(plain))
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(plain.read_bytes()))


def about(aligned, kind="protein"):
    residues = np.cumsum([letter not in "-." for letter in aligned])
    numbers = [
        None if letter in "-." else int(number)
        for letter, number in zip(aligned, residues, strict=True)
    ]
    return dict(aligned=aligned, numbers=numbers, kind=kind, reference="mine", source="family")


@pytest.mark.parametrize("name", ["s.pdb", "s.cif", "s.ent.gz", "s.cif.gz"])
def test_distances_of_a_protein_are_those_of_its_beta_carbons(name, tmp_path):
    # The chain lacks five residues of the record, has a mutation and a tail of its own.
    chain = PROTEIN[:10] + PROTEIN[15:20] + "W" + PROTEIN[21:] + "HHHH"
    made, places = structure({"B": ("ACD", "protein"), "A": (chain, "protein")})
    save(made, tmp_path / name)
    aligned = "--" + PROTEIN[:4] + "-" + PROTEIN[4:].lower()
    found, said = structure_distances(tmp_path / name, about(aligned))
    columns = [*range(2, 6), *range(7, 13), *range(18, len(aligned))]
    atoms = [atoms.get("CB", atoms["CA"]) for atoms in places["A"]][: len(columns)]
    expected = np.full((len(aligned),) * 2, np.nan)
    expected[np.ix_(columns, columns)] = cdist(atoms, atoms)
    np.fill_diagonal(expected, np.nan)
    np.testing.assert_allclose(found, expected, atol=2e-3)
    (sentence,) = said.pop("said")
    assert "A, one of 2, has 32 residues; 28 of the 33 " in sentence
    assert "not those of columns 14, 15, 16, 17, 18" in sentence
    assert said == {"chain": "A", "record": "mine", "residues": 28, "identical": 27}


def test_distances_of_rna_are_those_of_the_closest_heavy_atoms(tmp_path):
    made, places = structure({"A": (PROTEIN, "protein"), "R": (RNA, "rna")})
    save(made, tmp_path / "s.cif")
    found, said = structure_distances(tmp_path / "s.cif", about(RNA.replace("U", "u"), "rna"))
    heavy = [[place for name, place in atoms.items() if name != "H1"] for atoms in places["R"]]
    expected = np.array([[cdist(a, b).min() for b in heavy] for a in heavy])
    np.fill_diagonal(expected, np.nan)
    np.testing.assert_allclose(found, expected, atol=2e-3)
    assert (said["chain"], said["residues"]) == ("R", len(RNA))


def test_a_structure_makes_a_table_of_known_contacts(tmp_path):
    made, _ = structure({"A": (PROTEIN[3:], "protein")})
    save(made, tmp_path / "s.pdb")
    tokens = np.zeros((2, len(PROTEIN)), np.uint8)
    sequences.write(tmp_path / "train.parquet", tokens, 21, about(PROTEIN))
    make(tmp_path / "s.pdb", tmp_path / "train.parquet", tmp_path / "known.parquet")
    contacts, known, _ = read_known(tmp_path / "known.parquet")
    distances, _ = structure_distances(tmp_path / "s.pdb", about(PROTEIN))
    np.testing.assert_array_equal(contacts, np.nan_to_num(distances, nan=99) < 8)
    assert contacts.any()
    assert not known[:3].any()
    assert known.sum() == 30 * 29


def test_structures_that_do_not_fit_are_refused_with_the_way_out(tmp_path):
    made, _ = structure({"A": (PROTEIN, "protein"), "Z": (PROTEIN[:20], "protein")})
    save(made, tmp_path / "s.pdb")
    (tmp_path / "text.cif").write_text("no structure\n")
    (tmp_path / "empty.pdb").write_text("HEADER\n")
    whole = re.sub(r".* CB .*\n", "", (tmp_path / "s.pdb").read_text())
    (tmp_path / "blank.pdb").write_text("\n".join(as_pdb(HIE, PLACES, chain=" ")))
    (tmp_path / "coarse.pdb").write_text(whole.replace(" CA ", " BB "))
    (tmp_path / "small.pdb").write_text("\n".join(as_pdb(HIE, PLACES / 50)))
    cases = [
        ("s.pdb", about(PROTEIN), "B", r"chain: found B, .*A \(33 residues\), Z \(20 residues\)"),
        ("s.pdb", about("WWWWPPPPCCCCHHHHNNNN"), None, "agree in .*.`reference`."),
        ("blank.pdb", about("WWWWPPPPCCCCHHHHNNNN"), None, "chain without a name .* agree in"),
        ("s.pdb", about(RNA, "rna"), None, "no chain of rna.*`alphabet`"),
        ("s.pdb", {"source": "spins"}, None, "spins is no alignment.*list of pairs"),
        ("text.cif", about(PROTEIN), None, r"text\.cif cannot be read as a structure"),
        ("empty.pdb", about(PROTEIN), None, r"empty\.pdb"),
        ("coarse.pdb", about(PROTEIN), None, r"A has no atom CB or CA.*not a coarser"),
        ("small.pdb", about(PROTEIN), None, "chain A are nearer than 1 .*in angstrom.*by ten"),
        ("none.pdb", about(PROTEIN), None, r"no such file: .*none\.pdb"),
    ]
    for name, document, chain, message in cases:
        with pytest.raises(SourceError, match=message):
            structure_distances(tmp_path / name, document, chain)


def test_a_short_record_is_not_that_of_any_chain(tmp_path):
    """A chain that agrees in two fifths, as one of many random chains does with 33 residues."""
    other = "".join("W" if n % 5 > 1 else letter for n, letter in enumerate(PROTEIN))
    made, _ = structure({"A": (other, "protein")})
    save(made, tmp_path / "s.pdb")
    with pytest.raises(SourceError, match=r"agree in \d+ of them; expected at least 18"):
        structure_distances(tmp_path / "s.pdb", about(PROTEIN))
    made, _ = structure({"A": (PROTEIN[:30] + "WWW", "protein")})
    save(made, tmp_path / "s.pdb")
    text = (tmp_path / "s.pdb").read_text()
    assert structure_distances(tmp_path / "s.pdb", about(PROTEIN))[1]["said"] == [
        "chain A, one of 1, has 33 residues; 33 of the 33 of the record mine are known; 30 of the "
        "33 aligned residues are the same"
    ]
    (tmp_path / "s.pdb").write_text(re.sub(r".* CB  LYS .*\n", "", text))
    first, _ = structure_distances(tmp_path / "s.pdb", about(PROTEIN))[1]["said"]
    assert first == "residues without C-beta, whose C-alpha counts: LYS (2)"


def line(number, residue, name, place, chain="A", other=" ", occupancy="1.00", kind="ATOM  "):
    """A line of a PDB file; columns that nothing uses hold no numbers."""
    where = "".join(f"{one:8.3f}" for one in place)
    field = f"{number:>4} " if isinstance(number, int) else f"{number:>5}"
    return f"{kind}*****  {name:<3}{other}{residue:>3} {chain}{field}   {where}{occupancy:>6}******"


def as_pdb(names, places, **more) -> list[str]:
    return [
        line(number, residue, atom, place + shift, **more)
        for number, (residue, place) in enumerate(zip(names, places, strict=True), start=9)
        for atom, shift in (("CA", 0), ("C", 1), ("CB", 0.25))
        if residue != "GLY" or atom != "CB"
    ]


def known_of(lines, folder, name="s.pdb") -> tuple:
    (folder / name).write_bytes("".join(f"{one}\n" for one in lines).encode("latin-1"))
    distances, said = structure_distances(folder / name, about(PROTEIN))
    return distances, said["identical"], "; ".join(said["said"])


PLACES = np.round(np.random.default_rng(3).uniform(0, 40, (len(PROTEIN), 3)), 3)
BETAS = PLACES + np.where(np.array(list(PROTEIN)) == "G", 0, 0.25)[:, None]
NAMES = [THREE[letter] for letter in PROTEIN]
HISTIDINE = NAMES.index("HIS")
SERINE = PROTEIN.index("S")
WHOLE = as_pdb(NAMES, PLACES)
OTHER = [
    line(SERINE + 9, residue, atom, PLACES[SERINE] + shift, other=other, occupancy=share)
    for residue, other, share, far in (
        ("VAL", "C", "0.20", 5),
        ("SER", "A", "0.40", 0),
        ("THR", "B", "0.40", 9),
    )
    for atom, shift in (("CA", far), ("C", far), ("CB", far + 0.25))
]
AT_SERINE = next(n for n, text in enumerate(WHOLE) if text[22:26] == f"{SERINE + 9:>4}")
HIE = [*NAMES[:HISTIDINE], "HIE", *NAMES[HISTIDINE + 1 :]]
IONS = [line(n, name, "CA", [1, 2, 3], kind="HETATM") for n, name in ((90, "CA"), (91, "HOH"))]
STRUCTURES = {
    "simulation": (as_pdb(HIE, PLACES, chain=" "), "chain without a name.*33 of the 33"),
    "unknown name": (as_pdb([*NAMES[:5], "QQQ", *NAMES[6:]], PLACES), r"unknown .*: QQQ \(1\)"),
    "remarks": (["REMARK 4 \xb0C", "CRYST1 ***", *WHOLE], "33 of the 33"),
    "models": (["MODEL 1", *WHOLE, "ENDMDL", "MODEL 2", *as_pdb(NAMES, PLACES * 2)], "first of 2"),
    "other locations": (
        WHOLE[:AT_SERINE] + OTHER + WHOLE[AT_SERINE + 3 :], r"several names.*: SER/VAL/THR \(1\)"
    ),
    "numbers again": ([*WHOLE, *as_pdb(NAMES[1:10], PLACES[:9] + 80)], "42 residues; 33 of"),
    "insertion codes": ([f"{t[:22]}  52{chr(56 + int(t[22:26]))}{t[27:]}" for t in WHOLE], "33 of"),
    "no coordinates": ([*WHOLE, WHOLE[0][:30] + "*" * 24], "whose coordinates are no.*: 1"),
    "hydrogens of one name": ([h for t in WHOLE for h in (t, t[:12] + " H  " + t[16:])], "33 of"),
    "lower case": ([text.lower().replace("atom", "ATOM") for text in WHOLE], "33 of the 33"),
    "residues at the end": ([*WHOLE[:20], *WHOLE[40:], *WHOLE[20:40]], "order of their numbers"),
    "from the end": (WHOLE[::-1], "A taken in the order of their numbers, which the file"),
    "ligands": ([*WHOLE, *IONS], r"passed over \(ligands.*\): CA \(1\); chain"),
}  # fmt: skip


@pytest.mark.parametrize("case", STRUCTURES)
def test_structures_as_programs_write_them(case, tmp_path):
    lines, said = STRUCTURES[case]
    distances, identical, found = known_of(lines, tmp_path)
    assert identical == len(PROTEIN) - (case == "unknown name")
    expected = cdist(BETAS, BETAS)
    np.fill_diagonal(expected, np.nan)
    np.testing.assert_allclose(distances, expected, atol=1e-4)
    assert re.search(said, found)


def test_parts_of_two_copies_are_said_to_be_such(tmp_path):
    """One copy lacks the residues from 20 on, the other those to 12, or has other numbers."""
    second = as_pdb(["GLY"] * 12 + NAMES[12:], PLACES + 60)[24:]
    copies = [*as_pdb(NAMES[:20], PLACES[:20]), *second]
    assert "numbers of chain A go back, or TER ends it, between" in known_of(copies, tmp_path)[2]
    on = [f"{one[:22]}{int(one[22:26]) + 90:>4}{one[26:]}" for one in second]
    assert "TER ends it" in known_of([*copies[: -len(second)], "TER", *on], tmp_path)[2]
    assert "go back" not in known_of(WHOLE, tmp_path)[2]


@pytest.mark.parametrize("place", [0, 9999])
def test_residues_that_share_a_place_are_not_known(place, tmp_path):
    """As programs write those that they have no coordinates for."""
    lines = [text[:30] + f"{place:8.3f}" * 3 + text[54:] for text in WHOLE[:30]] + WHOLE[30:]
    distances, identical, said = known_of(lines, tmp_path)
    known = np.flatnonzero(np.isfinite(distances).any(axis=0))
    assert len(known) == identical < len(PROTEIN)
    np.testing.assert_allclose(
        distances[known[0], known[1:]], cdist(BETAS, BETAS)[known[0], known[1:]], atol=1e-4
    )
    assert "no numbers, or those of another residue: 30; " in said


def test_numbers_say_where_residues_are_missing(tmp_path):
    """Both edges of the gap have the same letter: two alignments are equally good."""
    first, last = 8, 14
    record = f"{PROTEIN[:first]}W{PROTEIN[first + 1 : last]}W{PROTEIN[last + 1 :]}"
    names = [THREE[letter] for letter in record]
    for gap in (range(first + 1, last + 1), range(first, last)):
        missing = {f"{number + 9:>4}" for number in gap}
        lines = [text for text in as_pdb(names, PLACES) if text[22:26] not in missing]
        (tmp_path / "s.pdb").write_text("\n".join(lines))
        distances, more = structure_distances(tmp_path / "s.pdb", about(record))
        left = np.setdiff1d(np.arange(len(record)), gap)
        assert np.isnan(distances[list(gap)]).all()
        shown = distances[np.ix_(left, left)]
        expected = cdist(PLACES, PLACES)[np.ix_(left, left)]
        off = ~np.eye(len(left), dtype=bool)
        np.testing.assert_allclose(shown[off], expected[off], atol=0.5)  # of C-alpha and C-beta
        listed = ", ".join(str(number + 1) for number in gap)
        assert f"not those of columns {listed}" in more["said"][-1]


@pytest.mark.parametrize("name", ["s.gro", "s.mol2", "s.bcif"])
def test_structures_of_other_formats_are_named(name, tmp_path):
    (tmp_path / name).write_text("title\n")
    with pytest.raises(SourceError, match=rf"format \.{name[2:]}; expected PDB or mmCIF; convert"):
        read(tmp_path / name, about(PROTEIN), len(PROTEIN))


def test_an_mmcif_file_that_is_cut_is_said_to_be(tmp_path):
    made, _ = structure({"A": (PROTEIN, "protein")})
    save(made, tmp_path / "s.cif")
    text = (tmp_path / "s.cif").read_text().rstrip("# \n")
    (tmp_path / "s.cif").write_text(text[: text.rindex(" ")])
    with pytest.raises(SourceError, match=r"cut or damaged \(its last atom lacks values\)"):
        read(tmp_path / "s.cif", about(PROTEIN), len(PROTEIN))


def test_an_mmcif_file_needs_few_columns_and_its_first_block_counts(tmp_path):
    """A column without values is none, and errors of coordinates stand behind them."""
    columns = "label_atom_id label_comp_id label_asym_id label_seq_id auth_asym_id"
    names = [*columns.split(), *(f"Cartn_{axis}" for axis in "xyz")]
    head = ["", "loop_", *(f"_Atom_site.{name.swapcase()}" for name in names)]
    rows = [
        f"CA {name} A {number} ? {'(4) '.join(map(str, place))}"
        for number, (name, place) in enumerate(zip(NAMES, PLACES, strict=True), start=1)
    ]
    blocks = ["data_empty", "data_x", *head, *rows, "#", "data_y", *head, *rows[::-1], "#"]
    said = known_of(blocks, tmp_path, name="no-ending")[2]
    distances = read(tmp_path / "no-ending", about(PROTEIN), len(PROTEIN))[2]
    assert re.match("the first of 2 models is used; .*; chain A, one of 1", said)
    np.testing.assert_allclose(distances[0, 1:], cdist(PLACES, PLACES)[0, 1:], atol=1e-4)
