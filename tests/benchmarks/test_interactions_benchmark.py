"""The benchmark against shapiq on 6 free positions of a random model, whose truth is enumerated."""

from itertools import combinations

import numpy as np
import pytest
import torch

from benchmarks import interactions
from manybody import models
from manybody.measure import flips


@pytest.fixture
def few(monkeypatch):
    """A model, and the contexts and answers of 3 triples of it; blocks of 16 tokens."""
    monkeypatch.setattr(interactions, "FREE", 6)
    monkeypatch.setattr(interactions, "PAIRS", list(combinations(range(6), 2)))
    torch.manual_seed(0)
    model = models.build({**interactions.SIZES, "length": 16, "vocabulary": 100}).eval()
    text = np.random.default_rng(0).integers(0, 100, (40, 16))
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.15 * torch.randn_like(weight))
        metric = flips.without_head(flips.of_model(model), flips.unigram(text, 100))
        blocks = text[:6].reshape(3, 2, 16)
        tables = [interactions.contexts(model, s, r, 7, metric) for s, r in blocks]
    squares = [(interactions.transformed(t.double().numpy()) ** 2).sum(1) for t in tables]
    return model, text, torch.stack(tables), [interactions.answers(each) for each in squares]


@torch.no_grad()
def test_the_truth_is_the_walsh_transform_of_the_logits(few):
    model, text, _, truth = few
    given, mu = flips.of_model(model), flips.unigram(text, 100)
    around = interactions.free(7)
    assert sorted(around) == [4, 5, 6, 8, 9, 10]
    parts = [part for _, part in flips.cube(given, text[0], text[1], around, np.array([7]))]
    weights = flips.walsh_weights(torch.cat(parts), mu)[:, 0]
    assert truth[0]["M_1"] == pytest.approx(np.arange(7) @ weights, rel=1e-5)
    assert truth[0]["M_2"] == pytest.approx([0, 0, 1, 3, 6, 10, 15] @ weights, rel=1e-5)
    assert sum(truth[0]["pairs"]) == pytest.approx(weights[2], rel=1e-5)


def test_our_estimates_tend_to_the_truth(few):
    *_, table, truth = few
    ours = interactions.Ours(table, 0)
    for order in (1, 2):
        expected = [each[f"M_{order}"] for each in truth]
        np.testing.assert_allclose(ours.orders(order, 60), expected, rtol=0.12)
    found = ours.pairs(300, np.random.default_rng(0))
    expected = np.array([each["pairs"] for each in truth])
    assert np.linalg.norm(found - expected) < 0.05 * np.linalg.norm(expected)
