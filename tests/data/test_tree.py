"""Sequences of trees against tables of all sequences, which share no code with the messages."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from corpora import drawn
from enumerated import all_states

from manybody.data import tree
from manybody.data.enumeration import chi_square, numbers
from manybody.data.tree import Tree, random_rules

COLOURS = 3
CASES = [(depth, level) for depth in (2, 3) for level in range(depth + 1)]
SOURCE = dict(
    kind="tree", depth=2, level=0, vocabulary=3, rules={"deviation": 1.0},
    sequences=dict(train=400, validation=100, test=50), seed=0,
)  # fmt: skip


def rules():
    return random_rules(COLOURS, 1.0, np.random.default_rng(5))


def grown(depth):
    """p(leaves | root) of a whole tree: (q, q^L)."""
    laws = np.eye(COLOURS)
    for _ in range(depth):
        laws = np.array([
            sum(
                one[left, right] * np.outer(laws[left], laws[right]).ravel()
                for left, right in product(range(COLOURS), repeat=2)
            )
            for one in rules()
        ])  # fmt: skip
    return laws


@cache
def table(depth, level):
    """p of all sequences in lexicographic order, of a tree filtered at a level: (q^L,)."""
    nodes = 2**level
    upper, lower = grown(level).reshape(COLOURS, *[COLOURS] * nodes), grown(depth - level)
    p = 0
    for root in range(COLOURS):
        of_root = np.ones(1)
        for node in range(nodes):
            others = tuple(axis for axis in range(nodes) if axis != node)
            of_root = np.outer(of_root, upper[root].sum(axis=others) @ lower).ravel()
        p = p + of_root / COLOURS
    return p


@pytest.mark.parametrize(("depth", "level"), CASES)
def test_probabilities_and_conditionals(depth, level):
    found, p, states = (
        Tree(rules(), depth, level),
        table(depth, level),
        all_states(COLOURS, 2**depth),
    )
    np.testing.assert_allclose(np.exp(found.log_probability(states)), p, rtol=1e-12, atol=1e-300)
    conditionals = np.exp(found.log_conditionals(states))
    shape = (COLOURS,) * 2**depth
    for site in range(2**depth):
        joint = np.moveaxis(p.reshape(shape), site, -1)
        rest = joint.sum(axis=-1, keepdims=True)
        own = np.moveaxis(conditionals[:, site].reshape(*shape, COLOURS), site, 0)
        for colour in range(COLOURS):  # whatever stands at the site itself
            np.testing.assert_allclose(own[colour], joint / rest, atol=1e-12)


@pytest.mark.parametrize(("depth", "level"), CASES)
def test_draws(depth, level):
    found, p = Tree(rules(), depth, level), table(depth, level)
    drawn = found.draw(20000, np.random.default_rng(depth + level))
    assert chi_square(p, numbers(drawn, COLOURS))["chance"] > 1e-3


def test_filters_keep_the_law_of_a_leaf_and_its_root_and_cut_the_others():
    pairs = [
        table(2, level).reshape((COLOURS,) * 4).sum(axis=(1, 2)) for level in range(3)
    ]  # of the first leaf and the last, whose only common node is the root
    np.testing.assert_allclose(pairs[1], pairs[2], atol=1e-14)
    siblings = [table(2, level).reshape((COLOURS,) * 4).sum(axis=(2, 3)) for level in range(3)]
    np.testing.assert_allclose(siblings[0], siblings[1], atol=1e-14)
    assert np.abs(siblings[1] - siblings[2]).max() > 0.01


def test_long_sequences_do_not_vanish():
    for level in (0, 3, 9):
        found = Tree(random_rules(4, 1.0, np.random.default_rng(0)), 9, level)
        tokens = found.draw(3, np.random.default_rng(1))
        assert tokens.shape == (3, 512)
        assert np.isfinite(found.log_probability(tokens)).all()
        sums = np.exp(found.log_conditionals(tokens)).sum(axis=2)
        np.testing.assert_allclose(sums, 1, rtol=1e-12)


def test_random_rules_give_each_pair_one_parent():
    made = random_rules(4, 1.0, np.random.default_rng(3))
    np.testing.assert_allclose(made.sum(axis=(1, 2)), 1)
    assert made.min() >= 0
    assert ((made > 0).sum(axis=0) == 1).all()
    assert ((made > 0).sum(axis=(1, 2)) == 4).all()


def test_splits_and_their_losses(tmp_path):
    splits = drawn(tree, SOURCE, tmp_path / "whole")
    p, train = table_of(splits), splits["train"]
    assert train.tokens.shape == (400, 4)
    entropy, error = train.about["losses"]["entropy"]
    assert abs(entropy + (p[p > 0] * np.log(p[p > 0])).sum()) < 4 * error
    assert train.about["losses"]["masked"][0] == train.about["masked_by_level"][0]
    assert train.about["masked_by_level"][0] < train.about["masked_by_level"][2]
    filtered = drawn(tree, {**SOURCE, "level": 2}, tmp_path / "filtered")
    least = filtered["train"].about["masked_by_level"]
    assert least[2] < least[0]
    assert train.about["rules"] == filtered["train"].about["rules"]
    assert (filtered["train"].tokens != train.tokens).any()


def table_of(splits):
    found = Tree(splits["train"].about["rules"], 2)
    return np.exp(found.log_probability(all_states(COLOURS, 2**2)))
