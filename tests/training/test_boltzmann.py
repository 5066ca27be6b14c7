"""Boltzmann learning against the exact likelihood of families with few states."""

import shutil

import numpy as np
import pytest
import torch
from enumerated import all_states
from planted_pairs import law
from scipy.optimize import minimize

from manybody.data.pair_model import PairModel, of_pairs
from manybody.io.refusal import Refusal
from manybody.sampling.pair_chains import frequencies, sample
from manybody.training import boltzmann
from manybody.training.boltzmann import learn
from manybody.training.boltzmann_loops import step
from manybody.training.pair_fit import Family, Heads

LENGTH, COLOURS, RIDGE = 6, 3, 0.02
FIRST, SECOND = np.triu_indices(LENGTH, 1)
STATES = all_states(COLOURS, LENGTH)
SMALL = dict(chains=2048, tested=2000, rate=0.3, ridge=RIDGE)


def planted() -> PairModel:
    rng = np.random.default_rng(0)
    pairs = 0.7 * rng.normal(size=(len(FIRST), COLOURS, COLOURS))
    fields = 0.5 * rng.normal(size=(LENGTH, COLOURS))
    return PairModel(fields, of_pairs(pairs, LENGTH), {"alphabet": "-AC"})


def uncoupled() -> PairModel:
    return PairModel(0 * planted().fields, 0 * planted().couplings, planted().about)


@pytest.fixture(scope="module")
def weights() -> np.ndarray:
    """How often each state is in the data: as if it were sampled without noise."""
    return 1e6 * law(planted())[1]


@pytest.fixture(scope="module")
def best(weights) -> np.ndarray:
    """Couplings (P, q, q) at the maximum of the exact log-likelihood less the ridge."""
    share = weights / weights.sum()
    pairs = frequencies(STATES, COLOURS, share)
    size = LENGTH * COLOURS

    def objective(vector):
        couplings = vector[size:].reshape(pairs[1].shape)
        fields = vector[:size].reshape(LENGTH, COLOURS)
        scores = PairModel(fields, of_pairs(couplings, LENGTH), {}).scores(STATES)
        log_z = np.logaddexp.reduce(scores)
        of_model = frequencies(STATES, COLOURS, np.exp(scores - log_z))
        gradients = [of_model[0] - pairs[0], of_model[1] - pairs[1] + RIDGE * couplings]
        loss = log_z - share @ scores + RIDGE / 2 * (couplings**2).sum()
        return loss, np.concatenate([each.ravel() for each in gradients])

    zeros = np.zeros(size + pairs[1].size)
    found = minimize(objective, zeros, jac=True, method="L-BFGS-B", options={"gtol": 1e-9})
    return found.x[size:].reshape(pairs[1].shape)


@pytest.mark.long
def test_steps_with_exact_frequencies_climb_to_the_maximum(weights, best):
    sites, pairs = frequencies(STATES, COLOURS, weights)
    outer = sites[FIRST][:, :, None] * sites[SECOND][:, None, :]
    fields, couplings = np.log(sites), np.zeros(pairs.shape, np.float32)
    for turn in range(300):
        model = PairModel(fields, of_pairs(couplings, LENGTH), {})
        found, sampled = frequencies(STATES, COLOURS, law(model)[1])
        given = (pairs - outer).astype(np.float32), sampled, sites, found
        before = fields.copy(), couplings.copy()
        sums = step(couplings, fields, *given, 0.3, RIDGE, 0.05)
        if turn == 1:  # a step in J keeps what sites get on average
            gained = of_pairs(couplings - before[1], LENGTH)
            own = 0.3 * (sites - found) / (sites * (1 - sites) + 0.05)
            expected = before[0] + own - np.einsum("ijab,jb->ia", gained, sites)
            np.testing.assert_allclose(fields, expected, atol=1e-6)
    np.testing.assert_allclose(found, sites, atol=1e-4)
    np.testing.assert_allclose(couplings, best, atol=1e-3)
    x, y = given[0], sampled - found[FIRST][:, :, None] * found[SECOND][:, None, :]
    expected = [part.sum(dtype=np.float64) for part in (x, y, x**2, y**2, x * y)]
    np.testing.assert_allclose(sums, expected, atol=1e-5)


@pytest.mark.long
def test_a_family_is_learned_to_the_couplings_of_its_largest_likelihood(weights, best, tmp_path):
    """No target can be met, so that the run ends where the correlation no longer rises."""
    learned = learn(uncoupled(), STATES, weights, tmp_path, target=1.1, **SMALL)
    assert np.sqrt(((learned.couplings[FIRST, SECOND] - best) ** 2).mean()) < 0.05
    about = learned.about["boltzmann"]
    assert not about["reached"]
    assert "they no longer rise with the ridge 0.02: lower it" in about["reason"]
    assert "a slope from 0.95 to 1.05 is asked for" in about["reason"]
    assert "options of manybody.training.boltzmann.learn" in about["reason"]
    assert about["updates"] >= 2 * boltzmann.STALLED
    assert learned.about["alphabet"] == "-AC"


@pytest.mark.long
def test_new_sequences_of_a_model_that_has_reached_its_target_are_like_the_data(tmp_path):
    model = planted()
    tokens = sample(model, 3000, 50, 1, label="")
    learned = learn(uncoupled(), tokens, None, tmp_path, target=0.98, **SMALL | {"ridge": 1e-3})
    about = learned.about["boltzmann"]
    assert about["reached"], about["reason"]
    connected = []
    new = sample(learned, 20_000, 50, 2, label="")
    for these, shares in ((tokens, None), (new, None), (STATES, law(model)[1])):
        sites, pairs = frequencies(these, COLOURS, shares)
        connected.append(pairs - sites[FIRST][:, :, None] * sites[SECOND][:, None, :])
    x, y, true = (each.ravel() for each in connected)
    assert about["noise"] == pytest.approx((x - true).var() / x.var(), rel=0.5)
    assert np.corrcoef(x, y)[0, 1] == pytest.approx(about["pearson"], abs=0.02)
    assert np.corrcoef(x, y)[0, 1] > 0.97
    assert np.polyfit(x, y, 1)[0] == pytest.approx(1, abs=0.07)
    assert PairModel.load(tmp_path / boltzmann.FILE).about == learned.about


@pytest.mark.long
def test_factored_couplings_are_learned_to_a_maximum_of_the_exact_likelihood(weights, tmp_path):
    form, share = Heads(Family(STATES, COLOURS, weights), 4), torch.tensor(weights / weights.sum())
    ones = torch.eye(COLOURS, dtype=torch.float64)[STATES]
    apart = torch.triu(torch.ones(LENGTH, LENGTH), 1)[:, :, None, None]

    def objective(vector):
        vector = torch.tensor(vector, requires_grad=True)
        fields = vector[form.couplings :].reshape(LENGTH, COLOURS)
        attention, values = form.parts(vector)
        both = torch.einsum("hij,hab->ijab", attention, values)
        both = apart * (both + both.permute(1, 0, 3, 2)) / 2
        scores = torch.einsum("nia,ia->n", ones, fields)
        scores = scores + torch.einsum("nia,njb,ijab->n", ones, ones, both)
        loss = scores.logsumexp(0) - share @ scores + RIDGE / 2 * (both**2).sum()
        loss.backward()
        return loss.item(), vector.grad.numpy()

    def vector(model):
        couplings = form.start(model, np.float64)[: form.couplings]
        return np.concatenate([couplings, model.fields.ravel()])

    learned = learn(planted(), STATES, weights, tmp_path, **SMALL | dict(heads=4, target=1.1))
    found = minimize(objective, vector(learned), jac=True, method="L-BFGS-B")
    gained = objective(vector(planted()))[0] - found.fun
    assert gained > 0.5
    assert objective(vector(learned))[0] < found.fun + 0.01 * gained


@pytest.mark.parametrize("done", [0, 1, 2])
def test_a_step_in_factors_is_the_best_along_the_gradient(weights, tmp_path, done):
    """Of each row of A at even updates, of each column of V at odd ones."""
    settings = SMALL | dict(heads=4, seed=0, target=0.95, slope=[0.95, 1.05], chains=32)
    learning = boltzmann._Learning(planted(), STATES, weights, tmp_path, settings, 1)
    learning.done, moved = done, np.random.default_rng(0).normal(size=learning.couplings.shape)
    parts = learning.form.parts(learning.factors)
    for part in parts:
        part[0] *= 0.1  # a head that is small and counts as well
    before = [part.reshape(4, -1).astype(float) for part in parts]
    learning._step_factors(moved)
    changes = [part.reshape(4, -1) - old for part, old in zip(parts, before, strict=True)]
    assert not changes[1 - done % 2].any()
    varied = learning.sites * (1 - learning.sites)
    curved = varied[:, None, :, None] * varied[None, :, None, :]
    curved = (curved + boltzmann.DAMPING * learning.variance).reshape(LENGTH**2, -1)
    wanted, other = of_pairs(moved, LENGTH).reshape(curved.shape), before[1 - done % 2]
    if done % 2:
        curved, wanted = curved.T, wanted.T
    steps = np.linspace(-3, 3, 3)
    for change, w, full in zip(changes[done % 2].T, curved, wanted, strict=True):
        along = np.linalg.lstsq(other.T, w * full, rcond=None)[0]
        missed = [(w * (full - step * along @ other) ** 2).sum() for step in steps]
        square, linear, _ = np.polyfit(steps, missed, 2)
        least = -linear / (2 * square) if full.any() else 0.0  # a site has none with itself
        np.testing.assert_allclose(change, least * along, rtol=1e-3, atol=1e-4)


def test_few_chains_show_the_correlation_that_as_many_as_in_tests_would(weights, tmp_path):
    """Their noise, of the variance that colours have on independent sites, is taken off."""
    settings = SMALL | dict(heads=None, seed=0, chains=64, tested=10_000)
    learning = boltzmann._Learning(planted(), STATES, weights, tmp_path, settings, 1)
    chains = learning.chains._replace(tokens=sample(planted(), 200, 60, 3))
    found = learning._step(chains, 0.0)
    one, two = frequencies(chains.tokens, COLOURS)
    x = learning.observed.ravel()
    y = (two - one[FIRST][:, :, None] * one[SECOND][:, None, :]).ravel()
    noise = learning.variance * (1 / 200 - 1 / 10_000)
    pearson = np.cov(x, y, ddof=0)[0, 1] / x.std() / np.sqrt(y.var() - noise)
    assert found == pytest.approx((pearson, np.polyfit(x, y, 1)[0]), rel=1e-5)
    assert pearson > 1.01 * np.corrcoef(x, y)[0, 1]


def test_all_chains_are_tested_after_as_many_sweeps_as_make_both_starts_as_likely(
    weights, tmp_path, monkeypatch
):
    """Means of log p 0.3 standard deviations apart, after twice as many sweeps 0.1."""
    settings = SMALL | dict(heads=None, seed=0, chains=32, target=-1.0, slope=[-9.0, 9.0])
    learning = boltzmann._Learning(planted(), STATES, weights, tmp_path, settings, 1)
    means, either = iter([0.3, 0.0, 0.0, 0.1]), np.tile([-1.0, 1.0], boltzmann.SCORED // 2)
    monkeypatch.setattr(PairModel, "scores", lambda *_: next(means) + either)
    found = learning._tested()
    assert (found["settled"], found["apart"]) == pytest.approx((2 * boltzmann.FIRST, 0.1))


@pytest.mark.long
def test_a_model_that_has_learned_its_few_sequences_by_heart_says_so(tmp_path):
    """They are of independent sites: their correlations are noise."""
    tokens = np.random.default_rng(0).integers(0, 4, (40, 30))
    start = PairModel(np.zeros((30, 4)), np.zeros((30, 30, 4, 4)), {})
    about = learn(start, tokens, None, tmp_path, **SMALL | {"ridge": 1e-3}).about["boltzmann"]
    assert not about["reached"]
    assert about["updates"] < 1000
    assert about["noise"] == pytest.approx(1, abs=0.1)
    assert about["nearest"] < 0.2 < 0.5 < about["natural"]
    assert "learns them by heart, as their correlations are noise to" in about["reason"]


@pytest.mark.long
def test_a_killed_run_goes_on_to_the_same_model(weights, tmp_path, monkeypatch):
    monkeypatch.setattr(boltzmann, "SAVED", 4)
    start = uncoupled()
    run = dict(SMALL, updates=30, target=1.1)
    whole = learn(start, STATES, weights, tmp_path / "whole", **run)
    update, updates, last = boltzmann._Learning._update, [], 18

    def counted(learning):
        if learning.done == last:
            raise KeyboardInterrupt
        updates.append(learning.done)
        return update(learning)

    monkeypatch.setattr(boltzmann._Learning, "_update", counted)
    with pytest.raises(KeyboardInterrupt):
        learn(start, STATES, weights, tmp_path / "killed", **run)
    shutil.copytree(tmp_path / "killed", tmp_path / "other")
    with pytest.raises(KeyboardInterrupt):
        learn(start, STATES, weights[::-1], tmp_path / "other", **run)
    last = 30
    found = learn(start, STATES, weights, tmp_path / "killed", **run, threads=2)
    assert updates == [*range(18), *range(18), *range(16, 30)]
    np.testing.assert_array_equal(found.couplings, whole.couplings)
    np.testing.assert_array_equal(found.fields, whole.fields)
    assert found.about == whole.about
    assert not (tmp_path / "killed" / "resume").exists()
    assert "all 30 updates are done" in found.about["boltzmann"]["reason"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (dict(weights=np.ones(5)), "expected a weight for each"),
        (dict(weights=np.full(len(STATES), 1 / len(STATES))), "weights: 1 effective sequences"),
        (dict(chains=100), "chains: 100, expected a multiple of 32"),
    ],
)
def test_what_does_not_fit_is_refused(changed, said, tmp_path):
    given = dict(model=planted(), tokens=STATES, weights=None, out=tmp_path / "out") | changed
    with pytest.raises(Refusal, match=said):
        learn(**given)
    assert not (tmp_path / "out").exists()
