"""Models of the potts figures, their maps, and errors that do not depend on the gauge."""

import math

import numpy as np
import planted_runs
import pytest
import torch

from manybody.data import gauge
from manybody.io import checkpoints, sequences
from manybody.measure import maps
from manybody.models import build, stored
from manybody.models.objectives import masked_loss, sequence_sums
from manybody.training.batches import validation_set
from manybody.training.loop import train_files

BATCH, LENGTH, VOCABULARY = 6, 8, 5
SIZES = {"vocabulary": VOCABULARY, "length": LENGTH}
FACTORED = dict(architecture="factored", layers=1, rank=None, bias=False, variant="exact", **SIZES)
SOFTMAX = dict(FACTORED, attention="softmax")
RECIPE = {
    "objective": "masked",
    "steps": 12,
    "batch": 10,
    "masks": 1 / LENGTH,
    "optimizer": {"name": "adamw", "betas": [0.9, 0.98], "weight_decay": 0.0},
    "learning_rate": 0.02,
    "schedule": "cosine",
    "warmup": 0,
    "clip": None,
    "checkpoints": {"logarithmic": 0, "listed": [6]},
    "validation": 20,
    "validation_masks": "all",
    "subset": 15,
    "precision": "float32",
    "compile": False,
    "threads": 1,
}


def encoder(layers, heads=1):
    return dict(architecture="encoder", layers=layers, heads=heads, width=8, mlp=12, **SIZES)


def tutorial(layers, heads=1):
    return {**encoder(layers, heads), "positions": "sinusoidal", "head": "mlp"}


def interpolated(a, **sizes):
    return dict(architecture="interpolated", a=a, **{**SIZES, **sizes})


def made(description, dtype=torch.float64, seed=3):
    """A model with weights large enough that each of its terms shows."""
    torch.manual_seed(seed)
    model = build(description).to(dtype)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.5 * torch.randn_like(weight))
    return model


def tokens_of(count=BATCH, length=LENGTH, vocabulary=VOCABULARY, seed=5):
    return torch.randint(vocabulary, (count, length), generator=torch.Generator().manual_seed(seed))


def test_softmax_maps_are_free_maps_that_are_positive_with_unit_row_sums():
    soft, free = made(SOFTMAX), made(FACTORED)
    assert "attention" not in free.description
    tokens = tokens_of()
    with torch.no_grad():
        free.attention[0].copy_(soft.mixing(0))
        free.left[0].copy_(soft.left[0])
    assert torch.allclose(soft.mixing(0).sum(-1), torch.ones(LENGTH).double(), atol=1e-14)
    assert (soft.mixing(0) > 0).all()
    assert torch.equal(masked_loss(soft, tokens)[0], masked_loss(free, tokens)[0])


@pytest.mark.parametrize(("length", "vocabulary"), [(8, 5), (4, 7), (6, 6)])
def test_interpolation_at_zero_is_factored_attention_with_softmax_maps(length, vocabulary):
    sizes = {"length": length, "vocabulary": vocabulary}
    soft, limit = made({**SOFTMAX, **sizes}), made(interpolated(0, **sizes))
    with torch.no_grad():
        limit.scores[:length, :length] = soft.attention[0]
        limit.values[:, :vocabulary] = soft.left[0]
    tokens = tokens_of(length=length, vocabulary=vocabulary)
    for mask in (None, tokens_of(length=length, vocabulary=2, seed=1).bool()):
        assert torch.allclose(limit(tokens, mask), soft(tokens, mask), atol=1e-13)
    assert torch.allclose(*[masked_loss(model, tokens)[0] for model in (limit, soft)], atol=1e-13)


@pytest.mark.parametrize("a", [0.25, 1])
def test_interpolation_is_its_equation(a):
    """Equation 2 with embeddings written out, positions and tokens added in one space."""
    model, tokens = made(interpolated(a)), tokens_of(3)
    embeddings = torch.eye(LENGTH).double()  # L > |V|: tokens are the first |V| of them
    for sequence in tokens:
        e = embeddings[sequence].clone()
        e[2] = model.mask
        u, v = embeddings + a * e, (e + a * embeddings) @ model.values.T
        expected = torch.softmax(u @ model.scores @ u.T, -1)[2] @ v
        logits = model.masked_logits(sequence[None], torch.tensor([0]), torch.tensor([2]))
        assert torch.allclose(logits[0], expected, atol=1e-12)


@pytest.mark.parametrize("heads", [1, 2])
def test_attention_maps_of_the_encoder_are_the_librarys(heads):
    model, tokens = made(encoder(3, heads)), tokens_of()
    mask = torch.arange(LENGTH) == 3
    ours = model.attention_maps(tokens, mask.expand(BATCH, -1))
    assert ours.shape == (3, BATCH, LENGTH, LENGTH)
    x = model.embedding.weight[tokens.masked_fill(mask, VOCABULARY)] + model.positions.weight
    for layer, map_ in zip(model.layers, ours, strict=True):
        seen, expected = layer.self_attn(x, x, x, average_attn_weights=True)
        assert torch.allclose(map_, expected, atol=1e-13)
        x = layer.norm1(x + seen)
        x = layer.norm2(x + layer.linear2(layer.linear1(x).relu()))
    assert torch.allclose(model.head(x), model(tokens, mask.expand(BATCH, -1)), atol=1e-12)


def test_the_tutorials_reading_has_waves_and_an_output_net():
    model = build({**tutorial(1), "width": 7})
    assert "waves" not in dict(model.named_parameters())
    assert "waves" not in model.state_dict()
    for site in range(LENGTH):
        for channel in range(7):
            angle = site / 10000 ** (2 * (channel // 2) / 7)
            expected = math.cos(angle) if channel % 2 else math.sin(angle)
            assert model.places[site, channel].item() == pytest.approx(expected, abs=1e-6)
    model, tokens = made(tutorial(2)), tokens_of()
    x = model.embedding.weight[tokens] + model.waves
    for layer in model.layers:
        x = layer(x)
    linear, norm, _ = model.hidden
    expected = norm(linear(x)).clamp(min=0) @ model.output.weight.T + model.output.bias
    assert torch.allclose(model(tokens), expected, atol=1e-12)
    again = build(model.description)
    again.load_state_dict(model.state_dict())
    assert torch.allclose(again.double()(tokens), model(tokens), atol=1e-5)


@pytest.mark.parametrize("description", [encoder(1), encoder(3, 2), tutorial(2), interpolated(0.5)])
def test_mean_maps_are_rows_of_masked_sites(description, monkeypatch):
    model, tokens = made(description), tokens_of()
    whole = maps.mean_maps(model, tokens)
    monkeypatch.setattr(maps, "COPIES", 1)
    assert np.allclose(maps.mean_maps(model, tokens), whole, atol=1e-14)
    assert np.allclose(whole.sum(-1), 1, atol=1e-14)
    assert (np.diagonal(whole, axis1=1, axis2=2) == 0).all()
    copies, positions = tokens.repeat_interleave(LENGTH, 0), torch.arange(LENGTH).repeat(BATCH)
    mask = torch.arange(LENGTH) == positions[:, None]
    rows = model.attention_maps(copies, mask)[:, torch.arange(len(copies)), positions]
    mean = rows.unflatten(1, (BATCH, LENGTH)).mean(1).numpy()
    for site in range(LENGTH):
        mean[:, site, site] = 0
    assert np.allclose(whole, mean / mean.sum(-1, keepdims=True), atol=1e-14)


# -- runs


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sequences")
    paths = {}
    for number, (split, count) in enumerate({"train": 30, "validation": 25}.items()):
        paths[split] = folder / f"{split}.parquet"
        tokens = tokens_of(count, seed=number).numpy()
        sequences.write(paths[split], tokens, VOCABULARY, {"split": split})
    return paths


def run(out, description, data, **changes):
    keys = ("vocabulary", "length")
    description = {key: size for key, size in description.items() if key not in keys}
    recipe = {**RECIPE, **changes}
    return train_files(
        description, data, recipe=recipe, out=out, seed=1, init_seed=2, about={}, device="cpu"
    )


def matrix(frame, name, step=None, layer=1):
    step = frame["step"].max() if step is None else step
    rows = frame[(frame["name"] == name) & (frame["step"] == step) & (frame["layer"] == layer)]
    return rows.pivot(index="row", columns="column", values="value").to_numpy()


def test_maps_of_factored_attention_are_its_parameters(tmp_path, data):
    for description in (FACTORED, SOFTMAX, dict(FACTORED, layers=2, rank=3)):
        manifest = run(tmp_path / "run", description, data)
        frame = maps.extract(manifest, steps="all")
        for step in (0, 6, 12):
            model = stored.load_model(manifest, step)
            for layer in range(description["layers"]):
                left = model.left[layer].detach()
                value = left if model.rank is None else left @ model.right[layer].detach()
                shown = matrix(frame, "A", step, layer + 1)
                assert np.array_equal(shown, model.mixing(layer).detach().numpy())
                assert np.array_equal(matrix(frame, "V", step, layer + 1), value.numpy())
        assert set(frame["step"]) == {0, 6, 12}
        assert set(maps.extract(manifest)["step"]) == {12}
        manifest.unlink()


def test_maps_that_depend_on_the_input_are_averaged(tmp_path, data):
    manifest = run(tmp_path / "deep", encoder(3), data)
    frame = maps.extract(manifest, data["validation"], "all", sequences=10)
    model, tokens = stored.load_model(manifest), tokens_of(25, seed=1)
    expected = maps.mean_maps(model, tokens[:10])
    for layer in range(3):
        assert np.array_equal(matrix(frame, "attention", 12, layer + 1), expected[layer])
    assert np.array_equal(matrix(frame, "attention", layer=0), expected[1:].mean(0))
    whole = maps.extract(manifest, data["validation"])
    assert np.array_equal(matrix(whole, "attention", layer=2), maps.mean_maps(model, tokens)[1])

    manifest = run(tmp_path / "mixed", interpolated(0.5), data)
    frame = maps.extract(manifest, data["validation"])
    assert set(zip(frame["name"], frame["layer"], strict=True)) == {("attention", 1), ("V", 1)}
    model = stored.load_model(manifest)
    assert np.array_equal(matrix(frame, "V"), model.parameter_maps()[0][2].detach().numpy())


@pytest.mark.parametrize(
    ("description", "message"),
    [
        (dict(FACTORED, heads=2), "2 heads have no one map"),
        (dict(architecture="energy", order=2), "no maps are known of the architecture 'energy'"),
    ],
)
def test_maps_that_cannot_be_are_refused(tmp_path, data, description, message):
    whole = SIZES | description
    tensors = {0: checkpoints.tensors(build(whole))}
    made = planted_runs.of_checkpoints(tmp_path / "run", tensors, description=whole)
    with pytest.raises(ValueError, match=message):
        maps.extract(made, data["validation"])


def test_a_subset_is_the_first_training_sequences(tmp_path, data):
    short = tmp_path / "short.parquet"
    sequences.write(short, tokens_of(30, seed=0)[:15].numpy(), VOCABULARY, {})
    fit = {
        "masks": "all",
        "optimizer": {"name": "lbfgs", "history": 5, "ridge": 1e-3},
        "restarts": 1,
    }
    for name, changes in {"sgd": {}, "fit": fit}.items():
        files = []
        for train, subset in ((data["train"], 15), (short, None)):
            out = tmp_path / f"{name}-{subset}"
            run(out, SOFTMAX, {**data, "train": train}, subset=subset, **changes)
            last = checkpoints.checkpoint_steps(out / "manifest.json")[-1]
            written = (f"step-{last}.safetensors", "history.parquet")
            files.append([(out / file).read_bytes() for file in written])
        assert files[0] == files[1]
        whole = run(tmp_path / f"{name}-whole", SOFTMAX, data, subset=30, **changes)
        assert (whole.parent / "history.parquet").read_bytes() != files[0][1]


@pytest.mark.parametrize("subset", [0, -1, 31])
def test_a_subset_that_is_not_there_is_refused(tmp_path, data, subset):
    with pytest.raises(ValueError, match=rf"training\.subset: found {subset}; expected 1 to 30"):
        run(tmp_path / "run", SOFTMAX, data, subset=subset)
    assert not (tmp_path / "run" / "manifest.json").exists()


def test_validation_may_ask_for_every_mask(tmp_path, data):
    manifest = run(tmp_path / "run", SOFTMAX, data)
    history = checkpoints.history(manifest)
    row = history[(history["split"] == "validation") & (history["step"] == 12)].iloc[0]
    chosen, masks = validation_set(25, LENGTH, RECIPE)
    assert masks is None
    sums = sequence_sums(stored.load_model(manifest), tokens_of(25, seed=1)[chosen])
    assert row["tokens"] == 20 * LENGTH
    assert row["loss"] == float(sums.loss_sum.sum() / sums.predictions.sum())
    _, few = validation_set(25, LENGTH, {**RECIPE, "validation_masks": 0.25})
    assert few.shape == (20, 2)
    recipe = {key: value for key, value in RECIPE.items() if key != "validation_masks"}
    assert validation_set(25, LENGTH, recipe)[1].shape == (20, 1)


# -- gauge


@pytest.fixture(scope="module")
def couplings():
    draw = np.random.default_rng(0)
    truth = draw.uniform(size=(LENGTH, LENGTH))
    np.fill_diagonal(truth := truth + truth.T, 0)
    return truth, truth + 0.3 * draw.standard_normal(truth.shape)


def test_errors_do_not_depend_on_the_gauge(couplings):
    truth, found = couplings
    first = gauge.coupling_error(found, truth)
    diagonal = np.diag(np.random.default_rng(1).standard_normal(LENGTH))
    second = gauge.coupling_error(-2 * found + diagonal, truth)
    assert abs(first.scale + 2 * second.scale) < 1e-12
    assert np.allclose(first[1:], second[1:], rtol=0, atol=1e-12)
    assert 0 < first.error < 1
    entries = (truth - first.scale * found)[~np.eye(LENGTH, dtype=bool)] ** 2
    assert abs(entries.sum() / (truth**2).sum() - first.error) < 1e-12


def test_errors_of_known_maps(couplings):
    truth, found = couplings
    assert np.allclose(gauge.coupling_error(-0.1 * truth, truth), (-10, 0, 1), atol=1e-12)
    nothing = gauge.coupling_error(np.zeros_like(truth), truth)
    assert abs(nothing.error - 1) < 1e-12
    assert np.isnan(nothing.pearson)
    apart = ~np.eye(LENGTH, dtype=bool)
    expected = np.corrcoef(found[apart], truth[apart])[0, 1]
    assert abs(gauge.coupling_error(found, truth).pearson - expected) < 1e-12
    assert np.array_equal(gauge.symmetrised(found), gauge.symmetrised(found).T)
    better = gauge.coupling_error(gauge.symmetrised(found), truth)
    assert better.error < gauge.coupling_error(found, truth).error
