"""Known contacts: lists, tables of distances, and structures whose chains are put on columns."""

import gzip

import numpy as np
import pytest
from Bio.PDB import MMCIFIO, PDBIO
from Bio.PDB.StructureBuilder import StructureBuilder
from scipy.spatial.distance import cdist

from manybody.io import sequences
from manybody.measure.contacts import read_known
from manybody.measure.known_contacts import ContactsError, make, read_contacts, structure_distances

# --- Lists ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["i,j\n1,2\n# none\n\n4,2\n", "1\t2\n2 4 # far\n", "1, 2\n4, 2"])
def test_a_list_of_contacts_knows_all_pairs(text, tmp_path):
    (tmp_path / "list").write_text(text)
    contacts, known, *_ = read_contacts(tmp_path / "list", 4)
    assert np.argwhere(np.triu(contacts)).tolist() == [[0, 1], [1, 3]]
    np.testing.assert_array_equal(contacts, contacts.T)
    np.testing.assert_array_equal(known, ~np.eye(4, dtype=bool))


def test_a_table_of_distances_knows_its_own_pairs(tmp_path):
    (tmp_path / "d.tsv").write_text("i\tj\tdistance\n1\t2\t7.9\n1\t3\t8.0\n4\t2\t3e1\n2\t3\t0\n")
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
        ("1,2\n0,3\n", "line 2: '0,3', expected sites from 1 to L = 4"),
        ("1,2\n3,5\n", "line 2: '3,5', expected sites from 1"),
        ("1,2\n-1,3\n", "line 2: '-1,3', expected sites"),
        ("1,2\nA,3\n", "line 2: 'A,3', expected sites"),
        ("1,2\n1.5,3\n", "line 2: '1.5,3', expected sites"),
        ("1,2\n\n3,3\n", "line 3: '3,3', expected two different sites"),
        ("1,2,near\n", "line 1: '1,2,near', expected a distance in angstrom"),
        ("1,2,-1\n", "line 1: '1,2,-1', expected a distance"),
        ("1,2,nan\n", "line 1: '1,2,nan', expected a distance"),
        ("# nothing\n", "lists no pair"),
    ],
)
def test_malformed_lines_are_refused_by_number(text, message, tmp_path):
    path = tmp_path / "contacts.csv"
    path.write_text(text)
    with pytest.raises(ContactsError, match=message) as caught:
        read_contacts(path, 4)
    assert str(path) in str(caught.value)


def test_a_list_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ContactsError, match=r"nowhere\.csv cannot be read"):
        read_contacts(tmp_path / "nowhere.csv", 4)


# --- Structures ----------------------------------------------------------------------------------

THREE = dict(
    A="ALA", C="CYS", D="ASP", E="GLU", F="PHE", G="GLY", H="HIS", I="ILE", K="LYS", L="LEU",
    M="MET", N="ASN", P="PRO", Q="GLN", R="ARG", S="SER", T="THR", V="VAL", W="TRP", Y="TYR",
)  # fmt: skip
PROTEIN = "MKTAYIAGQRQISFVKSHFSRQGEERLGLIEVQ"
RNA = "GGCUACGUAGCUCAGUUGGUUAGAGC"


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
    contacts, known = read_known(tmp_path / "known.parquet")
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
    cases = [
        ("s.pdb", about(PROTEIN), "B", r"chain: found B, .*A \(33 residues\), Z \(20 residues\)"),
        ("s.pdb", about("WWWWPPPPCCCCHHHHNNNN"), None, "agree in .*`reference` of the source"),
        ("s.pdb", about(RNA, "rna"), None, "no chain of rna.*`alphabet`"),
        ("s.pdb", {"source": "spins"}, None, "spins is no alignment.*list of pairs"),
        ("text.cif", about(PROTEIN), None, r"text\.cif cannot be read as a structure"),
        ("empty.pdb", about(PROTEIN), None, r"empty\.pdb"),
        ("none.pdb", about(PROTEIN), None, r"none\.pdb cannot be read"),
    ]
    for name, document, chain, message in cases:
        with pytest.raises(ContactsError, match=message):
            structure_distances(tmp_path / name, document, chain)
