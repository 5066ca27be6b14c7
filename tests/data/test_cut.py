"""Laws cut at an order, against sums over subsets of sites that are written out."""

from itertools import combinations

import numpy as np
import pytest
from corpora import drawn
from enumerated import all_states

from manybody.data import cut, enumeration
from manybody.data.cut import Cut
from manybody.data.enumeration import chi_square, numbers
from manybody.data.hamiltonian import Hamiltonian, coincident

LENGTH, COLOURS = 5, 3


def symmetric(random, size, order):
    draws = random.standard_normal((size,) * order)
    axes = range(order)
    return sum(draws.transpose(np.roll(axes, shift)) for shift in axes) + sum(
        draws.transpose(np.roll(axes[::-1], shift)) for shift in axes
    )


def planted(beta=0.05):
    random = np.random.default_rng(2)
    couplings = symmetric(random, LENGTH, 3)
    couplings[coincident(LENGTH, 3)] = 0
    return Hamiltonian(couplings, symmetric(random, COLOURS, 3), beta)


def interaction(table, sites):
    """The term of these sites, in the zero-sum gauge, by inclusion and exclusion."""
    found = 0
    for size in range(len(sites) + 1):
        for part in combinations(sites, size):
            others = tuple(axis for axis in range(table.ndim) if axis not in part)
            found = found + (-1) ** (len(sites) - size) * table.mean(axis=others, keepdims=True)
    return found


def terms(table, orders):
    subsets = (sites for m in orders for sites in combinations(range(table.ndim), m))
    return np.broadcast_to(sum(interaction(table, sites) for sites in subsets), table.shape)


def logs():
    return -planted().beta * enumeration.energies(planted()).reshape((COLOURS,) * LENGTH)


@pytest.mark.parametrize("order", [1, 2])
def test_interactions_above_the_order_are_dropped(order):
    found = np.log(Cut(planted(), order, "interactions").probabilities)
    expected = terms(logs(), range(order + 1))
    np.testing.assert_allclose(found - found.mean(), expected - expected.mean(), atol=1e-12)
    assert np.abs(terms(logs(), [3])).max() > 0.1, "nothing to drop"


@pytest.mark.parametrize("order", [1, 2])
def test_marginals_are_kept_by_a_law_of_the_order(order):
    p, found = np.exp(logs()), Cut(planted(), order, "marginals").probabilities
    p /= p.sum()
    for sites in combinations(range(LENGTH), order):
        others = tuple(axis for axis in range(LENGTH) if axis not in sites)
        np.testing.assert_allclose(found.sum(axis=others), p.sum(axis=others), atol=1e-10)
    assert np.abs(terms(np.log(found), range(order + 1, LENGTH + 1))).max() < 1e-9
    dropped = Cut(planted(), order, "interactions").probabilities
    assert np.abs(found - dropped).sum() > 0.02, "two cuts that are one"


def test_low_temperatures():
    model = planted(0.5)
    p, found = enumeration.probabilities(model), Cut(model, 2, "marginals").probabilities
    p = p.reshape(found.shape)
    assert p.max() > 0.5
    np.testing.assert_allclose(found.sum(axis=(2, 3, 4)), p.sum(axis=(2, 3, 4)), atol=1e-10)


def test_draws_and_losses():
    law = Cut(planted(), 2, "marginals")
    drawn = law.draw(20000, np.random.default_rng(0))
    assert chi_square(law.probabilities.ravel(), numbers(drawn, COLOURS))["chance"] > 1e-3
    states = all_states(COLOURS, LENGTH)
    p, expected = law.probabilities, 0
    for site in range(LENGTH):
        expected = expected - np.log(p / p.sum(axis=site, keepdims=True)) / LENGTH
    np.testing.assert_allclose(law.masked_losses(states), expected.ravel(), atol=1e-12)


def test_splits_and_their_losses(tmp_path):
    planted().save(tmp_path / "hamiltonian.safetensors", {})
    source = dict(
        source="three-body", at=2, kept="interactions", seed=1,
        sequences=dict(train=500, validation=200, test=100),
    )  # fmt: skip
    train = drawn(cut, source, tmp_path, [tmp_path / "hamiltonian.safetensors"])["train"]
    assert train.tokens.shape == (500, LENGTH)
    own, true = train.about["losses"]["own"], train.about["losses"]["planted"]
    assert own[0] < true[0]
    logs = planted().log_conditionals(train.tokens)
    taken = np.take_along_axis(logs, train.tokens[:, :, None].astype(int), axis=2)
    assert true[0] == pytest.approx(-taken.mean())
