"""Figures of order spectra, from tables that obey their claims and from tables that do not."""

import numpy as np
import pytest
from claimed import by_name
from planted_spectra import (
    BERT,
    FACTORED,
    HALVES,
    beside_truth,
    of_shares,
    of_spectrum,
    spectra,
)

from manybody.papers.simplicity import spectrum, spectrum_truth
from manybody.papers.simplicity.spectra import named

# --- Which orders are used along training ---------------------------------------------------------


def test_what_is_planted_is_found():
    found = by_name(spectrum.claims(of_spectrum()))
    assert {name: claim.verdict for name, claim in found.items()} == {
        "additive": "yes", "half-times": "yes", "pairs": "yes", "triples": "yes",
    }  # fmt: skip
    said = {name for name, claim in found.items() if claim.sentence}
    assert said == {"additive", "half-times", "pairs"}
    assert "over that of M_1, is 1.8" in found["half-times"].sentence
    ratios = [np.exp(part.value) for part in found["half-times"].parts]
    assert ratios == pytest.approx([1100 / 600, 1300 / 1100], rel=0.02)
    # Runs are equal here: what is left is the error by their common contexts.
    part = found["half-times"].parts[0]
    assert (part.error, part.runs) == (pytest.approx(0.0, abs=1e-12), 3)
    assert 0.01 < part.resolution < 0.1
    (alone,) = found["pairs"].parts
    assert (alone.value, alone.error, alone.deviations) == (0.1, 0.002, 3)
    assert found["triples"].value == 0.01


def test_what_is_planted_otherwise_is_denied():
    found = by_name(
        spectrum.claims(of_spectrum(halves=HALVES | {1: 1500.0}, excess=(1.5, 0.001, 0.2, 0.0)))
    )
    assert found["half-times"].verdict == "no"
    assert found["half-times"].value == pytest.approx(np.log(1100 / 1500), abs=0.02)
    assert found["pairs"].verdict == "undecided"
    assert (found["triples"].verdict, found["triples"].value) == ("no", 0.2)


def test_one_run_and_no_measured_loss_decide_nothing():
    found = by_name(spectrum.claims(of_spectrum(runs=(0,), excess=())))
    assert found["half-times"].verdict == "undecided"
    assert (found["pairs"].verdict, found["triples"].verdict) == ("not-run", "not-run")


def test_the_panels_hold_what_was_read():
    drawn = of_spectrum().drawn
    assert set(drawn["panel"]) == {"a", "d", "c", "e", "f"}
    halves = drawn[(drawn["panel"] == "c") & (drawn["series"] == "BERT") & (drawn["x"] == 2)]
    assert halves["y"].to_numpy() == pytest.approx(np.full(3, HALVES[2]), rel=0.01)
    assert ((halves["y_err"] > 0.01) & (halves["y_err"] < 0.1)).all()
    assert drawn[(drawn["panel"] == "e") & (drawn["y"] < 1e-12)]["series"].tolist() == ["n = 2"]
    # A generator and a student of one name are told apart, models of one name by rank or config.
    assert set(drawn.loc[drawn["panel"] == "e", "series"]) == {"n = 2", "BERT, generator", "BERT"}
    assert [*named([spectra(name=name) for name in ("one", "two")])] == ["BERT, one", "BERT, two"]
    wide = [spectra(description=FACTORED | {"rank": rank}) for rank in (32, 160)]
    assert [*named(wide)] == ["n = 2, rank 32", "n = 2, rank 160"]


# --- Beside the truth -----------------------------------------------------------------------------


def test_a_network_near_the_truth_has_its_shares():
    (found,) = spectrum_truth.claims(beside_truth())
    assert found.verdict == "yes"
    assert [part.value for part in found.parts] == pytest.approx([0.004, 0, 0, 0, 0.34])


@pytest.mark.parametrize(
    ("changed", "wrong"),
    [
        (dict(student=of_shares((0.70, 0.245, 0.055), BERT)), 1),
        (dict(student=of_shares((0.66, 0.27, 0.02), BERT)), 3),
        (dict(excess=0.02), 0),
        (dict(pairs=of_shares()), 4),
    ],
)
def test_a_network_off_the_truth_has_not(changed, wrong):
    (found,) = spectrum_truth.claims(beside_truth(**changed))
    expected = ["no" if place == wrong else "yes" for place in range(5)]
    assert [part.verdict() for part in found.parts] == expected
    assert (found.verdict, found.value) == ("no", found.parts[wrong].value)


def test_the_truth_is_beside_the_student():
    drawn = beside_truth().drawn.set_index(["panel", "series"])
    assert drawn.loc[("a", "order 2, truth"), "y"].item() == pytest.approx(0.66)
    assert drawn.loc[("a", "order 2, truth from draws"), "y_err"].item() == pytest.approx(0.025)
    assert drawn.loc[("c", "pairs"), "y"].item() == pytest.approx(0.1)
    assert drawn.loc[("c", "BERT"), "y"].tolist() == pytest.approx([0.2, 0.004])
    # M_k grows as the step does: its half is at half of the steps.
    assert drawn.loc[("b", "M_2, half-time"), "x"].item() == pytest.approx(1500, rel=0.01)
