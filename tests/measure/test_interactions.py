"""Multi-order interactions against their definition, closed forms, and estimates from draws."""

from itertools import combinations

import numpy as np
import pytest
import tabulated
import torch
from scipy.special import logsumexp

from manybody.io.refusal import Refusal
from manybody.measure import flips, interactions, spectrum
from manybody.measure.flips import Conditionals


def random_tokens(count, length, vocabulary, seed=0):
    return np.random.default_rng(seed).integers(0, vocabulary, (count, length))


def log_odds(model, context, target, token):
    """log p - log of the sum of the others, where p is too near to 1 for 1 - p."""
    logits = flips.ask(model, context[None], asked(model, len(context), target))[0, -1].numpy()
    return logits[token] - logsumexp(np.delete(logits, token))


def asked(model, length, target):
    return np.arange(1, length)[None] if model.causal else np.array([[target]])


def by_definition(model, s, r, target, size):
    """The mean over pairs of |I^(m)|, m = size, with loops over pairs and sets."""
    context = [place for place in range(len(s)) if place != target]

    def f(present):
        own = np.isin(np.arange(len(s)), present)
        return log_odds(model, np.where(own, s, r), target, s[target])

    found = []
    for j, k in combinations(context, 2):
        others = [place for place in context if place not in (j, k)]
        terms = [
            f([*chosen, j, k]) - f([*chosen, j]) - f([*chosen, k]) + f(chosen)
            for chosen in combinations(others, size)
        ]
        found.append(abs(np.mean(terms)))
    return np.mean(found)


def blocks(model, tokens, special=()):
    """s, r and free tokens, as `spectrum` pairs the blocks."""
    draws = spectrum.Draws(model, tokens, None, "text", special, 1, 0)
    return draws.s, draws.r, draws.free


@pytest.mark.parametrize("causal", [False, True])
def test_all_sets_give_what_the_definition_says(causal):
    model, tokens = tabulated.model(5, 3, 3, causal=causal), random_tokens(4, 5, 3)
    table = interactions.enumerated(model, tokens)
    s, r, _ = blocks(model, tokens)
    targets = [4] if causal else range(5)
    values = [
        [np.mean([by_definition(model, *pair, t, m) for t in targets]) for m in range(3)]
        for pair in zip(s, r, strict=True)
    ]
    assert table["size"].tolist() == [0, 1, 2]
    np.testing.assert_allclose(table["value"], np.mean(values, axis=0), rtol=1e-10)
    errors = np.std(values, axis=0, ddof=1) / np.sqrt(len(values))
    np.testing.assert_allclose(table["se"], errors, rtol=1e-10)


def of_products(length, terms):
    """A model of two tokens whose log-odds of token 0 is a sum of weights over tuples of distances
    from the target, each counted if all its tokens are 0."""

    def masked(tokens, positions):
        rows, odds = torch.arange(len(tokens)), torch.zeros(len(tokens), dtype=torch.float64)
        for distances, weight in terms.items():
            zero = [tokens[rows, (positions + d) % length] == 0 for d in distances]
            odds += weight * torch.stack(zero).all(0).double()
        return torch.stack([odds, 0 * odds], dim=1)

    return Conditionals(masked, 2)


def zeros_and_ones(length):
    """Blocks of zeros, paired with blocks of ones, and the other way round for half of them."""
    return np.repeat([[0] * length, [1] * length], 30, axis=0)


@pytest.mark.parametrize("size", range(5))
def test_a_triple_shows_up_with_its_third_token(size):
    """f = w if three tokens are present: I^(m) = w m / (N - 2) for three pairs of C(N, 2).

    In blocks of ones the three are present where their own tokens are not: |I| is that at
    N - 2 - m.
    """
    length, weight = 7, 1.7
    model, tokens = of_products(length, {(1, 2, 4): weight}), zeros_and_ones(length)
    table = interactions.enumerated(model, tokens).set_index("size")
    s, r, _ = blocks(model, tokens)
    of_zeros = ((s == 0) & (r == 1)).all(1).mean()
    of_ones = ((s == 1) & (r == 0)).all(1).mean()
    expected = 3 * weight / 15 * (of_zeros * size + of_ones * (4 - size)) / 4
    assert table["value"][size] == pytest.approx(expected, abs=1e-12)


def test_a_pair_of_context_tokens_is_seen_alike_in_every_context_and_one_alone_never():
    length = 7
    model, tokens = of_products(length, {(1, 3): -0.8}), random_tokens(40, length, 2)
    table = interactions.enumerated(model, tokens)
    assert np.ptp(table["value"]) < 1e-12 < table["value"].min()
    alone = of_products(length, {(1,): 0.5, (3,): 2.0})
    assert interactions.enumerated(alone, tokens)["value"].max() < 1e-12


def test_with_three_tokens_a_model_of_pairs_has_interactions_at_every_size():
    model, tokens = tabulated.model(7, 3, 1), random_tokens(20, 7, 3)
    assert interactions.enumerated(model, tokens)["value"].min() > 0.01


@pytest.mark.parametrize("causal", [False, True])
def test_draws_come_to_what_all_sets_give(causal):
    model, tokens = tabulated.model(7, 3, 4, causal=causal), random_tokens(8, 7, 3)
    exact = interactions.enumerated(model, tokens)["value"][[0, 2, 4]].to_numpy()
    drawn = interactions.drawn(model, tokens, [0, 2, 4], pairs=4000, contexts=2)["value"]
    np.testing.assert_allclose(drawn, exact, rtol=0.08)
    # Of sizes 0 and 4 there is one set. At 2, |mean of two sets| is more than a tenth too large.
    assert drawn[1] / drawn[0] == pytest.approx(exact[1] / exact[0], rel=0.05)
    few = dict(sizes=[0, 2], pairs=50, contexts=2)
    once, again = (
        interactions.drawn(model._replace(batch=batch), tokens, **few) for batch in (13, 4096)
    )
    np.testing.assert_allclose(once["value"], again["value"], rtol=1e-12)


def test_special_tokens_stay_and_are_no_targets():
    """Were they exchanged or asked about, all interactions would change."""
    model, tokens = tabulated.model(6, 3, 3), random_tokens(12, 6, 2)
    tokens[:, 2] = 2
    table = interactions.enumerated(model, tokens, special=(2,))
    s, r, free = blocks(model, tokens, (2,))
    assert (s[:, 2] == 2).all()
    assert (r[:, 2] == 2).all()
    assert not free[:, 2].any()
    values = [
        np.mean([by_definition(model, *pair, t, 1) for t in (0, 1, 3, 4, 5)])
        for pair in zip(s, r, strict=True)
    ]
    assert table["value"][1] == pytest.approx(np.mean(values), rel=1e-10)
    drawn = interactions.drawn(model, tokens, [1], pairs=4000, contexts=4, special=(2,))
    assert drawn["value"][0] == pytest.approx(table["value"][1], rel=0.1)


def test_a_causal_block_that_ends_with_a_special_token_is_left_out():
    model, tokens = tabulated.model(5, 3, 2, causal=True), random_tokens(12, 5, 2)
    tokens[::2, -1] = 2
    kept = interactions.enumerated(model, tokens, special=(2,))
    drawn = interactions.drawn(model, tokens, [1], pairs=4000, contexts=4, special=(2,))
    assert drawn["value"][0] == pytest.approx(kept["value"][1], rel=0.2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (dict(sizes=[4], pairs=2, contexts=2), "sizes: found 4; expected at most L - 3 = 3"),
        (dict(sizes=[1], pairs=2, contexts=3), "contexts: found 3; expected an even number"),
    ],
)
def test_what_cannot_be_drawn_is_refused(call, message):
    with pytest.raises(Refusal, match=message):
        interactions.drawn(tabulated.model(6, 3, 1), random_tokens(9, 6, 3), **call)


@pytest.mark.parametrize("length", [2, 18])
def test_sequences_of_a_length_that_cannot_be_enumerated_are_refused(length):
    model = Conditionals(lambda tokens, positions: torch.zeros(len(tokens), 3), 3)
    with pytest.raises(Refusal, match=f"found L = {length}; expected at"):
        interactions.enumerated(model, random_tokens(9, length, 3))
