"""What the multi-index paper's figures say of tables with planted numbers."""

import math

import pandas as pd
import planted_multi_index as planted
import pytest
from configs import load
from judged import holds, row, rows

from manybody.claims import reading, verdicts
from manybody.claims.multi_index import fig1, fig2, fig3, fig5, gates, messages, runs
from manybody.claims.reading import Table

FIGURES = {"fig1": fig1, "fig2": fig2, "fig3": fig3, "fig5": fig5}


def judged(figure, folder, **made):
    return FIGURES[figure].judge(*planted.given(figure, folder, **made))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The claims of every figure, from tables that obey the specification."""
    return {name: judged(name, tmp_path_factory.mktemp(name)) for name in FIGURES}


def said(found, text):
    """Whether a claim holds a text."""
    return found["claim"].str.contains(text, regex=False).any()


@pytest.mark.parametrize("name", FIGURES)
def test_numbers_of_the_specification_hold(whole, name):
    found = whole[name]
    gates = found[found["kind"] != "paper"]
    assert len(gates)
    assert set(gates["holds"]) == {"confirmed"}, (
        gates.loc[gates["holds"] != "confirmed", ["claim", "holds"]].to_numpy().tolist()
    )
    assert list(found.columns) == verdicts.COLUMNS
    assert not found["claim"].duplicated().any()


def test_every_landmark_has_a_row(whole):
    """At the papers' scale; those that are missing scatter too much for it."""
    right = [c for c in fig1.ALPHA_2_OVER if c >= 0.25]
    counts = {
        "alpha at Q22": len(fig1.SINGLE_LAYER) + 2 * 3,
        "alpha at Q11": 2 * len(fig1.PLACES) + 1 + 2 * 3,
        "V22 at Q11": 2 * len(fig1.PLACES),
        "plug-in error at Q": 9 + 8,  # where the specification's number holds
        "posterior mean error at Q": 9 + 8,
        "fig. 1 right: alpha_2 at c": len(fig1.ALPHA_2_OVER) + len(right) + 1,
        "lambda_1 at Q = 0 at c": len(fig1.LAMBDA_1) + len(right) + 1,
        "V22 at the onset": len(fig1.ONSET),
        "1/lambda_1": 3,
        "of state evolution after iteration": 8,
        "2 d(E log Z_out)/dQ": 2,
        "Nishimori": 2,
    }
    counts |= {"alpha at Q33": len(fig3.SINGLE_LAYER), "BERT's tokeniser": 11}
    counts |= {"Q11 at Q22": len(fig5.LANDMARKS)}
    every = pd.concat(whole[name] for name in ("fig1", "fig3", "fig5"))
    assert {text: len(rows(every, text)) for text in counts} == counts


def deep_claims(table):
    """Of one table as either of the figure's two."""
    return fig3.deep_claims(table, table)


NOT_REGULARISED, REGULARISED = planted.state_evolution(0.0), planted.state_evolution(1e-3)


@pytest.mark.parametrize(
    ("checked", "made", "place", "factor", "claim"),
    [
        (fig1.theory_claims, NOT_REGULARISED,
         ("curve", "Q22 alone", 0.5), 1.02, "alpha at Q22 = 0.5"),
        (fig1.theory_claims, REGULARISED,
         ("curve", "alpha along Q11", 0.7), 0.99, "alpha at Q11 = 0.7, V + 0.001"),
        (fig1.theory_claims, REGULARISED,
         ("curve", "Q22 along Q11", 0.9), 1.06, "V22 at Q11 = 0.9, V + 0.001"),
        (fig1.theory_claims, NOT_REGULARISED,
         ("posterior mean at", "0,0.985", 0.985), 1.03, "posterior mean error at Q = (0, 0.985)"),
        (fig1.theory_claims, NOT_REGULARISED,
         ("plug-in at", "0.91,0.9994", 0.9994), 0.96, "plug-in error at Q = (0.91, 0.9994)"),
        (fig1.theory_claims, NOT_REGULARISED,
         ("informed difference", "Q11", 0.85), 20, "same Q, c = 1, no regulariser"),
        (fig1.theory_claims, NOT_REGULARISED,
         ("derivative", "2 dlogZ/dQ - G", 0), 3, "2 d(E log Z_out)/dQ = G(Q)"),
        (fig1.theory_claims, NOT_REGULARISED,
         ("nishimori", "", 9), 3, "Nishimori"),
        (fig1.theory_claims, REGULARISED,
         ("threshold", "alpha_1", 1), 1.005, "alpha_1 at c = 1, V + 0.001"),
        (fig1.threshold_claims, planted.thresholds(),
         ("alpha_2", "exact", 0.5), 1.001, "fig. 1 right: alpha_2 at c = 0.5"),
        (fig1.threshold_claims, planted.thresholds(),
         ("alpha_2", "exact", 1000), 0.99, "all thresholds at or above 1/6"),
        (fig1.threshold_claims, planted.thresholds(),
         ("lambda_1", "V22 = 1e-4", 4), 0.85, "1/lambda_1 at V22 = 1e-4, c = 4"),
        (fig1.threshold_claims, planted.thresholds(),
         ("alpha_2", "expected", 2), 1.001, "fig. 1 right: alpha_2 at c = 2: two lattices"),
        (fig1.theory_claims, NOT_REGULARISED,
         ("expected", "alpha of layer 1", 0.8), 1.01, "alpha at Q11 = 0.8 by G of layer 1"),
        (fig1.theory_claims, NOT_REGULARISED,
         ("expected", "alpha of Q22 alone", 0.3), 1.02, "alpha at Q22 = 0.3"),
        (fig1.theory_claims, NOT_REGULARISED,
         ("expected plug-in", "0,1", 1), 1.02, "plug-in error at Q = (0, 1), c = 1: plain"),
        (fig1.threshold_claims, planted.thresholds(),
         ("alpha_1 difference", "c = 1", 2), 500, "alpha_1 does not depend on c"),
        (fig1.threshold_claims, planted.thresholds(),
         ("first order", "", 0.01), 0, "layer 2 jumps"),
        (deep_claims, planted.deep(), ("curve", "Q33 alone", 0.8), 0.95, "alpha at Q33 = 0.8"),
        (deep_claims, planted.deep(),
         ("onset ratio", "alpha lambda_2 at onset of 1", 1), 1.2, "alpha lambda_2 at the onset"),
        (deep_claims, planted.deep(regulariser=1e-3),
         ("overlap", "Q33", 0.5), 1.2, "public data, V + 1e-3: Q33"),
        (fig5.identity_claims, planted.exact(),
         ("identity", "denoiser = dblquad with equal boxes", 1e-4), 100, "denoiser = dblquad"),
    ],
)  # fmt: skip
def test_a_number_that_is_off_is_said_to_be(checked, made, place, factor, claim):
    wrong = {"no", "contradicted"}
    assert not wrong & holds(checked(made.table()), claim)
    quantity, series, x = place
    after = checked(made.off(quantity, factor, series=series, x=x).table())
    assert wrong & holds(after, claim)


def test_other_parameters_keep_their_own_gates_and_lose_the_specification_s():
    found = []
    for regulariser in (0.0, 1e-3):
        other = planted.state_evolution(regulariser)
        other.entry["skip"] = 0.6  # the table goes on saying what it said: only the entry counts
        for frame in other.frames:
            frame.loc[
                frame["quantity"].isin(["threshold", "expected"]) & (frame["x"] == 1), "x"
            ] = 0.6
        found += fig1.theory_claims(other.table(), errors=regulariser == 0)
        found += gates.public_claims(other.table(), fig1.PUBLIC_OVERLAPS)
    found += fig1.threshold_claims(planted.thresholds(regulariser=1e-3).table())
    found += messages.claims(planted.gamp(size=200, alphas=(1.2,)).table(), [], "fig. 1 left")
    found = verdicts.table(found)
    left = found[found["claim"].str.match("fig. 1 left: [^f]")]  # without message passing's steps
    assert not left["claim"].str.contains("specification").any()
    for text, count in (
        ("alpha at Q22", 6), ("alpha at Q11", 6), ("alpha_2, c = 0.6", 2), ("error at Q", 18),
        ("same Q, c = 0.6", 2), ("Nishimori", 2), ("both thresholds at or above 1/6", 2),
        ("fig. 1 right: alpha_2 at c", 9),
    ):  # fmt: skip
        assert len(rows(found, text)) == count, text
        assert holds(found, text) == {"confirmed"}, text
    for text in ("public state evolution", "public data: Q11"):
        assert not said(found, text)


@pytest.mark.long
def test_points_that_did_not_converge_contradict_their_claims(tmp_path):
    made = planted.state_evolution(1e-3, failed=(0.75,))
    found = judged("fig1", tmp_path, regularised=made, gamp=planted.gamp(failed=(0.9,)))
    assert holds(found, "[not converged at alpha = 0.75]") == {"contradicted"}
    lost = made.off(["overlap", "error plug-in"], math.nan, ["y", "y_err"], x=0.75)
    found = judged("fig1", tmp_path, regularised=lost)
    assert holds(found, "same Q, c = 1, V + 0.001") == {"contradicted"}
    made = planted.held().add("converged", "fixed", [0.93, 0.95], [1.0, 0.0])
    found = judged("fig5", tmp_path, fixed_overlap=made)
    for text in ("Q11 at Q22 = 0.95", "Q11 rises with Q22"):
        assert holds(found, text) == {"contradicted"}


@pytest.mark.long
def test_runs_of_gamp_that_did_not_converge_contradict_their_gates():
    theory = [planted.state_evolution(1e-3).table()]
    text = "state evolution, D = 1000, V + 0.001, alpha = 1.1: cosine^2 of layer 1"
    for bad, factor, answer, cause in (
        (0, 1, "confirmed", ""),
        (0, 0.3, "contradicted", ""),
        (1, 1, "confirmed", ""),  # by the seven others
        (7, 1, "contradicted", "[7 of 8 runs not converged]"),
    ):
        runs = planted.gamp(alphas=(1.0, 1.1), failed=(1.1,), bad=bad)
        made = runs.off("cosine 1", factor, series="1.1", x=30)
        found = row(messages.claims(made.table(), theory, "fig. 1 left"), text)
        assert found.holds == answer
        assert found.claim.endswith(cause)


def across(made):
    """The row on overlaps of different layers."""
    (found,) = gates.claims(messages.across_gates(made.entry, "fig. 1 left"), made.table())
    return found


@pytest.mark.parametrize("quantity", runs.ACROSS)
def test_a_layer_that_takes_part_in_the_other_is_found(quantity):
    made = planted.gamp(alphas=(0.5, 1.0, 1.1), runs=8)
    for factor, answer in ((1, "confirmed"), (5, "contradicted")):
        found = across(made.off(quantity, factor))
        assert found["holds"] == answer
        assert found["value"] == pytest.approx(factor * planted.APART / 1000**0.5, rel=0.1)


def test_only_runs_that_converged_say_whether_layers_mix():
    made = planted.gamp(alphas=(0.5, 1.0), runs=4, failed=(1.0,), bad=3)
    assert across(made.off("M12", 40, series="1", seed=[0, 1, 2]))["holds"] == "confirmed"
    none = planted.gamp(alphas=(0.5, 1.0), runs=4, failed=(0.5, 1.0), bad=4)
    assert across(none)["holds"] == "contradicted"
    assert across(none)["claim"].endswith("[fewer than two runs converged]")
    made.frames = [frame for frame in made.frames if frame["quantity"].iloc[0] != "M21"]
    assert across(made)["claim"].endswith("[missing in the table]")


@pytest.mark.parametrize(("runs", "carried"), [(1, 0), (2, 0), (4, 0), (8, 1)])
def test_few_runs_do_not_carry_the_gate_on_layers_that_mix(runs, carried):
    """A size is never 0: it must pass with its margin."""
    for size in (100, 1000):
        entry = planted.gamp(alphas=(1.0,), runs=runs, size=size).entry
        assert len(messages.across_gates(entry, "fig. 1 left")) == carried


def test_noise_that_the_channel_does_not_know_is_not_state_evolution():
    theory = [planted.state_evolution(1e-3).table()]
    made = planted.gamp(alphas=(1.2,), noise=0).entry
    assert messages.theory_gates(made, theory, "fig. 1 left") == []
    assert messages.theory_gates(planted.gamp(alphas=(1.2,)).entry, theory, "fig. 1 left")
    for noise, count in ((1e-3, 8), (0, 0)):  # its steps are the map of the specification's noise
        steps = messages.step_gates(planted.gamp(alphas=(1.2,), noise=noise).entry, "fig. 2 left")
        assert sum("specification" in gate.claim for gate in steps) == count


def test_a_random_start_is_compared_with_the_public_run(tmp_path):
    made = planted.gamp(init="random", alphas=(1.2,), runs=4, noise=0, damping=0.8)
    found = judged("fig2", tmp_path, gamp=made)
    assert holds(found, "cosine 2 passes .9") == {"yes"}
    assert holds(found, "learns layer 2") == {"yes"}
    assert holds(found, "final |M22| / Q22") == {"yes"}
    assert holds(found, "(4 of 4 runs)") == {"undecided"}  # three of six are expected to


def test_no_run_that_learned_layer_1_is_no_evidence():
    made = planted.gamp(init="random", alphas=(1.2,), runs=3, noise=0, damping=0.8)
    found = fig2.message_claims(made.off("cosine 1", 0.02).table())
    for text in ("learns layer 2", "final overlaps"):
        assert holds(found, text) == {"not-run"}


def test_runs_that_ended_early_stay_where_they_are():
    frame = planted.Maker().add("cosine 1", "", [1, 2, 3], [0.1, 0.2, 0.3]).frame()
    short = planted.Maker().add("cosine 1", "", [1, 2], [0.5, 0.7], seed=1).frame()
    found = runs.extended(pd.concat([frame, short]))
    assert found.loc[found["seed"] == 1, "y"].tolist() == [0.5, 0.7, 0.7]


def test_descent_that_ends_before_a_landmark_does_not_carry_it():
    made = planted.sgd(epochs=60)
    made.frames = [frame[frame["x"] <= 60] for frame in made.frames]
    found = fig2.descent_claims(made.table())
    assert holds(found, "epoch of cosine 2 = .95") == {"confirmed"}
    assert holds(found, "epoch of cosine 1 = 0.793") == {"not-run"}
    assert fig2.descent_gates(planted.sgd(epochs=4).entry) == []


def test_a_run_that_never_learns_contradicts_the_epoch_of_learning():
    found = fig2.descent_claims(planted.sgd().off("cosine 2", 0.1, seed=1).table())
    assert holds(found, "[1 of 8 runs do not reach it]") == {"contradicted"}


def test_without_questions_nothing_is_said_of_them(tmp_path):
    assert holds(judged("fig3", tmp_path, trec=planted.trec(questions=None)), "TREC") == {"not-run"}


def test_another_tokeniser_leaves_the_order_of_layers():
    made = planted.trec(tokenizer=None)
    made.about["tokenizer"] = {"from": "questions", "vocabulary": 5000}
    found = fig3.question_claims(made.table())
    assert len(found) == 1
    assert holds(found, "TREC: the similarity of layer 1 passes .5 before") == {"yes"}
    assert len(fig3.question_claims(planted.trec(epochs=2).table())) == 1


def test_docstrings_say_the_order_of_layers_alone(whole):
    assert rows(whole["fig3"], "docstrings by package")["holds"].tolist() == ["yes"]


def test_fixed_overlaps_at_another_alpha_are_not_compared():
    found = verdicts.table(fig5.fixed_claims(planted.held(alpha=2.0).table()))
    assert not found["claim"].str.contains("Q11 at Q22").any()
    assert holds(found, "Q11 rises with Q22") == {"confirmed"}


def test_a_quantity_that_is_missing_or_not_a_number_contradicts_its_gates():
    made = planted.state_evolution(0.0)
    made.frames = [f for f in made.frames if f["quantity"].iloc[0] not in ("derivative", "curve")]
    found = fig1.theory_claims(made.table())
    assert "[missing in the table]" in rows(found, "alpha at Q22 = 0.5")["claim"].iloc[0]
    for text in ("alpha at Q22 = 0.5", "alpha at Q22 = 0.3", "2 d(E log Z_out)/dQ"):
        assert holds(found, text) == {"contradicted"}
    for column in ("y", "y_err"):
        made = NOT_REGULARISED.off(["curve", "informed difference"], math.nan, column)
        found = fig1.theory_claims(made.table())
        for text in ("alpha at Q22", "same Q"):
            assert holds(found, text) == {"contradicted"}, (column, rows(found, text))


def test_crossings_are_read_from_straight_lines():
    assert reading.first_crossing([0, 1, 2, 3], [0, 0.4, 0.6, 0.1], 0.5) == pytest.approx(1.5)
    assert math.isnan(reading.first_crossing([0, 1], [0, 0.4], 0.5))
    assert reading.first_crossing([2, 3], [0.7, 0.9], 0.5) == 2


def test_a_lone_run_decides_nothing():
    assert not gates.carried(fig2.descent_gates(planted.sgd(runs=1).entry))
    found = fig2.descent_claims(planted.sgd(runs=1).table())
    assert holds(found, "public medians: epoch of cosine 2 = 0.102") == {"undecided"}


def test_means_and_medians_of_runs_have_errors():
    found = reading.mean([1.0, 2.0, 3.0])
    assert found == (2.0, pytest.approx(3**-0.5), 3)
    assert reading.median([1.0, 2.0, 3.0]).error / found.error == pytest.approx(1.2533, rel=1e-3)
    assert math.isnan(reading.mean([1.0]).error)


def test_the_shallow_layers_of_three_do_not_share_a_threshold():
    """The paper says so; a gap of 14 % with errors of 2 % says no, with errors of 7 % nothing."""
    for error, gap, answer in ((0.005, 0.14, "no"), (0.07, 0.14, "undecided"), (0.005, 0.0, "yes")):
        made = planted.Maker(
            kind="multi-index-deep", skip=1, regulariser=0, points=1024, scrambles=4
        )
        made.add("threshold", "alpha_1", 1, 1.0, error)
        made.add("threshold", "alpha_2", 1, 1.0 + gap, error)
        assert holds([fig3._shared_claim(made.table())], "share a threshold") == {answer}


def test_public_overlaps_of_three_layers_are_compared_at_their_regulariser(whole, tmp_path):
    text = "public data, V + 1e-3: Q11"
    assert holds(whole["fig3"], text) == {"yes"}
    other = judged("fig3", tmp_path, deep_regularised=planted.deep(regulariser=2e-3))
    assert not said(other, text)


# --- What a config can confirm -------------------------------------------------------------------


def every_gate(overlay):
    """All statistical gates of this paper's figures that a config could carry."""
    config = load(*overlay)
    one, two, three, five = (
        {
            role: config["theory"][name]
            for role, name in config["figures"]["multi-index"][figure]["theory"].items()
        }
        for figure in FIGURES
    )
    theory = [
        Table(
            planted.state_evolution(float(one[role]["regulariser"])).frame(),
            {"entry": one[role]},
        )
        for role in ("state_evolution", "regularised")
    ]
    found = [
        *(gate for table in theory for gate in fig1.left_gates(table.entry)),
        *fig1.error_gates(one["state_evolution"]),
        *(gate for table in theory for gate in fig1.end_gates(table.entry, "fig. 1")),
        *messages.theory_gates(one["gamp"], theory, "fig. 1"),
        *messages.step_gates(one["gamp"], "fig. 1"),
        *messages.across_gates(one["gamp"], "fig. 1"),
        *fig1.threshold_gates(one["thresholds"]),
        *messages.step_gates(two["gamp"], "fig. 2"),
        *fig2.descent_gates(two["sgd"]),
        *fig3.deep_gates(three["deep"]),
        *fig5.fixed_gates(five["fixed_overlap"]),
    ]
    return [gate for gate in found if gate.kind == "statistical"]


@pytest.mark.parametrize(
    ("overlay", "least"),
    [([], 45), (["smoke.yaml"], 14), (["tiny.yaml"], 45), (["paper.yaml"], 110)],
)
def test_no_config_carries_a_gate_that_it_can_never_confirm(overlay, least):
    """At the error that is predicted from its points, scramblings and runs, a value that is exactly
    as expected is confirmed; a number that is moved by two tolerances is contradicted."""
    found = every_gate(overlay)
    carried = gates.carried(found)
    for gate in carried:
        for value, answer in ((0.0, "confirmed"), (2.5 * gate.tolerance, "contradicted")):
            row = verdicts.within(
                gate.claim, value, gate.error, 0.0, gate.tolerance, gate.kind, gate.runs
            )
            assert row["holds"] == answer, gate.claim
    assert len(carried) >= least


def test_predictions_fall_with_points_scramblings_and_runs():
    few, many = (dict(points=points, scrambles=4) for points in (1024, 16384))
    assert gates.spread(0.02, few) == pytest.approx(0.01)
    assert gates.spread(0.02, many) == pytest.approx(0.0025)
    assert gates.combined((0.3, 4), (0.0, None)) == (pytest.approx(0.3), pytest.approx(4))
    error, runs = gates.combined((0.3, 4), (0.4, None))
    assert (error, runs) == (pytest.approx(0.5), pytest.approx(1 + 3 * 0.25**2 / 0.09**2))
    assert gates.combined((0.1, None)) == (pytest.approx(0.1), None)
    assert verdicts.margin(*gates.combined((0.1, 1), (0.1, None))) == math.inf
