"""Files of other programs: what is written is read as it was, and as those programs read it."""

import gzip
import itertools

import numpy as np
import pandas as pd
import pytest
from planted_pairs import planted

from manybody.data import SourceError, pair_formats
from manybody.data.pair_model import PairModel
from manybody.measure import contacts
from manybody.measure.known_contacts import read_contacts


def of_kind(kind="rna"):
    alphabet = pair_formats.COLOURS[kind]
    return planted(4, len(alphabet), seed=7, about=dict(alphabet=alphabet, gap=0, kind=kind))


def same(one, other):
    return np.array_equal(one.fields, other.fields) and np.array_equal(
        one.couplings, other.couplings
    )


@pytest.mark.parametrize("kind", ["rna", "protein"])
def test_parameters_of_adabmdca_come_back(kind, tmp_path):
    model = of_kind(kind)
    pair_formats.write_adabmdca(tmp_path / "params.dat", model)
    found = pair_formats.read_model(tmp_path / "params.dat")
    assert same(found, model)
    assert found.about == model.about


def test_numbers_are_colours_in_older_files_of_adabmdca(tmp_path):
    """Lines as its programs write them, both orders of a pair among them, packed."""
    fields = "".join(f"h {i} {a} {i + a / 10}\n" for i in range(3) for a in range(5))
    (tmp_path / "old.dat").write_bytes(
        gzip.compress(f"# old\n\nJ 0 2 1 4 0.5\nJ 1 0 2 3 -1\n{fields}".encode())
    )
    model = pair_formats.read_model(tmp_path / "old.dat")
    assert model.about["alphabet"] == "-ACGU"
    assert model.fields[2, 3] == 2.3
    assert model.couplings[0, 2, 1, 4] == model.couplings[2, 0, 4, 1] == 0.5
    assert model.couplings[0, 1, 3, 2] == -1
    assert np.count_nonzero(model.couplings) == 4


def write_raw(path, model):
    """Writes a file of CCMpred's `-r`, which has no place for the fields of gaps."""
    order = list(map(model.about["alphabet"].index, "ARNDCQEGHILKMFPSTWYV-"))  # its sequence.c
    with path.open("w") as file:
        np.savetxt(file, model.fields[:, order[:-1]], "%.17g", "\t")
        for i, j in itertools.combinations(range(model.length), 2):
            file.write(f"# {i} {j}\n")
            np.savetxt(file, model.couplings[i, j][np.ix_(order, order)], "%.17g", "\t")
        file.write('#>META> {"workflow": []}\n')  # of CCMgen


def test_the_raw_file_of_ccmpred_is_read_but_for_fields_of_gaps(tmp_path):
    model = of_kind("protein")
    gauged = PairModel(model.fields - model.fields[:, :1], model.couplings, model.about)
    write_raw(tmp_path / "raw.txt", gauged)
    assert same(pair_formats.read_model(tmp_path / "raw.txt"), gauged)


def test_files_in_another_gauge_give_the_same_distribution(tmp_path):
    model = of_kind()
    pair_formats.write_adabmdca(tmp_path / "zero-sum.dat", model.zero_sum())
    found = pair_formats.read_adabmdca(tmp_path / "zero-sum.dat")
    every = np.array(list(itertools.product(range(5), repeat=4)))
    laws = [np.exp(one.scores(every)) for one in (model, found)]
    np.testing.assert_allclose(laws[0] / laws[0].sum(), laws[1] / laws[1].sum(), rtol=1e-10)


SPOILT = {
    "a field is missing": lambda text: text[: text.rstrip().rindex("\n")],
    "no number": lambda text: text.replace("J 0 1 - A ", "J 0 1 - A x", 1),
    "not finite": lambda text: text[: text.rstrip().rindex(" ")] + " nan\n",
    "another letter": lambda text: text.replace("J 0 1 - A ", "J 0 1 - Z ", 1),
    "a pair of one site": lambda text: text + "J 1 1 A A 0.5\n",
    "another line": lambda text: text + "K 1 2 A A 0.5\n",
    "below 0": lambda text: text.replace("J 0 1 - A ", "J -1 1 - A ", 1),
}


@pytest.mark.parametrize("case", SPOILT)
def test_a_spoilt_file_of_parameters_is_refused(case, tmp_path):
    path = tmp_path / "params.dat"
    pair_formats.write_adabmdca(path, of_kind())
    path.write_text(SPOILT[case](path.read_text()))
    with pytest.raises(SourceError, match=r"params.dat cannot be read as a file of adabmDCA"):
        pair_formats.read_model(path)


def test_a_short_file_of_ccmpred_is_refused(tmp_path):
    path = tmp_path / "raw.txt"
    write_raw(path, of_kind("protein"))
    whole = path.read_text()
    for text in (whole[: whole.index("# 2 3")], whole.replace("# 0 2", "# 0 3"), "1 2\n"):
        path.write_text(text)
        with pytest.raises(SourceError, match="expected L lines of 20 fields"):
            pair_formats.read_model(path)
    np.save(tmp_path / "raw.npy", np.zeros((4, 21)))
    with pytest.raises(SourceError, match="is an array of NumPy"):
        pair_formats.read_model(tmp_path / "raw.npy")


# --- Scores --------------------------------------------------------------------------------------

ABOUT = dict(aligned="AC-gU", numbers=[5, 6, None, 9, 10], reference="one")


def scored(length=5):
    scores = np.random.default_rng(3).normal(size=(length, length))
    scores = np.abs(scores + scores.T)
    np.fill_diagonal(scores, 0)
    return scores


def test_scores_come_back(tmp_path):
    scores = scored()
    pair_formats.write_matrix(tmp_path / "out.mat", scores)
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "out.mat"), scores)

    table = contacts.pairs(scores)
    pair_formats.write_evcouplings(tmp_path / "ECs.csv", table, ABOUT)
    found = pd.read_csv(tmp_path / "ECs.csv")
    best = table[(table["i"] != 3) & (table["j"] != 3)].sort_values("apc", ascending=False)
    np.testing.assert_allclose(found[["fn", "cn"]], best[["score", "apc"]])
    for name in "ij":
        assert found[name].tolist() == [ABOUT["numbers"][site - 1] for site in best[name]]
        assert found[f"A_{name}"].tolist() == ["AC-GU"[site - 1] for site in best[name]]


def test_the_best_pairs_of_casp_are_contacts_when_read(tmp_path):
    scores = scored(20)
    scores[18], scores[:, 18] = np.nan, np.nan
    about = dict(aligned="ACDEF-GHIKLMNPqrST.Y", numbers=[*range(5), None, *range(5, 17), None, 17])
    pair_formats.write_casp(tmp_path / "rr.txt", scores, about, separation=4)
    found, *_ = read_contacts(tmp_path / "rr.txt", 20, about["aligned"], about["numbers"])
    kept = np.delete(np.arange(20), [5, 18])
    i, j = contacts.best_pairs(scores[np.ix_(kept, kept)], 4)
    expected = np.zeros((20, 20), bool)
    expected[kept[i[:18]], kept[j[:18]]] = expected[kept[j[:18]], kept[i[:18]]] = True
    np.testing.assert_array_equal(found, expected)
    assert "\nACDEFGHIKLMNPQRSTY\n" in (tmp_path / "rr.txt").read_text()
    pair_formats.write_casp(tmp_path / "rr.txt", scores, about, separation=18)  # no pair is
