"""Information by order: fits over all states, against closed forms and plain searches."""

from itertools import product

import numpy as np
import pytest
from enumerated import all_states
from scipy.optimize import minimize
from scipy.special import log_softmax

from manybody.data.code import CodeLaw, coupling_of
from manybody.data.tree import Tree, random_rules
from manybody.theory.information import information_by_order

TREE = random_rules(3, 1.0, np.random.default_rng(2))


def entropy(p):
    return float(-(p * np.log(p)).sum())


def mean_of_sites(p):
    """Mean entropy of a site, and of a site given all others."""
    axes = range(p.ndim)
    alone = [entropy(p.sum(axis=tuple(one for one in axes if one != site))) for site in axes]
    return np.mean(alone), np.mean([entropy(p) - entropy(p.sum(axis=site)) for site in axes])


@pytest.mark.parametrize(
    ("terms", "couplings", "length", "q"),
    [
        ([(0, 1), (1, 2), (2, 3, 4), (4, 5, 6, 7)], [0.4, -0.7, 0.5, 0.8], 8, 2),
        ([(0, 1), (1, 2), (2, 3, 4)], [0.4, 0.7, -0.5], 5, 3),
        ([(0, 1), (0, 1, 2), (3, 4), (4, 5, 6)], [0.4, 0.7, 0.5, -0.9], 7, 2),  # nested
        ([(0, 1), (2, 3), (4, 5), (6, 7, 8), (9, 10, 11)], [coupling_of(0.2)] * 5, 12, 2),
    ],
)
def test_code_laws_have_their_closed_form(terms, couplings, length, q):
    law = CodeLaw(terms, couplings, length, q)
    found = information_by_order(law, 4 if length > 8 else None)
    expected = law.information()
    assert found == pytest.approx({order: expected.get(order, 0.0) for order in found}, abs=1e-8)


def test_a_law_without_structure_is_fitted_as_a_plain_search_does():
    p = np.random.default_rng(3).dirichlet(np.ones(3**3)).reshape((3,) * 3)
    states, losses = all_states(3, 3), []
    for site in range(3):
        others = [other for other in range(3) if other != site]
        ones = [(other, symbol) for other, symbol in product(others, range(3))]
        features = np.array([states[:, other] == symbol for other, symbol in ones], float).T

        def loss(weights, features=features, site=site):
            logs = log_softmax(features @ weights.reshape(6, 3), axis=1)
            return -p.ravel() @ logs[np.arange(27), states[:, site]]

        losses.append(minimize(loss, np.zeros(18), tol=1e-12).fun)
    alone, given = mean_of_sites(p)
    expected = {2: alone - np.mean(losses), 3: np.mean(losses) - given}
    assert information_by_order(p) == pytest.approx(expected, abs=1e-8)


def test_states_without_probability_are_allowed():
    parity = (np.indices((2, 2, 2)).sum(0) % 2) / 4.0
    assert information_by_order(parity) == pytest.approx({2: 0.0, 3: np.log(2)})


@pytest.mark.long
def test_all_orders_of_a_tree_of_depth_three():
    tree, states = Tree(TREE, 3), all_states(3, 8)
    p = np.exp(tree.log_probability(states))
    found = information_by_order(tree)
    alone, _ = mean_of_sites(p.reshape((3,) * 8))
    assert sum(found.values()) == pytest.approx(alone - p @ tree.masked_losses(states), abs=1e-8)
    assert all(found[order] > found[order + 1] > 0 for order in range(2, 8))
