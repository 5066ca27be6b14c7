"""Energies without the factor k, and what draws from them, against all states of small models."""

import itertools

import numpy as np
import pytest
import torch
from enumerated import distance, floor
from test_metropolis import ENERGIES, MODELS, SMALL, build, numbers, states

from benchmarks import naive
from manybody.io.manifest import Manifest
from manybody.io.refusal import Refusal
from manybody.models import build as build_model, samplers
from manybody.models.base import Model
from manybody.sampling import redraw as redraws
from manybody.sampling.backends import open_chains
from manybody.sampling.draws import unigram
from manybody.sampling.factored.by_order import OrderChains
from manybody.sampling.factored.copies import read
from manybody.sampling.metropolis import advance, sample
from manybody.sampling.redraw import redraw
from manybody.theory.information import information_by_order

TOLERANCE = 1e-12
CLOSED = {
    "4 of 4": dict(vocabulary=4, length=4, layers=2, rank=3),
    "5 of 3, full": dict(vocabulary=3, length=5, layers=2, rank=None),
    "one layer": dict(vocabulary=4, length=4, layers=1, rank=3),
}


class Conditionals(Model):
    """The exact conditionals of exp(-H), each shifted by a function of its context."""

    def __init__(self, energies, vocabulary, length):
        super().__init__("encoder", vocabulary, length)
        self.energies = torch.nn.Parameter(torch.from_numpy(energies))

    feature_size, work_size = property(lambda self: self.vocabulary), 10

    def features(self, tokens, mask=None):
        powers = self.vocabulary ** torch.arange(self.length).flip(0)
        number = (tokens * powers).sum(1)
        rows = []
        for i in range(self.length):
            context = number - tokens[:, i] * powers[i]
            values = torch.arange(self.vocabulary) * powers[i]
            rows.append(
                torch.sin(context.double())[:, None] - self.energies[context[:, None] + values]
            )
        return torch.stack(rows, 1)

    def head(self, features):
        return features

    def head_rows(self, features, tokens):
        return features.gather(-1, tokens[..., None])[..., 0]


def hamiltonian(vocabulary, length, order, seed):
    """H (|V|^L,) with random tables over all subsets of up to `order` positions."""
    generator = np.random.default_rng(seed)
    energies = np.zeros((vocabulary,) * length)
    for size in range(1, order + 1):
        for chosen in itertools.combinations(range(length), size):
            shape = [vocabulary if axis in chosen else 1 for axis in range(length)]
            energies = energies + generator.normal(size=shape) * 0.7
    return energies.reshape(-1)


def distribution_of(energies):
    weights = np.exp(-(energies - energies.min()))
    return weights / weights.sum()


def apart(one, other):
    """Total variation of the laws of two energies."""
    return np.abs(distribution_of(np.asarray(one)) - distribution_of(np.asarray(other))).sum() / 2


def reference_law(vocabulary, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(vocabulary, 3.0))


@pytest.mark.parametrize(
    ("length", "vocabulary", "order", "seed"),
    [(5, 3, 2, 0), (5, 3, 2, 1), (5, 3, 3, 0), (4, 4, 3, 2)],
)
def test_the_reference_law_finds_the_law_of_compatible_conditionals(
    length, vocabulary, order, seed
):
    """And the raw and norm scores do not."""
    energies = hamiltonian(vocabulary, length, order, seed)
    model = Conditionals(energies, vocabulary, length)
    every, law = states(model), reference_law(vocabulary, seed)
    assert apart(naive.reference_energies(model, law), energies) < TOLERANCE
    for kind in ("raw", "norm"):
        assert apart(naive.energy(model, every, kind), energies) > 0.1


def parameters(name):
    model = build(dict(architecture="factored") | CLOSED[name])
    return model, read(model, "none")


@pytest.mark.parametrize("name", CLOSED)
def test_the_closed_form_is_the_enumeration(name):
    model, weights = parameters(name)
    every, law = states(model), reference_law(model.vocabulary)
    raw = OrderChains(weights, every, "raw")
    torch.testing.assert_close(raw.energy(), naive.energy(model, every), rtol=0, atol=TOLERANCE)
    expected = naive.reference_energies(model, law)
    found = OrderChains(weights, every, "reference", law)
    np.testing.assert_allclose(found.energy(), expected, rtol=0, atol=TOLERANCE)
    assert apart(raw.energy(), expected) > 0.1
    parts = found.orders()
    assert parts[:, 1].abs().max() > 0.1
    # F1, F2 and F3 are orthogonal under mu.
    chance = np.prod(law[every.numpy()], axis=1)
    products = (parts.numpy() * chance[:, None]).T @ parts.numpy()
    assert np.abs(products - np.diag(np.diag(products))).max() < TOLERANCE


@pytest.mark.parametrize("energy", ["raw", "reference"])
@pytest.mark.parametrize("name", CLOSED)
def test_all_values_of_a_position_are_those_of_the_enumeration(name, energy):
    """Also after moves, which the caches follow."""
    model, weights = parameters(name)
    every, law = states(model), reference_law(model.vocabulary)
    chains = OrderChains(weights, every, energy, law)
    vocabulary, length = model.vocabulary, model.length
    index, generator = torch.arange(len(every)), torch.Generator().manual_seed(2)
    energies = chains.energy()
    powers = vocabulary ** torch.arange(length).flip(0)
    for _ in range(3):
        for position in range(length):
            at = torch.full_like(index, position)
            number = (chains.tokens * powers).sum(1) - chains.tokens[:, position] * powers[position]
            where = number[:, None] + torch.arange(vocabulary) * powers[position]
            expected = -energies[where].log_softmax(1)
            difference = chains.conditionals(index, at).log_softmax(1) - (
                -energies[where]
            ).log_softmax(1)
            assert difference.abs().max() < TOLERANCE * 10
            logits = model.masked_logits(chains.tokens, index, at)
            difference = chains.logits(index, at).log_softmax(1) - logits.log_softmax(1)
            assert difference.abs().max() < TOLERANCE * 10
            proposals = torch.randint(vocabulary, (len(every),), generator=generator)
            ratio, handle = chains.log_ratio(index, at, proposals)
            current = chains.tokens[:, position]
            expected = energies[where].gather(1, current[:, None])
            expected = expected - energies[where].gather(1, proposals[:, None])
            expected += logits.gather(1, current[:, None]) - logits.gather(1, proposals[:, None])
            assert (ratio - expected[:, 0]).abs().max() < TOLERANCE * 10
            chains.accept(handle, torch.rand(len(every), generator=generator) < 0.6)


def test_unigrams_give_every_token_a_share():
    mu = unigram(np.array([[0, 0, 1]]), 4)
    np.testing.assert_allclose(mu, np.array([2.5, 1.5, 0.5, 0.5]) / 5)


DRAWN = [
    *((name, "mh", *pair) for name in ("n=2", "bert") for pair in ENERGIES),
    # compiles the loops of three layers and of deep models
    *(pytest.param("n=3", "mh", *pair, marks=pytest.mark.long) for pair in ENERGIES),
    ("n=2", "heat-bath", "raw", "none"),
    ("n=2", "heat-bath", "reference", "none"),
    ("n=2", "mh", "reference", "none"),
]


@pytest.mark.parametrize(("name", "sampler", "energy", "gauge"), DRAWN)
def test_chains_draw_from_the_distribution_of_the_energy(name, sampler, energy, gauge):
    """Within what as many independent draws show, and far from the same at another temperature."""
    # A sweep forgets at least 0.3 (n = 2, 3) or 0.9 (bert) of what is left of the start.
    scale, sweeps = {"n=2": (0.5, 30), "n=3": (0.3, 30), "bert": (0.6, 8)}[name]
    model, count = build(SMALL[name], scale), 4000
    every, law = states(model), reference_law(3)
    if energy == "reference":
        energies = naive.reference_energies(model, law)
    else:
        energies = naive.energy(model, every, energy, gauge).numpy()
    starts, moves = torch.zeros(count, 4, dtype=torch.int64), numbers(count, 4, sweeps)
    step = redraw if sampler == "heat-bath" else advance
    for beta in (1.0, 0.6):
        chains = open_chains(model, starts, energy, gauge, sampler=sampler, mu=law)
        betas = None if beta == 1.0 else np.full(count, beta)
        record = step(chains, *moves, starts.numpy(), {sweeps}, None, betas)
        final, weights = record.tokens[sweeps], distribution_of(beta * energies)
        other = distribution_of(0.6 / beta * energies)
        assert distance(final, weights, 3) < 1.3 * floor(weights, count)
        assert distance(final, other, 3) > 1.3 * floor(weights, count)
        np.testing.assert_allclose(record.energies[-1], chains.energy(), rtol=0, atol=1e-9)


def stationary_of(model, every):
    """The distribution that sweeps from left to right come to, by a matrix of all states."""
    index, powers = torch.arange(81), 3 ** torch.arange(4).flip(0)
    sweep = torch.eye(81, dtype=torch.float64)
    for position in range(4):
        law = model.masked_logits(every, index, torch.full_like(index, position)).softmax(1)
        number = index - every[:, position] * powers[position]
        step = torch.zeros(81, 81, dtype=torch.float64)
        for value in range(3):
            step[index, number + value * powers[position]] = law[:, value]
        sweep = sweep @ step
    return torch.matrix_power(sweep, 64)[0].numpy()


@pytest.mark.parametrize("name", ["n=2", "bert"])
def test_gibbs_draws_the_masked_conditionals(name):
    """From compatible conditionals come draws of their distribution; here, of a sweep's own."""
    model = build(SMALL[name], 0.6)
    every, count = states(model), 4000
    weights = stationary_of(model, every)
    starts = torch.zeros(count, 4, dtype=torch.int64)
    chains = open_chains(model, starts, "raw", "none", sampler="gibbs")
    record = redraw(chains, *numbers(count, 4, 20, "left-to-right"), starts.numpy(), {20})
    assert distance(record.tokens[20], weights, 3) < 1.3 * floor(weights, count)
    final = torch.from_numpy(record.tokens[20])
    # A sweep comes to each position once: what differs from the start was accepted.
    assert np.array_equal(record.accepted[0], record.changed[0])
    assert (record.accepted + record.same == 4).all()
    np.testing.assert_allclose(record.energies[-1], naive.energy(model, final), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ["n=2", "bert"])
def test_the_distribution_of_gibbs_is_enumerated_and_drawn(name):
    model = build(SMALL[name], 0.6)
    every, count = states(model), 4000
    weights = stationary_of(model, every)
    chains = open_chains(model, every, "norm", "none", sampler="enumerated")
    np.testing.assert_allclose(chains.law.flatten(), weights, rtol=0, atol=1e-12)
    np.testing.assert_allclose(chains.energy(), -np.log(weights), rtol=0, atol=1e-9)
    starts = torch.zeros(count, 4, dtype=torch.int64)
    chains = open_chains(model, starts, "norm", "none", sampler="enumerated")
    record = redraw(chains, *numbers(count, 4, 1, "left-to-right"), starts.numpy(), {1})
    assert distance(record.tokens[1], weights, 3) < 1.3 * floor(weights, count)
    uniform = np.full(81, 1 / 81)
    assert distance(record.tokens[1], uniform, 3) > 1.3 * floor(uniform, count)


def test_more_states_than_can_be_enumerated_are_refused():
    tokens = torch.zeros(2, 6, dtype=torch.int64)
    with pytest.raises(Refusal, match=r"7\^6 states; expected at most 65536"):
        open_chains(build(MODELS["n=2"]), tokens, "norm", sampler="enumerated")


def test_chains_that_do_not_settle_are_refused(monkeypatch):
    monkeypatch.setattr(redraws, "SWEEPS", 1)
    with pytest.raises(Refusal, match="do not settle in 1 sweeps; take gibbs"):
        redraws.stationary(build(SMALL["n=2"], 0.6))


def test_a_clone_of_all_states_tells_its_information_by_order(tmp_path):
    model, starts = build(SMALL["n=2"], 0.6).requires_grad_(True), np.zeros((5, 4), int)
    with torch.enable_grad():
        path = sample(
            model, starts, tmp_path, energy="norm", gauge="none", sweeps=[1],
            order="left-to-right", seed=0, about={}, sampler="enumerated",
        )  # fmt: skip
    law = open_chains(model, torch.from_numpy(starts), "norm", sampler="enumerated").law
    assert not law.requires_grad
    expected = {str(k): c for k, c in information_by_order(law.numpy()).items()}
    assert Manifest.read(path, "clones").about["information"] == pytest.approx(expected, abs=1e-12)


def test_ancestral_sampling_draws_from_the_next_token_law():
    sizes = dict(layers=1, heads=1, width=8, mlp=8)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = build_model(dict(architecture="gpt", vocabulary=3, length=4) | sizes).double()
        for weight in model.parameters():
            weight += 0.5 * torch.randn_like(weight)
    every, count = states(model), 4000
    log_law = model(every)[:, :-1].log_softmax(2).gather(2, every[:, 1:, None]).sum((1, 2))
    law = torch.where(every[:, 0] == 2, log_law.exp(), 0.0).numpy()
    assert abs(law.sum() - 1) < 1e-12
    starts = torch.full((count, 4), 2)
    chains = open_chains(model, starts, "norm", "none", sampler="ancestral")
    record = redraw(chains, *numbers(count, 4, 1, "left-to-right", seed=1), starts.numpy(), {1})
    tokens = record.tokens[1]
    assert (tokens[:, 0] == 2).all()
    assert distance(tokens, law, 3) < 1.3 * floor(law, count)
    numbers_of = np.ravel_multi_index(tokens.T, (3,) * 4)
    np.testing.assert_allclose(record.energies[0], -log_law[numbers_of], rtol=0, atol=1e-9)


@pytest.mark.parametrize("sampler", samplers.NEEDS)
def test_every_combination_of_sampler_and_energy_opens(sampler):
    model = build(MODELS["n=2"])
    tokens = torch.randint(7, (3, 6), generator=torch.Generator().manual_seed(1))
    law = reference_law(7)
    if not samplers.suits(sampler, model.about):
        assert sampler == "ancestral"
        return
    if sampler == "enumerated":  # of 3^4 states, where others have 7^6
        model, tokens = build(SMALL["n=2"]), tokens[:, :4] % 3
    for energy in samplers.NEEDS[sampler][0]:
        chains = open_chains(model, tokens, energy, "none", sampler=sampler, mu=law)
        expected = {
            "raw": lambda: naive.energy(model, tokens),
            "norm": lambda: naive.energy(model, tokens, "norm"),
        }
        if energy in expected and sampler != "enumerated":
            torch.testing.assert_close(chains.energy(), expected[energy](), rtol=0, atol=1e-10)
        assert hasattr(chains, "log_ratio" if sampler == "mh" else "conditionals")
