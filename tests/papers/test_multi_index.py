"""Figures of the multi-index paper, from tables with planted numbers."""

import math

import numpy as np
import pandas as pd
import planted_multi_index as planted
import pytest

from manybody.measure.intervals import Value
from manybody.papers import readings, style
from manybody.papers.multi_index import curves, fig1, fig2, fig3, public

# What planted tables say: the public numbers where those agree with each other.
VERDICTS = {
    "fig1": {
        "last-layer-first": "yes", "public-overlaps": "yes", "public-thresholds": "no",
        "alpha-1-over-c": "yes",
    },
    "fig2": {"last-layer-first": "yes", "public-times": "yes"},
    "fig3": {
        "public-overlaps": "yes", "shared-threshold": "no", "last-layer-first": "yes",
        "classifier-first-layer-first": "yes",
    },
    "fig5": {"layer-2-helps": "yes"},
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", VERDICTS)
def test_a_figure_has_its_claims_and_a_short_caption(name, tmp_path):
    module, (block, inputs) = planted.module(name), planted.given(name, tmp_path)
    assert list(module.tables(inputs, block).drawn.columns) == style.COLUMNS
    assert len(module.caption(inputs, block).split()) <= 120
    claims = planted.judged(name, tmp_path)
    assert {key: claim.verdict for key, claim in claims.items()} == VERDICTS[name]
    assert all(claim.scope and claim.rule for claim in claims.values())


# --- What is judged -------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "role", "off"),
    [
        ("fig1/public-overlaps", "regularised", ("overlap", 1.1, {"series": "Q22", "x": 0.5})),
        ("fig1/last-layer-first", "regularised", ("threshold", 0.2, {"series": "alpha_1"})),
        ("fig1/alpha-1-over-c", "thresholds", ("alpha_1 difference", 500, {"x": 2})),
        ("fig3/public-overlaps", "deep_regularised", ("overlap", 1.2, {"series": "Q33", "x": 0.5})),
        ("fig3/last-layer-first", "deep", ("threshold", 0.2, {"series": "alpha_1"})),
        ("fig5/layer-2-helps", "fixed_overlap", ("fixed", 0.3, {"x": 0.999})),
    ],
)  # fmt: skip
def test_a_number_that_is_off_is_said_to_be(name, role, off, tmp_path):
    (figure, claim), (quantity, factor, where) = name.split("/"), off
    made = planted.planted(figure)[role].off(quantity, factor, **where)
    found = planted.judged(figure, tmp_path, **{role: made})
    assert found[claim].verdict == "no"
    others = {key: each.verdict for key, each in found.items() if key != claim}
    assert others == {key: VERDICTS[figure][key] for key in others}


def test_stored_numbers_are_compared_where_the_difference_is_largest():
    found = {1: Value(1.1, 0.02, 4), 2: Value(1.8, 0.03, 5), 3: Value(9.0, 0.1, 6), 4: None}
    stored = {1: 1.0, 2: 2.0, 3: 3.0, 4: 4.0}
    part = curves.largest_difference("Q", found, stored, 0.05, failed=[3.0])
    assert (part.value, part.error, part.runs) == (pytest.approx(-0.2), 0.03, 5)
    assert part.region == (-0.05, 0.05)
    assert part.label == "Q, largest difference at 2 points, at alpha = 2"
    assert "no common points" in str(curves.largest_difference("Q", {1: None}, {1: 2}, 0.1))


def test_times_between_layers_are_those_of_runs_that_learn_both():
    made = planted.Maker()
    for run, (two, one) in enumerate([(1.0, 5.0), (2.0, 7.0), (1.0, 9.0), (1.0, math.inf)]):
        x = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10.0])
        made.add("cosine 2", "", x, np.where(x >= two, 0.5, 0.0), seed=run)
        made.add("cosine 1", "", x, np.where(x >= one, 0.5, 0.0), seed=run)
    part = curves.later("SGD", made.table(), "cosine 2", "cosine 1")
    assert part.value == pytest.approx(17 / 3)
    assert part.error == pytest.approx(np.std([4, 5, 8], ddof=1) / 3**0.5)
    assert part.label == "SGD, 3 of 4 runs learned both"


def lost(role, quantity, column, **where):
    """A table that has no numbers, or no errors, of a quantity."""
    return lambda figure: {
        role: planted.planted(figure)[role].off(quantity, math.nan, column, **where)
    }


def other(**makers):
    """Tables with other parameters: by role, the function of `planted` and what differs."""
    return lambda figure: {
        role: getattr(planted, name)(**changes) for role, (name, changes) in makers.items()
    }


def without_threshold(figure):
    made = planted.planted(figure)
    return {role: made[role].without("threshold") for role in ("state_evolution", "regularised")}


def held_and_not_converged(figure):
    return {"fixed_overlap": planted.held().add("converged", "fixed", [0.93, 0.95], [1.0, 0.0])}


@pytest.mark.parametrize(
    ("name", "made", "verdict", "because"),
    [
        # Public numbers are of other parameters.
        ("fig1/public-overlaps",
         other(regularised=("state_evolution", {"regulariser": 1e-3, "skip": 0.6}),
               gamp=("gamp", {"size": 200})),
         "not-run", "skip is 0.6"),
        ("fig1/public-thresholds", other(thresholds=("thresholds", {"regulariser": 1e-3})),
         "not-run", "regulariser"),
        ("fig2/public-times", other(sgd=("sgd", {"batch": 100})),
         "not-run", "batch is 100, 200 is needed"),
        ("fig3/public-overlaps", other(deep_regularised=("deep", {"regulariser": 2e-3})),
         "not-run", "regulariser"),
        # Numbers, or their errors, are missing.
        ("fig1/last-layer-first", without_threshold, "not-run", "a threshold is missing"),
        ("fig1/last-layer-first", lost("regularised", "threshold", "y"), "undecided", ""),
        ("fig1/last-layer-first", lost("regularised", "threshold", "y_err"), "undecided", ""),
        ("fig1/alpha-1-over-c", lost("thresholds", "alpha_1 difference", "y"), "not-run", ""),
        ("fig1/alpha-1-over-c", lost("thresholds", "alpha_1 difference", "y_err"),
         "undecided", ""),
        ("fig5/layer-2-helps", lost("fixed_overlap", "fixed", "y", x=0.95), "not-run", ""),
        ("fig5/layer-2-helps", lost("fixed_overlap", "fixed", "y_err", x=0.95), "undecided", ""),
        ("fig5/layer-2-helps", held_and_not_converged, "not-run", "not converged at Q22 = 0.95"),
        # Descent ends early, late or alone.
        ("fig2/public-times", other(sgd=("sgd", {"epochs": 60})), "undecided", ""),
        ("fig2/public-times", other(sgd=("sgd", {"runs": 1})), "undecided", ""),
        ("fig2/last-layer-first", other(sgd=("sgd", {"runs": 1})), "undecided", ""),
    ],
)  # fmt: skip
def test_a_claim_that_cannot_be_judged_says_why(name, made, verdict, because, tmp_path):
    figure, claim = name.split("/")
    found = planted.judged(figure, tmp_path, **made(figure))[claim]
    assert found.verdict == verdict
    assert because in found.because


def test_averages_whose_identities_fail_are_marked_and_not_judged(tmp_path):
    made = planted.state_evolution(1e-3)
    made.about = {"broken": ["2 d(E log Z_out)/dQ = G(Q) fails by 9 standard errors"]}
    found = planted.judged("fig1", tmp_path, regularised=made)
    assert found["last-layer-first"].verdict == found["public-overlaps"].verdict == "undecided"
    assert "fails by 9 standard errors" in found["public-overlaps"].because
    figure = fig1.draw(planted.of("fig1", tmp_path, regularised=made))
    assert any("fails by 9" in text.get_text() for text in figure.axes[0].texts)


def test_the_smallest_step_of_layer_1_has_the_errors_of_both_ends(tmp_path):
    made = planted.held().off("fixed", 3.0, "y_err", x=0.95).off("fixed", 4.0, "y_err", x=0.93)
    (step,) = planted.judged("fig5", tmp_path, fixed_overlap=made)["layer-2-helps"].parts
    assert (step.value, step.error) == (0.0, pytest.approx(5e-4))
    assert step.label == "smallest step of Q11, up to Q22 = 0.95"


@pytest.mark.parametrize(
    ("errors", "gap", "verdict"),
    [
        ((0.005, 0.005), 0.14, "no"),
        ((0.07, 0.005), 0.14, "undecided"),
        ((0.005, 0.005), 0.0, "yes"),
    ],
)
def test_the_shallow_layers_of_three_share_a_threshold_with_either_channel(
    errors, gap, verdict, tmp_path
):
    """A gap of 14 % with errors of .7 % says no, with errors of 11 % of one channel nothing."""
    made = {}
    for role, error in zip(("deep", "deep_regularised"), errors, strict=True):
        made[role] = planted.deep(scrambles=4).without("threshold")
        made[role].add("threshold", "alpha_1", 1, 1.0, error)
        made[role].add("threshold", "alpha_2", 1, 1.0 + gap, error)
        part = fig3._shared(made[role].table())
        assert part.value == pytest.approx(gap)
        assert part.error == pytest.approx((1 + gap) * math.hypot(error, error / (1 + gap)))
    assert planted.judged("fig3", tmp_path, **made)["shared-threshold"].verdict == verdict


def test_message_passing_is_judged_where_its_start_is_random(tmp_path):
    random = dict(init="random", alphas=(1.2,), noise=0, damping=0.8)
    found = planted.judged("fig2", tmp_path, gamp=planted.gamp(runs=4, **random))
    assert len(found["last-layer-first"].parts) == 2
    drawn = planted.of("fig2", tmp_path, gamp=planted.gamp(runs=4, **random)).drawn
    assert not drawn["series"].str.contains("infinity").any()
    nothing = planted.gamp(runs=3, **random).off("cosine 1", 0.02)
    found = planted.judged("fig2", tmp_path, gamp=nothing)
    assert found["last-layer-first"].parts[1].unusable == "no run learned both layers"


def test_means_of_runs_are_those_that_converged():
    made = planted.gamp(alphas=(1.0, 1.1), failed=(1.1,), bad=3, runs=8)
    made = made.off("Q11", 40, series="1.1", seed=[0, 1, 2])
    assert fig1.converged_mean(made.table(), "Q11", 1.1).runs == 5
    assert fig1.converged_mean(made.table(), "Q11", 1.1).value == pytest.approx(0.77, abs=0.02)
    assert fig1.converged_mean(made.table(), "Q11", 0.7) is None
    made = planted.gamp(alphas=(1.1,), failed=(1.1,), bad=7, runs=8)
    assert fig1.converged_mean(made.table(), "Q11", 1.1) is None


def test_runs_that_ended_early_stay_where_they_are():
    frame = planted.Maker().add("cosine 1", "", [1, 2, 3], [0.1, 0.2, 0.3]).frame()
    short = planted.Maker().add("cosine 1", "", [1, 2], [0.5, 0.7], seed=1).frame()
    found = fig2.extended(pd.concat([frame, short]))
    assert found.loc[found["seed"] == 1, "y"].tolist() == [0.5, 0.7, 0.7]


def test_descent_that_ends_early_has_its_early_times(tmp_path):
    found = planted.judged("fig2", tmp_path, sgd=planted.sgd(epochs=60))["public-times"]
    assert found.parts[-1].unusable == "half of the runs or fewer pass it"
    assert [part.verdict() for part in found.parts[:-1]] == ["yes"] * 6


@pytest.mark.parametrize(
    ("layer", "factor", "verdicts"), [(2, 0.4, ("not-run", "undecided")), (1, 2.0, ("yes", "no"))]
)
def test_descent_at_other_times_is_not_that_of_the_public_runs(layer, factor, verdicts, tmp_path):
    found = planted.judged("fig2", tmp_path, sgd=planted.sgd().off(f"cosine {layer}", factor))
    assert tuple(claim.verdict for claim in found.values()) == verdicts


def test_a_classifier_of_questions_is_judged_where_it_was_run(tmp_path):
    found = planted.judged("fig3", tmp_path, trec=planted.trec(questions=None))
    found = found["classifier-first-layer-first"]
    assert (len(found.parts), found.scope) == (1, "docstrings by package, 8 runs")
    found = planted.judged("fig3", tmp_path)
    assert len(found["classifier-first-layer-first"].parts) == 2


# --- What is drawn --------------------------------------------------------------------------------


def failed_x(frame):
    """By panel of the table the x that it marks as failed."""
    rows = frame[frame["series"] == curves.FAILED]
    return {panel: set(part["x"].round(6)) for panel, part in rows.groupby("panel")}


@pytest.mark.long
def test_points_that_did_not_converge_are_marked(tmp_path):
    made = planted.state_evolution(1e-3, failed=(0.75,))
    made = dict(regularised=made, gamp=planted.gamp(failed=(0.9,)))
    frame = planted.of("fig1", tmp_path, **made).drawn
    assert failed_x(frame) == {"a": {0.75}, "b": {0.75}}
    assert style.series(frame, "a", "GAMP cosine² of layer 1, not converged")["x"].tolist() == [0.9]
    assert 0.9 not in style.series(frame, "b", "GAMP plug-in error")["x"].tolist()
    frame = planted.of("fig3", tmp_path, deep=planted.deep(failed=(1.0,))).drawn
    assert failed_x(frame) == {"a": {1.0}, "b": {1.0}}
    made = planted.held().add("converged", "fixed", [0.93, 0.95], [1.0, 0.0])
    assert failed_x(planted.of("fig5", tmp_path, fixed_overlap=made).drawn) == {"": {0.95}}


def test_ends_of_message_passing_are_squared_cosines_and_plain_errors(tmp_path):
    frame = planted.of("fig1", tmp_path).drawn
    for panel, series, name in (
        ("a", "GAMP cosine² of layer 2", "Q22"),
        ("b", "GAMP plug-in error", "error plug-in"),
    ):
        found = style.series(frame, panel, series).set_index("x")["y"]
        stored = public.MESSAGE_PASSING[name]
        common = [alpha for alpha in stored if alpha in found.index]
        assert len(common) > 1
        assert found[common].to_numpy() == pytest.approx(
            [stored[alpha] for alpha in common], abs=0.015
        )


def test_medians_are_those_of_the_runs(tmp_path):
    made = planted.sgd(runs=3).off("cosine 2", 3.0, seed=2)  # whose mean is another
    frame = planted.of("fig2", tmp_path, sgd=made).drawn
    runs = readings.matrix(style.series(frame, "right", "SGD, cosine 2"))
    median = style.series(frame, "right", "SGD, cosine 2, median")
    assert median["y"].to_numpy() == pytest.approx(runs.loc[1].to_numpy(), rel=2e-2)


def test_public_overlaps_are_drawn_at_their_regulariser(tmp_path):
    frame = planted.of("fig3", tmp_path).drawn
    assert {"Q11 public", "Q11, V + 0.001", "Q11, no regulariser"} <= set(frame["series"])
    frame = planted.of("fig3", tmp_path, deep_regularised=planted.deep(regulariser=2e-3)).drawn
    assert "Q11 public" not in set(frame["series"])


def test_an_entry_s_departure_names_the_key():
    assert readings.departure({"skip": 1.0, "init": "random"}, skip=1, init="random") == ""
    assert readings.departure({"skip": 2.0}, skip=1) == "skip is 2.0, 1 is needed"
    assert readings.departure({}, activation="softmax") == "activation is None, softmax is needed"
