"""Scores of pairs: against dense couplings, gauges, corrections; planted contacts, end to end."""

import math

import numpy as np
import pandas as pd
import pytest

from manybody.data import alignment, pair_gibbs as sampler, potts
from manybody.data.hamiltonian import Hamiltonian
from manybody.io.manifest import Manifest
from manybody.measure.contacts import (
    CONTACTS,
    apc,
    as_matrix,
    best_pairs,
    binomial_error,
    factors,
    frobenius,
    precision,
    read_known,
    score_run,
    site_names,
    write_known,
    write_list,
    write_scores,
)
from manybody.models.stored import load_model
from manybody.training.loop import train_files

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
    frame, about = CONTACTS.read(tmp_path / "c.parquet")
    assert about == {"source": "toy", "length": 6}
    assert list(frame.columns) == ["i", "j", "score", "apc"]
    assert frame[["i", "j"]].to_numpy()[[0, 1, -1]].tolist() == [[1, 2], [1, 3], [5, 6]]
    np.testing.assert_array_equal(as_matrix(frame, "score", 6), np.triu(scores) + np.triu(scores).T)
    np.testing.assert_array_equal(np.triu(as_matrix(frame, "apc", 6)), np.triu(apc(scores)))


def test_the_list_of_pairs_has_their_names_and_the_best_first(tmp_path):
    scores = frobenius(*heads(length=5))
    write_scores(tmp_path / "c.parquet", scores, {})
    frame, _ = CONTACTS.read(tmp_path / "c.parquet")
    about = {"aligned": "GC.au", "numbers": [24, 25, None, 26, 28]}
    assert site_names({}, 3) == ["1", "2", "3"]
    write_list(tmp_path / "c.csv", frame, site_names(about, 5))
    listed = pd.read_csv(tmp_path / "c.csv")
    assert list(listed.columns) == ["rank", "i", "j", "site_i", "site_j", "score", "apc"]
    assert listed["rank"].tolist() == list(range(1, 11))
    assert (np.diff(listed["apc"]) <= 0).all()
    names = dict(enumerate(["G24", "C25", "-", "A26", "U28"], start=1))
    assert listed["site_j"].tolist() == [names[site] for site in listed["j"]]
    first, second = best_pairs(apc(scores))
    np.testing.assert_array_equal(listed[["i", "j"]], np.stack([first, second], 1) + 1)


def test_tables_of_known_contacts_come_back(tmp_path):
    known = np.triu(np.random.default_rng(0).random((6, 6)) < 0.6, 1)
    contacts = known & (np.random.default_rng(1).random((6, 6)) < 0.5)
    distances = np.where(contacts, 3.0, 9.0)
    write_known(tmp_path / "k.parquet", contacts, known, distances, {"file": "x"})
    for given, found in zip((contacts, known), read_known(tmp_path / "k.parquet"), strict=False):
        np.testing.assert_array_equal(given | given.T, found)


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
    known = np.ones((5, 5), bool)
    known[1, 4] = known[4, 1] = False
    np.testing.assert_allclose(precision(scores, contacts, 3, known), [1, 1])


def test_equal_scores_keep_the_order_of_their_sites():
    first, second = best_pairs(np.ones((4, 4)))
    assert list(zip(first, second, strict=True)) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def test_the_binomial_error_is_never_zero():
    assert binomial_error(0.25, 12) == pytest.approx(math.sqrt(0.25 * 0.75 / 12))
    assert [binomial_error(share, 9) for share in (0.0, 1.0)] == pytest.approx([0.1, 0.1])


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
        assert precision(found, contacts)[count - 1] > 0.85
    about = planted["about"]
    assert (about["gap"], about["weighted"], about["heads"]) == (0, True, 1)
    assert 100 < about["effective"] < 1350
    assert (about["source"], about["model"], about["seed"]) == ("planted", "one-head", 0)


def test_factors_are_those_of_the_model(planted):
    attention, values = factors(Manifest.read(planted["manifest"], "model"))
    model = load_model(planted["manifest"])
    np.testing.assert_array_equal(attention[0], model.mixing(0).detach().numpy())
    np.testing.assert_array_equal(values[0], model.values(0).detach().numpy())
