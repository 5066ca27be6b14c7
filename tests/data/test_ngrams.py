"""Interpolated Kneser-Ney: a case by hand, the formula as it is written, sums that are 1."""

from collections import Counter

import numpy as np
import pytest
from enumerated import all_states

from manybody.data.ngrams import KneserNey, NGrams

VOCABULARY = 4


def text(length=60, seed=3):
    """Tokens of which some runs repeat and some contexts are never seen."""
    return np.random.default_rng(seed).choice(VOCABULARY, length, p=[0.6, 0.25, 0.15, 0.0])


def test_a_bigram_by_hand():
    """0 1 0 1 0 2: 01 and 10 twice, 02 once, so D_2 = 1 / (1 + 2 * 2). Each of the three tokens
    was seen after one token only, so D_1 = 1 and p_1 = 1 / 3."""
    model = KneserNey(np.array([0, 1, 0, 1, 0, 2]), 3, 2)
    found = model.probability(np.array([[0, 0], [0, 1], [0, 2], [1, 0], [2, 1]]))
    left = 0.2 * 2 / 3 / 3
    expected = [left, 1.8 / 3 + left, 0.8 / 3 + left, 1.8 / 2 + 0.2 / 2 / 3, 1 / 3]
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def textbook(rows, order):
    """p(w | h) by the recursion of the module's docstring, with dictionaries."""
    rows = np.atleast_2d(rows).tolist()

    def runs(k):
        return Counter(tuple(row[i : i + k]) for row in rows for i in range(len(row) - k + 1))

    counts = {order: runs(order)}
    for k in range(1, order):
        counts[k] = Counter(gram[1:] for gram in runs(k + 1))

    def p(k, context, token):
        if k == 0:
            return 1 / VOCABULARY
        count = counts[k]
        lower = p(k - 1, context[1:], token)
        after = [count[gram] for gram in count if gram[:-1] == context]
        if not after:
            return lower
        values = list(count.values())
        once, twice = values.count(1), values.count(2)
        discount = once / (once + 2 * twice) if once else 0.5
        own = max(count[(*context, token)] - discount, 0) / sum(after)
        return own + discount * len(after) / sum(after) * lower

    return lambda window: p(order, tuple(window[:-1]), window[-1])


@pytest.mark.parametrize("shape", [(60,), (12, 5)], ids=["text", "sequences"])
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_the_formula_as_it_is_written(order, shape):
    """No run goes from one sequence into the next."""
    rows, windows = text().reshape(shape), all_states(VOCABULARY, order)
    rows[..., 0] = 3  # which stands after no token of its own sequence
    model, expected = KneserNey(rows, VOCABULARY, order), textbook(rows, order)
    found = model.probability(windows)
    np.testing.assert_allclose(found, [expected(w) for w in windows.tolist()], rtol=1e-12)
    np.testing.assert_allclose(found.reshape(-1, VOCABULARY).sum(axis=1), 1, rtol=1e-12)
    assert found.min() > 0, "runs that the text does not have"


def test_sequences_sum_to_1_and_give_the_masked_conditionals():
    model, rows = NGrams(text(), VOCABULARY, 3), all_states(VOCABULARY, 5)
    joint = model.next_token(rows).sum(axis=1)
    assert np.exp(joint).sum() == pytest.approx(1, rel=1e-12)
    table = joint.reshape((VOCABULARY,) * 5)
    masked = model.masked(rows)
    for place in range(5):
        conditional = table - np.logaddexp.reduce(table, axis=place, keepdims=True)
        np.testing.assert_allclose(masked[:, place], conditional.reshape(-1), rtol=1e-9)


def test_a_text_too_short_and_an_order_too_high_are_refused():
    with pytest.raises(ValueError, match="a text of 2 tokens in a row has no run of 3 tokens"):
        KneserNey(np.array([0, 1]), 3, 3)
    with pytest.raises(ValueError, match=r"expected an order of at least 1 with \|V\|\^order"):
        KneserNey(np.arange(9), 65536, 4)
