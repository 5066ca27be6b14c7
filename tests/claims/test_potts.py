"""What the Potts paper's other figures say: figure 3, recovery and contacts."""

import math

import numpy as np
import pandas as pd
import pytest
from potts_tables import REPLICA, curve_of_losses, recovered, write_contacts

from manybody.claims.potts import contacts, fig3, recovery
from manybody.files import tables
from manybody.sources import potts
from manybody.sources.hamiltonian import Hamiltonian
from manybody.theory import replica

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
    found = pd.DataFrame(fig3.square_claims(fig3.Square(*replica.compute(entry))))
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
        assert fig3._teachers_differ(fig3.Square(frame, about), 0.1) == teacher


def test_no_peak_is_no_gate_and_one_of_two_is_contradicted(computed):
    frame, about = computed
    peaks = frame["quantity"] == "peak"
    for lost, answers in (
        (("closed form", "equations"), []),
        (("equations",), 2 * ["contradicted"]),
    ):
        spoiled = frame.copy()
        spoiled.loc[peaks & spoiled["series"].isin(lost), ["x", "y"]] = np.nan
        rows = fig3._peak_claims(fig3.Square(spoiled, about))
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
        rows = fig3.square_claims(fig3.Square(spoiled, about))
        answers = pd.DataFrame(rows).set_index("claim")["holds"]
        found = answers[answers.index.str.contains(claim, regex=False)]
        assert found.isin(["no", "contradicted"]).any(), claim


def test_the_expected_sign_follows_gamma():
    entry = REPLICA | {"gamma": 2.1, "ridge": 1e-3, "length": 200, "sizes": [200, 300]}
    entry |= {"realisations": 4, "size_realisations": 50}
    rows = fig3.square_claims(fig3.Square(*replica.compute(entry)))
    found = pd.DataFrame(rows).set_index("claim")
    falls = found[found.index.str.contains("the loss first falls from alpha = 0")]
    assert falls["holds"].tolist() == ["confirmed"]
    assert falls["expected"].tolist() == ["<= 0"]


def test_few_realisations_carry_no_gate_of_finite_sizes(computed):
    frame, about = computed
    few = frame[(frame["quantity"] != "size") | (frame["seed"] < 20)]
    found = pd.DataFrame(fig3.square_claims(fig3.Square(few, about)))
    assert not found["claim"].str.contains("from L -> infinity at M").any()
    some = frame[(frame["quantity"] != "size") | (frame["seed"] < 60)]
    found = pd.DataFrame(fig3.square_claims(fig3.Square(some, about)))
    assert found["claim"].str.contains("from L -> infinity at M").sum() == 2
    assert not found["claim"].str.contains("falls like L").any()


def test_the_logistic_claims_follow_the_place_of_the_peak():
    def rows(*curve):
        found = fig3.logistic_claims(fig3.Logistic(*curve_of_losses(*curve)))
        return pd.DataFrame(found).set_index("claim")["holds"]

    late = rows((1e-3, 1e-2, 0.1), 3.0)
    places = late[late.index.str.contains("at M between 28 and 60")]
    assert len(places) == 3
    assert set(places) == {"no"}
    at_the_edge = rows((1e-3,), 20.0)
    assert at_the_edge[at_the_edge.index.str.contains("interior")].tolist() == ["no"]
    strong = rows((0.1, 0.2))
    assert strong.tolist() == ["not-run"]


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
    for shift, columns, holds in (
        (2.9, 12, "confirmed"),
        (3.5, 12, "consistent"),
        (3.5, 1, "contradicted"),
    ):
        differences = pd.DataFrame(noise[:, :columns])
        differences[0] += shift
        found = fig3._agree("claim", differences)
        assert found["value"] == pytest.approx(shift, rel=1e-9)
        assert found["holds"] == holds


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

SOURCE = dict(length=20, vocabulary=20, couplings="contact-map", colours="stored", kind="potts")
LAW = Hamiltonian(potts.contact_map(20), -potts.stored_colours() / 2, 1.707)


def judge(folder, noise, block, truth=None, source=SOURCE, **about):
    scores = write_contacts(folder, LAW.couplings, noise, **about)
    if truth is None:
        truth = folder / "hamiltonian.safetensors"
        LAW.save(truth, {})
        block = {"truth": {"hamiltonian": "planted"}, **block}
    files = {"contacts": [scores], "truth": [truth]}
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
        block = dict(truth=str(tmp_path / "list.csv"), separation=separation)
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
    assert contacts.judge({"contacts": [scores], "truth": []}, {}, {}).empty


def test_a_hamiltonian_of_other_sites_is_refused(tmp_path):
    other = Hamiltonian(potts.contact_map(19), -potts.stored_colours() / 2, 1.0)
    other.save(tmp_path / "other.safetensors", {})
    with pytest.raises(ValueError, match="L = 20 sites"):
        judge(tmp_path, 0, {"truth": {"hamiltonian": "o"}}, tmp_path / "other.safetensors")
