"""Divergences from n-grams: laws by enumeration and by counts, and models that are n-grams."""

import numpy as np
import pytest
import tabulated
import torch
from enumerated import all_states, boltzmann

from manybody.data.hamiltonian import Hamiltonian
from manybody.data.ngrams import KneserNey
from manybody.io.refusal import Refusal
from manybody.measure import divergences, flips
from manybody.measure.flips import Conditionals

LENGTH, VOCABULARY = 5, 3


def planted():
    rng = np.random.default_rng(4)
    couplings = np.triu(rng.normal(size=(LENGTH, LENGTH)), 1)
    colours = rng.normal(size=(VOCABULARY, VOCABULARY))
    return Hamiltonian(couplings + couplings.T, colours + colours.T, 0.4)


def conditional(law, given, place, token):
    """p(token at place | given, place -> token) by a sum over all states."""
    states = all_states(VOCABULARY, LENGTH)
    here = np.all([states[:, site] == value for site, value in given.items()], axis=0)
    here = here & np.ones(len(states), bool)
    weights = boltzmann(law, states)
    return weights[here & (states[:, place] == token)].sum() / weights[here].sum()


def test_the_n_grams_of_a_hamiltonian_are_sums_over_all_states():
    hamiltonian, tokens = planted(), np.random.default_rng(1).integers(0, VOCABULARY, (4, LENGTH))
    law = divergences.of_hamiltonian(hamiltonian)
    for order, place in ((1, 2), (2, 1), (3, 4), (3, 2)):
        found = law(order, tokens, place)
        for row, block in zip(found, tokens, strict=True):
            given = {site: block[site] for site in range(place - order + 1, place)}
            expected = [conditional(hamiltonian, given, place, a) for a in range(VOCABULARY)]
            np.testing.assert_allclose(row, expected, rtol=1e-12)


def test_the_true_next_tokens_of_a_hamiltonian_are_sums_over_all_states():
    hamiltonian, tokens = planted(), np.random.default_rng(1).integers(0, VOCABULARY, (4, LENGTH))
    found = flips.ask(flips.of_prefixes(hamiltonian), tokens, np.tile(np.arange(1, LENGTH), (4, 1)))
    for block, rows in zip(tokens, found.softmax(-1).numpy(), strict=True):
        for place in range(1, LENGTH):
            given = dict(enumerate(block[:place]))
            expected = [conditional(hamiltonian, given, place, a) for a in range(VOCABULARY)]
            np.testing.assert_allclose(rows[place - 1], expected, rtol=1e-12)


def of_bigrams(table):
    """A causal model whose next token depends on the last one alone."""
    logs = torch.from_numpy(np.log(table))
    return Conditionals(lambda tokens: logs[tokens], len(table), True, 3)


def test_a_model_of_bigrams_is_at_its_law_and_away_from_others_by_the_formula():
    rng = np.random.default_rng(2)
    pairs, singles = rng.dirichlet(np.ones(4), 4), rng.dirichlet(np.ones(4))
    tokens = rng.integers(0, 4, (10, 6))

    def law(order, tokens, place):
        return pairs[tokens[:, place - 1]] if order == 2 else np.tile(singles, (len(tokens), 1))

    found = divergences.divergences(
        of_bigrams(pairs), tokens, divergences.references(law, tokens, 2)
    ).set_index(["quantity", "order"])
    assert abs(found["value"]["KL(p||q)", 2]) < 1e-6
    assert abs(found["value"]["KL(q||p)", 2]) < 1e-6
    for name, values in (
        ("KL(p||q)", singles * np.log(singles / pairs)),
        ("KL(q||p)", pairs * np.log(pairs / singles)),
    ):
        of_sequences = values.sum(1)[tokens[:, :-1]].mean(1)
        assert found["value"][name, 1] == pytest.approx(of_sequences.mean(), rel=1e-5)
        error = of_sequences.std(ddof=1) / np.sqrt(10)
        assert found["se"][name, 1] == pytest.approx(error, rel=1e-5)


def test_all_orders_are_held_against_the_same_targets():
    places = []

    def law(order, tokens, place):
        places.append((order, place))
        return np.full((len(tokens), 3), 1 / 3)

    tokens = np.zeros((2, 6), int)
    found = divergences.references(law, tokens, 3)
    assert found.shape == (3, 2, 4, 3)
    assert places == [(order, place) for order in (1, 2, 3) for place in (2, 3, 4, 5)]
    assert divergences.references(law, tokens, 1).shape == (1, 2, 5, 3)


def test_whole_prefixes_leave_no_divergence_from_the_truth():
    hamiltonian, tokens = planted(), np.random.default_rng(1).integers(0, VOCABULARY, (9, LENGTH))
    laws = divergences.references(divergences.of_hamiltonian(hamiltonian), tokens, LENGTH)
    table = divergences.divergences(flips.of_prefixes(hamiltonian), tokens, laws)
    values = table.set_index(["quantity", "order"])["value"]
    assert abs(values["KL(p||q)", LENGTH]) < 1e-6
    assert values["KL(p||q)", 1] > 0.1


def test_n_grams_of_a_text_are_kneser_neys():
    stream = np.random.default_rng(0).integers(0, 4, 300)
    law, tokens = divergences.of_stream(stream, 4, 3), stream[:20].reshape(4, 5)
    for order in (1, 2, 3):
        found = law(order, tokens, 3)
        np.testing.assert_allclose(found.sum(1), 1)
        windows = tokens[:, 4 - order : 4]
        expected = KneserNey(stream, 4, order).probability(windows)
        np.testing.assert_allclose(found[np.arange(4), tokens[:, 3]], expected)


def test_a_masked_model_and_too_large_n_are_refused():
    tokens = np.zeros((4, 5), int)
    law = divergences.of_stream(np.arange(60) % 3, 3, 2)
    with pytest.raises(Refusal, match="orders: found 6; expected 1 to L = 5"):
        divergences.references(law, tokens, 6)
    laws = divergences.references(law, tokens, 2)
    with pytest.raises(Refusal, match="found a masked model"):
        divergences.divergences(tabulated.model(5, 3, 1), tokens, laws)
