"""The Potts model of a family, against its definition on all states."""

import numpy as np
import pytest
from enumerated import all_states
from planted_pairs import planted
from safetensors.numpy import save_file

from manybody.data.pair_model import PairModel
from manybody.io.atomic import ArtifactError


@pytest.fixture(scope="module")
def model():
    return planted(4, 3, about={"alphabet": "-AC", "gap": 0})


def definition(model, tokens):
    """log p + log Z, term by term."""
    total = 0.0
    for i, a in enumerate(tokens):
        total += model.fields[i, a]
        for j in range(i):
            total += model.couplings[i, j, a, tokens[j]]
    return total


def test_scores_and_logits_are_those_of_the_definition(model):
    every = all_states(3, 4)
    expected = [definition(model, tokens) for tokens in every]
    np.testing.assert_allclose(model.scores(every), expected, atol=1e-12)
    # The logits of a site are log p of the states that differ there, up to what is the same.
    shape = (model.vocabulary,) * model.length
    log_p, logits = model.scores(every).reshape(shape), model.logits(every)
    for n, tokens in enumerate(every[::7]):
        for i in range(model.length):
            along = log_p[(*tokens[:i], slice(None), *tokens[i + 1 :])]
            difference = along - logits[7 * n, i]
            np.testing.assert_allclose(difference, difference[0], atol=1e-12)


def test_scores_of_many_sequences_are_those_of_single_ones():
    """More sequences than the loop takes at a time, in single precision as a fit leaves them."""
    model = planted(9, 21)
    single = PairModel(*(part.astype(np.float32) for part in (model.fields, model.couplings)), {})
    tokens = np.random.default_rng(1).integers(0, 21, (5000, 9))
    for one in (model, single):
        found = one.scores(tokens)
        assert found.dtype == np.float64
        expected = [definition(one, row) for row in tokens[::500]]
        np.testing.assert_allclose(found[::500], expected, atol=1e-10 if one is model else 1e-4)
        own = np.take_along_axis(one.logits(tokens), tokens[..., None], 2)[..., 0].sum(axis=1)
        fields = one.fields[np.arange(9), tokens].sum(axis=1, dtype=np.float64)
        np.testing.assert_allclose(found, (own + fields) / 2, atol=1e-10)
    with pytest.raises(ValueError, match="8 sites, expected the model's 9"):
        model.scores(tokens[:, :8])
    with pytest.raises(ValueError, match="expected 0 to 20"):
        model.scores(tokens + 1)


def test_the_zero_sum_gauge_keeps_the_distribution(model):
    centred, every = model.zero_sum(), all_states(3, 4)
    shift = model.scores(every) - centred.scores(every)
    np.testing.assert_allclose(shift, shift[0], atol=1e-12)
    for axis in (2, 3):
        assert abs(centred.couplings.sum(axis=axis)).max() < 1e-12
    assert abs(centred.fields.sum(axis=1)).max() < 1e-12
    np.testing.assert_allclose(centred.couplings, centred.couplings.transpose(1, 0, 3, 2))


def test_norms_leave_out_the_gap_after_the_gauge(model):
    block = model.zero_sum().couplings[0, 2]
    assert model.norms()[0, 2] == pytest.approx(np.linalg.norm(block))
    assert model.norms(gap=0)[2, 0] == pytest.approx(np.linalg.norm(block[1:, 1:]))
    assert not model.norms().diagonal().any()


def test_a_saved_model_is_read_as_it_was(model, tmp_path):
    model.save(tmp_path / "model.safetensors")
    found = PairModel.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(found.couplings, model.couplings)
    np.testing.assert_array_equal(found.fields, model.fields)
    assert found.about == model.about


def test_a_file_whose_tensors_do_not_fit_is_refused(tmp_path):
    path = tmp_path / "other.safetensors"
    wrong = {"fields": np.zeros((4, 3)), "couplings": np.zeros((5, 3, 3))}
    save_file(wrong, path, {"manybody": "{}"})
    with pytest.raises(ArtifactError, match=r"other.safetensors.*\(5, 3, 3\).*expected"):
        PairModel.load(path)
    with pytest.raises(ValueError, match="couplings: shape"):
        PairModel(np.zeros((4, 3)), np.zeros((4, 3, 3, 3)), {})
