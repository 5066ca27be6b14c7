"""Flips of context tokens: what is drawn, with which probability, and what it does to logits."""

from itertools import combinations

import explicit
import numpy as np
import pytest
import tabulated
import torch

from manybody import models
from manybody.measure import flips

LENGTH, VOCABULARY = 6, 5
SIZES = dict(vocabulary=VOCABULARY, length=LENGTH, layers=2, heads=2, width=8, mlp=16)


def built(architecture, **sizes):
    torch.manual_seed(0)
    return models.build({"architecture": architecture, **SIZES, **sizes}).eval()


def random_tokens(count, seed=0, vocabulary=VOCABULARY, length=LENGTH):
    return np.random.default_rng(seed).integers(0, vocabulary, (count, length))


@torch.no_grad()
def test_a_masked_model_is_asked_as_explicit_masks_ask_it():
    model, tokens = built("bert"), random_tokens(7)
    targets = np.arange(7)[:, None] % LENGTH
    found = flips.ask(flips.of_model(model), tokens, targets)
    expected = explicit.logits(
        model, torch.from_numpy(tokens), torch.arange(7), torch.from_numpy(targets[:, 0])
    )
    assert found.dtype == torch.float64
    torch.testing.assert_close(found[:, 0], expected.double(), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_positions_at_and_after_the_target_have_no_influence_in_a_causal_model():
    model = flips.of_model(built("gpt"))
    assert model.causal
    start, targets = random_tokens(1), np.arange(1, LENGTH)[None]
    for source in range(LENGTH):
        other = start.copy()
        other[:, source] = (start[:, source] + 1) % VOCABULARY
        change, here = flips.alternating(model, start, other, np.array([[source]]), targets)
        moved = change.abs().amax(2)[0].numpy()
        assert here.shape == (1, LENGTH - 1, VOCABULARY)
        assert (moved[: max(source, 0)] < 1e-7).all()  # targets up to the source
        assert (moved[source:] > 1e-4).all()


def test_mu_is_the_law_of_counts_and_halves_without_special_tokens():
    mu = flips.unigram(np.array([[0, 1, 1], [1, 4, 4]]), 5, special=(4,))
    np.testing.assert_allclose(mu, np.array([1.5, 3.5, 0.5, 0.5, 0]) / 6)


def test_the_norm_is_that_of_centred_logits():
    rng, mu = np.random.default_rng(0), np.array([0.5, 0.3, 0.2])
    g = rng.normal(size=(4, 2, 3))
    found = flips.norm(torch.from_numpy(g.copy()), mu)
    np.testing.assert_allclose(found, ((g - (g @ mu)[..., None]) ** 2) @ mu)
    np.testing.assert_allclose(flips.norm(torch.from_numpy(g + 1e3), mu), found)


@pytest.mark.parametrize("bad", [lambda z: z[:, :-1], lambda z: z * np.nan])
def test_logits_of_another_shape_or_not_finite_are_refused(bad):
    given = tabulated.model(4, 3, 1)
    model = given._replace(logits=lambda *asked: bad(given.logits(*asked)))
    with pytest.raises(ValueError, match="the model gave logits"):
        flips.ask(model, random_tokens(2, vocabulary=3, length=4), np.zeros((2, 1), int))


@torch.no_grad()
@pytest.mark.parametrize("architecture", ["bert", "gpt", "factored"])
def test_norms_of_differences_of_features_are_those_of_logits(architecture):
    """The output layer has a bias and rows that mu weighs unequally; d = 8 is below |V| = 30."""
    own = dict(rank=8, bias=True) if architecture == "factored" else {}
    size = SIZES if not own else dict(length=LENGTH, layers=2)
    torch.manual_seed(2)
    model = models.build({"architecture": architecture, **size, "vocabulary": 30, **own}).double()
    for weight in model.parameters():
        weight.add_(torch.randn_like(weight))
    given, mu = flips.of_model(model), np.random.default_rng(2).dirichlet(np.full(30, 0.3))
    inner, root = flips.without_head(given, mu)
    assert (inner.vocabulary, inner.batch >= given.batch) == (8, True)
    s, r = (random_tokens(3, seed, vocabulary=30) for seed in (0, 1))
    targets = np.tile(np.arange(1, LENGTH), (3, 1)) if given.causal else np.full((3, 1), 2)
    chosen = np.array([[0, 1], [1, 3], [4, 0]])
    expected, _ = flips.alternating(given, s, r, chosen, targets)
    found, _ = flips.alternating(inner, s, r, chosen, targets)
    norms = flips.norm(expected, mu)
    assert norms.max() > 1e-4
    np.testing.assert_allclose(flips.norm(found, root), norms, rtol=1e-9, atol=1e-14)


def test_alternating_sums_and_the_cube_follow_the_definition():
    model, mu = tabulated.model(6, 3, 4), np.array([0.5, 0.3, 0.2])
    s, r = random_tokens(2, vocabulary=3)
    r = np.where(r == s, (s + 1) % 3, r)
    target, chosen = np.array([[2]]), np.array([[5, 0, 3]])
    found, first = flips.alternating(model, s[None], r[None], chosen, target)
    expected = 0
    for size in range(4):
        for flipped in combinations(chosen[0], size):
            here = s.copy()
            here[list(flipped)] = r[list(flipped)]
            expected = expected + (-1) ** size * flips.ask(model, here[None], target) / 8
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(first, flips.ask(model, s[None], target))

    parts = list(flips.cube(model._replace(batch=5), s, r, np.array([5, 0, 3, 1, 4]), target[0]))
    flipped = [int(each) for count, _ in parts for each in count]
    assert flipped == [n.bit_count() for n in range(32)]
    weights = flips.walsh_weights(torch.cat([logits for _, logits in parts]), mu)
    np.testing.assert_allclose(weights[:, 0], tabulated.walsh(model, s, r, 2, mu)[:6], atol=1e-12)


def test_octaves():
    assert flips.octaves(np.arange(1, 10)).tolist() == [0, 1, 2, 2, 3, 3, 3, 3, 4]


def test_chances_mix_the_profile_with_a_uniform_share_over_the_context():
    context = np.array([[[True, True, False, True, False]]])
    profile = np.array([8.0, 4.0, 2.0])
    found = flips.chances(context, np.array([[2]]), profile)[0, 0]
    shaped = np.array([4, 8, 0, 8, 0]) / 20
    np.testing.assert_allclose(found, 0.9 * shaped + 0.1 * context[0, 0] / 3)
    assert flips.chances(context, np.array([[2]]), None)[0, 0, 0] == pytest.approx(1 / 3)
    assert not flips.chances(context & False, np.array([[2]]), profile).any()


def test_sets_are_drawn_with_the_probability_that_is_said():
    chance = np.array([0.5, 0.3, 0.0, 0.15, 0.05])
    sets = list(combinations([0, 1, 3, 4], 2))
    said = flips.set_chance(chance[np.array(sets)])
    assert said.sum() == pytest.approx(1)
    assert said[0] == pytest.approx(0.5 * 0.3 / 0.5 + 0.3 * 0.5 / 0.7)
    count = 40_000
    drawn = flips.draw_set(np.tile(chance, (count, 1)), 2, np.random.default_rng(0))
    assert (drawn[:, 0] != drawn[:, 1]).all()
    found = np.array([(np.sort(drawn, axis=1) == one).all(1).mean() for one in sets])
    assert (np.abs(found - said) < 4 * np.sqrt(said * (1 - said) / count)).all()
    # of a set that is the whole context
    assert flips.set_chance(np.array([0.2, 0.5, 0.3])) == pytest.approx(1)
