"""Claims about order spectra, from tables that obey them and from tables that do not."""

import numpy as np
import pytest
from planted_spectra import BERT, ENDS, HALVES, make, table, write

from manybody.claims.simplicity import spectrum
from manybody.claims.simplicity.spectra import read


def judged(folder, **planted):
    return spectrum.judge(*make(folder, **planted))


def answer(claims, *words):
    rows = claims[[all(word in claim for word in words) for claim in claims["claim"]]]
    assert len(rows) == 1, words
    return rows.iloc[0]["holds"]


def one(folder, found):
    write(folder / "one.parquet", found, "one", description=BERT)
    return read({"spectra": [folder / "one.parquet"]}, ["one"], {"spectra": [("one", 0)]})[0]


def test_what_is_planted_is_confirmed(tmp_path):
    claims = judged(tmp_path)
    assert answer(claims, "M_3 / M_1 of n2 (n = 2", "is zero") == "confirmed"
    assert answer(claims, "BERT:", "M_1 comes to half") == "yes"
    assert answer(claims, "BERT, unigram law", "M_1 comes to half") == "yes"
    assert answer(claims, "pairs alone") == "yes"
    assert answer(claims, "orders up to 3") == "yes"


def test_what_is_planted_otherwise_is_contradicted(tmp_path):
    halves = HALVES | {1: 1500.0}
    claims = judged(tmp_path, halves=halves, excess=(1.5, 0.3, 0.2, 0.0))
    assert answer(claims, "BERT:", "M_1 comes to half") == "no"
    assert answer(claims, "orders up to 3") == "no"
    files, block, context = make(tmp_path / "order")
    write(files["spectra"][0], table(), "n2", description={**BERT, "architecture": "bert"})
    claims = spectrum.judge(files, block, context)
    assert not claims["claim"].str.contains("is zero").any()


def test_one_run_decides_nothing(tmp_path):
    files, block, context = make(tmp_path)
    kept = [
        place for place, run in enumerate(context["spectra"]) if run[:1] != ("bert",) or not run[1]
    ]
    files = {"spectra": [files["spectra"][place] for place in kept]}
    context = {"spectra": [context["spectra"][place] for place in kept]}
    claims = spectrum.judge(files, block, context)
    assert answer(claims, "BERT:", "M_1 comes to half") == "undecided"


@pytest.mark.parametrize("order", HALVES)
def test_half_times_are_those_planted(tmp_path, order):
    found = one(tmp_path, table()).half_time(0, order)
    assert found.step == pytest.approx(HALVES[order], rel=0.01)
    assert 0 < found.error < 0.1


def test_a_value_that_is_too_high_early_is_no_half_time(tmp_path):
    found = table()
    early = (found["quantity"] == "M") & (found["order"] == 3) & found["step"].between(300, 400)
    place = found.index[early][0]
    found.loc[place, ["value", "se"]] = 0.6 * ENDS[3], 0.3 * ENDS[3]
    assert one(tmp_path, found).half_time(0, 3).step == pytest.approx(HALVES[3], rel=0.05)


def test_no_half_time_where_checkpoints_do_not_enclose_it(tmp_path):
    late = [step for step in table()["step"].unique() if step > 1200]
    assert np.isnan(one(tmp_path, table(steps=late)).half_time(0, 1).step)
    found = table()
    found["state"] = "upper bound"
    assert np.isnan(one(tmp_path, found).half_time(0, 1).step)
