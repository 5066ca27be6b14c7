"""Potts samples against enumeration, their temperature against closed forms."""

import hashlib
from itertools import combinations

import numpy as np
import pytest
import torch
from enumerated import all_states, boltzmann, distance, floor
from numba import njit
from safetensors.numpy import save_file
from scipy.optimize import brentq
from spin_sources import POTTS, check_splits, own_files, pair_law, run, tensors

from benchmarks.potts_sampling import peer_parameters
from manybody.data import pair_gibbs, potts as source_of
from manybody.data.hamiltonian import Hamiltonian, variances
from manybody.data.many_body import SPLITS, self_test
from manybody.data.pair_gibbs_loops import REFRESH, refresh, scale
from manybody.data.potts import (
    autocorrelation_time,
    contact_map,
    draw,
    find_beta,
    hamming,
    interactions,
    ordered,
    stored_colours,
)
from manybody.io.atomic import ArtifactError
from manybody.io.manifest import Manifest
from manybody.io.seeds import streams_of
from manybody.io.sequences import Sequences
from manybody.io.tensor_files import read_about
from manybody.models.stored import load_model
from manybody.training.lbfgs import adopt

CHAINS = 20_000


def test_energies_of_the_entry_are_those_of_eq_1(tmp_path):
    couplings, colours = tensors(20, 20)
    files = own_files(tmp_path, couplings=couplings, colours=colours)
    model = interactions({**POTTS, "length": 20, "vocabulary": 20, **files})(0.1)

    def energy(state):
        return -(couplings * colours[np.ix_(state, state)]).sum() / 2

    states = np.random.default_rng(1).integers(0, 20, (5, 20))
    np.testing.assert_allclose(model.energies(states), [energy(s) for s in states], rtol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("vocabulary", [2, 3])
def test_total_variation_after_some_sweeps_is_that_of_exact_samples(wide, vocabulary, monkeypatch):
    if wide:
        monkeypatch.setattr(pair_gibbs, "WIDEST", 0.0)
    model = pair_law(5, vocabulary)
    assert pair_gibbs.prepare(model)[0] is (pair_gibbs.move_wide if wide else pair_gibbs.move)
    law = boltzmann(model, all_states(vocabulary, 5))
    run = pair_gibbs.sample(model, CHAINS, 25, np.random.SeedSequence(2))
    assert distance(run.tokens, law, vocabulary) < 1.3 * floor(law, CHAINS)
    early = pair_gibbs.sample(model, CHAINS, 0, np.random.SeedSequence(2))
    assert distance(early.tokens, law, vocabulary) > 5 * floor(law, CHAINS)


@njit
def wander(chain, moves, offsets, others, pairs, factors, reciprocals, weights, totals):
    """The moves (site, colour) of a chain, as `move` carries its weights through them."""
    for k in range(len(moves)):
        site, new = moves[k]
        old = chain[site]
        chain[site] = new
        for entry in range(offsets[site], offsets[site + 1]):
            j, pair = others[entry], pairs[entry]
            totals[j] = scale(weights[j], factors[pair, new], reciprocals[pair, old])


@pytest.mark.parametrize("case", ["potts", "dense"])
def test_incremental_weights_are_those_of_the_colours(case):
    model = pair_law(12, 11, 0.15)
    if case == "potts":
        model = Hamiltonian(contact_map(20), -stored_colours() / 2, 1.707)
    loops, (offsets, others, pairs, _), (factors, reciprocals, alone), _ = pair_gibbs.prepare(model)
    assert loops is pair_gibbs.move
    rng = np.random.default_rng(0)
    chain = rng.integers(0, model.vocabulary, model.length).astype(np.uint32)
    weights, totals = np.empty_like(alone), np.empty(model.length, np.float32)
    tables = (offsets, others, pairs, factors, alone, np.ones(alone.shape[1], np.float32))
    refresh(chain, *tables, weights, totals)
    moves = np.stack(
        [rng.integers(0, n, REFRESH * model.length) for n in (model.length, model.vocabulary)],
        axis=1,
    )
    wander(chain, moves, offsets, others, pairs, factors, reciprocals, weights, totals)
    expected = np.exp(model.log_conditionals(chain[None].astype(np.int64))[0])
    assert not weights[:, model.vocabulary :].any()
    np.testing.assert_allclose(totals, weights.sum(axis=1), rtol=1e-6)
    found = weights[:, : model.vocabulary] / totals[:, None]
    np.testing.assert_allclose(found, expected, rtol=5e-5, atol=1e-30)
    again, sums = np.empty_like(alone), np.empty_like(totals)
    refresh(chain, *tables, again, sums)
    np.testing.assert_allclose(weights, again, rtol=5e-5)


def test_energies_of_a_run_are_those_of_its_tokens(monkeypatch):
    model = pair_law(8, 5, 0.2)
    for widest in (pair_gibbs.WIDEST, 0.0):
        monkeypatch.setattr(pair_gibbs, "WIDEST", widest)
        run = pair_gibbs.sample(model, 70, 3, np.random.SeedSequence(0), energies=True)
        assert run.energies.shape == (70, 3)
        np.testing.assert_allclose(run.energies[:, -1], model.energies(run.tokens), rtol=1e-10)
    assert pair_gibbs.sample(model, 7, 3, np.random.SeedSequence(0)).energies.shape == (7, 0)


def test_large_logits_are_sampled_without_overflow():
    """Two sites that want to be equal, by e^200."""
    model = Hamiltonian(np.array([[0.0, 1.0], [1.0, 0.0]]), -np.eye(4) / 2, 200.0)
    assert pair_gibbs.prepare(model)[0] is pair_gibbs.move_wide
    tokens = pair_gibbs.sample(model, 400, 2, np.random.SeedSequence(0)).tokens
    assert (tokens[:, 0] == tokens[:, 1]).all()
    assert len(np.unique(tokens)) == 4


def test_peer_has_the_same_conditionals():
    model = pair_law(7, 5)
    parameters = peer_parameters(model)
    tokens = np.random.default_rng(0).integers(0, 5, (9, 7))
    onehot = np.eye(5)[tokens].reshape(9, -1)
    bias, coupling = (parameters[name].double().numpy() for name in ("bias", "coupling_matrix"))
    logits = model.beta * (bias + (onehot @ coupling.reshape(35, 35).T).reshape(9, 7, 5))
    logits -= logits.max(axis=2, keepdims=True)
    found = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
    np.testing.assert_allclose(found, model.log_conditionals(tokens), atol=1e-6)


def test_hamming_is_the_mean_over_all_pairs():
    tokens = np.random.default_rng(0).integers(0, 4, (30, 7)) ** 2 % 5
    distances = [(a != b).mean() for a, b in combinations(tokens, 2)]
    assert hamming(tokens, 5)[0] == pytest.approx(np.mean(distances), abs=1e-14)


def test_hamming_and_its_error_are_those_of_many_small_samples():
    law = np.array([0.7, 0.2, 0.1])
    rng = np.random.default_rng(0)
    draws = [hamming(rng.choice(3, size=(40, 5), p=law), 3) for _ in range(2000)]
    values, errors = np.array(draws).T
    spread = values.std(ddof=1)
    assert abs(values.mean() - (1 - (law**2).sum())) < 4 * spread / np.sqrt(len(values))
    assert np.sqrt((errors**2).mean()) == pytest.approx(spread, rel=0.06)


def test_autocorrelation_time_of_a_first_order_process():
    rng, ratio = np.random.default_rng(0), 0.8
    values = np.empty((10_000, 120))
    values[:, 0] = rng.normal(size=10_000)
    for t in range(1, 120):
        values[:, t] = ratio * values[:, t - 1] + np.sqrt(1 - ratio**2) * rng.normal(size=10_000)
    expected = (1 + ratio) / (1 - ratio) / 2
    assert autocorrelation_time(values + 3.0) == pytest.approx(expected, rel=0.03)
    assert autocorrelation_time(np.full((5, 9), 2.5)) == np.inf


def test_contact_map_is_that_of_the_specification():
    found = contact_map(20)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-15)
    assert not np.diag(found).any()
    pairs = found[np.triu_indices(20, 1)]
    assert (pairs > 0).sum() == 39
    assert pairs[pairs > 0].min() == pytest.approx(0.090, abs=5e-4)
    assert pairs.max() == pytest.approx(0.608, abs=5e-4)
    for i, j in ((2, 18), (5, 13), (1, 20), (7, 16), (10, 20), (14, 16), (5, 9), (6, 9)):
        assert found[i - 1, j - 1] > 0
    assert found[9, 12] == found[7, 11] == 0.0
    for length in (4, 9, 33, 60):
        other = contact_map(length)
        np.testing.assert_allclose(other.sum(axis=1), 1.0, atol=1e-9)
        assert (np.diag(other, 1) > 0).all()


def test_stored_colours_are_the_default_draw():
    stored = stored_colours()
    assert hashlib.sha256(stored.astype("<f8").tobytes()).hexdigest() == (
        "e5473517583c91bffba9771c8083392db8ef34f64a3ed61932b0306bd3652138"
    )
    np.testing.assert_array_equal(stored, stored.T)
    assert np.sort(np.diag(stored))[-2:].tolist() == pytest.approx([2.04, 3.96], abs=0.005)
    assert stored.max() == np.diag(stored).max()


def test_ordered_starts_share_the_best_colours():
    model = interactions({**POTTS, "colours": "standard"})(1.0)
    assert ordered(model, 7)[:, 0].tolist() == [0, 1, 2, 0, 1, 2, 0]
    own = Hamiltonian(contact_map(4), -np.diag([1.0, 3.0, 2.0]), 1.0)
    assert ordered(own, 2).tolist() == [[1] * 4] * 2


def test_search_finds_the_beta_of_two_sites(few):
    """The Hamming distance of two coupled sites, by enumeration."""
    _, colours = tensors(2, 4, seed=3)
    pair = np.array([[0.0, 1.0], [1.0, 0.0]])

    def exact(beta):
        weights = np.exp(beta * colours)
        law = weights / weights.sum()
        return 1 - ((law.sum(axis=1) ** 2).sum() + (law.sum(axis=0) ** 2).sum()) / 2

    target = 0.4
    expected = brentq(lambda beta: exact(beta) - target, 1e-3, 5.0)
    streams = streams_of(0, source_of.STREAMS)
    found = find_beta(lambda b: Hamiltonian(pair, -colours / 2, b), target, 20, streams)
    assert exact(found) == pytest.approx(target, abs=4 * 0.3 / np.sqrt(2 * 1500))
    slope = (exact(expected + 0.01) - exact(expected - 0.01)) / 0.02
    assert found == pytest.approx(expected, abs=0.025 / abs(slope))


def test_a_source_from_its_entry_to_the_true_model(tmp_path, few):
    source = {**POTTS, "temperature": {"hamming": 0.4}}
    made = run(source, tmp_path / "one")
    model, about = Hamiltonian.load(made["hamiltonian"]), read_about(made["hamiltonian"])
    assert about["beta"] == model.beta
    found = about["equilibrium"]
    assert found["chains"] == 4000
    assert abs(found["hot"] - found["cold"]) < 4 * (found["hot_se"] + found["cold_se"])
    states = all_states(3, 6)
    law = boltzmann(model, states)
    marginals = np.array([[law[states[:, i] == a].sum() for a in range(3)] for i in range(6)])
    exact = 1 - (marginals**2).sum() / 6
    assert exact == pytest.approx(0.4, abs=0.02)
    for start in ("hot", "cold"):
        assert abs(found[start] - exact) < 4 * found[f"{start}_se"]
    check_splits(made, source, model)
    again = run(source, tmp_path / "two", threads=3)
    for name, path in made.items():
        assert path.read_bytes() == again[name].read_bytes(), name

    description = {"architecture": "energy", "order": 2, "parameters": "source"}
    paths = {split: made[split] for split in ("train", "validation")}
    manifest = adopt(description, made["hamiltonian"], paths, tmp_path / "run", 0, {"source": "s"})
    loss = Manifest.read(manifest, "model").about["final"]["validation_loss"]
    truth = self_test(model, Sequences.open(made["validation"]).tokens)
    assert loss == pytest.approx(truth["cross_entropy"], abs=1e-5)
    network = load_model(manifest)
    tokens = Sequences.open(made["test"]).tokens[:20].astype(np.int64)
    given = torch.from_numpy(tokens)
    for logits in (network.all_masked_features(given), network(given)):
        logits = logits.detach().double().log_softmax(-1).numpy()
        np.testing.assert_allclose(logits, model.log_conditionals(tokens), atol=1e-5)


def test_splits_are_chains_of_their_own(tmp_path, few):
    """Chain n of one split has nothing to do with chain n of another."""
    made = run({**POTTS, "temperature": {"beta": 0.1}}, tmp_path)
    tokens = [Sequences.open(made[split]).tokens[:100] for split in SPLITS]
    for one, other in combinations(tokens, 2):
        # 600 sites, hot: five standard errors
        assert (one == other).mean() == pytest.approx(1 / 3, abs=0.12)


def test_tensors_of_another_hamiltonian_are_refused_and_variances_are_those_of_all_states(tmp_path):
    model = pair_law(4, 3)
    path = tmp_path / "h.safetensors"
    model.save(path, {})
    np.testing.assert_array_equal(Hamiltonian.load(path).colours, model.colours)
    save_file(dict(couplings=model.couplings, colours=model.colours, beta=np.ones(1)), path)
    with pytest.raises(ArtifactError, match="not the ones that were written"):
        Hamiltonian.load(path)

    values = model.energies(all_states(3, 4)).reshape((3,) * 4)
    centred = values - values.mean()
    single = [centred.mean(axis=tuple(j for j in range(4) if j != i)) for i in range(4)]
    first = sum((part**2).mean() for part in single)
    np.testing.assert_allclose(
        variances(model.couplings, model.colours),
        [first, (centred**2).mean() - first],
        rtol=1e-10,
    )


@pytest.mark.slow
def test_default_draw_is_at_the_beta_of_the_specification():
    source = dict(
        kind="potts", length=20, vocabulary=20, couplings="contact-map", colours="stored",
        temperature={"hamming": 0.3}, sweeps=200, seed=0,
        sequences=dict(train=2, validation=2, test=2),
    )  # fmt: skip
    model, about = draw(source, threads=2)
    found = about["equilibrium"]
    assert model.beta == pytest.approx(1.707, abs=0.005)
    assert found["chains"] == 50_000
    assert abs(found["hot"] - found["cold"]) < 0.005
    for start in ("hot", "cold"):
        assert found[start] == pytest.approx(0.3, abs=0.005)
    assert found["tau"] == pytest.approx(4.9, abs=0.8)
