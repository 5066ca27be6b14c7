"""Gibbs samples against enumeration: the law, its conditionals, its variance, its temperature."""

from itertools import combinations
from math import factorial

import numpy as np
import pytest
from enumerated import all_states, boltzmann, distance, floor
from spin_sources import pair_law

from benchmarks.gibbs import Bincount, sweep
from manybody.data import enumeration, gibbs, pair_gibbs
from manybody.data.gibbs_loops import (
    RENEWAL,
    buffers,
    draw_uniforms,
    initial_logits,
    move_logits,
)
from manybody.data.hamiltonian import (
    Hamiltonian,
    field_scale,
    site_tuples,
    variances,
)
from manybody.data.many_body import draw

VECTORS = dict(vectors=40, variables="signs", probability=0.8)
BITS = dict(vectors=40, variables="bits", probability=0.3)
CASES = [(k, colours) for k in (2, 3, 4) for colours in ("potts", VECTORS, BITS)]
CHAINS = 40_000


def model(order, colours, length=6, vocabulary=3, scale=2.0, seed=0) -> Hamiltonian:
    source = dict(
        order=order, length=length, vocabulary=vocabulary, couplings=VECTORS, colours=colours,
        logit_scale=scale, sweeps=10, seed=seed,
    )  # fmt: skip
    return draw(source)[0]


class Loops:
    """The logits that the compiled loops draw from."""

    def __init__(self, hamiltonian: Hamiltonian):
        self.length, self.vocabulary = hamiltonian.length, hamiltonian.vocabulary
        self.model = gibbs.prepare(hamiltonian)
        weights = self.model[0]
        self.given = hamiltonian.order, (0,) * weights.shape[2], self.model, buffers(self.model)
        self.found = np.zeros((self.vocabulary, *weights.shape[2:]), np.float32)

    def start(self, chain: np.ndarray) -> None:
        initial_logits(chain.astype(np.uint32), *self.given, self.found)

    def move(self, chain: np.ndarray, site: int, colour: int) -> None:
        move_logits(site, chain.astype(np.uint32), np.uint32(colour), *self.given, self.found)
        chain[site] = colour

    @property
    def logits(self) -> np.ndarray:
        """(L, |V|)"""
        return self.found.reshape(self.vocabulary, -1)[:, : self.length].T


def test_uniforms_are_the_published_numbers_of_xoshiro256_plus_plus():
    """From the words 1, 2, 3, 4; of each number the highest 24 bits."""
    words, drawn = np.array([[1], [2], [3], [4]], np.uint64), np.empty((7, 1), np.float32)
    for row in drawn:
        draw_uniforms(words, row)
    published = [
        41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205,
        9973669472204895162, 14011001112246962877,
    ]  # fmt: skip
    assert drawn[:, 0].tolist() == [(number >> 40) / 2**24 for number in published]


@pytest.mark.parametrize(("order", "colours"), CASES)
def test_energies_are_sums_over_distinct_sites(order, colours):
    hamiltonian = model(order, colours)
    states = all_states(3, 6)[::7]
    expected = [
        factorial(order)
        * sum(
            hamiltonian.couplings[sites] * hamiltonian.colours[tuple(state[list(sites)])]
            for sites in combinations(range(6), order)
        )
        for state in states
    ]
    np.testing.assert_allclose(hamiltonian.energies(states), expected, atol=1e-10)


@pytest.mark.parametrize("hamiltonian", [*(model(*case) for case in CASES), pair_law(6)])
def test_conditionals_are_ratios_of_boltzmann_weights_and_keep_the_law(hamiltonian):
    states = all_states(3, 6)
    law = boltzmann(hamiltonian, states).reshape((3,) * 6)
    kernels = np.exp(hamiltonian.log_conditionals(states)).reshape((3,) * 6 + (6, 3))
    moved = law
    for site in range(6):
        expected = law / law.sum(axis=site, keepdims=True)
        # The conditional does not depend on the colour that the site has.
        kernel = np.moveaxis(kernels[..., site, :], -1, site + 1)
        for colour in range(3):
            np.testing.assert_allclose(kernel.take(colour, axis=site), expected, atol=1e-12)
        moved = moved.sum(axis=site, keepdims=True) * kernel.take(0, axis=site)
    np.testing.assert_allclose(moved, law, atol=1e-14)


@pytest.mark.parametrize(("order", "colours"), CASES)
@pytest.mark.parametrize(
    ("length", "vocabulary"),
    # Rows of two vectors compile loops of their own.
    [(4, 2), (7, 3), pytest.param(12, 5, marks=pytest.mark.long)],
)
def test_logits_stay_those_of_the_chain_while_its_colours_change(
    order, colours, length, vocabulary
):
    """As many changes as there may be until the logits are summed anew."""
    hamiltonian = model(order, colours, length, vocabulary)
    rng = np.random.default_rng(0)
    chain = rng.integers(0, vocabulary, length)
    loops = Loops(hamiltonian)
    loops.start(chain)
    largest = 1.0
    for change in range(RENEWAL * length):
        site, colour = change % length, (chain[change % length] + rng.integers(1, vocabulary))
        loops.move(chain, site, colour % vocabulary)
        expected = -hamiltonian.beta * hamiltonian.local_fields(chain[None])[0]
        largest = max(largest, np.abs(expected).max())
        np.testing.assert_allclose(loops.logits, expected, atol=1e-5 * largest)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_the_baseline_draws_from_the_same_conditionals(order):
    hamiltonian = model(order, VECTORS, 7, 4)
    tokens = np.random.default_rng(0).integers(0, 4, (20, 7))
    expected = -hamiltonian.beta * hamiltonian.local_fields(tokens)
    sampler, moved = Bincount(hamiltonian), tokens.copy()
    for site in range(7):
        np.testing.assert_allclose(sampler.logits(tokens, site), expected[:, site], atol=1e-4)
    sweep(sampler, moved, np.random.default_rng(1))
    assert moved.min() >= 0
    assert moved.max() < 4
    assert (moved != tokens).any()


@pytest.mark.parametrize(
    ("sampler", "hamiltonian", "widest"),
    [
        (gibbs.sample, model(4, VECTORS, 8, 4), pair_gibbs.WIDEST),
        (pair_gibbs.sample, pair_law(9, 7, 0.2), pair_gibbs.WIDEST),
        (pair_gibbs.sample, pair_law(9, 7, 0.2), 0.0),
    ],
    ids=["many-body", "pairs", "pairs by logits"],
)
def test_samples_depend_on_neither_threads_nor_the_number_of_chains(
    sampler, hamiltonian, widest, monkeypatch
):
    monkeypatch.setattr(pair_gibbs, "WIDEST", widest)
    stream = np.random.SeedSequence(5)
    one, changed, *_ = sampler(hamiltonian, 300, 40, stream)
    for threads in (2, 3):
        same, changes, *_ = sampler(hamiltonian, 300, 40, stream, threads)
        np.testing.assert_array_equal(one, same)
        np.testing.assert_array_equal(changed, changes)
    np.testing.assert_array_equal(sampler(hamiltonian, 70, 40, stream)[0], one[:70])
    assert (sampler(hamiltonian, 300, 40, np.random.SeedSequence(6))[0] != one).any()
    initial = sampler(hamiltonian, 300, 0, stream)[0]
    kept = sampler(hamiltonian, 300, 0, np.random.SeedSequence(6), initial=initial)[0]
    np.testing.assert_array_equal(kept, initial)


def test_chains_start_where_they_are_told():
    hamiltonian = model(4, VECTORS, 8, 4)
    stream = np.random.SeedSequence(5)
    uniform, _ = gibbs.sample(hamiltonian, 70, 0, stream)
    same, _ = gibbs.sample(hamiltonian, 70, 3, stream, initial=uniform)
    moved, _ = gibbs.sample(hamiltonian, 70, 3, stream)
    np.testing.assert_array_equal(same, moved)  # numbers for the start are drawn all the same
    initial = np.random.default_rng(0).integers(0, 4, (70, 8))
    other, _ = gibbs.sample(hamiltonian, 70, 1, stream, initial=initial)
    assert (other != gibbs.sample(hamiltonian, 70, 1, stream)[0]).any()


@pytest.mark.parametrize(("order", "colours"), CASES)
@pytest.mark.parametrize(("length", "vocabulary"), [(4, 3), (6, 3), (5, 2)])
def test_enumerated_energies_are_those_of_the_states(order, colours, length, vocabulary):
    hamiltonian = model(order, colours, length, vocabulary)
    states = all_states(vocabulary, length)
    each = Hamiltonian(hamiltonian.couplings, hamiltonian.colours, 0.7)
    np.testing.assert_allclose(enumeration.energies(each), each.energies(states), atol=1e-10)
    np.testing.assert_allclose(enumeration.probabilities(each), boltzmann(each, states), rtol=1e-9)
    np.testing.assert_array_equal(enumeration.numbers(states, vocabulary), range(len(states)))


def test_chi_square_of_exact_samples_is_as_expected_and_of_others_not():
    law = boltzmann(model(4, VECTORS), all_states(3, 6))
    rng = np.random.default_rng(0)
    chances = []
    for _ in range(200):
        found = enumeration.chi_square(law, rng.choice(len(law), 3000, p=law))
        chances.append(found["chance"])
        assert 50 < found["freedom"] < 300
    assert np.mean(chances) == pytest.approx(0.5, abs=0.08)
    assert 0.02 < np.mean(np.array(chances) < 0.1) < 0.2
    mixed = 0.9 * law + 0.1 * np.roll(law, 1)
    assert enumeration.chi_square(law, rng.choice(len(law), 3000, p=mixed))["chance"] < 1e-6
    certain = np.zeros(9)
    certain[4] = 1.0
    assert enumeration.chi_square(certain, np.full(50, 4))["chance"] == 1.0


@pytest.mark.parametrize(("order", "colours"), CASES)
def test_shares_are_the_variances_of_a_brute_force_projection(order, colours):
    """Eq. 4 against the k-body parts of H over all states, averaged onto every set of sites."""
    length, vocabulary = 5, 3
    hamiltonian = model(order, colours, length, vocabulary)
    values = hamiltonian.energies(all_states(vocabulary, length)).reshape((vocabulary,) * length)
    expected = np.zeros(order + 1)
    for size in range(length + 1):
        for sites in combinations(range(length), size):
            part = values.mean(axis=tuple(set(range(length)) - set(sites)), keepdims=True)
            for site in sites:
                part = part - part.mean(axis=site, keepdims=True)
            if size > order:
                assert np.abs(part).max() < 1e-10
            else:
                expected[size] += (part**2).mean()
    np.testing.assert_allclose(
        variances(hamiltonian.couplings, hamiltonian.colours), expected[1:], rtol=1e-10, atol=1e-12
    )
    weighted = np.arange(1, order + 1) * expected[1:]
    np.testing.assert_allclose(hamiltonian.shares(), weighted / weighted.sum(), atol=1e-12)
    sigma = field_scale(hamiltonian.couplings, hamiltonian.colours)
    assert sigma**2 == pytest.approx(weighted.sum() / length)
    assert hamiltonian.logit_scale() == pytest.approx(2.0)


def test_default_setting_has_the_shares_of_the_specification():
    """Another draw of J; the specification's is .000 .521 .395 .084."""
    law = dict(vectors=1000, variables="signs", probability=0.8)
    source = dict(
        order=4, length=10, vocabulary=5, couplings=law, colours="potts", logit_scale=5.0,
        sweeps=15, seed=0,
    )  # fmt: skip
    hamiltonian, about = draw(source)
    np.testing.assert_allclose(about["shares"], [0.0, 0.521, 0.395, 0.084], atol=0.01)
    assert hamiltonian.logit_scale() == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("order", "colours", "scale"),
    # A random U at S = 2 has a rugged landscape, in which ten sweeps may not be enough.
    [(k, *case) for k in (2, 3, 4) for case in (("potts", 2.0), (VECTORS, 1.0))],
)
def test_total_variation_after_ten_sweeps_is_that_of_exact_samples(order, colours, scale):
    hamiltonian = model(order, colours, scale=scale)
    law = boltzmann(hamiltonian, all_states(3, 6))
    tokens, _ = gibbs.sample(hamiltonian, CHAINS, 10, np.random.SeedSequence(1))
    assert distance(tokens, law, 3) < 1.3 * floor(law, CHAINS)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_the_subsets_around_a_site_are_all_of_the_others_in_order(length, size):
    found = site_tuples(length, size)
    assert found.shape[::2] == (length, size)
    for site, around in enumerate(found.tolist()):
        others = [other for other in range(length) if other != site]
        assert around == [list(subset) for subset in combinations(others, size)]
