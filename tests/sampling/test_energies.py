"""Energies without the factor k, and what draws from them, against all states of small models."""

import numpy as np
import pytest
import torch
from test_metropolis import MODELS, build, states

from benchmarks import naive
from manybody.models.base import Model
from manybody.runtime.refusal import Refusal
from manybody.sampling.factored import parameters as factored_parameters
from manybody.sampling.factored.by_order import OrderChains
from manybody.sampling.paths import PathChains, mean_energy
from manybody.sampling.reference import check_law, draw_paths, unigram

TOLERANCE = 1e-12
CLOSED = {
    "4 of 4": dict(vocabulary=4, length=4, layers=2, rank=3),
    "5 of 3, full": dict(vocabulary=3, length=5, layers=2, rank=None),
    "one layer": dict(vocabulary=4, length=4, layers=1, rank=3),
}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    previous = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad():
        yield
    torch.set_num_threads(previous)


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
            rows.append(torch.sin(context.double())[:, None] - self.energies[context[:, None] + values])
        return torch.stack(rows, 1)

    def head(self, features):
        return features

    def head_rows(self, features, tokens):
        return features.gather(-1, tokens[..., None])[..., 0]


class Shifted(Conditionals):
    """The same conditionals in another gauge, where a missing token is the zero vector.

    The pair table of (i, j) gains u_ij(a) and the one-body term loses it, which only a context
    with tokens left out can show.
    """


def hamiltonian(vocabulary, length, order, seed):
    """H (|V|^L,) with random tables over all subsets of up to `order` positions."""
    from itertools import combinations

    generator = np.random.default_rng(seed)
    energies = np.zeros((vocabulary,) * length)
    for size in range(1, order + 1):
        for chosen in combinations(range(length), size):
            shape = [vocabulary if axis in chosen else 1 for axis in range(length)]
            energies = energies + generator.normal(size=shape) * 0.7
    return energies.reshape(-1)


def law_of(energies):
    weights = np.exp(-(energies - energies.min()))
    return weights / weights.sum()


def apart(one, other):
    """Total variation of the laws of two energies."""
    return np.abs(law_of(np.asarray(one)) - law_of(np.asarray(other))).sum() / 2


def reference_law(vocabulary, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(vocabulary, 3.0))


@pytest.mark.parametrize(
    ("length", "vocabulary", "order", "seed"),
    [(5, 3, 2, 0), (5, 3, 2, 1), (5, 3, 3, 0), (4, 4, 3, 2)],
)
def test_reference_law_and_one_path_find_the_law_of_compatible_conditionals(
    length, vocabulary, order, seed
):
    """And the raw and norm scores do not."""
    energies = hamiltonian(vocabulary, length, order, seed)
    model = Conditionals(energies, vocabulary, length)
    every, law = states(model), reference_law(vocabulary, seed)
    assert apart(naive.reference_energies(model, law), energies) < TOLERANCE
    paths = draw_paths(length, 1, seed, law=law)
    found = mean_energy(model, every.numpy(), paths)
    start = energies[np.ravel_multi_index(paths.blocks[0], (vocabulary,) * length)]
    np.testing.assert_allclose(found, energies - start, rtol=0, atol=TOLERANCE)
    for kind in ("raw", "norm"):
        assert apart(naive.energy(model, every, kind), energies) > 0.1


def parameters(name):
    model = build(dict(architecture="factored") | CLOSED[name])
    return model, factored_parameters.read(model, "none")


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
            found = chains.conditionals(index, at)
            difference = found.log_softmax(1) - (-energies[where]).log_softmax(1)
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


@pytest.mark.parametrize("name", ["bert", "n=3", "n=2, two heads"])
def test_path_chains_are_the_mean_of_the_paths_of_the_definition(name):
    model = build(MODELS[name])
    generator = torch.Generator().manual_seed(5)
    tokens = torch.randint(model.vocabulary, (9, model.length), generator=generator)
    paths = draw_paths(model.length, 3, 4, law=reference_law(model.vocabulary))
    chains = PathChains(model, tokens, paths)
    for _ in range(8):
        some = torch.randperm(9, generator=generator)[:5]
        at = torch.randint(model.length, (5,), generator=generator)
        new = torch.randint(model.vocabulary, (5,), generator=generator)
        before, rows = chains.tokens.clone(), torch.arange(5)
        logits = model.masked_logits(before[some], rows, at)
        after = before[some].clone()
        after[rows, at] = new
        one, other = (naive.path_energy(model, part, paths) for part in (before[some], after))
        expected = one - other + logits[rows, before[some, at]] - logits[rows, new]
        if new[0] % 2:  # the driver has asked for the same copies before
            torch.testing.assert_close(chains.logits(some, at), logits, rtol=0, atol=TOLERANCE)
        ratio, handle = chains.log_ratio(some, at, new)
        torch.testing.assert_close(ratio, expected, rtol=0, atol=TOLERANCE)
        chains.accept(handle, torch.rand(5, generator=generator) < 0.7)
        expected = naive.path_energy(model, chains.tokens, paths)
        torch.testing.assert_close(chains.energy(), expected, rtol=0, atol=TOLERANCE)


def test_the_mean_over_all_paths_is_the_energy_of_the_reference_law():
    """Of a model that is not compatible: every order, and every block by its chance."""
    from itertools import permutations

    model, law = build(dict(architecture="factored", vocabulary=2, length=3, layers=2, rank=2)), reference_law(2)
    every = states(model)
    orders = np.array(list(permutations(range(3))))
    total = np.zeros(len(every))
    for block in every.numpy():
        paths = draw_paths(3, len(orders), 0, law=law)
        paths = type(paths)(orders, np.tile(block, (len(orders), 1)))
        total += np.prod(law[block]) * mean_energy(model, every.numpy(), paths)
    expected = naive.reference_energies(model, law)
    difference = total - expected
    np.testing.assert_allclose(difference, difference[0], rtol=0, atol=TOLERANCE)
    one = mean_energy(model, every.numpy(), draw_paths(3, 1, 0, law=law))
    assert np.ptp(one - expected) > 0.01


def test_a_law_without_full_support_is_refused():
    law = unigram(np.array([[0, 0, 1]]), 4)
    np.testing.assert_allclose(law, np.array([2.5, 1.5, 0.5, 0.5]) / 5)
    with pytest.raises(Refusal, match="law: found 2 tokens without a share, the first is 1"):
        check_law(np.array([0.5, 0.0, 0.0, 0.5]), 4)
    with pytest.raises(Refusal, match=r"sums to 1\.5"):
        check_law(np.full(3, 0.5), 3)
    with pytest.raises(Refusal, match="paths: found 3 paths .* at most the 2 validation"):
        draw_paths(4, 3, 0, blocks=np.zeros((2, 4), dtype=int))
