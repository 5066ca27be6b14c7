"""Losses by the equations against those that the models have."""

from functools import partial

import numpy as np
import planted_runs
import pytest
import torch

from manybody import models
from manybody.data.hamiltonian import Hamiltonian
from manybody.data.potts import contact_map, stored_colours
from manybody.io import sequences
from manybody.measure import truths
from manybody.models import factored
from manybody.models.objectives import sequence_sums

FACTORED = dict(architecture="factored", layers=1, rank=None, bias=False, variant="exact")
INTERPOLATED = dict(architecture="interpolated")


def built(description):
    torch.manual_seed(0)
    model = models.build(description).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.normal_()
    return model


def write_run(folder, model, **about):
    about = dict(description=model.description, model=folder.name, seed=2, steps=[0, 9], **about)
    return planted_runs.of_checkpoints(folder, {9: dict(model.named_parameters())}, **about)


@pytest.mark.parametrize(("length", "vocabulary"), [(7, 5), (4, 6)])
def test_the_equations_give_the_losses_of_the_models(length, vocabulary, tmp_path, monkeypatch):
    monkeypatch.setattr(truths, "BLOCK", 100)
    made = {
        "free": FACTORED | {"attention": "free"},
        "softmax": FACTORED | {"attention": "softmax"},
        "low-rank": FACTORED | {"attention": "free", "rank": 2},
        "a0": INTERPOLATED | {"a": 0},
        "a0.5": INTERPOLATED | {"a": 0.5},
        "a1": INTERPOLATED | {"a": 1.0},
        "deep": FACTORED | {"layers": 2},
        "fields": FACTORED | {"bias": True},
    }
    made = {
        name: built(description | {"length": length, "vocabulary": vocabulary})
        for name, description in made.items()
    }
    paths = [write_run(tmp_path / name, model) for name, model in made.items()]
    paths.append(write_run(tmp_path / "diverged", made["free"], diverged=9))
    tokens = np.random.default_rng(0).integers(0, vocabulary, (30, length))
    hamiltonian = Hamiltonian(1 - np.eye(length), -np.eye(vocabulary) / 2, 0.8)
    sequences.write(tmp_path / "validation.parquet", tokens, vocabulary, {})
    hamiltonian.save(tmp_path / "hamiltonian.safetensors", {})
    found = truths.evaluate_equations(
        paths, tmp_path / "validation.parquet", tmp_path / "hamiltonian.safetensors"
    )
    known = found[found["quantity"] == "loss"]
    assert list(known["series"].unique()) == ["free", "softmax", "low-rank", "a0", "a0.5", "a1"]
    assert set(known["seed"]) == {2}
    for name, losses in known.groupby("series"):
        sums = sequence_sums(made[name], torch.from_numpy(tokens)).loss_sum.detach().numpy()
        assert losses["x"].tolist() == list(range(30))
        np.testing.assert_allclose(losses["y"], sums / length, rtol=1e-12, err_msg=name)
    optimum = found[found["quantity"] == "optimum"]["y"]
    np.testing.assert_array_equal(optimum, truths.of_truth(hamiltonian, tokens))


def test_the_true_couplings_lose_what_the_law_does():
    hamiltonian = Hamiltonian(contact_map(20), -stored_colours() / 2, 1.707)
    tokens = np.random.default_rng(0).integers(0, 20, (100, 20))
    found = truths.of_logits(
        partial(
            factored.logits, hamiltonian.couplings, -2 * hamiltonian.beta * hamiltonian.colours
        ),
        hamiltonian.vocabulary,
        tokens,
    )
    np.testing.assert_allclose(found, truths.of_truth(hamiltonian, tokens), rtol=1e-12)
