"""The sentences that spectra end a run with, on planted values whose bounds are known."""

import math

import pytest
from planted_spectra import spectra

from manybody.papers.simplicity import answers
from manybody.papers.your_model import spectrum


def test_the_additive_share_is_bounded_by_the_end_of_the_interval_of_m_2():
    # M_2 / Var g = .5 / 4 with an error of 2 %: 1 - (.125 + 2 * .0025) = .87
    claim = answers.additive("x", [spectra()])
    assert (claim.low, claim.high, claim.verdict) == (
        pytest.approx(0.87),
        pytest.approx(0.88),
        "yes",
    )
    assert claim.sentence == (
        "The share of the variance of the logits that is additive in the tokens is at least 87 % "
        "for BERT; at most the rest needs three tokens or more (contexts: another text)."
    )


def test_a_bound_is_rounded_down_held_in_range_and_taken_from_the_worst_run():
    def percent(**planted):
        return answers.additive("x", [spectra(**planted)]).sentence.split("at least ")[1][:4]

    assert percent(ends={1: 4.0, 2: 0.5}, relative=0.021) == "86 %"  # .86975
    assert percent(ends={1: 4.0, 2: 6.0}) == "0 % "
    assert percent(ends={1: 4.0, 2: -0.1}, relative=0.0) == "100 "
    worse = spectra((0, 1))
    table = worse.runs[1]
    pairs = (table["quantity"] == "M") & (table["order"] == 2)
    table.loc[pairs, "share"] = 0.3
    assert "at least 69 % for BERT" in answers.additive("x", [worse]).sentence
    table.loc[pairs, "share_se"] = math.nan  # of no run a bound, if one of them has none
    assert answers.additive("x", [worse]).sentence == ""


def test_without_m_2_the_mean_degree_bounds_the_share():
    # 2 - M_1 / Var g = .9, less two errors of .022
    claim = answers.additive("x", [spectra(ends={1: 4.4})])
    assert claim.value == pytest.approx(0.9)
    assert "at least 85 % for BERT" in claim.sentence


def test_growth_is_a_ratio_of_steps_also_of_one_run():
    several, one = (list(answers.growth([spectra(runs)])) for runs in ((0, 1, 2), (0,)))
    assert several[0][1].value == one[0][1].value == pytest.approx(math.log(1100 / 600), abs=0.02)
    error = one[0][1].error
    assert 0.01 < error < 0.1
    assert one[0][1].interval() == pytest.approx([one[0][1].value + x * error for x in (-2, 2)])
    (said,) = answers.in_words(one, math.exp)
    value, low, high = (math.exp(one[0][1].value + x * error) for x in (0, -2, 2))
    assert said == f"{value:.2f} ({low:.2f} to {high:.2f}) for BERT"


def test_what_was_not_measured_is_not_said():
    still, never = spectra(steps=[3000]), spectra(steps=[2500, 3000])
    assert not list(answers.growth([still]))
    assert not list(answers.growth([spectra(ends={1: 4.0})]))
    assert answers.in_words(answers.growth([never])) == []
    claims = spectrum.claims(spectrum.tables_of([spectra(steps=[3000], excess=())]))
    assert [bool(claim.sentence) for claim in claims] == [True, False, False]
    assert [claim.verdict for claim in claims] == ["yes", "not-run", "not-run"]
