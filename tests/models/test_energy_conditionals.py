"""Energy models against enumeration, against one-layer attention and against planted laws."""

import itertools
import math
from types import SimpleNamespace

import configs
import numpy as np
import pytest
import torch
from enumerated import all_states, boltzmann

from manybody.data import many_body
from manybody.data.hamiltonian import Hamiltonian, coincident, field_scale
from manybody.io import checkpoints
from manybody.io.manifest import Manifest
from manybody.io.sequences import Sequences, write
from manybody.models import stored
from manybody.models.energy.network import conditionals
from manybody.models.objectives import sequence_sums
from manybody.training.lbfgs import adopt, fit

RECIPE = {
    "objective": "masked",
    "masks": "all",
    "optimizer": {"name": "lbfgs", "history": 20, "ridge": 0.0},
    "steps": 300,
    "restarts": 3,
    "validation": 2000,
    "precision": "float64",
    "threads": 1,
}


def symmetric(size: int, order: int, seed: int) -> np.ndarray:
    tensor = np.random.default_rng(seed).normal(size=(size,) * order)
    return sum(tensor.transpose(axes) for axes in itertools.permutations(range(order)))


def random_hamiltonian(length: int, vocabulary: int, order: int, scale: float = 1.5) -> Hamiltonian:
    """Random interactions at a logit scale of `scale` nats."""
    couplings = symmetric(length, order, 1)
    couplings[coincident(length, order)] = 0.0
    colours = symmetric(vocabulary, order, 2)
    return Hamiltonian(couplings, colours, scale / field_scale(couplings, colours))


def law_samples(hamiltonian: Hamiltonian, count: int, seed: int) -> np.ndarray:
    """Independent samples from the enumerated law."""
    every = all_states(hamiltonian.vocabulary, hamiltonian.length)
    law = boltzmann(hamiltonian, every)
    return every[np.random.default_rng(seed).choice(len(every), count, p=law)]


def double(hamiltonian: Hamiltonian):
    """The energy model of a law, its weights in double precision."""
    torch.set_default_dtype(torch.float64)
    try:
        return conditionals(hamiltonian)
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize(("length", "order"), [(5, 2), (6, 3), (5, 4), (4, 4)])
def test_conditionals_are_ratios_of_the_enumerated_law(length, order):
    vocabulary = 3
    hamiltonian = random_hamiltonian(length, vocabulary, order)
    every = all_states(vocabulary, length)
    law = boltzmann(hamiltonian, every)
    assert np.log(law).std() > 0.1
    table = law.reshape((vocabulary,) * length)
    with torch.no_grad():
        logits = double(hamiltonian).all_masked_features(torch.from_numpy(every))
    ours = logits.log_softmax(-1).numpy()
    for site in range(length):
        shape = (len(every), vocabulary)
        along = np.moveaxis(table, site, -1)[*np.delete(every, site, axis=1).T].reshape(shape)
        along /= along.sum(1, keepdims=True)
        assert np.abs(ours[:, site] - np.log(along)).max() < 1e-12


def test_adopted_weights_are_the_law_s_conditionals(tmp_path):
    hamiltonian = random_hamiltonian(6, 3, 3)
    hamiltonian.save(tmp_path / "law.safetensors", {})
    paths = {}
    for seed, split in enumerate(("train", "validation")):
        paths[split] = tmp_path / f"{split}.parquet"
        write(paths[split], law_samples(hamiltonian, 500, seed).astype("uint8"), 3, {})
    manifest = adopt(
        {"architecture": "energy", "order": 3, "parameters": "source"},
        tmp_path / "law.safetensors",
        paths,
        tmp_path / "run",
        0,
        {"source": "planted", "model": "true"},
    )
    model = stored.load_model(manifest)
    tokens = law_samples(hamiltonian, 500, 1)
    exact = hamiltonian.log_conditionals(tokens)
    with torch.no_grad():
        ours = model.all_masked_features(torch.from_numpy(tokens)).log_softmax(-1)
    assert np.abs(ours.numpy() - exact).max() < 1e-5
    run = Manifest.read(manifest, "model")
    assert (run.about["order"], run.about["steps"], run.about["source"]) == (3, [0], "planted")
    table = checkpoints.history(manifest)
    assert table["split"].tolist() == ["train", "validation"]
    loss = -np.take_along_axis(exact, tokens[..., None], 2).mean()
    assert run.about["final"]["validation_loss"] == pytest.approx(loss, abs=1e-6)
    assert table["loss"][1] == run.about["final"]["validation_loss"]

    other = {"architecture": "energy", "order": 4, "parameters": "source"}
    with pytest.raises(ValueError, match=r"the model is energy of order 4, but .* of order 3"):
        adopt(other, tmp_path / "law.safetensors", paths, tmp_path / "wrong", 0, {})


def planted(hamiltonian: Hamiltonian, count: int) -> dict:
    samples = {s: law_samples(hamiltonian, count, n) for n, s in [(3, "train"), (4, "validation")]}
    return {s: SimpleNamespace(tokens=tokens.astype("uint8")) for s, tokens in samples.items()}


def fitted(out, description, data, **recipe):
    options = {"about": {"source": "planted"}, "device": "cpu"}
    return fit(description, {**RECIPE, **recipe}, data, out, 0, 1, **options)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_a_fit_reaches_the_planted_law_s_loss(tmp_path, order):
    """Training loss is below the true law's on the same samples by about p / (2 M L)."""
    count, length, vocabulary = 2000, 6, 3
    hamiltonian = random_hamiltonian(length, vocabulary, order)
    data = planted(hamiltonian, count)
    description = {
        "architecture": "energy",
        "vocabulary": vocabulary,
        "length": length,
        "order": order,
    }
    model = stored.load_model(fitted(tmp_path / "run", description, data))
    truth = conditionals(hamiltonian)
    losses = {}
    for split, sequences in data.items():
        tokens = torch.from_numpy(sequences.tokens.astype("int64"))
        sums = [sequence_sums(each, tokens).loss_sum.mean().item() for each in (model, truth)]
        losses[split] = (sums[0] - sums[1]) / length
    excess = sum(p.numel() for p in model.parameters()) / (2 * count * length)
    assert (
        math.log(vocabulary) - sums[1] / length
    ) > 10 * excess  # the interactions are far above the noise
    # Tied couplings and the gauges of U make the effective number smaller than p, but not zero.
    assert -2 * excess < losses["train"] < 0
    assert 0 < losses["validation"] < 3 * excess


def test_a_two_body_fit_is_one_layer_of_attention(tmp_path):
    data = planted(random_hamiltonian(6, 3, 2), 1000)
    sizes = {"vocabulary": 3, "length": 6}
    energy = {"architecture": "energy", "order": 2, **sizes}
    layer = {"architecture": "factored", "layers": 1, "rank": None, "bias": False, **sizes}
    recipe = {"validation": 1000}
    one, two = (
        Manifest.read(fitted(tmp_path / name, description, data, **recipe), "model")
        for name, description in [("energy", energy), ("layer", layer)]
    )
    for key in ("train_loss", "validation_loss"):
        assert one.about["final"][key] == pytest.approx(two.about["final"][key], abs=1e-5)


@pytest.mark.long
def test_lines_of_the_default_setting_are_as_far_apart_as_was_measured(tmp_path):
    """many-body, sections 3 and 6: the source and the fits of the demo, from one start each."""
    config = configs.load()
    files = {split: tmp_path / f"{split}.parquet" for split in many_body.SPLITS}
    source = config["sources"]["many-body"]
    many_body.make(source, "many-body", tmp_path / "hamiltonian.safetensors", files, 2)
    data = {split: Sequences.open(files[split]) for split in ("train", "validation")}
    test = data["validation"].about["self_test"]
    assert abs(test["difference"]) < 3 * test["standard_error"]
    counts = np.stack([np.bincount(site) for site in data["validation"].tokens.T]) / 4096
    losses, train = [-(counts * np.log(counts)).sum(axis=1).mean()], []
    for order in (2, 3):
        recipe = config["models"][f"many-body-{order}"]["training"] | {"restarts": 1}
        description = dict(architecture="energy", order=order, vocabulary=5, length=10)
        run = fit(
            description, recipe, data, tmp_path / str(order), 0, 1,
            about={"source": "many-body"}, device="cpu",
        )  # fmt: skip
        final = Manifest.read(run, "model").about["final"]
        losses.append(final["validation_loss"])
        train.append(final["train_loss"])
    losses.append(test["cross_entropy"])
    assert (-np.diff(losses) > [0.05, 0.05, 0.02]).all()  # errors of differences: below 0.006
    assert train[0] > train[1]
    assert losses == pytest.approx([1.6089, 1.5198, 1.4541, 1.4160], abs=0.001)
