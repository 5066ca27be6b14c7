"""Laws of largest entropy: their frequencies and probabilities by enumeration, and their draws."""

from itertools import product

import numpy as np
import pytest

from manybody.data.enumeration import chi_square, numbers
from manybody.data.n_gram_clone import MaximumEntropy
from manybody.data.ngrams import numbered
from manybody.io.refusal import Refusal

VOCABULARY, LENGTH = 3, 5


def sample(count=300, seed=0):
    """Rows that no chain has made: the first tokens are not as the others are, some runs lack."""
    random = np.random.default_rng(seed)
    rows = random.choice(VOCABULARY, (count, LENGTH), p=[0.6, 0.3, 0.1])
    rows[:, 0] = random.choice(VOCABULARY, count, p=[0.1, 0.2, 0.7])
    rows[rows[:, 1] == 2, 2] = 1
    rows[:, 3] = np.where(rows[:, 0] == rows[:, 2], 0, rows[:, 3])
    return rows


def every():
    return np.array(list(product(range(VOCABULARY), repeat=LENGTH)))


def frequencies(rows, order, weights=None):
    """Pooled frequencies of n-grams, by counting them: (|V|^n,)."""
    grams = numbered(rows, VOCABULARY, order)
    weights = np.repeat(np.ones(len(rows)) if weights is None else weights, grams.shape[1])
    counts = np.bincount(grams.ravel(), weights, VOCABULARY**order)
    return counts / counts.sum()


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_law_has_the_frequencies_and_the_beginnings_of_the_rows(order):
    rows, states = sample(), every()
    law = MaximumEntropy(rows, VOCABULARY, order)
    p = np.exp(law.next_token(states).sum(axis=1))
    assert p.sum() == pytest.approx(1, abs=1e-12)
    off = np.abs(frequencies(states, order, p) - frequencies(rows, order)).max()
    assert off == pytest.approx(law.error, abs=1e-14)
    assert off < 1e-7
    if order > 1:
        begun = numbered(states, VOCABULARY, order - 1)[:, 0]
        there = np.bincount(numbered(rows, VOCABULARY, order - 1)[:, 0]) / len(rows)
        np.testing.assert_allclose(np.bincount(begun, p)[: len(there)], there, atol=1e-12)


def test_the_plain_transitions_have_other_frequencies():
    """So that the test above tells the fit from the chain that it starts from."""
    rows, states = sample(), every()
    pairs = frequencies(rows, 2).reshape(VOCABULARY, -1)
    step = pairs / pairs.sum(axis=1, keepdims=True)
    begun = np.bincount(rows[:, 0], minlength=VOCABULARY) / len(rows)
    p = begun[states[:, 0]] * step[states[:, :-1], states[:, 1:]].prod(axis=1)
    assert np.abs(frequencies(states, 2, p) - pairs.ravel()).max() > 5e-3


def test_no_law_with_these_frequencies_has_more_entropy():
    """log p is a sum of a function of the beginning and of one of n-grams: any change that keeps
    both frequencies is orthogonal to it."""
    states = every()
    law = MaximumEntropy(sample(), VOCABULARY, 2)
    logs = law.next_token(states).sum(axis=1)
    there = np.isfinite(logs)
    grams = numbered(states[there], VOCABULARY, 2)
    features = np.concatenate(
        [(grams == gram).sum(axis=1)[:, None] for gram in range(VOCABULARY**2)]
        + [states[there][:, :1] == token for token in range(VOCABULARY)],
        axis=1,
    ).astype(float)
    left = logs[there] - features @ np.linalg.lstsq(features, logs[there], rcond=None)[0]
    assert np.abs(left).max() < 1e-9


def test_masked_conditionals_are_those_of_the_law():
    law, states = MaximumEntropy(sample(), VOCABULARY, 3), every()
    table = np.exp(law.next_token(states).sum(axis=1)).reshape((VOCABULARY,) * LENGTH)
    masked = np.exp(law.masked(states))
    for place in range(LENGTH):
        total = np.broadcast_to(table.sum(axis=place, keepdims=True), table.shape).ravel()
        there = total > 0
        found = masked[there, place]
        np.testing.assert_allclose(
            found, (table.ravel() / np.maximum(total, 1e-300))[there], atol=1e-12
        )


@pytest.mark.parametrize("order", [1, 2, 3])
def test_draws_are_from_the_law(order):
    law = MaximumEntropy(sample(), VOCABULARY, order)
    drawn = law.draw(40000, LENGTH, np.random.default_rng(1))
    p = np.exp(law.next_token(every()).sum(axis=1))
    found = chi_square(p, numbers(drawn, VOCABULARY))
    assert found["chance"] > 1e-3
    assert p[numbers(drawn, VOCABULARY)].min() > 0


def test_a_token_that_never_ends_a_block_is_met_in_the_limit():
    """1 has one neighbour on each side, so the only laws with these frequencies have no 1 at the
    end, which no finite factors would say."""
    rows = np.array([[0, 0, 1, 0], [0, 0, 0, 0], [0, 2, 0, 2]])
    law = MaximumEntropy(rows, 3, 2)
    assert law.error < 1e-7


def test_an_order_above_the_length_and_a_law_too_large_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="expected 1 to L"):
        MaximumEntropy(sample(), VOCABULARY, LENGTH + 1)
    monkeypatch.setattr("manybody.data.n_gram_clone.NUMBERS", 5)
    with pytest.raises(Refusal, match="has 3 states at 4 places, expected at most 5"):
        MaximumEntropy(sample(), VOCABULARY, 2)
