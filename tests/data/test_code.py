"""Code laws against tables of all sequences, written as products over the terms."""

from math import log, prod

import numpy as np
import pytest
from corpora import drawn
from enumerated import all_states

from manybody.data import SourceError, code
from manybody.data.code import CodeLaw, coupling_of
from manybody.data.cut import marginals_kept
from manybody.data.enumeration import chi_square, numbers

# Terms, couplings, L and q: disjoint, terms that share sites, modulo 3, nested.
MIXED = [(0, 1), (1, 2), (2, 3, 4), (4, 5, 6, 7)]
LAWS = {
    "disjoint": ([(0, 1), (4, 2, 3), (8, 9, 10, 11)], [0.7, 0.5, -0.9], 12, 2),
    "shared": (MIXED, [0.4, -0.7, 0.5, 0.3], 8, 2),
    "modulo 3": ([(0, 1), (1, 2), (2, 3, 4), (1, 3, 5, 6)], [0.4, 0.7, -0.5, 0.8], 7, 3),
    "nested": ([(0, 1), (0, 1, 2), (3, 4), (4, 5, 6)], [0.4, -0.7, 0.5, 0.3], 7, 2),
}
SOURCE = dict(
    kind="code", length=14, seed=3, sequences=dict(train=400, validation=100, test=50),
    terms=[{"sites": [1, 3], "information": 0.2}],
    groups=[
        {"order": 3, "count": 2, "information": 0.05}, {"order": 4, "count": 1, "coupling": -1.0},
    ],
)  # fmt: skip


def law_of(name):
    return CodeLaw(*LAWS[name])


def products(name):
    """g of each term for all sequences in lexicographic order: (terms, q^L)."""
    terms, _, length, q = LAWS[name]
    sums = [all_states(q, length)[:, term].sum(axis=1) % q for term in terms]
    return [np.where(total == 0, 1.0, -1 / (q - 1)) for total in sums]


def table(name):
    """p of all sequences, (q,) * L, and in the nested law of a spin that a field leaves no mean."""
    _, couplings, length, q = LAWS[name]
    g = products(name)
    logs = sum(coupling * one for coupling, one in zip(couplings, g, strict=True))
    if name == "nested":
        spin = 1 - 2 * all_states(2, length)[:, 2]
        ends = [np.exp(logs)[spin == sign].sum() for sign in (1, -1)]
        logs -= spin * log(ends[0] / ends[1]) / 2
    p = np.exp(logs)
    return (p / p.sum()).reshape((q,) * length)


def entropy(p):
    return float(-(p * np.log(p)).sum())


@pytest.mark.parametrize("name", LAWS)
def test_probabilities_conditionals_entropy_means_and_losses(name):
    law, p = law_of(name), table(name)
    states = all_states(law.vocabulary, law.length)
    np.testing.assert_allclose(np.exp(law.log_probability(states)), p.ravel(), rtol=1e-10)
    assert law.entropy == pytest.approx(entropy(p), abs=1e-10)
    conditionals = np.exp(law.log_conditionals(states))
    for site in range(law.length):
        expected = np.moveaxis(p / p.sum(axis=site, keepdims=True), site, -1)
        own = conditionals[:, site].reshape(*p.shape, law.vocabulary)
        for symbol in range(law.vocabulary):  # whatever stands at the site itself
            np.testing.assert_allclose(np.take(own, symbol, axis=site), expected, atol=1e-10)
    np.testing.assert_allclose(
        law.means, [(p.ravel() * one).sum() for one in products(name)], atol=1e-10
    )
    kept = 0.5 * law.couplings * (law.orders != 3)
    other = CodeLaw(law.sites, kept, law.length, law.vocabulary)
    own = np.take_along_axis(other.log_conditionals(states), states[:, :, None], axis=2)
    np.testing.assert_allclose(law.site_losses(other), -p.ravel() @ own[:, :, 0], atol=1e-10)


@pytest.mark.parametrize("name", LAWS)
def test_connected_information_is_that_of_laws_of_largest_entropy(name):
    law, p = law_of(name), table(name)
    cuts = {order: marginals_kept(np.log(p), order) for order in (1, 2, 3, 4)}
    for order, found in law.connected().items():
        assert found == pytest.approx(entropy(cuts[order - 1]) - entropy(cuts[order]), abs=1e-10)
        kept = law.kept(law.orders <= order).log_probability(all_states(law.vocabulary, law.length))
        np.testing.assert_allclose(np.exp(kept), cuts[order].ravel(), atol=1e-10)


@pytest.mark.parametrize("name", LAWS)
def test_samples(name):
    law = law_of(name)
    drawn = law.sample(20000, np.random.default_rng(1)).astype(int)
    assert chi_square(table(name).ravel(), numbers(drawn, law.vocabulary))["chance"] > 1e-3


@pytest.mark.parametrize("q", [2, 5])
def test_long_sequences(q):
    sites = [tuple(range(start, start + order)) for start, order in ((0, 2), (20, 3), (50, 4))]
    law = CodeLaw(sites, [coupling_of(c, q) for c in (0.2, 0.05, 0.02)], 60, q)
    np.testing.assert_allclose(law.term_information(), [0.2, 0.05, 0.02], atol=1e-12)
    assert law.entropy == pytest.approx(60 * log(q) - 0.27)
    drawn = law.sample(20000, np.random.default_rng(2)).astype(int)
    error = np.sqrt(np.var(law.log_probability(drawn)) / len(drawn))
    assert abs(-law.log_probability(drawn).mean() - law.entropy) < 4 * error
    for term, mean in zip(law.sites, law.means, strict=True):
        g = np.where(drawn[:, term].sum(axis=1) % q == 0, 1, -1 / (q - 1))
        assert abs(g.mean() - mean) < 4 * g.std() / np.sqrt(len(g))
    singles = [np.bincount(column, minlength=q) for column in drawn.T]
    assert np.abs(np.array(singles) / len(drawn) - 1 / q).max() < 5 * (q * len(drawn)) ** -0.5


@pytest.mark.parametrize(
    ("terms", "q", "said"),
    [
        ([(0, 1), (1, 2), (0, 2)], 2, r"found \[0, 2\], a combination of \[0, 1\] and \[1, 2\]"),
        ([(0, 1, 2), (1, 2, 3)], 2, r"\[0, 1, 2\] and \[1, 2, 3\], which .* the sites \[0, 3\]"),
        ([(0, 1), (0, 1, 2)], 3, r"which combine to the sites \[2\]"),
        ([(0, 1), (0, 1, 2), (0, 1, 2, 3)], 2, r"found \[0, 1\] and \[0, 1, 2\], nested, and"),
        ([(1, 3), (0, 1, 2), (0, 1)], 2, r"found \[0, 1\] and \[0, 1, 2\], nested, and"),
        ([(0, site) for site in range(1, 18)], 2, "found 17 terms that share sites"),
    ],
)
def test_terms_that_make_others_are_refused(terms, q, said):
    with pytest.raises(SourceError, match=rf"terms: .*{said}.*; expected .*; (leave|move) "):
        CodeLaw(terms, [0.3] * len(terms), 20, q)


@pytest.mark.parametrize("coupling", [-900.0, 900.0])
def test_a_sum_that_is_as_good_as_fixed_has_an_entropy_of_none(coupling):
    law = CodeLaw([(0, 1), (2, 3, 4)], [coupling, 0.3], 6)
    assert law.entropy == pytest.approx(CodeLaw([(2, 3, 4)], [0.3], 6).entropy - np.log(2))
    assert law.information()[2] == pytest.approx(np.log(2) / 3)  # of two sites of six


def test_splits_and_their_document(tmp_path):
    splits = drawn(code, SOURCE, tmp_path)
    about, law = splits["train"].about, code.read_conditionals(tmp_path / "test.parquet")
    assert law.sites == [(1, 3), (4, 5, 6), (7, 8, 9), (10, 11, 12, 13)]
    np.testing.assert_allclose(law.term_information()[:3], [0.2, 0.05, 0.05])
    assert law.couplings[3] == -1
    assert splits["train"].tokens.shape == (400, 14)
    assert (splits["train"].tokens[:50] != splits["test"].tokens).any()
    assert about["losses"]["entropy"] == [law.entropy, 0]
    tokens = splits["train"].tokens.astype(int)
    own = np.take_along_axis(law.log_conditionals(tokens), tokens[:, :, None], axis=2)
    losses = -own.mean(axis=(1, 2))
    assert abs(losses.mean() - about["losses"]["masked"][0]) < 4 * losses.std() / 20
    assert about["information"]["2"] == pytest.approx(0.2 * 2 / 14)
    assert about["connected"]["3"] == pytest.approx(0.1)


def test_a_source_keeps_orders_and_scales_couplings(tmp_path):
    whole = code.of(SOURCE)
    part = drawn(code, SOURCE | {"keep": [3], "scale": 0.5}, tmp_path)
    law = code.read_conditionals(tmp_path / "test.parquet")
    assert law.sites == whole.sites
    assert law.couplings.tolist() == (whole.couplings * [0, 0.5, 0.5, 0]).tolist()
    assert list(part["test"].about["information"]) == ["3"]
    assert prod(law.means) == 0
