"""The many-body source: what it writes, what its seed decides, that its chains reach the law."""

import numpy as np
import pytest
from enumerated import all_states, boltzmann, distance, floor
from spin_sources import MANY_BODY, check_splits, own_files, run

from manybody.data import SourceError, equilibrium, gibbs
from manybody.data.hamiltonian import Hamiltonian
from manybody.data.many_body import SPLITS, draw, refuse_unequal, self_test
from manybody.io.sequences import Sequences
from manybody.io.tensor_files import read_about


def test_writes_the_hamiltonian_and_three_tested_splits(tmp_path):
    files = run(MANY_BODY, tmp_path)
    hamiltonian = Hamiltonian.load(files["hamiltonian"])
    expected, about = draw(MANY_BODY)
    np.testing.assert_array_equal(hamiltonian.couplings, expected.couplings)
    np.testing.assert_array_equal(hamiltonian.colours, expected.colours)
    assert hamiltonian.beta == expected.beta
    kept = read_about(files["hamiltonian"])
    assert len(kept.pop("sha256")) == 64
    found = kept.pop("equilibrium")
    assert (found["method"], found["chains"]) == ("exact", 900 + equilibrium.CHECKED)
    assert found["chance"] > 1e-4
    assert kept == {**about, "source": "toy"}
    assert sum(about["shares"]) == pytest.approx(1.0)
    check_splits(files, MANY_BODY, hamiltonian)


def test_same_seed_same_bytes_for_any_threads(tmp_path):
    first, second = run(MANY_BODY, tmp_path / "one"), run(MANY_BODY, tmp_path / "two", threads=3)
    for name, path in first.items():
        assert path.read_bytes() == second[name].read_bytes(), name


def test_a_split_and_j_do_not_depend_on_the_size_of_the_others(tmp_path):
    longer = {**MANY_BODY, "sequences": dict(train=300, validation=250, test=100)}
    first, second = run(MANY_BODY, tmp_path / "one"), run(longer, tmp_path / "two")
    tokens = [
        [Sequences.open(files[split]).tokens for split in SPLITS] for files in (first, second)
    ]
    np.testing.assert_array_equal(tokens[0][0][:300], tokens[1][0])
    np.testing.assert_array_equal(tokens[0][1], tokens[1][1][:200])
    np.testing.assert_array_equal(tokens[0][2], tokens[1][2])
    assert (tokens[0][0][:100] != tokens[0][2]).any()
    hamiltonians = [Hamiltonian.load(files["hamiltonian"]) for files in (first, second)]
    np.testing.assert_array_equal(hamiltonians[0].couplings, hamiltonians[1].couplings)
    other, made = draw({**MANY_BODY, "seed": 1})
    assert made["seed"] == 1
    assert (other.couplings != hamiltonians[0].couplings).any()


# Random signs of mean zero in J and U: many valleys, which chains do not leave in 15 sweeps.
RUGGED = dict(vectors=20, variables="signs", probability=0.5)
GLASSY = {
    **MANY_BODY, "order": 4, "couplings": RUGGED, "colours": RUGGED, "sweeps": 15,
    "sequences": dict(train=20_000, validation=200, test=200),
}  # fmt: skip


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize(
    # S, seed, and the total variation from the enumerated law that exact samples do not have
    ("scale", "seed", "least"),
    [(2.0, 2, 0.02), (5.0, 1, 0.3)],
)
def test_trapped_chains_obey_every_conditional_and_are_refused(
    tmp_path, monkeypatch, scale, seed, least, counted
):
    source = {**GLASSY, "logit_scale": scale, "seed": seed}
    model, _ = draw(source)
    tokens, _ = gibbs.sample(model, 20_000, 15, np.random.SeedSequence(3))
    refuse_unequal(self_test(model, tokens), "train", source, "")  # says nothing of it
    law = boltzmann(model, all_states(3, 6))
    assert distance(tokens, law, 3) > floor(law, 20_000) + least
    if not counted:
        monkeypatch.setattr(equilibrium, "STATES", 1)
    said = r"trapped near their start: .*lower logit_scale \(S = "
    with pytest.raises(SourceError, match=said) as caught:
        run(source, tmp_path)
    assert ("distribution of all states" if counted else "from the lowest energy") in str(
        caught.value
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("counted", [True, False])
def test_chains_that_move_between_valleys_pass(tmp_path, monkeypatch, counted):
    """The Hamiltonian of the trapped chains, so warm that they are not."""
    if not counted:
        monkeypatch.setattr(equilibrium, "STATES", 1)
    files = run({**GLASSY, "logit_scale": 0.5, "seed": 1, "sweeps": 20}, tmp_path)
    found = read_about(files["hamiltonian"])["equilibrium"]
    assert found["method"] == ("exact" if counted else "starts")
    assert found["chains"] == (20_400 if counted else 0) + equilibrium.CHECKED


def test_valleys_that_a_renaming_of_colours_makes_equal_are_one(monkeypatch):
    """All chains from one of them would keep its colours, and be refused for nothing."""
    strong = dict(vectors=20, variables="signs", probability=0.8)
    source = {**GLASSY, "length": 8, "couplings": strong, "colours": "potts", "logit_scale": 8.0}
    model, _ = draw(source)
    monkeypatch.setattr(equilibrium, "STATES", 1)
    found = equilibrium.measure(model, np.empty((0, 8), np.int64), 15, np.random.SeedSequence(0))
    equilibrium.refuse_trapped(found, 15, "")
    assert found["cold"]["hamming"] == pytest.approx(2 / 3, abs=0.01)


@pytest.mark.long
def test_the_sources_of_the_configs_are_in_equilibrium():
    """With the eight sweeps of the smoke test, fewer than the demo's, against all 5^10 states."""
    law = dict(vectors=1000, variables="signs", probability=0.8)
    source = {**GLASSY, "length": 10, "vocabulary": 5, "couplings": law, "colours": "potts"}
    model, _ = draw({**source, "logit_scale": 5.0, "seed": 0})
    found = equilibrium.measure(model, np.empty((0, 10), np.int64), 8, np.random.SeedSequence(0), 2)
    equilibrium.refuse_trapped(found, 8, "")
    assert found["method"] == "exact"


def test_frozen_chains_are_refused_with_a_scale_that_moves(tmp_path):
    # Couplings of both signs between all pairs leave no colour free at a low temperature.
    rng = np.random.default_rng(0)
    couplings = rng.normal(size=(8, 8))
    couplings = couplings + couplings.T
    np.fill_diagonal(couplings, 0.0)
    colours = rng.normal(size=(3, 3))
    own = own_files(tmp_path, couplings=couplings, colours=colours + colours.T)
    source = {**MANY_BODY, "order": 2, "length": 8, "logit_scale": 1e6, **own}
    out = tmp_path / "out"
    with pytest.raises(SourceError, match=r"logit_scale: at S = 1000000.0 the chains") as caught:
        run(source, out)
    assert not out.exists()
    scale = float(str(caught.value).split("S = ")[-1].split()[0])
    hamiltonian, _ = draw({**source, "logit_scale": scale})
    _, changed = gibbs.sample(hamiltonian, 500, 10, np.random.SeedSequence(3))
    assert changed[5:].mean() > 1e-3


def test_own_tensors_are_taken(tmp_path):
    drawn, _ = draw(MANY_BODY)
    own = own_files(tmp_path, couplings=2.0 * drawn.couplings)
    hamiltonian, about = draw({**MANY_BODY, **own})
    np.testing.assert_array_equal(hamiltonian.couplings, 2.0 * drawn.couplings)
    assert hamiltonian.beta == pytest.approx(drawn.beta / 2)
    assert about["parameters"]["couplings"] == own["couplings"]
