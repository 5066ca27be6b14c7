"""Rules of decision and saturation, on curves whose answers are known."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manybody.claims import verdicts
from manybody.claims.saturation import saturation
from manybody.io import tables

STEPS = [0, 100, 200, 400, 800]


def curves(**losses):
    """A table of curves: target -> one list of losses for each seed."""
    rows = [
        (target, seed, step, loss)
        for target, runs in losses.items()
        for seed, run in enumerate(runs)
        for step, loss in zip(STEPS, run, strict=True)
    ]
    return pd.DataFrame(rows, columns=["target", "seed", "step", "loss"])


# --- Saturation ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("losses", "share", "expected"),
    [
        # Total drop 2; 5 % of it is 0.1: 0.2 left at 200, 0.09 at 400.
        ([3.0, 2.0, 1.2, 1.09, 1.0], 0.05, (400.0, 200.0)),
        ([3.0, 2.0, 1.2, 1.09, 1.0], 0.02, (800.0, 400.0)),
        ([3.0, 2.0, 1.0, 1.5, 2.5], 0.05, (200.0, 100.0)),  # a rise after the minimum
        ([3.0, 1.05, 1.5, 1.2, 1.0], 0.05, (800.0, 400.0)),  # comes near and leaves again
        # The share itself has not saturated (in binary fractions: drop 2, left 1/2).
        ([3.0, 2.0, 1.5, 1.25, 1.0], 0.25, (400.0, 200.0)),
        ([1.0, 1.1, 1.2, 1.3, 1.4], 0.05, (0.0, 0.0)),  # only rises
    ],
)
def test_saturation_is_the_first_checkpoint_with_less_than_the_share_left(losses, share, expected):
    assert saturation(STEPS, losses, share) == expected


def test_two_checkpoints_have_no_saturation():
    assert all(map(math.isnan, saturation([0, 10], [2.0, 1.0])))


@given(
    st.lists(st.integers(0, 100), min_size=3, max_size=20),
    st.integers(1, 8),
    st.integers(-50, 50),
)
def test_saturation_does_not_depend_on_the_unit_or_the_level_of_the_loss(losses, scale, level):
    steps = np.arange(len(losses))
    first = saturation(steps, losses)
    assert saturation(steps, [scale * loss + level for loss in losses]) == first
    assert first[0] <= np.argmin(losses)


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


# --- Claims about students -------------------------------------------------------------------

LOW = [5.0, 3.0, 2.0, 2.2, 2.5]  # saturates at 200, then rises
HIGH = [5.0, 3.0, 2.0, 1.5, 1.0]  # falls to the end
AHEAD = [5.0, 2.0, 1.9, 1.8, 1.7]  # its drop is made on the plateau


def claims(low, high, text, steps=(200, 800)):
    """Two rows of claim 6, three of claim 7, one of 9 and one of 10; a list of runs each."""
    table = curves(low=low, high=high, text=text)
    ladder = (table, ["low", "high"], {"low": "low", "high": "high"})
    rows = verdicts.ordered("6", *ladder)
    rows += verdicts.late_changes("7", *ladder, steps)
    rows += verdicts.overlap("9", *ladder, "text")
    return [*rows, verdicts.still_falling("10", table, "text")]


@pytest.mark.parametrize(
    ("low", "high", "text", "six", "seven", "nine", "ten"),
    [
        (LOW, HIGH, HIGH, "yes", "yes", "yes", "yes"),
        # Checkpoints do not resolve the end of this plateau.
        (HIGH, LOW, LOW, "no", "no", "undecided", "no"),
    ],
)
def test_claims_hold_where_they_were_built_in(low, high, text, six, seven, nine, ten):
    rows = claims([low] * 3, [high] * 3, [text] * 3)
    assert [row["holds"] for row in rows] == [six, six, seven, seven, seven, nine, ten]


def test_claims_report_the_numbers_that_were_built_in():
    *rows, _ = claims([LOW] * 3, [HIGH] * 3, [HIGH] * 3)
    # Two times that differ by 600, the rise of one loss, the fall of the other and both, a ratio.
    expected = [600.0, 600.0, 0.5, 1.0, 1.5, 1.0]
    assert [row["value"] for row in rows] == pytest.approx(expected)
    # The drop of the control is 4 and half of it is made at 200 (loss 2 < 3): not yet at 100.
    assert verdicts.plateau_end(curves(text=[HIGH] * 3), "text") == 100.0
    ahead = claims([AHEAD] * 3, [HIGH] * 3, [HIGH] * 3)
    assert (ahead[5]["holds"], ahead[5]["value"]) == ("no", 1.5)


def test_one_seed_decides_no_claim_about_times():
    assert {row["holds"] for row in claims([LOW], [HIGH], [HIGH])} == {"undecided"}


def test_late_steps_that_are_no_checkpoints_leave_the_claim_undecided():
    rows = claims([LOW] * 3, [HIGH] * 3, [HIGH] * 3, (200, 900))
    assert {row["holds"] for row in rows[2:5]} == {"undecided"}


AT_400 = [5.0, 3.0, 2.0, 1.0, 1.0]
AT_800 = [5.0, 4.0, 3.0, 2.0, 1.0]


@pytest.mark.parametrize(
    ("low", "high", "value", "resolution", "holds"),
    [
        # Saturation at 400 (spacing 200) and at 800 (spacing 400): a difference of 400.
        (AT_400, AT_800, 400, math.sqrt((200**2 + 400**2) / 12), "yes"),
        # At 200 (spacing 100) and at 400 (200): 200, by a margin of 129.
        ([5.0, 3.0, 1.0, 1.0, 1.0], [5.0, 4.0, 3.0, 1.0, 1.0], 200, math.sqrt(50000 / 12), "yes"),
    ],
)
def test_the_spacing_of_checkpoints_is_part_of_the_error_of_a_time(
    low, high, value, resolution, holds
):
    """Three seeds that agree to the checkpoint know the difference no better than the spacing."""
    row = verdicts.later("c", curves(low=[low] * 3, high=[high] * 3), "low", "high", 0.05)
    found = [row[key] for key in ("value", "standard_error", "tolerance")]
    assert found == pytest.approx([value, resolution, 2 * resolution])
    assert row["holds"] == holds


def test_times_that_differ_by_one_spacing_or_by_none_are_undecided():
    """On average they differ by less than checkpoints resolve."""
    runs = [[5.0, 4.0, 3.0, 1.0, 1.0], [5.0, 4.0, 1.0, 1.0, 1.0], [5.0, 4.0, 1.0, 1.0, 1.0]]
    mixed = curves(low=[[5.0, 3.0, 1.0, 1.0, 1.0]] * 3, high=runs)
    assert verdicts.later("c", mixed, "low", "high", 0.05)["holds"] == "undecided"


# Half the range of ratios .95, 1 and 1.05 over three seeds: 4.53 standard errors reach out of
# 1 +- 0.1, where two would not have.
@pytest.mark.parametrize(("half", "holds"), [(0.05, "undecided"), (0.02, "yes")])
def test_the_error_of_the_overlap_is_that_of_the_mean_over_seeds(half, holds):
    """Drops up to the plateau's end, 1, with planted ratios."""
    high = [[5.0, 4.0, 2.0, 1.5, 1.0]] * 3
    low = [[5.0, 5.0 - ratio, 2.0, 2.0, 2.0] for ratio in (1 - half, 1.0, 1 + half)]
    row = claims(low, high, high)[5]
    assert row["value"] == pytest.approx(1)
    assert row["standard_error"] == pytest.approx(half / math.sqrt(3))
    assert row["holds"] == holds


def test_bounds_over_few_seeds_are_students():
    """Changes and rises whose two standard errors would decide, and whose 4.53 do not."""
    # Changes from 200 to 800 of -0.05, -0.17 and -0.11 against a bound of 5 % of the drop, 0.2.
    low = [[5.0, 3.0, 1.5, 1.2, 1.5 + change] for change in (-0.03, -0.17, -0.1)]
    # The loss on text ends below all before by 0.1, 0.02 and 0.06.
    text = [[5.0, 3.0, 2.0, 1.5, 1.5 - fall] for fall in (0.1, 0.02, 0.06)]
    _, _, change, *_, fall = claims(low, [HIGH] * 3, text)
    assert {change["holds"], fall["holds"]} == {"undecided"}
    assert change["value"] == pytest.approx(-0.1)
    assert change["value"] - 2 * change["standard_error"] > -0.189
    assert fall["value"] < -2 * fall["standard_error"]
    assert fall["tolerance"] == pytest.approx(verdicts.margin(fall["standard_error"], 3))


# --- Tables of losses ------------------------------------------------------------------------


def losses(shift=0.0, noise=0.0, target="a", step=0, seed=0, sequences=200):
    """Sequences of 4 predictions whose difficulty differs much more than `noise`."""
    difficulty = np.random.default_rng(7).normal(2.0, 0.5, sequences)
    own = np.random.default_rng(100 + step + seed).normal(shift, noise, sequences)
    return pd.DataFrame(
        {
            "target": target,
            "step": step,
            "sequence": np.arange(sequences),
            "loss_sum": 4 * (difficulty + own),
            "correct": 1,
            "predictions": 4,
            "seed": seed,
        }
    )


def test_pairing_removes_what_sequences_share():
    table = pd.concat([losses(step=0), losses(0.1, 0.01, step=5)])
    first, second = (tables.select(table, "a", step) for step in (0, 5))
    value, error = tables.paired_difference(first, second)
    assert value == pytest.approx(0.1, abs=4 * error)
    assert error == pytest.approx(0.01 / math.sqrt(200), rel=0.3)
    curve = tables.learning_curves(table)
    sums = first["loss_sum"].to_numpy(), first["predictions"].to_numpy()
    assert curve[["loss", "loss_se"]].iloc[0].tolist() == pytest.approx(tables.ratio(*sums))
    assert curve["loss_se"].tolist() == pytest.approx([0.5 / math.sqrt(200)] * 2, rel=0.2)
    assert curve["accuracy"].tolist() == [0.25, 0.25]


def test_errors_of_ratios_cover_their_truth():
    rng = np.random.default_rng(5)
    found = []
    for _ in range(300):
        counts = rng.integers(1, 6, 60)
        value, error = tables.ratio(rng.normal(2.0 * counts, counts), counts.astype(float))
        found.append((value - 2.0) / error)
    assert np.std(found) == pytest.approx(1.0, abs=0.15)
    assert abs(np.mean(found)) < 0.2


def test_losses_are_averaged_over_seeds_within_a_sequence():
    table = pd.concat([losses(seed=0), losses(1.0, seed=1)])
    both, one = tables.select(table, "a", 0), tables.select(table[table["seed"] == 0], "a", 0)
    value, error = tables.paired_difference(one, both)
    assert (value, error) == pytest.approx((0.5, 0.0), abs=1e-9)


def test_different_sequences_are_not_paired():
    table = pd.concat([losses(), losses(target="b", sequences=150)])
    with pytest.raises(ValueError, match="200 and 150"):
        tables.paired_difference(tables.select(table, "a", 0), tables.select(table, "b", 0))


def test_a_step_that_was_not_evaluated_is_named():
    with pytest.raises(KeyError, match="at step 3"):
        tables.select(losses(), "a", 3)


@pytest.mark.parametrize(
    ("values", "error", "holds"),
    [
        ([0.001, 0.05], 0.001, "no"),
        ([0.001], 0.001, "yes"),
        ([], 0.001, "undecided"),
        ([0.001, 0.05], 0.02, "undecided"),
    ],
)
def test_sweeps_agree_only_where_every_checkpoint_does(values, error, holds):
    row = verdicts.same_losses("5", pd.DataFrame({"value": values, "error": error}))
    assert row["holds"] == holds
    assert math.isnan(row["value"]) or row["value"] == max(values)


def test_losses_are_compared_only_after_the_plateau():
    frames = [
        losses(shift, target=target, step=step)
        for step, shift in ((0, 3.0), (10, 2.9), (20, 0.1), (30, 0.0))
        for target, shift in (("a", shift), ("b", 1.01 * (shift + 2) - 2), ("text", shift))
    ]
    table = pd.concat(frames)
    found = verdicts.loss_differences(table, tables.learning_curves(table), "a", "b", "text", True)
    assert found["step"].tolist() == [20, 30]
    assert found["value"].tolist() == pytest.approx([0.01, 0.01], rel=0.05)


# --- Chains ----------------------------------------------------------------------------------


SWEEP = np.arange(41)
RISES = 0.1 * SWEEP
SETTLES = 4.0 - 4.0 * np.exp(-SWEEP / 3.0)


def trace_of(score):
    return pd.DataFrame({"sweep": np.arange(len(score)), "score": score, "score_se": 0.1})


@pytest.mark.parametrize(
    ("score", "sweeps", "holds"),
    [
        (RISES, 40, "no"),
        (SETTLES, 40, "yes"),
        (SETTLES, 4, "no"),
        ([1.0, 2.0], 1, "undecided"),  # too short
    ],
)
def test_a_score_that_settles_and_one_that_still_rises(score, sweeps, holds):
    assert verdicts.settled("4", trace_of(score), sweeps)["holds"] == holds


def test_a_score_that_rises_evenly_drifts_by_a_quarter():
    assert verdicts.drift(trace_of(RISES), 40) == pytest.approx((0.25, 0.0), abs=1e-12)


def test_noise_about_a_settled_score_does_not_count_as_drift():
    rng = np.random.default_rng(0)
    answers = []
    for _ in range(40):
        score = np.r_[0.0, np.full(40, 5.0) + rng.normal(0, 0.1, 40)]
        answers.append(verdicts.settled("4", trace_of(score), 40)["holds"])
    assert answers.count("no") <= 4


def chain_trace(changed=0.95, rhat=1.01, score=9.0, error=0.07):
    sweep = np.arange(21)
    share = changed * (1 - np.exp(-sweep / 3)) / (1 - np.exp(-20 / 3))
    columns = dict(sweep=sweep, score=score, score_se=error, changed=share, rhat=rhat)
    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    ("changed", "holds"),
    [(0.98, "yes"), (0.88, "undecided"), (0.6, "no"), (math.nan, "undecided")],
)
def test_a_start_is_forgotten_where_less_than_a_tenth_is_left(changed, holds):
    row = verdicts.forgotten("c", chain_trace(changed), 20, 160)
    assert row["holds"] == holds
    if changed == 0.6:
        assert row["value"] == pytest.approx(0.4)
        assert row["standard_error"] == pytest.approx(math.sqrt(0.24 / 160))
    assert verdicts.forgotten("c", chain_trace(0.98), 3, 160)["holds"] == "no"
    assert verdicts.forgotten("c", chain_trace(0.98), 30, 160)["holds"] == "undecided"


@pytest.mark.parametrize(
    ("rhat", "holds"), [(1.01, "yes"), (1.06, "no"), (2.8, "no"), (math.nan, "undecided")]
)
def test_chains_are_mixed_below_an_rhat_of_1_05(rhat, holds):
    assert verdicts.mixed("c", chain_trace(rhat=rhat))["holds"] == holds


def own_losses(mean, seed, chains=160):
    draws = np.random.default_rng(seed).normal(mean, 0.3, chains)
    return pd.DataFrame({"loss_sum": 16 * draws, "predictions": 16})


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({}, "yes"),
        ({"loss": 1.4}, "no"),  # four times the error of the difference
        ({"score": 9.4}, "no"),
        ({"rhat": 1.2}, "no"),
        ({"rhat": math.nan}, "undecided"),
        ({"rhat": math.nan, "loss": 1.4}, "no"),
    ],
)
def test_a_sample_is_where_twins_agree_in_all(changes, holds):
    text = chain_trace()
    noise = chain_trace(rhat=changes.get("rhat", 1.02), score=changes.get("score", 9.1))
    losses = own_losses(1.2, 1), own_losses(changes.get("loss", 1.2), 2)
    for twins in ((text, noise), (noise, text)):
        assert verdicts.sample("c", twins, losses, 20, 160)["holds"] == holds


def test_a_difference_over_few_seeds_is_found_where_there_is_none_no_more_often_than_it_says():
    """Both ways together, in 5 % of the cases in which there is no difference."""
    rng = np.random.default_rng(9)
    for seeds in (2, 3, 5):
        answers = [verdicts.positive("c", rng.normal(0, 1, seeds))["holds"] for _ in range(4000)]
        wrong = sum(answer != "undecided" for answer in answers) / 4000
        assert wrong == pytest.approx(0.0455, abs=3 * math.sqrt(0.05 / 4000))
