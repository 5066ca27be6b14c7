"""Deep attention as a function of its indices, against the plain matrix form.

The plain form knows nothing of indices or mixing matrices: it takes D-dimensional tokens through
the layers, a sample at a time.
"""

import itertools

import numpy as np
import pytest

from manybody.claims.identities import multi_index as exact
from manybody.claims.identities.multi_index import Plain
from manybody.theory.multi_index import channel, links

SAMPLES, FEATURES = 3, 40
SHAPES = list(itertools.product((1, 2, 3, 5), (1, 2, 4), (1, 3)))  # L, T, r


def plain(layers, tokens, rank, skip, seed):
    """Weights and tokens of a few samples, with the model's plain form."""
    return Plain.draw(np.random.default_rng(seed), SAMPLES, FEATURES, layers, tokens, rank, skip)


@pytest.mark.parametrize(("layers", "tokens", "rank"), SHAPES)
@pytest.mark.parametrize("kind", links.ATTENTIONS)
def test_links_are_the_matrix_form(layers, tokens, rank, kind):
    for skip in (0.0, 0.3, 1.0):
        given = plain(layers, tokens, rank, skip, seed=layers * 100 + tokens * 10 + rank)
        scale = 1 / (1 + skip) ** layers / 3 if kind == "linear" else 1.0
        given = given.scaled(scale)
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
    np.testing.assert_allclose(found, given.head_outputs(readouts), rtol=1e-12, atol=1e-12)


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


def test_bad_input_is_named():
    z = np.zeros((4, 2, 1, 3))
    for call, message in (
        (lambda: links.tied(z, -0.1), r"skip: found -0\.1"),
        (lambda: links.tied(z, np.nan), "skip: found nan"),
        (lambda: links.tied(z[0, 0], 1.0), r"indices: found the shapes \(1, 3\)"),
        (lambda: links.untied(z, z[:, :1], 1.0), r"indices: found the shapes .*\(4, 1, 1, 3\)"),
        (lambda: links.tied(z, 1.0, kind="relu"), "attention: found 'relu'.*softmax, linear"),
        (lambda: links.large_depth(z, 0), "skip: found 0, expected more than 0"),
        (lambda: links.multi_head(z, z, 1.0, [1.0, 2.0, 3.0]), r"readouts: found shape \(3,\)"),
        (lambda: links.multi_head(z[0], z[0], 1.0, 1.0), r"readouts: found shape \(\)"),
    ):
        with pytest.raises(ValueError, match=message):
            call()


# --- The identities of the scorecard -------------------------------------------------------------


def test_every_identity_holds(monkeypatch):
    monkeypatch.setattr(exact, "CASES", 4)
    entry = {"kind": "multi-index-exact", "seed": 2, "threads": 1}
    frame, about = exact.compute(entry)
    assert list(frame.columns) == ["quantity", "series", "seed", "x", "y", "y_err"]
    assert about == {"entry": {"kind": "multi-index-exact", "seed": 2}}
    assert set(frame["quantity"]) == {"identity"}
    assert not frame["series"].duplicated().any()
    assert (frame["y"] <= frame["x"]).all(), frame.to_string()
    assert len(frame) == 16


def test_identities_fail_where_the_numbers_are_wrong(monkeypatch):
    monkeypatch.setattr(exact, "CASES", 1)
    generator = np.random.default_rng(3)
    denoiser, attention = channel.denoiser, links.attention

    def failing(rows):
        return [text for text, tolerance, error in rows if not error <= tolerance]

    monkeypatch.setattr(channel, "denoiser", lambda *given: denoiser(*given) * 1.01 + 0.01)
    found = failing(exact._channel(generator, 1))
    assert any("dblquad over the same box" in text for text in found)
    assert any("step halving" in text for text in found)
    assert any("central differences" in text for text in found)
    assert any("odd" in text for text in found)
    monkeypatch.setattr(links, "attention", lambda *given: attention(*given) * (1 + 1e-9))
    assert len(failing(exact._links(generator))) == 4
