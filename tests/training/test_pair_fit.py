"""The fit of a pair model: its objective and slopes by the formula, closed forms, gaps, threads."""

import math
from multiprocessing import get_context

import numpy as np
import pytest

from manybody.training import pair_fit
from manybody.training.descent import minimise

STRENGTHS = (0.7, 0.2)


def sequences(count: int = 40, length: int = 7, colours: int = 5, seed: int = 0):
    """Tokens and weights of a set with repeats, gaps (0), and two sites that are always alike."""
    rng = np.random.default_rng(seed)
    tokens = rng.choice(colours, (count, length), p=[0.2, 0.5] + [0.3 / (colours - 2)] * 3)
    tokens[:, 2] = tokens[:, 1]
    tokens[:5] = tokens[5:10]
    return tokens, rng.random(count)


def by_formula(form, tokens, weights, vector) -> float:
    """The objective, one logit after the other."""
    gap, couplings = form.family.gap, form.blocks(vector)
    every = np.eye(form.vocabulary + (gap is not None))[tokens]
    means = (weights[:, None, None] * every).sum(axis=0) / weights.sum()
    means = means if gap is None else np.delete(means, gap, axis=1)
    fields = form.logits(vector) - np.einsum("ijab,jb->ia", couplings, means)
    total = STRENGTHS[0] * (couplings**2).sum() / 2 + STRENGTHS[1] * (fields**2).sum()
    for row, weight in zip(tokens.tolist(), weights, strict=True):
        colours = [None if a == gap else a - (gap is not None and a > gap) for a in row]
        for i, own in enumerate(colours):
            if own is None:
                continue
            logits = fields[i].copy()
            for j, other in enumerate(colours):
                if j != i and other is not None:
                    logits += couplings[i, j, :, other]
            total += weight * (np.logaddexp.reduce(logits) - logits[own])
    return total


@pytest.mark.long
@pytest.mark.parametrize("gap", [None, 0, 3])
@pytest.mark.parametrize(
    ("words", "heads", "colours"),
    [(1, None, 5), (3, None, 5), (3, (2,), 5), (3, (2, False), 5), (2, None, 30)],
)
def test_objective_and_slopes_are_the_formulas(monkeypatch, gap, words, heads, colours):
    tokens, weights = sequences()
    monkeypatch.setattr(pair_fit, "_cost", lambda visits, rows, size: -size if size <= words else 0)
    family = pair_fit.Family(tokens, colours, weights, gap)
    assert family.words.colours.shape[1] == words
    form = pair_fit.Heads(family, *heads) if heads else pair_fit.Pairs(family)
    objective = pair_fit.Objective(form, STRENGTHS)
    rng = np.random.default_rng(1)
    vector = rng.normal(size=form.size)
    gradient, half = np.empty(form.size), np.empty(form.size, np.float32)
    value = objective(vector, gradient)
    assert value == pytest.approx(by_formula(form, tokens, weights, vector), rel=1e-12)
    for place in [0, form.couplings - 1, form.couplings, *rng.integers(0, form.size, 8)]:
        moved = np.zeros(form.size)
        moved[place] = 1e-5
        ends = [by_formula(form, tokens, weights, vector + way * moved) for way in (1, -1)]
        assert gradient[place] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-6)
    single = vector.astype(np.float32)
    objective(single.astype(float), gradient)
    assert objective(single, half) == pytest.approx(value, rel=1e-6)
    assert np.linalg.norm(half - gradient) <= 1e-6 * np.linalg.norm(gradient)
    high = 30 * single  # logits whose exponentials single precision does not hold
    assert objective(high, half) == pytest.approx(by_formula(form, tokens, weights, high), rel=1e-5)


@pytest.mark.long
def test_two_sites_have_the_couplings_of_their_counts():
    """Almost without penalty the fit of two sites is their table of counts."""
    counts = np.random.default_rng(2).integers(20, 200, (3, 3)).astype(float)
    tokens = np.array([(a, b) for a in range(3) for b in range(3)])
    family = pair_fit.Family(tokens, 3, counts.ravel())
    model = pair_fit.solve(family, (1e-4, 1e-4), tolerance=0.0, kind=float).model
    np.testing.assert_array_equal(model.couplings[1, 0], model.couplings[0, 1].T)
    found = model.zero_sum()
    logs = np.log(counts)
    logs = logs - logs.mean(axis=0)
    np.testing.assert_allclose(found.couplings[0, 1], logs - logs.mean(axis=1)[:, None], atol=1e-5)
    shares = np.exp(found.fields[0][:, None] + found.fields[1] + found.couplings[0, 1])
    np.testing.assert_allclose(shares / shares.sum(), counts / counts.sum(), atol=1e-6)


@pytest.mark.long
def test_enough_heads_are_full_couplings_and_fewer_fit_less():
    tokens, weights = sequences(90)
    family = pair_fit.Family(tokens, 5, weights)
    full, most, few = (
        pair_fit.solve(family, STRENGTHS, heads=heads, kind=float) for heads in (None, 25, 1)
    )
    np.testing.assert_allclose(most.model.couplings, full.model.couplings, atol=1e-3)
    assert most.objective == pytest.approx(full.objective, rel=1e-6)
    assert few.objective > full.objective + 1
    # One head: all blocks are one matrix and its transpose, of any strengths.
    blocks = few.model.couplings[np.triu_indices(7, 1)].reshape(-1, 25)
    assert np.linalg.matrix_rank(blocks, tol=1e-6) <= 2


@pytest.mark.long
def test_a_fit_is_the_same_on_two_threads_in_a_forked_process_and_of_repeats_or_weights():
    tokens, _ = sequences(90)
    one, two = (pair_fit.fit(tokens, 5, threads=threads) for threads in (1, 2))
    np.testing.assert_array_equal(two.couplings, one.couplings)
    # A fork has none of the threads that are kept.
    forked = get_context("fork").Pool(1).apply_async(pair_fit.fit, (tokens, 5), {"threads": 2})
    np.testing.assert_array_equal(forked.get(60).couplings, one.couplings)
    unique, counts = np.unique(tokens, axis=0, return_counts=True)
    three = pair_fit.fit(unique[::-1], 5, counts[::-1])
    np.testing.assert_array_equal(three.couplings, one.couplings)


@pytest.mark.long
def test_a_gap_that_does_not_count_is_neither_input_nor_target():
    """Of three sites, one of which is a gap in all sequences, two have the couplings that they have
    alone; rows of gaps add nothing."""
    tokens, weights = sequences(60, 4)
    tokens = tokens[:, [0, 1, 3]] % 4 + 1
    precisely = dict(tolerance=0.0, kind=float)
    two = pair_fit.Family(tokens[:, :2], 5, weights, 0)
    alone = pair_fit.solve(two, STRENGTHS, **precisely).model
    hidden = np.vstack([np.where([False, False, True], 0, tokens), np.zeros((7, 3), int)])
    family = pair_fit.Family(hidden, 5, [*weights, *np.ones(7)], 0)
    found = pair_fit.solve(family, STRENGTHS, **precisely).model
    np.testing.assert_allclose(found.couplings[:2, :2], alone.couplings, atol=1e-5)
    assert not found.couplings[2].any()
    assert not found.couplings[..., 0].any()


def test_the_field_of_a_gap_has_its_frequency_to_first_order():
    """Alone it has the frequency that half a sequence more with and without a gap make."""
    tokens, weights = sequences(200)
    family = pair_fit.Family(tokens, 5, weights, 0)
    alone = np.exp(pair_fit.solve(family, (100.0, 0.01), kind=float).model.fields)
    expected = (weights @ (tokens == 0) + 0.5) / (weights.sum() + 1)
    np.testing.assert_allclose(alone[:, 0] / alone.sum(axis=1), expected, atol=1e-3)


def test_descent_ends_at_the_least_value():
    """A quadratic of 40 numbers whose axes are mixed; and a function with a wall, where steps must
    be shortened."""
    rng = np.random.default_rng(3)
    mixed = rng.normal(size=(40, 40))
    curvature, target = mixed @ mixed.T + np.eye(40), rng.normal(size=40)

    def quadratic(vector, gradient):
        gradient[:] = curvature @ (vector - target)
        return 0.5 * (vector - target) @ gradient

    vector = np.zeros(40)
    minimise(quadratic, vector, 1 / np.diag(curvature), 300, history=5)
    np.testing.assert_allclose(vector, target, atol=1e-6)

    def wall(vector, gradient):
        gradient[:] = 1 - 1 / vector
        return float((vector - np.log(vector)).sum()) if (vector > 0).all() else math.inf

    vector = np.array([0.01, 30.0, 4.0])
    with np.errstate(invalid="ignore", divide="ignore"):
        minimise(wall, vector, np.full(3, 5.0), 200, history=3)
    np.testing.assert_allclose(vector, 1, atol=1e-6)


def test_scales_of_the_penalty():
    tokens, weights = sequences()
    family = pair_fit.Family(tokens, 5, weights)
    assert pair_fit.penalty(family) == pytest.approx(0.01 * 6 * 4)
    assert pair_fit.penalty(pair_fit.Family(tokens, 5, weights, 0)) == pytest.approx(0.01 * 6 * 3)
    assert pair_fit.penalty(family, "plmdca") == pytest.approx(0.01 * weights.sum())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (dict(tokens=np.full((3, 4), 5)), r"tokens: shape \(3, 4\), expected .* 0 to 4"),
        (dict(weights=np.ones(2)), r"weights: shape \(2,\), expected \(3,\)"),
        (dict(weights=np.array([1, -1, 1])), "none below 0"),
        (dict(weights=np.zeros(3)), "not all 0"),
        (dict(scale="plmc"), "found 'plmc', expected gremlin or plmdca"),
    ],
)
def test_what_does_not_fit_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        pair_fit.fit(**{**dict(tokens=np.ones((3, 4), int), vocabulary=5), **given})


@pytest.mark.slow
def test_the_error_of_planted_couplings_is_near_the_least_possible():
    """Of 20 sites of 5 colours with 40 pairs, all pairs of four groups of five sites, and 20,000
    sequences. By Cramer and Rao no unbiased estimate of all pairs has less than the trace of the
    inverse information, which groups that are independent have by enumeration."""
    rng, count, groups, size, colours = np.random.default_rng(5), 20_000, 4, 5, 5
    states = np.indices((colours,) * size).reshape(size, -1).T
    first, second = np.triu_indices(size, 1)
    # Orthonormal contrasts of colours: in them the squares of J are those of the zero-sum gauge.
    contrasts = np.linalg.svd(np.eye(colours) - 1 / colours)[0][:, :-1]
    single = contrasts[states]  # state, site, contrast
    pairs = np.einsum("npa,npb->npab", single[:, first], single[:, second])
    both = np.concatenate([single.reshape(len(states), -1), pairs.reshape(len(states), -1)], 1)
    planted, drawn, bound, inverse = [], [], 0.0, []
    for _ in range(groups):
        own = 0.5 * rng.normal(size=(len(first), colours - 1, colours - 1))
        weights = np.exp(np.einsum("npab,pab->n", pairs, own))
        weights /= weights.sum()
        information = np.cov(both.T, aweights=weights, ddof=0)
        fields = size * (colours - 1)
        bound += np.linalg.inv(information)[fields:, fields:].trace()
        inverse.append(np.linalg.inv(information[:fields, :fields]).trace())
        planted.append(np.einsum("ca,pab,db->pcd", contrasts, own, contrasts))
        drawn.append(states[rng.choice(len(states), count, p=weights)])
    # Sites of two groups: the information is the product of those of their colours.
    bound += (np.sum(inverse) ** 2 - np.sum(np.square(inverse))) / 2
    family = pair_fit.Family(np.concatenate(drawn, axis=1), colours)
    found = pair_fit.solve(family, (0.1, 0.01), tolerance=1e-8).model.zero_sum().couplings
    error = (found[np.triu_indices(groups * size, 1)] ** 2).sum()
    for group, own in enumerate(planted):
        part = found[group * size + first, group * size + second]
        error += ((part - own) ** 2).sum() - (part**2).sum()
    assert 0.9 < math.sqrt(error * count / bound) < 1.2


def test_words_are_short_where_their_tables_would_outgrow_the_cache(monkeypatch):
    tokens, _ = sequences(400)
    assert pair_fit.Family(tokens, 5).words.colours.shape[1] > 1
    monkeypatch.setattr(pair_fit, "CACHE", 1)
    assert pair_fit.Family(tokens, 5).words.colours.shape[1] == 1
