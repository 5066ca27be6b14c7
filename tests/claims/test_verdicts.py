"""Rules of decision."""

import math

import numpy as np
import pytest

from manybody.claims import verdicts

# --- Decisions -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("differences", "resolution", "holds"),
    [
        ([100, 110, 90], 0.0, "yes"),
        ([100, 110, 90], 50.0, "undecided"),  # twice the spacing of checkpoints
        ([100, 110, 90], 5.0, "yes"),
        ([100, 300, -150], 0.0, "undecided"),
        # Student, two degrees of freedom: 4.53 standard errors, 2.61 sd.
        ([99, 70, 41], 0.0, "undecided"),
        ([99, 70, 50], 0.0, "yes"),
        # One degree of freedom: 13.97 standard errors. Two seeds that agree this well are rare.
        ([100, 120], 0.0, "undecided"),
        ([100, 110], 0.0, "yes"),
        ([10, 400, 900, 20, 100], 0.0, "undecided"),  # five of five, but 290 +- 170
        ([-100, -110, -90], 0.0, "no"),
        ([0, 0, 0], 40.0, "undecided"),  # the same step in every seed: no difference is shown
        ([0, 0, 0], 0.0, "undecided"),
        ([100], 0.0, "undecided"),
        ([math.nan, math.nan], 0.0, "undecided"),
        ([], 0.0, "undecided"),
    ],
)
def test_differences_over_seeds(differences, resolution, holds):
    assert verdicts.positive("c", differences, resolution)["holds"] == holds


@pytest.mark.parametrize(
    ("value", "error", "holds"),
    [
        (0.05, 0.01, "yes"),
        (0.2, 0.01, "no"),
        (0.09, 0.01, "undecided"),
        (0.0, math.nan, "undecided"),
    ],
)
def test_bounds_keep_two_standard_errors(value, error, holds):
    assert verdicts.within("c", 1 + value, error, 1.0, 0.1)["holds"] == holds
    assert verdicts.within("c", 1 - value, error, 1.0, 0.1)["holds"] == holds


def test_the_margin_is_students():
    # t at the 97.725 % point: tables give 4.53 for 2 degrees of freedom, 2.32 for 7, 2 for many.
    assert verdicts.margin(1.0, 3) == pytest.approx(4.5266, abs=1e-4)
    assert verdicts.margin(1.0, 8) == pytest.approx(2.4288, abs=1e-4)
    assert verdicts.margin(1.0, 10**6) == pytest.approx(verdicts.margin(1.0), abs=1e-4) == 2.0
    assert verdicts.margin(0.5) == 1.0
    assert verdicts.margin(1e-9, 1) == math.inf


@pytest.mark.parametrize(
    ("value", "error", "runs", "holds"),
    [
        (0.05, 0.01, None, "confirmed"),
        (0.05, 0.01, 8, "confirmed"),
        (0.05, 0.02, 2, "consistent"),  # a margin of 14 standard errors
        (0.09, 0.01, None, "consistent"),
        (0.2, 0.01, None, "contradicted"),
        (0.2, 0.01, 2, "consistent"),
        (math.nan, 0.01, None, "contradicted"),
        (0.0, math.nan, None, "contradicted"),
        (math.inf, 0.0, None, "contradicted"),
    ],
)
def test_a_gate_is_confirmed_consistent_or_contradicted(value, error, runs, holds):
    row = verdicts.within("c", 1 + value, error, 1.0, 0.1, "statistical", runs)
    assert row["holds"] == holds
    assert ("[" in row["claim"]) == (not math.isfinite(value + error))


def test_a_gate_without_a_number_is_contradicted_with_its_cause():
    for row in (
        verdicts.identity("c", math.nan, 0.0, 1e-4),
        verdicts.row("c", "statistical", "yes", math.nan),
        verdicts.gap("c", math.nan, 0.1, "statistical"),
        verdicts.gap("c", 1.0, math.nan, "statistical"),
        verdicts.failed("c", "exact", "the iteration did not converge"),
    ):
        assert row["holds"] == "contradicted"
        assert row["claim"].startswith("c [")


@pytest.mark.parametrize(
    ("kind", "answer", "said"),
    [
        ("statistical", "not-run", "not-run for paper only"),
        ("paper", "perhaps", "perhaps"),
        ("guess", "yes", "guess"),
    ],
)
def test_a_kind_or_an_answer_that_cannot_be_is_refused(kind, answer, said):
    with pytest.raises(ValueError, match=said):
        verdicts.row("c", kind, answer)


@pytest.mark.parametrize(("value", "holds"), [(0.31, "yes"), (0.29, "undecided"), (-0.31, "no")])
def test_gaps_need_three_standard_errors(value, holds):
    assert verdicts.gap("c", value, 0.1)["holds"] == holds


def test_an_identity_holds_up_to_rounding():
    assert verdicts.identity("c", 1e-5, 0.0, 1e-4)["holds"] == "confirmed"
    assert verdicts.identity("c", 1e-3, 0.0, 1e-4)["holds"] == "contradicted"


def test_a_difference_over_few_seeds_is_found_where_there_is_none_no_more_often_than_it_says():
    """Both ways together, in 5 % of the cases in which there is no difference."""
    rng = np.random.default_rng(9)
    for seeds in (2, 3, 5):
        answers = [verdicts.positive("c", rng.normal(0, 1, seeds))["holds"] for _ in range(4000)]
        wrong = sum(answer != "undecided" for answer in answers) / 4000
        assert wrong == pytest.approx(0.0455, abs=3 * math.sqrt(0.05 / 4000))
