"""What the Potts paper's figures say of runs and tables with planted answers."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from judged import holds, row, rows
from planted_potts import (
    BLOCK,
    EQUILIBRIUM,
    HELD_OUT,
    LAW,
    NOISE,
    REPLICA,
    SOURCE,
    Made,
    curve,
    curve_of_losses,
    diverged,
    held_out,
    make,
    recipe,
    recovered,
    write_contacts,
)

from manybody.claims import verdicts
from manybody.claims.identities import potts as identities
from manybody.claims.potts import contacts, fig2, fig2_runs, fig3, recovery
from manybody.claims.reading import Table
from manybody.data import pair_gibbs
from manybody.data.hamiltonian import Hamiltonian
from manybody.io import tables
from manybody.measure.contacts import write_known
from manybody.measure.known_contacts import read_contacts
from manybody.theory import replica

# --- Figure 2 ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return make(tmp_path_factory.mktemp("planted")).given(BLOCK)


def test_what_was_planted_is_what_the_claims_find(planted):
    found = fig2.judge(*planted)
    gates = found[found["kind"] != "paper"]
    assert gates[gates["holds"] != "confirmed"]["claim"].tolist() == []
    assert len(gates) == 6 + 2 + 2 + 3  # samples, losses, free and softmax A
    # One sample of 3000 cannot confirm what is asked of free A: recovery does, with six.
    assert not found["claim"].str.contains("free: error of J").any()
    assert row(found, "softmax: error of J").value == pytest.approx(0.014, rel=0.1)
    assert row(found, "uniform (hot)").expected == "0.3"
    # Two seeds in common with softmax A, which Student's t lets decide nothing at 0.02 +- 0.001.
    for text in ("encoder of 1 layer above softmax", "encoder of 3 layers above softmax"):
        assert row(found, text).value == pytest.approx(0.022, abs=0.008)
        assert row(found, text).tolerance > 50 * row(found, text).standard_error
    apart = row(found, "encoder of 1 layer above that of 3 layers")
    assert (apart.holds, apart.value) == ("yes", pytest.approx(0.014))
    at_a = rows(found, "excess at a = ")
    assert at_a["holds"].tolist() == ["undecided"] * 2  # one seed decides nothing
    assert (at_a["value"] > 0).all()
    assert holds(found, "a = 0 has the lowest loss") == {"undecided"}
    assert holds(found, "converges faster") == {"undecided"}  # all curves fall at one rate
    best = row(found, "free: best of 3 rates")
    assert (best.holds, best.value, best.expected) == ("yes", 1.0, "0.1 to 3")
    assert not found["claim"].str.contains("softmax: best of").any()  # nothing was searched


def test_what_is_planted_wrong_fails(tmp_path):
    noise = {"free": (0.15, 0.065), "softmax": (0.05, 0.3)}
    encoders = {"one": (1, (0.002, 0.003, 0.002)), "three": (3, (0.021, 0.022, 0.020))}
    equilibrium = dict(chains=50000, hot=0.31, hot_se=0.0012, cold=0.29, cold_se=0.0012, tau=36.0)
    made = make(tmp_path, noise, encoders=encoders, equilibrium=equilibrium)
    for seed in (1, 2):  # of each a, the order turned round
        made.interpolated("a0", 0, 0.25, seed)
        made.interpolated("a0.01", 0.01, 0.06, seed)
    block = {**BLOCK, "interpolation": [
        {"a": a, "candidates": [f"a{a:g}"], "seeds": [1, 2]} for a in (0, 0.01)
    ]}  # fmt: skip
    found = fig2.judge(*made.given(block))
    for text in (
        "free: Pearson r",
        "softmax: excess over the optimum",
        "softmax: error of J",
        "uniform (hot)",
        "ordered (cold)",
        "hot minus cold",
    ):
        assert holds(found, text) == {"contradicted"}, text
    assert holds(found, "encoder of 1 layer above that of 3 layers") == {"no"}
    for text in ("excess at a = 0.01 above a = 0", "a = 0 has the lowest loss"):
        assert row(found, text).value < 0


def test_depths_are_compared_within_one_reading_of_the_encoder(tmp_path):
    made = Made(tmp_path)
    made.factored("free", "free", NOISE["free"])
    tutorial = dict(architecture="encoder", layers=1, positions="sinusoidal", head="mlp")
    made.encoder("one", 1, 0.03)
    made.encoder("three", 3, 0.02)
    made.add("other", 0, tutorial, curve(made.optimum + 0.05), recipe())
    runs = [
        {"label": name, "candidates": [name], "seeds": [0]}
        for name in ("free", "one", "other", "three")
    ]
    found = fig2.judge(*made.given({"runs": runs}))
    waves = row(found, "encoder of 1 layer (sinusoidal positions, mlp head) above free")
    plain = row(found, "encoder of 1 layer above free")
    assert waves.value - plain.value == pytest.approx(0.02)
    assert row(found, "above that of 3 layers").value == pytest.approx(0.01)


def entry(label, kind, curves):
    about = {"recipe": recipe(), "description": {"architecture": kind, "layers": 1}}
    runs = {n: fig2_runs.PottsRun(about, pd.DataFrame(one), {}) for n, one in enumerate(curves)}
    return fig2_runs.Entry(label, [fig2_runs.Candidate(label, runs)])


SLOW, FAST = (30, 30.5, 31), (10, 10.2, 9.9)


@pytest.mark.parametrize(
    ("factored", "encoder", "answer"),
    [
        (FAST, SLOW, "yes"),
        (SLOW, FAST, "no"),
        (FAST, (10.1, 10, 10), "undecided"),
        (FAST[:1], SLOW, "undecided"),
    ],
)
def test_which_converges_faster_is_decided_over_seeds(factored, encoder, answer):
    """Losses that fall at planted rates: 5 % of the drop is left after log 20 of their times."""
    epochs = np.arange(0.0, 200.0)
    entries = []
    for kind, times in (("factored", factored), ("encoder", encoder)):
        losses = [0.7 + 2.3 * np.exp(-epochs / time) for time in times]
        entries.append(entry(kind, kind, [{"epoch": epochs, "loss": each} for each in losses]))
    (found,) = fig2.faster_claims(SimpleNamespace(architectures=entries), "fig")
    assert found["holds"] == answer
    expected = math.log(20) * (np.mean(encoder) - np.mean(factored))
    assert found["value"] == pytest.approx(expected, abs=2)


def test_losses_that_are_not_those_of_the_equations_fail(tmp_path):
    made = Made(tmp_path / "shifted", truth=0.7)
    made.factored("free", "free", NOISE["free"])
    block = {"runs": [{"label": "free", "candidates": ["free"], "seeds": [0]}]}
    found = fig2.judge(*made.given(block))
    assert holds(found, "those of their equations") == {"contradicted"}
    made = Made(tmp_path / "fewer")
    description = dict(architecture="encoder", layers=1)
    made.add("one", 0, description, curve(0.7), recipe(), sequences=HELD_OUT // 2)
    block = {"runs": [{"label": "one", "candidates": ["one"], "seeds": [0]}]}
    found = fig2.judge(*made.given(block))
    assert holds(found, "equally many held-out tokens") == {"contradicted"}
    assert holds(found, "[not on the same tokens]") == {"contradicted"}


def test_a_longer_run_shows_whether_the_steps_were_enough(tmp_path):
    made = Made(tmp_path)
    twice, other = recipe(steps=18000), recipe(0.5, steps=18000)
    expected = dict(arrived="yes", rising="yes", falling="no", noisy="undecided", other="not-run")
    changes = dict(arrived=(-0.0002, -0.0003), falling=(-0.006, -0.0061), noisy=(0.004, -0.004))
    changes["rising"] = (0.02, 0.021)
    for name in expected:
        for seed, change in enumerate(changes.get(name, (0.0, 0.0))):
            made.encoder(name, 1, 0.02, seed)
            of = other if name == "other" else twice
            made.encoder(f"{name}-longer", 1, 0.02 + change, seed, of)
    runs = [
        {"label": name, "candidates": [name], "longer": f"{name}-longer", "seeds": [0, 1]}
        for name in expected
    ]
    found = fig2.judge(*made.given({"runs": runs}))
    for name, answer in expected.items():
        assert row(found, f"{name}: 2 x the steps ({name}-longer)").holds == answer
    falling = row(found, "falling: 2 x the steps")
    assert falling.value == pytest.approx(0.00605)
    assert falling.standard_error == pytest.approx(0.00005)


def test_bounds_follow_the_number_of_training_sequences(tmp_path):
    made = Made(tmp_path)
    for size, noise in ((9000, (0.004, 0.04)), (500, (0.3, 0.1)), (20000, (0.004, 0.04))):
        of = {**recipe(), "subset": size}
        made.factored(f"softmax-{size}", "softmax", noise, of=of)
    runs = [
        {"label": f"softmax {size}", "candidates": [f"softmax-{size}"], "seeds": [0]}
        for size in (9000, 500, 20000)
    ]
    found = fig2.judge(*made.given({"runs": runs}))
    large = row(found, "error of J")
    assert (large.holds, large.expected) == ("confirmed", "< 0.01")
    assert "M = 9000" in large.claim
    assert row(found, "Pearson r").expected == "> 0.995"
    # 2000 sequences cannot confirm an excess to a third of what M = 3000 allows.
    assert not found["claim"].str.contains("excess over the optimum").any()
    # The law 1/M is not held far from where the bounds were measured.
    assert not found["claim"].str.contains("softmax (?:500|20000):").any()


def test_few_held_out_sequences_carry_no_gate_on_the_excess(tmp_path):
    """2000 of them do, above; 200 could not confirm it."""
    made = Made(tmp_path, tokens=held_out()[:200])
    made.factored("softmax", "softmax", NOISE["softmax"])
    runs = [{"label": "softmax", "candidates": ["softmax"], "seeds": [0]}]
    found = fig2.judge(*made.given({"runs": runs}))
    assert not found["claim"].str.contains("excess over the optimum").any()


def test_at_another_source_no_gate_fails(tmp_path):
    length, vocabulary = 6, 3
    draws = np.random.default_rng(0)
    couplings = np.triu(draws.standard_normal((length, length)), 1)
    small = Hamiltonian(couplings + couplings.T, -np.eye(vocabulary) / 2, 0.8)
    tokens = pair_gibbs.sample(small, 64, 20, np.random.SeedSequence(1)).tokens
    source = SOURCE | dict(
        length=length,
        vocabulary=vocabulary,
        couplings="signs",
        colours="standard",
        temperature={"beta": 0.8},
    )
    equilibrium = dict(EQUILIBRIUM, chains=100, hot=0.5, cold=0.51, hot_se=0.03, cold_se=0.03)
    made = Made(tmp_path, source, equilibrium, hamiltonian=small, tokens=tokens)
    made.factored("free", "free", (0.05, 0.1), of={**recipe(), "subset": None})
    block = {"runs": [{"label": "factored", "candidates": ["free"], "seeds": [0]}]}
    made.add("true2", 0, dict(architecture="encoder", layers=1), [0.9], recipe())
    files, block, context = made.given(block)
    # The numbers of tokens were written for L = 20, so that only their own row may fail.
    found = fig2.judge(files, block, context)
    gates = found[found["kind"] != "paper"]
    assert "contradicted" not in set(gates["holds"])
    assert not gates["claim"].str.contains("starts|default setting|factored: ").any()
    reasons = fig2.departure(fig2_runs.read(files, block, context))
    assert "length = 6, vocabulary = 3, couplings = signs" in reasons


def test_a_diverged_recipe_is_never_the_best_and_is_no_error(tmp_path):
    found = fig2.judge(*diverged(tmp_path))
    assert row(found, "best of 2 rates, one").holds == "no"


LOW, HIGH = (0.70, 0.701, 0.699), (0.72, 0.721, 0.722)


@pytest.mark.parametrize(
    ("lower", "upper", "answer"),
    [
        (LOW, HIGH, "yes"),
        (HIGH, LOW, "no"),
        ((0.70,), HIGH, "undecided"),  # one seed, whatever it is set against
        ((0.70,), (0.72,), "undecided"),
        # Five standard errors of two seeds are not yet a decision by Student's t.
        ((0.70, 0.70), (0.72, 0.73), "undecided"),
        (LOW, (0.70, 0.72, 0.78), "undecided"),
        (LOW, (0.72, math.inf, 0.7), "undecided"),
    ],
)
def test_a_difference_of_runs_is_decided_over_seeds(lower, upper, answer):
    entries = [entry("", "encoder", [{"loss": [end]} for end in ends]) for ends in (lower, upper)]
    assert fig2._difference("claim", *entries)["holds"] == answer


def test_the_identities_hold_and_repeat(monkeypatch):
    monkeypatch.setattr(identities, "SEQUENCES", 20)
    monkeypatch.setattr(identities, "ENERGIES", 2)
    frame, about = identities.compute({"kind": "potts-exact", "seed": 3})
    again, _ = identities.compute({"kind": "potts-exact", "seed": 3})
    pd.testing.assert_frame_equal(frame, again)
    rows = pd.DataFrame(fig2.exact_claims(frame, "fig. 2"))
    assert set(rows["holds"]) == {"confirmed"}
    assert len(rows) == 1 + 6 + 2
    assert about["seed"] == 3


def test_a_change_that_is_no_gauge_is_found(monkeypatch):
    """V -> V + u 1^T is not one: it adds fields."""

    def add_fields(model, rng):
        model.left[0].add_(torch.from_numpy(rng.standard_normal(identities.VOCABULARY))[:, None])

    monkeypatch.setattr(identities, "SEQUENCES", 20)
    monkeypatch.setattr(identities, "_shift", add_fields)
    frame, _ = identities.compute({"seed": 3})
    rows = pd.DataFrame(fig2.exact_claims(frame, "fig. 2"))
    assert rows[rows["holds"] == "contradicted"]["claim"].tolist() == [
        "fig. 2: change of the masked loss in its gauge, column shift"
    ]


def test_the_figure_reads_its_identities(planted, tmp_path):
    files, block, context = planted
    rows = [("conditional", 1e-15), ("masked loss", 2e-12), ("gauge", 0.0)]
    frame = pd.DataFrame(rows, columns=["quantity", "y"])
    frame = frame.assign(series="planted", seed=0, x=0.0, y_err=0.0)
    tables.write_theory(tmp_path / "exact.parquet", frame, {})
    found = fig2.judge({**files, "theory": [tmp_path / "exact.parquet"]}, block, context)
    expected = {"conditionals (5)": "confirmed", "in its gauge": "confirmed"}
    expected |= {"minus pseudo-likelihood": "contradicted"}
    assert {text: row(found, text).holds for text in expected} == expected
    fewer = pd.DataFrame(fig2.exact_claims(frame[:2], "fig"))
    assert row(fewer, "in its gauge [no such row").holds == "contradicted"


# --- Figure 3 ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def computed():
    return replica.compute(REPLICA)


def test_every_claim_of_figure_3_holds(computed, tmp_path):
    files = {"theory": [tmp_path / "replica.parquet"], "curves": [tmp_path / "curve.parquet"]}
    tables.write_theory(files["theory"][0], *computed)
    tables.write_theory(files["curves"][0], *curve_of_losses())
    found = fig3.judge(files, {}, {})
    assert not found["claim"].duplicated().any()
    assert set(found["kind"]) == {"exact", "statistical", "paper"}
    assert set(found["holds"]) == {"confirmed", "yes"}, found.to_string()
    # So few and small realisations would not tell the two teachers apart: no gate asks them to.
    assert not found["claim"].str.contains("independent of the inputs").any()


@pytest.mark.parametrize(
    ("gamma", "ridge", "seed"),
    [(3.1, 0.02, 0), (4.0, 0.1, 1), (10.0, 0.01, 2), (3.0, 1e-4, 3), (2.7, 0.3, 4)],
)
def test_gates_hold_at_other_parameters(gamma, ridge, seed):
    """Statements for ridge -> 0 are made there, whatever the entry's ridge is."""
    entry = REPLICA | dict(gamma=gamma, ridge=ridge, seed=seed)
    entry |= dict(length=100, realisations=10, sizes=[50, 100, 200], size_realisations=300)
    found = pd.DataFrame(fig3.square_claims(Table(*replica.compute(entry))))
    gates = found[found["kind"] != "paper"]
    assert len(gates) == 14
    assert set(gates["holds"]) <= {"confirmed", "consistent"}, gates.to_string()
    assert set(gates.loc[gates["kind"] == "exact", "holds"]) == {"confirmed"}


def test_gates_that_the_configs_carry_can_be_confirmed():
    """At the demo's number of realisations, and those of smoke, by errors that follow from it."""
    demo = dict(gamma=2.5, ridge=1e-3, length=1000, realisations=30, size_realisations=1000)
    for changes, teacher in (({}, True), ({"realisations": 100}, True), ({"length": 60}, False)):
        about = {"entry": {**demo, **changes}}
        limits = [
            (name, 0.1, float(replica.closed_form(2.5, 1e-3, 0.1, name != "conditional")))
            for name in ("conditional", "independent teacher")
        ]
        frame = pd.DataFrame(limits, columns=["series", "x", "y"]).assign(quantity="limit", seed=0)
        assert fig3._teachers_differ(Table(frame, about), 0.1) == teacher


def test_no_peak_is_no_gate_and_one_of_two_is_contradicted(computed):
    frame, about = computed
    peaks = frame["quantity"] == "peak"
    for lost, answers in (
        (("closed form", "equations"), []),
        (("equations",), 2 * ["contradicted"]),
    ):
        spoiled = frame.copy()
        spoiled.loc[peaks & spoiled["series"].isin(lost), ["x", "y"]] = np.nan
        rows = fig3._peak_claims(Table(spoiled, about))
        assert [row["holds"] for row in rows] == answers
    assert all(math.isnan(value) for value in replica.peak_of_equations(2.5, 1.0))


def test_claims_fail_where_the_numbers_are_wrong(computed):
    frame, about = computed
    for quantity, series, claim in (
        ("loss", "six equations", "six saddle-point equations"),
        ("loss", "finite L", "simulated loss"),
        ("objective", "free energy", "free energy"),
        ("residual", "theory", "training error"),
        ("size", "120", "at each alpha"),
        ("exponent", "50 to 100", "alpha 50 to 100"),
        ("slope", "", "from alpha = 0"),
        ("start", "", "no decay at first"),
        ("peak", "closed form", "height of the peak, closed form over"),
        ("peak", "equations", "height of the peak, closed form over"),
    ):
        spoiled = frame.copy()
        rows = (spoiled["quantity"] == quantity) & (spoiled["series"] == series)
        assert rows.any(), (quantity, series)
        spoiled.loc[rows, "y"] = -2.0 if quantity == "slope" else spoiled.loc[rows, "y"] * 1.5
        found = pd.DataFrame(fig3.square_claims(Table(spoiled, about)))
        assert holds(found, claim) & {"no", "contradicted"}, claim


def test_the_expected_sign_follows_gamma():
    entry = REPLICA | {"gamma": 2.1, "ridge": 1e-3, "length": 200, "sizes": [200, 300]}
    entry |= {"realisations": 4, "size_realisations": 50}
    found = pd.DataFrame(fig3.square_claims(Table(*replica.compute(entry))))
    falls = row(found, "the loss first falls from alpha = 0")
    assert (falls.holds, falls.expected) == ("confirmed", "<= 0")


def test_few_realisations_carry_no_gate_of_finite_sizes(computed):
    frame, about = computed
    few = frame[(frame["quantity"] != "size") | (frame["seed"] < 20)]
    found = pd.DataFrame(fig3.square_claims(Table(few, about)))
    assert not found["claim"].str.contains("from L -> infinity at M").any()
    some = frame[(frame["quantity"] != "size") | (frame["seed"] < 60)]
    found = pd.DataFrame(fig3.square_claims(Table(some, about)))
    assert found["claim"].str.contains("from L -> infinity at M").sum() == 2
    assert not found["claim"].str.contains("falls like L").any()


def test_the_logistic_claims_follow_the_place_of_the_peak():
    def judged(*curve):
        return verdicts.table(fig3.logistic_claims(fig3.Logistic(*curve_of_losses(*curve))))

    late = rows(judged((1e-3, 1e-2, 0.1), 3.0), "at M between 28 and 60")
    assert late["holds"].tolist() == ["no"] * 3
    assert row(judged((1e-3,), 20.0), "interior").holds == "no"
    assert judged((0.1, 0.2)).empty


def test_places_on_a_curve_lie_between_its_points():
    sizes = np.array([2.0, 10, 30, 50, 100, 300])
    loss = np.exp(3 - 0.5 * np.log(sizes / 41) ** 2)
    assert fig3._peak(sizes, loss) == pytest.approx(41, rel=1e-9)
    assert math.isnan(fig3._peak(sizes, sizes))
    assert fig3._crossing(sizes, np.log(sizes), math.log(41)) == pytest.approx(41, rel=1e-9)
    assert math.isnan(fig3._crossing(sizes, sizes, 1.0))
    assert math.isnan(fig3._crossing(sizes, sizes, 300.0))
    losses = pd.DataFrame([loss, loss * 1.1, loss * 0.8], columns=sizes)
    found, error = fig3._resampled(losses, fig3._peak)
    assert found == pytest.approx(41, rel=1e-9)
    assert error == pytest.approx(0.0, abs=1e-9)


def test_the_largest_of_many_may_be_larger():
    """A difference of 3.5 standard errors is one in 200 of one alpha, not of twelve."""
    generator = np.random.default_rng(2)
    noise = generator.normal(size=(1000, 12))
    noise -= noise.mean(axis=0)
    noise /= noise.std(axis=0, ddof=1) / math.sqrt(1000)
    for shift, columns, answer in (
        (2.9, 12, "confirmed"),
        (3.5, 12, "consistent"),
        (3.5, 1, "contradicted"),
    ):
        differences = pd.DataFrame(noise[:, :columns])
        differences[0] += shift
        found = fig3._agree("claim", differences)
        assert found["value"] == pytest.approx(shift, rel=1e-9)
        assert found["holds"] == answer


# --- Recovery ------------------------------------------------------------------------------------


def test_recovery_asks_for_what_was_measured_at_the_default_setting(tmp_path):
    def answers(frame, about):
        return [claim["holds"] for claim in recovery.claims(frame, about)]

    found = answers(*recovered(6))
    assert len(found) == 4
    assert set(found) <= {"confirmed", "consistent"}
    assert found.count("confirmed") >= 3
    assert set(answers(*recovered(6, 2.0))) == {"contradicted"}
    # What so few samples cannot confirm is not asked of them.
    (slope,) = recovery.claims(*recovered(3))
    assert slope["claim"].startswith("recovery: slope")
    assert len(answers(*recovered(2))) == 1
    frame, about = recovered(6)
    for change in (
        {"beta": 1.2},
        {"source": {**about["source"], "colours": "standard"}},
        {"entry": {**about["entry"], "ridge": 0.1}},
    ):
        assert not answers(frame, {**about, **change})
    tables.write_theory(tmp_path / "curve.parquet", frame, about)
    judged = recovery.judge({"curves": [tmp_path / "curve.parquet"]}, {}, {})
    assert judged["holds"].tolist() == found


# --- Contacts ------------------------------------------------------------------------------------


def judge(folder, noise, block, truth=None, source=SOURCE, **about):
    scores = write_contacts(folder, LAW.couplings, noise, **about)
    files = {"contacts": [scores]}
    if truth is None:
        files["hamiltonians"] = [folder / "hamiltonian.safetensors"]
        LAW.save(*files["hamiltonians"], {})
    else:
        files["known"] = [folder / "known.parquet"]
        write_known(*files["known"], *read_contacts(truth, len(LAW.couplings)), {})
    return contacts.judge(files, {"source": "own", **block}, {"sources": {"own": source}})


def test_gates_on_couplings_are_for_enough_samples_of_the_default_setting(tmp_path):
    for noise, answer in ((0.0, "confirmed"), (0.5, "contradicted")):
        found = judge(tmp_path, noise, {})
        assert found["kind"].tolist() == ["statistical"] * 4
        assert set(found["holds"]) == {answer}
    for other in (
        judge(tmp_path, 0.1, {}, sequences=2999),
        judge(tmp_path, 0.1, {"separation": 2}),
        judge(tmp_path, 0.1, {}, source={**SOURCE, "colours": "standard"}),
    ):
        assert other["kind"].tolist() == ["paper"] * 2
        assert other["holds"].tolist() == ["yes"] * 2


def test_contacts_of_a_family_are_compared_with_chance(tmp_path):
    def answers(text, separation=1):
        (tmp_path / "list.csv").write_text(text)
        block = dict(separation=separation)
        found = judge(tmp_path, 0.1, block, tmp_path / "list.csv", {"kind": "alignment"})
        assert set(found["kind"]) == {"paper"}
        return found["holds"].tolist()

    true = np.argwhere(np.triu(LAW.couplings)) + 1
    assert answers("".join(f"{a},{b}\n" for a, b in true)) == ["yes", "yes"]
    apart = np.argwhere(np.triu(LAW.couplings == 0, 1))[:40] + 1
    assert "yes" not in answers("".join(f"{a},{b}\n" for a, b in apart))
    assert answers("1,2\n3,4\n", separation=5) == ["not-run"]  # no contact that far apart
    assert answers("1,2,3.0\n3,4,3.0\n", separation=5) == ["not-run"]  # and no pair known
    scores = write_contacts(tmp_path, LAW.couplings, 0.1)
    assert contacts.judge({"contacts": [scores]}, {}, {}).empty
