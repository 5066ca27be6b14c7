"""Chains of pair models and partition functions, against all states."""

import numpy as np
import pytest
from enumerated import all_states, distance, floor
from planted_pairs import law as law_of, planted

from manybody.data.pair_model import PairModel
from manybody.sampling import pair_chains
from manybody.sampling.pair_chains import (
    Chains,
    Tables,
    frequencies,
    log_partition,
    nearest,
    sample,
)

CHAINS = 40_000
STREAM = np.random.SeedSequence(3)


# Colours of one, two, three and four vectors; sites in groups of one, two and three.
@pytest.mark.long
@pytest.mark.parametrize(
    ("length", "vocabulary", "size"),
    [(6, 3, 1), (6, 3, 2), (5, 3, 3), (3, 9, 1), (3, 9, 2), (2, 21, 1), (2, 26, 1)],
)
def test_chains_have_the_law_of_their_model(length, vocabulary, size, monkeypatch):
    width = -(-vocabulary // 8) * 8
    monkeypatch.setattr(pair_chains, "BYTES", 4 * width * length * vocabulary**size / size)
    model = planted(length, vocabulary, 0.6)
    _, law, _ = law_of(model)
    assert Tables.of(model.fields, model.couplings).sizes[1] == size
    tokens = sample(model, CHAINS, 30, 1, label="")
    assert distance(tokens, law, vocabulary) < 1.1 * floor(law, CHAINS)


@pytest.mark.long
def test_chains_follow_log_p_and_depend_on_neither_threads_nor_their_number(monkeypatch):
    monkeypatch.setattr(pair_chains, "CHUNK", 16)
    model = planted(9, 5, 0.6)
    tables = Tables.of(model.fields, model.couplings)
    chains = Chains.begun(100, 9, 5, STREAM)
    before = model.scores(chains.tokens)
    chains.move(tables, 10)
    np.testing.assert_allclose(chains.scores, model.scores(chains.tokens) - before, atol=1e-4)
    for count, threads in ((100, 3), (37, 2)):
        others = Chains.begun(count, 9, 5, STREAM)
        others.move(tables, 4, threads)
        others.move(tables, 6, threads)
        for mine, other in zip(chains, others, strict=True):
            np.testing.assert_array_equal(mine[:count], other)


@pytest.mark.long
@pytest.mark.parametrize("beta", [0.0, 0.4])
def test_beta_leads_from_the_base_to_the_model(beta):
    model, base = planted(4, 3, 1.0), planted(4, 3, seed=1).fields
    own = PairModel(base, 0 * model.couplings, {})
    chains = Chains.begun(CHAINS, 4, 3, STREAM)
    chains.move(Tables.of(model.fields, model.couplings, base), 20, beta=beta)
    states = all_states(3, 4)
    weights = np.exp((1 - beta) * own.scores(states) + beta * model.scores(states))
    law = weights / weights.sum()
    assert distance(chains.tokens, law, 3) < 1.1 * floor(law, CHAINS)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_frequencies_are_weighted_counts(weighted, threads):
    rng = np.random.default_rng(0)
    tokens, weights = rng.integers(0, 4, (50, 7)), rng.uniform(size=50)
    each = weights / weights.sum() if weighted else np.full(50, 1 / 50)
    one_hot = np.eye(4)[tokens]
    sites, pairs = frequencies(tokens, 4, weights if weighted else None, threads)
    np.testing.assert_allclose(sites, np.einsum("n,nia->ia", each, one_hot), atol=1e-12)
    expected = np.einsum("n,nia,njb->ijab", each, one_hot, one_hot)[np.triu_indices(7, 1)]
    np.testing.assert_allclose(pairs, expected, atol=1e-12)


def test_a_sequence_is_not_its_own_nearest():
    natural = np.array([[0, 0, 0, 0], [0, 0, 0, 1], [2, 2, 2, 2], [2, 2, 2, 2]])
    assert nearest(natural, natural, itself=True).tolist() == [0.25, 0.25, 0, 0]
    assert nearest(np.array([[0, 0, 0, 0], [1, 1, 2, 2]]), natural).tolist() == [0, 0.5]


@pytest.mark.long
def test_the_partition_function_is_that_of_all_states_within_its_errors():
    model = planted(5, 3, 1.0)
    _, _, exact = law_of(model)
    base = np.random.default_rng(1).normal(size=(5, 3))
    found = [log_partition(model, 500, 20, seed) for seed in range(12)]
    found += [log_partition(model, 500, 20, seed, base=base) for seed in range(12)]
    off = np.array([(value - exact) / error for value, error in found])
    assert max(error for _, error in found) < 0.2
    assert abs(off).max() < 4
    assert 0.5 < off.std() < 1.6
