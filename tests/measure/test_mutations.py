"""Energies, mutational scans and measured effects, against planted couplings."""

import itertools
import sys

import numpy as np
import pandas as pd
import pytest
from planted_pairs import planted

from manybody.data import SourceError, profile
from manybody.data.family import read
from manybody.data.pair_model import PairModel
from manybody.io.refusal import Refusal
from manybody.measure import mutations

# A reference with residues 11 to 15 of which column 3 is a gap and residue 14 was left out.
ABOUT = dict(
    alphabet="-ACGU", gap=0, kind="rna", aligned="AC-gu", numbers=[11, 12, None, 13, 15],
    reference="one/11-15", columns=[1, 2, 3, 4, 6], width=6,
)  # fmt: skip


@pytest.fixture
def model():
    return planted(5, 5, seed=5, about=ABOUT)


def score(model, letters):
    tokens = ["-ACGU".index(letter) for letter in letters]
    pairs = itertools.combinations(range(5), 2)
    total = sum(model.fields[i, a] for i, a in enumerate(tokens))
    return total + sum(model.couplings[i, j, tokens[i], tokens[j]] for i, j in pairs)


# --- Energies ------------------------------------------------------------------------------------


def test_aligned_records_are_taken_as_given(model, tmp_path):
    """Rows of the model's columns, of the file's columns, and with insertions as in A3M."""
    (tmp_path / "some.fasta").write_text(
        ">whole of five\nACGGU\n>six\nAC-GAU\n>a3m\nAaaC.-GU\n>doubtful\nN*-GU\n"
    )
    found, passed = mutations.energies(model, tmp_path / "some.fasta")
    assert any(said.startswith("sequences with a residue in less than half") for said in passed)
    # All have columns, so that the one without gaps is aligned, too.
    expected = [-score(model, row) for row in ("ACGGU", "AC-GU", "AC-GU", "---GU")]
    np.testing.assert_allclose(found["energy"], expected, atol=1e-12)
    assert found["name"].tolist() == ["whole", "six", "a3m", "doubtful"]
    assert found["dropped"].tolist() == [0, 1, 2, 0]
    assert found["unknown"].tolist() == [0, 0, 0, 2]
    assert found["residues"].tolist() == [5, 4, 4, 2]
    assert set(found["placed"]) == {"as given"}


def test_inserts_that_fill_the_columns_left_out_are_inserts(model, tmp_path):
    """A row of five columns with one insert is as long as the file's six."""
    (tmp_path / "some.fasta").write_text("# mine\n>ss_pred\nCCCCC\n>a3m\nAC-GaU\n>soft\nacggu\n")
    found, passed = mutations.energies(model, tmp_path / "some.fasta")
    expected = [-score(model, row) for row in ("AC-GU", "ACGGU")]
    np.testing.assert_allclose(found["energy"], expected, atol=1e-12)
    assert found["dropped"].tolist() == [1, 0]
    assert [said[-3:] for said in passed] == [": 1"] * 3


def test_learning_of_another_family_in_the_same_folder_is_not_taken(model, tmp_path):
    (tmp_path / "family.fasta").write_text(">one/11-15\nAC-GU\n>b\nACCGU\n")
    ours = PairModel(model.fields, model.couplings, ABOUT | {"file_sha256": "ours"})
    ours.save(tmp_path / "model.safetensors")
    for digest, field in (("theirs", 0), ("ours", 7)):
        about = ABOUT | {"file_sha256": digest}
        learned = PairModel(np.full_like(model.fields, 7), model.couplings, about)
        learned.save(tmp_path / "boltzmann" / "model.safetensors")
        found = mutations.opened(tmp_path, learned=True)[0].fields
        np.testing.assert_allclose(found, (learned if field else model).fields, atol=1e-6)


def test_sequences_are_aligned_to_the_family(model, tmp_path, monkeypatch):
    (tmp_path / "some.fasta").write_text(">aligned\nAC-GU\n>short\nACGU\n>five\nACCGU\n")
    asked = []

    def align(names, letters, family, kind):
        asked.append((names, letters, family, kind))
        return ["AC-GU", "ACCG-"]

    monkeypatch.setattr(profile, "align", align)
    found, _ = mutations.energies(model, tmp_path / "some.fasta", np.array([[1, 2, 0, 3, 4]]))
    assert asked == [(["short", "five"], ["ACGU", "ACCGU"], ["AC-GU"], "rna")]
    expected = [-score(model, row) for row in ("AC-GU", "AC-GU", "ACCG-")]
    np.testing.assert_allclose(found["energy"], expected, atol=1e-12)
    assert found["dropped"].tolist() == [0, 0, 1]
    assert found["placed"].tolist() == ["as given", "by the profile", "by the profile"]


def test_what_cannot_be_placed_is_refused(model, tmp_path, monkeypatch):
    path = tmp_path / "some.fasta"
    path.write_text(">aligned\nAC-GU\n>short\nACGU\n")
    with pytest.raises(Refusal, match=r"record short has 4 letters and the model 5 columns.*--al"):
        mutations.energies(model, path)
    for odd in "1\u00c4":
        path.write_text(f">aligned\nAC-GU\n>short\nAC{odd}U\n")
        with pytest.raises(SourceError, match=f"some.fasta: record short, column 3: '{odd}' is no"):
            mutations.energies(model, path, np.array([[1, 2, 0, 3, 4]]))
    path.write_text(">aligned\nAC-GU\n>short\nACGU\n")
    monkeypatch.setitem(sys.modules, "pyhmmer", None)
    with pytest.raises(Refusal, match=r"short, are to be aligned.*pip install 'pyhmmer"):
        mutations.energies(model, path, np.zeros((2, 5), int))
    path.write_text("ACGU\n")
    with pytest.raises(Refusal, match="record line-1 has 4 letters"):
        mutations.energies(model, path)


@pytest.mark.parametrize(("kind", "row"), [("rna", "MKWVL"), ("protein", "ACGTT")])
def test_letters_of_another_kind_than_the_model_s_are_refused(kind, row, model, tmp_path):
    (tmp_path / "other.fasta").write_text(f">one\n{row}\n")
    with pytest.raises(SourceError, match=f"letters are those of .* and the model is of {kind}; "):
        mutations.energies(
            PairModel(model.fields, model.couplings, {"kind": kind}), tmp_path / "other.fasta"
        )


def test_a_profile_puts_residues_into_the_columns_of_the_family():
    pytest.importorskip("pyhmmer")
    rng = np.random.default_rng(0)
    base = rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 60)
    rows = np.where(rng.random((40, 60)) < 0.2, rng.choice(base, (40, 60)), base)
    family = ["".join(row) for row in rows]
    own = "".join(base)
    given = {
        "whole": own.lower(),
        "inserted": own[:30] + "GGG" + own[30:],
        "deleted": own[:20] + own[24:],
        "longer": "MMMM" + own,
        "without an end": own[6:],
        "another end": "WW" + own[2:],
        "longer, another end": "MKMKMKWW" + own[2:],
    }
    found = profile.align([*given], [*given.values()], family, "protein")
    deleted = own[:20] + "----" + own[24:]
    # HMMER leaves out ends that are not alike, which is right where the sequence goes on.
    assert found == [own, own, deleted, own, ("-" * 6 + own[6:]), *["WW" + own[2:], "--" + own[2:]]]
    (unknown,) = profile.align(["unknown"], [own[:9] + "?" + own[10:]], family, "protein")
    assert unknown == own[:9] + "X" + own[10:]


# --- Mutations -----------------------------------------------------------------------------------


def test_a_scan_has_the_differences_of_the_definition(model):
    changes = mutations.scan(model)
    assert np.isnan(changes[2]).all()
    assert np.isnan(changes[:, 0]).all()
    for site, letter in itertools.product((0, 1, 3, 4), "ACGU"):
        mutant = "AC-GU"[:site] + letter + "AC-GU"[site + 1 :]
        expected = score(model, mutant) - score(model, "AC-GU")
        assert changes[site, "-ACGU".index(letter)] == pytest.approx(expected, abs=1e-12)
    listed = mutations.listed(model, changes).set_index("mutant")
    assert listed["column"]["U15A"] == ABOUT["columns"][4]
    table = listed["change"]
    assert len(table) == 4 * 3
    assert table["U15A"] == changes[4, 1]
    without = PairModel(model.fields, model.couplings, dict(alphabet="-ACGU", kind="rna"))
    with pytest.raises(Refusal, match="which sequence is its reference"):
        mutations.scan(without)


def written(path, mutants, **more):
    pd.DataFrame(dict(mutant=mutants, DMS_score=np.arange(len(mutants)), **more)).to_csv(
        path, index=False
    )
    return path


def test_effects_are_scored_and_what_is_outside_is_missing(model, tmp_path):
    mutants = ["A11C", "C12T:G13A", "A14C", "U15A:A14G", "A11*", "C12-", "U15U", "C30G"]
    logs = np.random.default_rng(1).normal(size=(5, 5))
    found = mutations.effects(model, written(tmp_path / "t.csv", mutants), logs=logs)
    base = score(model, "AC-GU")
    expected = [score(model, "CC-GU") - base, score(model, "AU-AU") - base]
    np.testing.assert_allclose(found["change"][:2], expected, atol=1e-12)
    single = [logs[0, 2] - logs[0, 1], logs[1, 4] - logs[1, 2] + logs[3, 1] - logs[3, 3]]
    np.testing.assert_allclose(found["single_site"][:2], single, atol=1e-12)
    assert found["change"].isna().tolist() == [False, False, True, True, True, True, False, True]
    assert found["change"][6] == 0
    correlations, share = mutations.agreement(found)
    assert share == 3 / 8
    assert correlations["change"].count == 3


def test_a_score_of_minus_infinity_is_the_lowest(model, tmp_path):
    """As the logarithm of a count of 0 is; empty fields behind the last name are none."""
    scores = ["A11C,-inf,", "C12U,1,", "G13A,2,", "U15A,3,", "A11U,,"]
    (tmp_path / "t.csv").write_text("mutant,DMS_score\n" + "\n".join(scores))
    found = mutations.effects(model, tmp_path / "t.csv")
    counted = mutations.agreement(found)[0]["change"]
    assert counted.count == 4
    low = found["DMS_score"].replace(-np.inf, -9.0)
    assert counted == mutations.spearman(found["change"].to_numpy(), low.to_numpy())


def test_a_wrong_offset_is_refused_with_the_one_that_fits(model, tmp_path):
    path = written(tmp_path / "t.csv", ["A1C", "C2A", "G3A", "U5A"])
    with pytest.raises(SourceError, match=r"none of its positions, 1 to 5.*--offset 10, 4 of 4 ag"):
        mutations.effects(model, path)
    assert mutations.effects(model, path, offset=10)["change"].notna().all()
    with pytest.raises(SourceError, match=r"C at 2 \+ 9, where it has A; with --offset 10"):
        mutations.effects(model, path, offset=9)
    other = written(tmp_path / "other.csv", ["A11C", "G12A", "G13A", "U15A"])
    with pytest.raises(SourceError, match=r"1 of 4 .* G at 12 \+ 0.*best 0: 3 of 4.*reference rec"):
        mutations.effects(model, other)


def test_rows_that_repeat_a_mutant_and_those_without_effect_are_counted(model, tmp_path):
    found = mutations.effects(model, written(tmp_path / "t.csv", ["A11C", "C12A", "A11C"]))
    assert "; rows that repeat a mutant, which count too: 1" in mutations.answers(found)[0]
    found["DMS_score"] = [1.0, np.nan, 2.0]
    assert "; rows without a measured effect, which do not count: 1" in mutations.answers(found)[0]


TABLES = {
    "mutant\tscore\nA11C\t1\n": r"t.csv: columns .*not found: \['DMS_score'\]; found the first "
    r"line 'mutant\\tscore', expected a table with columns mutant and DMS_score",
    "mutant;DMS_score\nA11C;0,5\n": "string to float: '0,5'; .*numbers with a decimal point",
    "mutant,DMS_score\nA11C,high\n": "could not convert string to float: 'high'",
    "": "No columns to parse",
    "mutant,DMS_score,DMS_score\nA11C,1,2\n": "t.csv: a column comes more than once; found",
    "PAR1\x15\x04": "t.csv is a Parquet table; expected text.*; write it as CSV",
    "mutant,DMS_score\n": "no row with a number as DMS_score",
    "mutant,DMS_score\nA11C,\nC12A,NA\n": "no row with a number as DMS_score",
    "mutant,DMS_score\n\nA11C,0\n,\n   \nWT,1\n": "t.csv, line 6: found mutant 'WT'",
    "# of 2020\n#\nmutant,DMS_score\nA11C,1\nWT,1\n": "t.csv, line 5: found mutant 'WT'",
    "#\nmutant,DMS_score\nA11C,1,5\n": "line 3 has 3 values",
    "mutant,DMS_score\n,1\n": "t.csv, line 2: found mutant '', expected",
    "mutant,DMS_score\nA11C,-7,4672\n": "line 2 has 3 values, the first line 2 names; .*decimal",
    **{
        f"mutant,DMS_score\nA11C,0\n{mutant},1\n": r"t.csv, line 3: found mutant .*A24G"
        for mutant in ("A11", "11C", "A11C;A11G", "A11C:A11G", "nan", "p.=", "p.Xyz11Cys")
    },
}


@pytest.mark.parametrize("text", TABLES)
def test_a_table_without_mutants_or_scores_and_a_mutant_of_another_form_are_refused(
    text, model, tmp_path
):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(SourceError, match=TABLES[text]):
        mutations.effects(model, tmp_path / "t.csv")


def test_other_spellings_of_mutants_and_semicolons_are_read(model, tmp_path):
    (tmp_path / "t.csv").write_text(
        "mutant;DMS_score\np.Ala11Cys;\N{MINUS SIGN}1\np.(Cys12=);2\n"
        '"p.[Ala11Cys;Gly13Ala]";3\nA11Ter;\N{EN DASH}4\n'
        "NP_0001.1:p.Ala11Cys:p.Gly13Ala;5\nALA11CYS;6\n",
        encoding="utf-8",
    )
    same = written(
        tmp_path / "same.csv", ["A11C", "C12C", "A11C:G13A", "A11*", "A11C:G13A", "A11C"]
    )
    found = [mutations.effects(model, path) for path in (tmp_path / "t.csv", same)]
    pd.testing.assert_series_equal(*(table["change"] for table in found))
    assert found[0]["DMS_score"][[0, 3]].tolist() == [-1, -4]


def test_what_has_no_correlation_is_said_without_warnings(model, tmp_path):
    found = mutations.effects(model, written(tmp_path / "t.csv", ["A11A", "C12C", "G13G", "U15U"]))
    assert "no correlation with the model: 4 mutants were scored" in mutations.answers(found)[1]


def test_a_wrong_residue_among_many_is_to_be_corrected():
    said = mutations._misplaced(
        pd.Series([*"ACGUACGUACGA"]),
        pd.Series(range(1, 13)),
        dict(numbers=[*range(1, 13)], aligned="ACGU" * 3),
        0,
    )
    assert said.endswith(
        "A at 12 + 0, where it has U; correct the rows of such mutants, or leave them out"
    )


def test_the_interval_of_a_rank_correlation_holds_the_true_one():
    """Normal pairs of correlation r have the rank correlation 6 / pi asin(r / 2)."""
    rng, correlation = np.random.default_rng(0), 0.6
    true, held = 6 / np.pi * np.arcsin(correlation / 2), 0
    for _ in range(400):
        first = rng.normal(size=60)
        second = correlation * first + np.sqrt(1 - correlation**2) * rng.normal(size=60)
        second[0] = np.nan
        found = mutations.spearman(np.exp(first), second)
        assert found.count == 59
        held += found.low < true < found.high
    assert 0.92 < held / 400 < 0.98


def test_the_interval_of_four_values_is_that_of_bonett_and_wright():
    found = mutations.spearman(np.arange(4.0), np.array([1.0, 2.0, 4.0, 3.0]))
    wide = 1.96 * np.sqrt(1 + 0.8**2 / 2)  # n - 3 is 1
    assert np.arctanh(found[:3]) == pytest.approx(np.arctanh(0.8) + wide * np.array([0, -1, 1]))


def test_single_sites_are_weighted():
    tokens, weights = np.array([[0, 1], [0, 2], [1, 2]]), np.array([0.5, 0.5, 1.0])
    found = np.exp(mutations.site_logs(tokens, weights, 3))
    np.testing.assert_allclose(found, [[2, 2, 1], [1, 1.5, 2.5]])


@pytest.mark.long
def test_real_effects_correlate_as_single_sites_do(data_folder):
    """EnvZ: the file of effects fits the reference without an offset."""
    family = read(data_folder / "families" / "ENVZ_ECOLI.a2m", occupancy=0)
    logs = mutations.site_logs(family.tokens, family.weights, 21)
    alone = PairModel(logs, np.zeros((60, 60, 21, 21)), family.about)
    table = data_folder / "families" / "ENVZ_ECOLI_effects.csv"
    found = mutations.effects(alone, table, logs=logs)
    np.testing.assert_allclose(found["change"], found["single_site"], atol=1e-9)
    correlations, share = mutations.agreement(found)
    assert share == 1
    assert correlations["single_site"].value == pytest.approx(0.198, abs=0.005)
    with pytest.raises(SourceError, match="with --offset 0, 60 of 60 agree"):
        mutations.effects(alone, table, offset=3)
