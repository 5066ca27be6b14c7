"""Claims as records: comparisons, rules by which they count together, and files."""

import dataclasses
import math

import pytest

from manybody.io.atomic import ArtifactError
from manybody.papers import claims
from manybody.papers.claims import Comparison, judged, margin

ANY = dict(value=0.0, low=0.0, high=0.0)
RULES = dict(scope="", rule="it is above 0")


def of(value, error=0.1, **others):
    return claims.above(f"{value:g}", value, error, **others)


# --- One comparison -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("differences", "resolution", "verdict"),
    [
        ([100, 110, 90], 0.0, "yes"),
        ([100, 110, 90], 50.0, "undecided"),  # two standard errors of the checkpoints' spacing
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
        ([math.nan, 3.0, 3.0], 0.0, "undecided"),
        ([], 0.0, "undecided"),
    ],
)
def test_differences_over_seeds(differences, resolution, verdict):
    assert claims.over_seeds("c", differences, resolution=resolution).verdict() == verdict


def test_the_mean_over_seeds_has_the_standard_error_of_the_mean():
    found = claims.over_seeds("c", [1.0, 2.0, 6.0], bound=0.5)
    assert (found.value, found.error) == pytest.approx((3.0, math.sqrt(7 / 3)))
    assert (found.region, found.runs) == ((0.5, math.inf), 3)
    assert str(claims.over_seeds("c", [1.0, math.nan])) == "c: a run has no such number"


def test_the_margin_is_students():
    # t at the 97.725 % point: tables give 4.53 for 2 degrees of freedom, 2.43 for 7, 2 for many.
    assert margin(1.0, 3) == pytest.approx(4.5266, abs=1e-4)
    assert margin(1.0, 8) == pytest.approx(2.4288, abs=1e-4)
    assert margin(1.0, 10**6) == pytest.approx(margin(1.0), abs=1e-4) == 2.0
    assert margin(0.5) == 1.0
    assert margin(1e-9, 1) == math.inf


@pytest.mark.parametrize(
    ("value", "others", "verdict"),
    [
        (0.05, {}, "yes"),
        (0.09, {}, "undecided"),
        (0.11, {}, "undecided"),
        (0.2, {}, "no"),
        (0.05, dict(runs=8), "yes"),
        (0.05, dict(error=0.02, runs=2), "undecided"),  # a margin of 14 standard errors
        (0.2, dict(runs=2), "undecided"),
        (0.05, dict(error=math.nan), "undecided"),
        (math.nan, {}, "undecided"),
        (math.inf, dict(error=0.0), "no"),
        (0.05, dict(unusable="it diverged"), "undecided"),
        (0.5, dict(unusable="it diverged"), "undecided"),
        (0.05, dict(half=0.06), "undecided"),  # the half width, whatever the error is
        (0.05, dict(error=10.0, half=0.04), "yes"),
        (0.07, dict(deviations=claims.STRICT), "undecided"),
        (0.07, dict(deviations=2.5), "yes"),
        (0.069, dict(deviations=claims.STRICT), "yes"),
        (0.131, dict(deviations=claims.STRICT), "no"),
    ],
)
def test_a_value_near_the_expected_one_by_its_interval(value, others, verdict):
    given = {"error": 0.01, **others}
    for sign in (1, -1):
        found = claims.near("c", 1 + sign * value, expected=1.0, tolerance=0.1, **given)
        assert found.verdict() == verdict


# In binary fractions, of which sums are exact.
@pytest.mark.parametrize(
    ("make", "inside", "outside"),
    [(claims.above, 1.0, -1.0), (claims.below, -1.0, 1.0)],
)
def test_an_interval_that_ends_at_the_edge_is_not_inside_nor_outside(make, inside, outside):
    """Two standard errors of 1/4 from a bound at 1/2; the edge is in neither."""
    for value in (0.5 + 0.5 * inside, 0.5 + 0.5 * outside, 0.5):
        assert make("c", value, 0.25, 0.5).verdict() == "undecided"
    assert make("c", 0.5 + 0.5625 * inside, 0.25, 0.5).verdict() == "yes"
    assert make("c", 0.5 + 0.5625 * outside, 0.25, 0.5).verdict() == "no"
    assert make("c", 0.5, 0.0, 0.5).verdict() == "undecided"


def test_what_more_runs_do_not_lower_adds_in_squares():
    low, high = Comparison("c", 1.0, 0.3, runs=4, resolution=0.4, deviations=2.5).interval()
    assert high - 1.0 == pytest.approx(math.hypot(margin(0.3, 4, 2.5), 2.5 * 0.4))
    assert (low + high) / 2 == pytest.approx(1.0)
    half = Comparison("c", 1.0, half=0.3)
    assert half.interval() == pytest.approx((0.7, 1.3))
    assert half.interval(4.0) == pytest.approx((0.4, 1.6))  # twice the deviations


@pytest.mark.parametrize(
    ("value", "low", "high", "text"),
    [
        (0.12345, 0.12, 0.1269, "0.1235 (0.1200 to 0.1269)"),
        (123.45, 100.0, 146.9, "123 (100 to 147)"),
        (1.5, 1.5, 1.5, "1.5"),
        (1 / 3, math.nan, math.nan, "0.3333"),
        (1 / 3, -math.inf, math.inf, "0.3333"),
        (math.nan, 0.0, 1.0, "no value"),
        (math.inf, 0.0, 1.0, "no value"),
    ],
)
def test_values_are_written_to_two_digits_of_their_half_width(value, low, high, text):
    assert claims.written(value, low, high) == text


# --- Several comparisons --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "unanimous", "verdict", "shown"),
    [
        # All: yes shows the one nearest its bound.
        ((3.0, 1.0, 2.0), False, "yes", 1.0),
        ((3.0, 0.1, 2.0), False, "undecided", 0.1),
        ((3.0, 0.1, -0.1), False, "undecided", -0.1),
        ((3.0, -5.0, -2.0), False, "no", -5.0),
        # Unanimous: whichever answer all of them give.
        ((3.0, 2.0), True, "yes", 2.0),
        ((3.0, -2.0), True, "undecided", -2.0),
        ((0.1, -0.1), True, "undecided", -0.1),
        ((-3.0, 0.1), True, "undecided", -3.0),
        ((-3.0, -2.0), True, "no", -3.0),
    ],
)
def test_how_comparisons_count_together_and_which_is_shown(values, unanimous, verdict, shown):
    found = judged("i", "s", map(of, values), **RULES, unanimous=unanimous)
    assert (found.verdict, found.value) == (verdict, shown)
    assert (found.low, found.high) == pytest.approx((shown - 0.2, shown + 0.2))
    assert len(found.parts) == len(values)
    assert found.because.endswith(f"; {of(shown)}")


def test_room_is_measured_in_half_widths_and_from_the_nearer_edge():
    """0.5 +- 0.02 is farther from 0 in its errors than 2 +- 1.9, and 0.9 is near to 1."""
    small, wide = of(0.5, 0.01), of(2.0, 0.95)
    assert judged("i", "s", [small, wide], **RULES).value == 2.0
    near = Comparison("c", 0.9, 0.01, (0.0, 1.0))
    assert near.room() == pytest.approx(0.1 / 0.02)
    assert Comparison("c", 0.6, 0.01, (0.5, 3.0)).room() == pytest.approx(0.1 / 0.02)
    assert Comparison("c", 0.4, 0.01, (0.5, 3.0)).room() == pytest.approx(-0.1 / 0.02)
    assert judged("i", "s", [small, near], **RULES).value == 0.9
    assert of(1.0, math.nan).room() == math.inf
    assert of(0.5, 0.0).room() > 1e290


def test_one_no_of_many_must_be_surer_than_one_alone():
    """2.5 standard errors below: no on its own, and not as one of forty (Bonferroni)."""
    wrong, right = of(-0.25), of(3.0)
    assert judged("i", "s", [wrong], **RULES).verdict == "no"
    assert judged("i", "s", [wrong, right], **RULES).verdict == "no"
    many = judged("i", "s", [wrong, *[right] * 39], **RULES)
    assert (many.verdict, many.value) == ("undecided", -0.25)
    # 40 of 2.275 % are a normal quantile of 3.254.
    for value, verdict in ((-0.325, "undecided"), (-0.326, "no")):
        assert judged("i", "s", [of(value), *[right] * 39], **RULES).verdict == verdict
    # A half width is widened as an error is, and few runs by Student's t.
    half = Comparison("c", -0.25, half=0.2)
    assert judged("i", "s", [half, *[right] * 39], **RULES).verdict == "undecided"
    few = claims.above("c", -0.6, 0.1, runs=3)
    assert judged("i", "s", [few], **RULES).verdict == "no"
    assert judged("i", "s", [few, right], **RULES).verdict == "undecided"


def test_what_cannot_be_judged_is_undecided_and_does_not_hide_what_can():
    missing = Comparison("diverged", math.nan, unusable="a run diverged")
    found = judged("i", "s", [missing, of(1.0)], **RULES)
    assert found.verdict == "undecided"
    assert found.because == "1 yes, 1 undecided; diverged: a run diverged"
    assert math.isnan(found.value)
    found = judged("i", "s", [missing, of(0.1), of(1.0)], **RULES)
    assert found.value == 0.1  # a number, if there is one among those that are not yes
    assert judged("i", "s", [missing, of(-9.0)], **RULES).verdict == "no"


def test_a_claim_says_how_it_was_judged():
    one = judged("i", "s", of(1.0), scope="here", rule="it is above 0", reference="table 1")
    assert (one.rule, one.because) == ("it is above 0", "1: 1.00 (0.80 to 1.20)")
    assert (one.scope, one.cited, one.verdict) == ("here", "s (table 1)", "yes")
    two = judged("i", "s", [of(1.0), of(0.1)], **RULES)
    assert two.rule == "all of 2 comparisons: it is above 0"
    assert two.because == "1 yes, 1 undecided; 0.1: 0.10 (-0.10 to 0.30)"
    unanimous = judged("i", "s", [of(1.0)] * 2, **RULES, unanimous=True)
    assert unanimous.rule == "all, or none, of 2 comparisons: it is above 0"
    assert judged("i", "s", of(1.0), **RULES).cited == "s"


def test_nothing_to_compare_is_not_run():
    found = judged("i", "s", [], scope="here", rule="it is above 0", reference="table 1")
    assert (found.verdict, found.because) == ("not-run", "there is nothing to compare")
    assert math.isnan(found.value)
    assert (found.scope, found.reference) == ("here", "table 1")


# --- Files ----------------------------------------------------------------------------------------


def test_claims_come_back_from_their_file(tmp_path):
    made = [
        judged("a", 'A "statement", with\na line', [of(1 / 3), of(0.1)], **RULES),
        judged("b", "s", of(math.inf, 0.0), **RULES, reference="table 1"),
        claims.not_run("c", "s", "no second corpus"),
    ]
    claims.write(made, tmp_path / "c.csv")
    for one, other in zip(made, claims.read(tmp_path / "c.csv"), strict=True):
        assert dataclasses.replace(one, parts=(), **ANY) == dataclasses.replace(other, **ANY)
        for name in ANY:
            assert getattr(other, name) == pytest.approx(getattr(one, name), rel=1e-6, nan_ok=True)
    claims.write([], tmp_path / "none.csv")
    assert claims.read(tmp_path / "none.csv") == []


def test_what_is_no_file_of_claims_is_refused(tmp_path):
    made = [claims.not_run(name, "s", "r") for name in ("a", "b", "a")]
    with pytest.raises(ValueError, match="more than one claim with the id a"):
        claims.write(made, tmp_path / "c.csv")
    assert not (tmp_path / "c.csv").exists()
    for text in ("", "id,statement\na,b\n"):
        (tmp_path / "other.csv").write_text(text)
        with pytest.raises(ArtifactError, match=r"other\.csv has the columns"):
            claims.read(tmp_path / "other.csv")


@pytest.mark.parametrize(
    "row",
    [
        "a,s,1,0,2,r,yes,s,b",
        "a,s,1,0,2,r,yes,s,b,figure 1,c,d",
        "a,s,x,0,2,r,yes,s,b,figure 1,",
        "a,s,1,0,2,r,perhaps,s,b,figure 1,",
    ],
)
def test_a_row_that_is_no_whole_claim_is_refused(tmp_path, row):
    header = ",".join(claims.COLUMNS)
    (tmp_path / "c.csv").write_text(f"{header}\na,s,1,0,2,r,yes,s,b,figure 1,Found.\n")
    assert len(claims.read(tmp_path / "c.csv")) == 1
    (tmp_path / "c.csv").write_text(f"{header}\n{row}\n")
    with pytest.raises(ArtifactError, match=r"c\.csv is refused"):
        claims.read(tmp_path / "c.csv")
