"""What a pair model says of a family, with models made by hand in place of fits."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from Bio.SeqUtils import seq3
from planted_pairs import planted

from manybody.data import SourceError, alignment, family as families, pair_formats
from manybody.data.pair_model import PairModel
from manybody.io.refusal import Refusal
from manybody.measure import contacts, family as measured, mutations
from manybody.measure.known_contacts import of_brackets
from manybody.report import family as page
from manybody.training import pair_fit

LENGTH, COLUMN = 24, 5  # columns of the file, and the one that is left out, from 1
STEM = [(0, 23), (1, 22), (2, 21), (3, 20)]


@pytest.fixture
def rna(tmp_path):
    """A Stockholm file of RNA with a consensus structure; a column is mostly gaps."""
    letters = np.random.default_rng(0).choice(list("ACGU"), (30, LENGTH))
    letters[1:20, COLUMN - 1] = "-"
    signs = ["."] * LENGTH
    for i, j in STEM:
        signs[i], signs[j] = "<>"
    rows = "".join(f"r{n}/5-28 {''.join(row)}\n" for n, row in enumerate(letters))
    path = tmp_path / "rna.sto"
    path.write_text(f"# STOCKHOLM 1.0\n{rows}#=GC SS_cons {''.join(signs)}\n//\n")
    return path


def model_of(family, pairs) -> PairModel:
    """Couplings of these pairs of columns of the file alone, the first strongest."""
    places = {column: site for site, column in enumerate(np.array(family.about["columns"]) - 1)}
    couplings = np.zeros((*2 * [len(places)], 5, 5))
    for rank, (i, j) in enumerate(pairs):
        block = np.zeros((5, 5))
        block[1:, 1:] = (2 - rank / 10) * np.eye(4)
        couplings[places[i], places[j]] = couplings[places[j], places[i]] = block
    return PairModel(np.zeros((len(places), 5)), couplings, family.about)


def test_scores_and_contacts_are_those_of_the_columns_of_the_file(rna, tmp_path):
    family, truth = measured.opened(rna, None)
    assert family.about["columns"] == [n for n in range(1, LENGTH + 1) if n != COLUMN]
    assert truth.said == ["4 pairs of the alignment's own SS_cons, no others in contact"]
    wrong = (5, 12)
    found = measured.found_in(family, model_of(family, [STEM[0], wrong, *STEM[1:]]), truth)
    assert found.separation == 4
    assert np.isnan(found.scores[COLUMN - 1]).all()
    assert found.best[0] == STEM[0]
    assert found.best[1] == wrong
    table = found.precision.set_index(["separation", "part"])
    assert table.index.unique("separation").tolist() == [4, 12]  # none is 24 apart
    fifth = table.loc[4, "L/5"]
    assert (fifth["pairs"], fifth["share"]) == (4, 3 / 4)
    assert fifth["error"] == contacts.binomial_error(3 / 4, 4)
    pairs = sum(j - i >= 4 for i, j in itertools.combinations(family.about["columns"], 2))
    assert fifth["chance"] == 4 / pairs
    assert table.loc[12, "L/5"]["share"] == 1

    measured.write_tables(found, tmp_path, formats=True)
    listed = pd.read_csv(tmp_path / "contacts.csv")
    first = listed.iloc[0]
    letters = family.whole["aligned"]
    assert (first["i"], first["j"]) == (1, 24)
    assert (first["site_i"], first["site_j"]) == (f"{letters[0]}5", f"{letters[23]}28")
    assert len(listed) == 23 * 22 // 2
    rows = alignment.read(tmp_path / "family.fasta", "fasta")[1]
    assert rows == mutations.letters_of(family.tokens, family.about)
    assert "1 24 0 8 0." in (tmp_path / "contacts.rr").read_text()
    model, matrix, others = (tmp_path / name for name in measured.FORMATS)
    np.testing.assert_array_equal(pair_formats.read_model(model).couplings, found.model.couplings)
    np.testing.assert_array_equal(np.loadtxt(matrix), np.nan_to_num(found.scores))
    ranked = pd.read_csv(others)
    np.testing.assert_allclose(ranked[["fn", "cn"]], listed[["score", "apc"]])
    assert (ranked["A_i"] + ranked["i"].astype(str)).tolist() == listed["site_i"].tolist()

    record = measured.record(found)
    assert json.loads(json.dumps(record)) == record
    stem = "((((" + "." * 16 + "))))"
    assert all(record["brackets"][place] == stem[place] for pair in STEM for place in pair)
    first, _, third = measured.answers(record)
    assert "Of the best 11 pairs at least 4 apart (L/2), 36 ± 15 % are in contact" in first
    assert "1.3 a site: few, below 5" in third
    effects = ["all are scored", "with the model: 0.2", "with single sites: 0.1"]
    said = measured.answers(record | {"effects": effects})[0]
    assert said == "with the model: 0.2; with single sites: 0.1."


def test_without_a_structure_the_best_pairs_are_named(rna):
    family, _ = measured.opened(rna, None)
    found = measured.found_in(family, model_of(family, STEM), None, separation=6)
    assert found.precision.empty
    a, b = (family.whole["aligned"][place] for place in STEM[0])
    answer = measured.answers(measured.record(found))[0]
    assert answer.startswith(f"The best pairs at least 6 apart are {a}5 and {b}28, ")


def test_a_structure_of_another_record_names_the_sites_by_that_record(tmp_path):
    letters = np.random.default_rng(2).choice(list("ACDEFGHIKLMNPQRSTVWY"), (8, 30))
    rows = ["".join(row) for row in letters]
    path = tmp_path / "given.aln"
    path.write_text("\n".join(rows) + "\n")
    # Residues 11 to 14 are not resolved, and numbers jump there.
    chain = [(n + 100 * (n > 14), letter) for n, letter in enumerate(rows[5], 1)]
    atoms = [
        f"ATOM  {n:5d}  CA  {seq3(letter).upper()} A{number:4d}    {3.8 * n:8.3f}"
        + 2 * "   0.000"
        + "  1.00"
        for n, (number, letter) in enumerate(chain, 1)
        if n not in range(11, 15)
    ]
    structure = tmp_path / "given.pdb"
    structure.write_text("\n".join(atoms) + "\n")
    family, truth = measured.opened(path, structure)
    assert family.about["reference"] == "line-6"
    expected = np.abs(np.subtract.outer(np.arange(30), np.arange(30))) * 3.8 < 8
    known = np.ones((30, 30), bool) ^ np.eye(30, dtype=bool)
    known[10:14] = known[:, 10:14] = False
    np.testing.assert_array_equal(truth.known, known)
    np.testing.assert_array_equal(truth.contacts, known & expected)
    with pytest.raises(SourceError, match="agree in"):
        measured.opened(path, structure, reference="line-1")


def test_brackets_of_pairs_that_cross_and_share_sites():
    pairs = [(0, 9), (1, 8), (4, 12), (9, 14), (2, 11)]
    signs = measured.dot_bracket(pairs, 15)
    assert signs == "(({.[...)).}].."
    found = of_brackets("given", signs, 15)
    assert [tuple(pair) for pair in np.argwhere(np.triu(found))] == sorted(pairs[:3] + pairs[4:])


def test_losses_are_those_of_conditionals_of_residues():
    model = planted(3, 4, seed=3)
    tokens = np.array([[1, 2, 3], [0, 1, 3]])
    losses = measured.residue_losses(model.logits(tokens), tokens)
    for row, loss in zip(tokens, losses, strict=True):
        expected = []
        for site in np.flatnonzero(row):
            others = np.tile(row, (3, 1))
            others[:, site] = [1, 2, 3]
            weights = np.exp(model.scores(others))
            expected.append(-np.log(weights[row[site] - 1] / weights.sum()))
        assert loss == pytest.approx(np.mean(expected), rel=1e-12)


def test_a_family_of_copies_is_not_learned(tmp_path):
    path = tmp_path / "copies.fasta"
    path.write_text(">a\nACGUACGU\n" * 10)
    family = families.read(path)
    said = measured.learned(family, model_of(family, []), tmp_path / "out", 1)
    assert said.startswith("There is no Boltzmann learning: sequence_weights: 1 effective")


# --- Fits ----------------------------------------------------------------------------------------


@pytest.fixture
def fits(monkeypatch):
    """Numbers of sequences of the fits that were asked for, each of which has no couplings."""
    asked = []

    def fit(tokens, vocabulary, weights, **options):
        asked.append(len(tokens))
        length = tokens.shape[1]
        couplings = np.zeros((length, length, vocabulary, vocabulary))
        return PairModel(np.zeros((length, vocabulary)), couplings, {})

    monkeypatch.setattr(pair_fit, "fit", fit)
    return asked


def test_what_was_fitted_is_not_fitted_again(rna, fits, tmp_path, monkeypatch):
    family = families.read(rna)
    path = tmp_path / "model.safetensors"
    split = alignment.split
    monkeypatch.setattr(alignment, "split", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        measured.fitted(family, path)
    monkeypatch.setattr(alignment, "split", split)
    model = measured.fitted(family, path)
    assert fits == [30, 24]
    held = model.about["held_out"]
    assert (held["sequences"], held["loss"]) == (6, pytest.approx(np.log(4)))
    assert measured.fitted(family, path).about == model.about
    assert len(fits) == 2
    measured.fitted(families.read(rna, occupancy=0.5), path)
    assert len(fits) == 4


def test_files_of_an_earlier_run_are_not_those_of_the_page(rna, tmp_path):
    folder = tmp_path / "out"
    for occupancy, old in ((0, 5), (0.7, 4)):
        family, truth = measured.opened(rna, None, occupancy=occupancy)
        found = measured.found_in(family, model_of(family, STEM), truth)
        measured.write_tables(found, folder)
        page.draw(found, folder)
        for name in (page.EFFECTS, measured.ALL_COLUMNS, *measured.FORMATS):
            (folder / name).touch()
        text = page.write(folder, measured.record(found), "made").read_text()
        assert text.count("of an earlier run") == old
    record = measured.record(found) | {"effects": ["50 %", "0.3"], "formats": True}
    assert "of an earlier run" not in page.write(folder, record, "made").read_text()


def test_pairs_of_columns_with_many_gaps_are_scored_by_a_fit_of_all_columns(rna, fits, tmp_path):
    family, truth = measured.opened(rna, None, reference="r20/5-28")
    path = tmp_path / "all.safetensors"
    every = measured.of_all_columns(family, model_of(family, STEM), path)
    assert every.about["columns"] == list(range(1, LENGTH + 1))
    assert (every.length, every.about["reference"]) == (LENGTH, "r20/5-28")
    measured.of_all_columns(family, model_of(family, STEM), path)
    assert fits == [30]  # once, and none to sequences that are held out
    whole = families.read(rna, occupancy=0)
    model = model_of(whole, STEM)
    assert measured.of_all_columns(whole, model, None) is model

    pair = (COLUMN - 1, 18)
    scored = model_of(whole, [pair, *STEM])
    found = measured.found_in(family, model_of(family, STEM), truth, scored=scored)
    assert found.best[:2] == [pair, STEM[0]]
    assert found.precision["pairs"].tolist()[:3] == [4, 12, 24]
    assert measured.record(found)["scored"] == LENGTH


def test_more_memory_than_there_is_is_refused_beforehand(rna, monkeypatch):
    family = families.read(rna)
    assert "the fit needs about 0.30 GB" in measured.memory(family)
    monkeypatch.setattr(pair_fit, "memory", lambda *_: 2**60)
    with pytest.raises(Refusal, match=r"about 1073741824.30 GB of memory, this machine has"):
        measured.memory(family)


def test_many_families_go_on_past_those_that_fail(rna, fits, tmp_path):
    (tmp_path / "bad.fasta").write_text(">a\nGGCT\n>b\nGGCA\n")
    entries = [
        dict(name=name, file=str(tmp_path / file), structure=None, effects=None, sequences=None)
        for name, file in (("gone", "gone.fasta"), ("rna", "rna.sto"), ("bad", "bad.fasta"))
    ]
    reading = dict(form=None, alphabet=None, occupancy=0.7, coverage=0.5, identity=0.8)
    options = dict(reading=reading, separation=None, models=False, held_out=False, formats=True)
    out = tmp_path / "out"
    gone, good, bad = records = measured.fit_many(entries, out, options, "code")
    assert "no such file" in gone["failed"].lower() or "gone.fasta" in gone["failed"]
    assert "give `alphabet: protein`" in bad["failed"]
    assert (
        {*good["files"]}
        == {*measured.TABLES, *measured.FORMATS}
        == {p.name for p in (out / "rna").glob("[!f]*")} | {"family.fasta"}
    )
    assert fits == [30] * 2  # the model's columns, and all
    assert [row["pairs"] for row in good["precision"]][:3] == [4, 12, 24]
    assert measured.fit_many(entries, out, options, "code") == records
    assert fits == [30] * 2
    (out / "rna" / "contacts.csv").write_text("altered")
    assert measured.fit_many(entries, out, options, "code") == records
    measured.fit_many(entries, out, options, "other code")
    assert fits == [30] * 6
    entries[1]["sequences"] = "new.fasta"  # whose energies need the model
    assert measured.MODEL in measured.fit_many(entries, out, options, "other code")[1]["files"]
    measured.fit_many(entries, out, options, "other code")
    assert fits == [30] * 8
    rna.write_text("# STOCKHOLM 1.0\nr MKL\n//\n")
    assert "failed" in measured.fit_many(entries, out, options, "code")[1]
    assert not list((out / "rna").iterdir())


def test_an_error_in_one_family_of_a_list_leaves_the_others(tmp_path, monkeypatch):
    entries = [dict(name=name, sequences="new.fasta", effects=None) for name in "ab"]
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / measured.MODEL).touch()
    errors = [KeyError("column"), SourceError("new.fasta: no sequences")]
    monkeypatch.setattr(page, "write_energies", lambda *_: (_ for _ in ()).throw(errors.pop(0)))
    assert page.use_many("energies", entries, tmp_path, {}, None) == {
        "a": ["No energies: 'column'"],
        "b": ["No energies: new.fasta: no sequences"],
    }


def test_long_fits_of_a_list_say_their_memory_and_their_progress(
    rna, fits, tmp_path, monkeypatch, capsys
):
    reading = dict(form=None, alphabet=None, occupancy=0.7, coverage=0.5, identity=0.8)
    options = dict(reading=reading, separation=None, models=False, held_out=False, formats=False)
    entry = dict(name="mine", file=str(rna), structure=None, effects=None, sequences=None)
    labels = []
    fit = pair_fit.fit
    monkeypatch.setattr(pair_fit, "fit", lambda *a, **k: labels.append(k["label"]) or fit(*a, **k))
    measured.fit_many([entry], tmp_path / "short", options, "code")
    monkeypatch.setattr(measured, "LONG", 0)
    measured.fit_many([entry], tmp_path / "long", options, "code")
    assert labels == ["", "", "Fitting mine", "Fitting mine, all columns"]
    assert capsys.readouterr().out.count("mine: the fit needs about 0.30 GB of memory") == 1
    monkeypatch.setattr(pair_fit, "memory", lambda *_: 2**60)
    (refused,) = measured.fit_many([entry], tmp_path / "large", options, "code")
    assert "of memory, this machine has" in refused["failed"]
    assert len(labels) == 4
