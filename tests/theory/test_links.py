"""Deep attention as a function of its indices, against the plain matrix form."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from plain_attention import Plain

from manybody.theory.multi_index import channel, links

SAMPLES, FEATURES = 3, 40
SHAPES = list(itertools.product((1, 2, 3, 5), (1, 2, 4), (1, 3)))  # L, T, r


def plain(layers, tokens, rank, skip, seed):
    """Weights and tokens of a few samples, with the model's plain form."""
    return Plain.draw(np.random.default_rng(seed), SAMPLES, FEATURES, layers, tokens, rank, skip)


@pytest.mark.parametrize(("layers", "tokens", "rank"), SHAPES)
@pytest.mark.parametrize("kind", ["softmax", "linear"])
def test_links_are_the_matrix_form(layers, tokens, rank, kind):
    for skip in (0.0, 0.3, 1.0):
        given = plain(layers, tokens, rank, skip, seed=layers * 100 + tokens * 10 + rank)
        scale = 1 / (1 + skip) ** layers / 3 if kind == "linear" else 1.0
        given = replace(given, queries=given.queries * scale, keys=given.keys * scale)
        q, k = given.indices()
        assert q.shape == (SAMPLES, layers, rank, tokens)
        found = links.untied(q, k, skip, kind=kind)
        np.testing.assert_allclose(found, given.outputs(kind=kind), rtol=1e-12, atol=1e-12)
        same = given.tied()
        z, _ = same.indices()
        found = links.tied(z, skip, kind=kind)
        np.testing.assert_allclose(found, same.outputs(kind=kind), rtol=1e-12, atol=1e-12)
        mixed = links.mixing(q, k, skip, kind=kind)
        found = given.tokens @ np.swapaxes(mixed, -1, -2)
        np.testing.assert_allclose(found, given.sequences(kind=kind), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("heads", [2, 4])
@pytest.mark.parametrize("tied", [False, True])
def test_heads_are_the_matrix_form(heads, tied):
    generator = np.random.default_rng(heads)
    given = Plain.draw(generator, SAMPLES, FEATURES, 3, 3, 2, 0.7, heads=heads)
    given = given.tied() if tied else given
    readouts = generator.standard_normal(heads)
    q, k = given.indices()
    assert q.shape == (SAMPLES, heads, 3, 2, 3)
    found = links.multi_head(q, k, 0.7, readouts)
    np.testing.assert_allclose(found, given.outputs(readouts), rtol=1e-12, atol=1e-12)


def test_one_head_is_no_head():
    given = plain(2, 3, 2, 0.5, seed=1)
    q, k = given.indices()
    found = links.multi_head(q[:, None], k[:, None], 0.5, [1.0])
    np.testing.assert_array_equal(found, links.untied(q, k, 0.5))


def test_two_layers_and_two_tokens_are_those_of_the_specification():
    """h = B(z_1) z_2 and y12 = sgm(-h1 (h1 - h2)), y21 = sgm(-h2 (h2 - h1))."""

    def sgm(t):
        return 1 / (1 + np.exp(-t))

    z = np.random.default_rng(5).standard_normal((100, 2, 1, 2))
    for skip in (0.0, 0.4, 1.0, 3.0):
        (u, v), (a, b) = z[:, 0, 0].T, z[:, 1, 0].T
        p, q = sgm(-u * (u - v)), sgm(-v * (v - u))
        h1, h2 = (1 - p + skip) * a + p * b, q * a + (1 - q + skip) * b
        y12, y21 = sgm(-h1 * (h1 - h2)), sgm(-h2 * (h2 - h1))
        expected = np.moveaxis(np.array([[1 - y12, y12], [y21, 1 - y21]]), -1, 0)
        np.testing.assert_allclose(links.tied(z, skip), expected, rtol=0, atol=1e-14)
        h = channel.index(z[:, :, 0], skip)
        np.testing.assert_allclose(h, np.stack([h1, h2], axis=1), rtol=0, atol=1e-13)


def test_the_tied_link_is_even_in_every_layer():
    z = np.random.default_rng(6).standard_normal((20, 3, 2, 3))
    for signs in itertools.product((1, -1), repeat=3):
        flipped = z * np.array(signs)[:, None, None]
        np.testing.assert_allclose(links.tied(flipped, 0.5), links.tied(z, 0.5), atol=1e-14)


def test_the_untied_link_is_even_in_queries_and_keys_together_only():
    q, k = np.random.default_rng(7).standard_normal((2, 20, 2, 1, 2))
    y = links.untied(q, k, 0.5)
    for signs in itertools.product((1, -1), repeat=2):
        factor = np.array(signs)[:, None, None]
        found = links.untied(q * factor, k * factor, 0.5)
        np.testing.assert_allclose(found, y, atol=1e-14)
    assert np.abs(links.untied(-q, k, 0.5) - y).max() > 0.1
    # Rows are normalised over keys, so that queries and keys are not interchangeable.
    assert np.abs(links.untied(k, q, 0.5) - y).max() > 0.1
    # Without the softmax they are, up to a transposition of the output.
    linear = links.untied(q[:, 1:], k[:, 1:], 0.5, kind="linear")
    other = links.untied(k[:, 1:], q[:, 1:], 0.5, kind="linear")
    np.testing.assert_allclose(linear, np.swapaxes(other, -1, -2), atol=1e-15)


def test_scores_of_any_size_are_finite():
    z = np.array([[[[1e3, -2e3]], [[1e3, 3e3]]]])
    with np.errstate(over="raise", invalid="raise"):
        y = links.tied(z, 1.0)
    np.testing.assert_allclose(y.sum(axis=-1), 1.0, rtol=1e-15)


def test_many_layers_divided_by_c_tend_to_the_committee():
    """The first order in 1/c against the matrix form; what is left falls as 1/c^2."""
    given = Plain.draw(np.random.default_rng(8), 200, FEATURES, 4, 3, 1, 1.0).tied()
    z, _ = given.indices()
    errors = []
    for skip in (50.0, 100.0, 200.0, 400.0):
        exact = given.outputs(share=1 / skip)
        np.testing.assert_allclose(links.tied(z, 1.0, 1 / skip), exact, rtol=0, atol=1e-12)
        errors.append(np.abs(links.large_depth(z, skip) - exact).mean())
    np.testing.assert_allclose(np.array(errors[:-1]) / errors[1:], 4.0, rtol=0.1)
    # Its first layers are interchangeable; those of the full model are not.
    swapped = z[:, [1, 0, 2, 3]]
    np.testing.assert_allclose(
        links.large_depth(swapped, 50.0), links.large_depth(z, 50.0), atol=1e-13
    )
    assert np.abs(links.tied(swapped, 1.0, 0.02) - links.tied(z, 1.0, 0.02)).max() > 1e-6


@pytest.mark.parametrize(
    ("link", "given", "message"),
    [
        (links.tied, (np.zeros((1, 3)), 1.0), r"indices: found the shapes \(1, 3\)"),
        (
            links.untied,
            (np.zeros((4, 2, 1, 3)), np.zeros((4, 1, 1, 3)), 1.0),
            r"indices: found the shapes .*\(4, 1, 1, 3\)",
        ),
    ],
)
def test_bad_input_is_named(link, given, message):
    with pytest.raises(ValueError, match=message):
        link(*given)
