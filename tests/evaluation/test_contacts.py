"""Scores of pairs: against dense couplings, gauges, corrections; planted contacts, end to end."""

import math

import numpy as np
import pytest

from manybody.evaluation.contacts import (
    ContactsError,
    apc,
    as_matrix,
    best_pairs,
    binomial_error,
    factors,
    frobenius,
    precision,
    read_contacts,
    read_scores,
    score_run,
    write_scores,
)
from manybody.files.atomic import ArtifactError
from manybody.files.manifest import Manifest
from manybody.models.stored import load_model
from manybody.sources import alignment, potts
from manybody.sources import pair_gibbs as sampler
from manybody.sources.hamiltonian import Hamiltonian
from manybody.training.recipes import train_files

RESIDUES = np.array(list("-ACDEFGHIKLMNPQRSTVWY"))


def heads(count: int = 3, length: int = 7, colours: int = 5, seed: int = 0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, length, length)), rng.normal(size=(count, colours, colours))


# --- Scores --------------------------------------------------------------------------------------


@pytest.mark.parametrize("gap", [None, 0, 3])
@pytest.mark.parametrize("count", [1, 3])
def test_scores_are_norms_of_dense_symmetrised_couplings(gap, count):
    attention, values = heads(count)
    couplings = np.einsum("hij,hab->ijab", attention, values)
    couplings = (couplings + couplings.transpose(1, 0, 3, 2)) / 2
    for axis in (2, 3):
        couplings = couplings - couplings.mean(axis, keepdims=True)
    if gap is not None:
        couplings = np.delete(np.delete(couplings, gap, 2), gap, 3)
    expected = np.sqrt((couplings**2).sum((2, 3)))
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(frobenius(attention, values, gap), expected, atol=1e-13)


def test_scores_do_not_depend_on_the_gauge():
    attention, values = heads()
    rng = np.random.default_rng(1)
    scores = frobenius(attention, values, gap=0)
    shifted = values + rng.normal(size=(3, 1, 5)) + rng.normal(size=(3, 5, 1))
    np.testing.assert_allclose(frobenius(attention, shifted, gap=0), scores, rtol=1e-12)
    mixing = rng.normal(size=(3, 3))  # heads are a basis: any other spans the same couplings
    other = np.tensordot(mixing.T, attention, 1), np.tensordot(np.linalg.inv(mixing), values, 1)
    np.testing.assert_allclose(frobenius(*other, gap=0), scores, rtol=1e-9)
    np.testing.assert_allclose(frobenius(-2 * attention, values / -2, gap=0), scores, rtol=1e-12)
    diagonal = attention + np.eye(7) * rng.normal(size=(3, 7, 1))
    np.testing.assert_allclose(frobenius(diagonal, values, gap=0), scores, rtol=1e-12)


def test_the_correction_takes_the_product_of_mean_scores_away():
    scores = frobenius(*heads(length=9))
    means = scores.sum(1) / 8
    expected = scores - np.outer(means, means) / means.mean()
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(apc(scores), expected, atol=1e-13)
    np.testing.assert_allclose(apc(np.full((6, 6), 2.5)), 0, atol=1e-15)
    assert not apc(np.zeros((4, 4))).any()


def test_tables_of_scores_come_back(tmp_path):
    scores = frobenius(*heads(length=6))
    write_scores(tmp_path / "c.parquet", scores, {"source": "toy"})
    frame, about = read_scores(tmp_path / "c.parquet")
    assert about == {"source": "toy", "length": 6}
    assert list(frame.columns) == ["i", "j", "score", "apc"]
    assert frame[["i", "j"]].to_numpy()[[0, 1, -1]].tolist() == [[1, 2], [1, 3], [5, 6]]
    np.testing.assert_array_equal(as_matrix(frame, "score", 6), np.triu(scores) + np.triu(scores).T)
    np.testing.assert_array_equal(np.triu(as_matrix(frame, "apc", 6)), np.triu(apc(scores)))
    (tmp_path / "c.parquet").write_bytes(b"PAR1")
    with pytest.raises(ArtifactError, match=r"c\.parquet is refused"):
        read_scores(tmp_path / "c.parquet")


# --- Precision -----------------------------------------------------------------------------------


def test_precision_counts_the_best_pairs_that_are_far_enough_apart():
    scores, contacts = np.zeros((2, 5, 5))
    for place, (i, j, contact) in enumerate([(0, 1, 1), (0, 3, 1), (1, 4, 0), (0, 4, 1)]):
        scores[i, j] = scores[j, i] = 9 - place
        contacts[i, j] = contacts[j, i] = contact
    contacts = contacts.astype(bool)
    np.testing.assert_allclose(precision(scores, contacts)[:4], [1, 1, 2 / 3, 3 / 4])
    assert len(precision(scores, contacts)) == 10
    np.testing.assert_allclose(precision(scores, contacts, 3), [1, 1 / 2, 2 / 3])
    np.testing.assert_allclose(precision(scores, contacts, 3, [3, 1]), [2 / 3, 1])
    known = np.ones((5, 5), bool)
    known[1, 4] = known[4, 1] = False
    np.testing.assert_allclose(precision(scores, contacts, 3, None, known), [1, 1])
    with pytest.raises(ValueError, match="tops: from 1 to 4, expected 1 to 3"):
        precision(scores, contacts, 3, [1, 4])


def test_equal_scores_keep_the_order_of_their_sites():
    first, second = best_pairs(np.ones((4, 4)))
    assert list(zip(first, second, strict=True)) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def test_the_binomial_error_is_never_zero():
    assert binomial_error(0.25, 12) == pytest.approx(math.sqrt(0.25 * 0.75 / 12))
    assert [binomial_error(share, 9) for share in (0.0, 1.0)] == pytest.approx([0.1, 0.1])


# --- Known contacts ------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["i,j\n1,2\n# none\n\n4,2\n", "1\t2\n2 4 # far\n", "1, 2\n4, 2"])
def test_a_list_of_contacts_knows_all_pairs(text, tmp_path):
    (tmp_path / "list").write_text(text)
    contacts, known = read_contacts(tmp_path / "list", 4)
    assert np.argwhere(np.triu(contacts)).tolist() == [[0, 1], [1, 3]]
    np.testing.assert_array_equal(contacts, contacts.T)
    np.testing.assert_array_equal(known, ~np.eye(4, dtype=bool))


def test_a_table_of_distances_knows_its_own_pairs(tmp_path):
    (tmp_path / "d.tsv").write_text("i\tj\tdistance\n1\t2\t7.9\n1\t3\t8.0\n4\t2\t3e1\n2\t3\t0\n")
    contacts, known = read_contacts(tmp_path / "d.tsv", 4)
    assert np.argwhere(np.triu(contacts)).tolist() == [[0, 1], [1, 2]]
    assert np.argwhere(np.triu(known)).tolist() == [[0, 1], [0, 2], [1, 2], [1, 3]]
    nearer, _ = read_contacts(tmp_path / "d.tsv", 4, touch=5)
    assert np.argwhere(np.triu(nearer)).tolist() == [[1, 2]]


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


# --- From sequences to contacts ------------------------------------------------------------------


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """An alignment of samples of a planted contact map, and a model fitted to it."""
    folder = tmp_path_factory.mktemp("planted")
    law = Hamiltonian(potts.contact_map(20), -potts.stored_colours() / 2, 1.707)
    law.save(folder / "hamiltonian.safetensors", {})
    tokens = sampler.sample(law, 1500, 80, np.random.SeedSequence(3)).tokens
    rows = ["".join(row) for row in RESIDUES[1 + tokens]]
    text = "".join(f">chain-{number}\n{row}\n" for number, row in enumerate(rows))
    (folder / "family.fasta").write_text(text)
    source = dict(
        kind="alignment", file=str(folder / "family.fasta"), format="fasta", alphabet="protein",
        identity=1.0, split=dict(train=0.9, validation=0.05, test=0.05, by="random"), seed=0,
    )  # fmt: skip
    files = {split: folder / f"{split}.parquet" for split in alignment.SPLITS}
    files["sequence_weights"] = folder / "weights.parquet"
    alignment.make(source, "planted", files, files["sequence_weights"])
    recipe = dict(
        objective="masked", masks="all", steps=80, restarts=1, validation=50,
        precision="float32", threads=1, sequence_weights="identity",
        optimizer=dict(name="lbfgs", history=20, ridge=1e-4),
    )  # fmt: skip
    sizes = dict(layers=1, rank=None, bias="site", variant="exact", heads=1)
    manifest = train_files(
        {"architecture": "factored", **sizes}, files, recipe=recipe, out=folder / "run",
        seed=0, init_seed=0, about=dict(source="planted", model="one-head"),
    )  # fmt: skip
    scores, about = score_run(manifest, files["train"])
    write_scores(folder / "contacts.parquet", scores, about)
    return dict(
        law=law, scores=scores, about=about, manifest=manifest, train=files["train"],
        hamiltonian=folder / "hamiltonian.safetensors", contacts=folder / "contacts.parquet",
    )  # fmt: skip


def test_planted_contacts_are_found(planted):
    couplings, scores = planted["law"].couplings, planted["scores"]
    pairs = np.triu_indices(20, 1)
    contacts = couplings != 0
    count = contacts[pairs].sum()
    for found in (scores, apc(scores)):
        assert np.corrcoef(found[pairs], couplings[pairs])[0, 1] > 0.93
        assert precision(found, contacts, tops=[count])[0] > 0.85
    about = planted["about"]
    assert (about["gap"], about["weighted"], about["heads"]) == (0, True, 1)
    assert 100 < about["effective"] < 1350
    assert (about["source"], about["model"], about["seed"]) == ("planted", "one-head", 0)


def test_factors_are_those_of_the_model(planted):
    attention, values = factors(Manifest.read(planted["manifest"], "model"))
    model = load_model(planted["manifest"])
    np.testing.assert_array_equal(attention[0], model.mixing(0).detach().numpy())
    np.testing.assert_array_equal(values[0], model.values(0).detach().numpy())


def test_scores_of_one_head_with_symmetric_values_are_those_of_the_symmetrised_map():
    attention, values = heads(1)
    values = values + values.swapaxes(1, 2)
    scores = frobenius(attention, values)
    expected = np.abs(attention[0] + attention[0].T)
    np.fill_diagonal(expected, 0)
    ratio = scores[expected > 0] / expected[expected > 0]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-12)
