"""A model that nobody has heard of: one line in the registry, and everything can be asked of it."""

import ast
import sys
from pathlib import Path
from types import SimpleNamespace

import explicit
import numpy as np
import pytest
import torch
from pydantic import Field, ValidationError
from torch import nn

from manybody import models
from manybody.io.manifest import Manifest
from manybody.io.sequences import Sequences, write
from manybody.measure.losses import evaluate
from manybody.models import base, description, keys, labels, stored
from manybody.models.objectives import masked_loss
from manybody.papers import style
from manybody.sampling.metropolis import sample
from manybody.training.loop import train

PACKAGE = Path(models.__file__).parents[1]
VOCABULARY, LENGTH = 6, 7
GRU = {"architecture": "gru", "layers": 2, "width": 5}
RECIPE = {
    "objective": "masked",
    "steps": 30,
    "batch": 14,
    "masks": 0.3,
    "optimizer": {"name": "adamw", "betas": [0.9, 0.98], "weight_decay": 0.1},
    "learning_rate": 0.05,
    "schedule": "constant",
    "warmup": 0,
    "clip": 1.0,
    "checkpoints": {"logarithmic": 2, "listed": []},
    "validation": 20,
    "precision": "float32",
    "compile": False,
    "threads": 1,
}


class About(description.About):
    network = "Gru"
    display_name = "GRU"


class Options(keys.Block):
    layers: keys.Count = Field(description="Number of layers.")
    width: keys.Count = Field(description="Channels of each direction.")


class Gru(base.Model):
    def __init__(self, vocabulary, length, layers, width):
        super().__init__("gru", vocabulary, length, layers=layers, width=width)
        self.embedding = nn.Embedding(vocabulary + 1, width)
        self.layers = nn.GRU(width, width, layers, batch_first=True, bidirectional=True)
        self.output = nn.Linear(2 * width, vocabulary)

    def features(self, tokens, mask=None):
        self.check_tokens(tokens)
        if mask is not None:
            tokens = tokens.masked_fill(mask, self.vocabulary)
        return self.layers(self.embedding(tokens))[0]


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """This module stands for the package of the GRU and its network."""
    monkeypatch.setitem(models.ARCHITECTURES, "gru", __name__)
    monkeypatch.setitem(sys.modules, f"{__name__}.network", sys.modules[__name__])
    monkeypatch.setattr(keys, "Gru", Options, raising=False)


def tokens(count, seed):
    """Each token is the last one or the next."""
    steps = np.random.default_rng(seed).integers(0, 2, (count, LENGTH))
    return (steps.cumsum(1) % VOCABULARY).astype("uint8")


@pytest.fixture
def trained(tmp_path):
    data = {
        "train": SimpleNamespace(tokens=tokens(60, 0)),
        "validation": SimpleNamespace(tokens=tokens(20, 1)),
    }
    sizes = {"vocabulary": VOCABULARY, "length": LENGTH}
    options = {"device": "cpu", "about": {"source": "counting", "model": "gru"}}
    return train({**GRU, **sizes}, RECIPE, data, tmp_path / "run", 3, 4, **options)


def test_it_is_trained_and_evaluated(trained, tmp_path):
    run = Manifest.read(trained, "model")
    assert run.about["order"] is None
    write(tmp_path / "held-out.parquet", tokens(20, 1), VOCABULARY, {})
    losses = evaluate(trained, {"held-out": (tmp_path / "held-out.parquet", None)})
    means = losses.groupby("step")["loss_sum"].mean() / LENGTH
    assert means[30] < 0.8 * means[0]
    assert means[30] == pytest.approx(run.about["final"]["validation_loss"], abs=0.2)


@pytest.mark.parametrize(("energy", "gauge"), [("raw", "mean"), ("norm", "none")])
def test_its_chains_move_by_its_own_energy(trained, tmp_path, energy, gauge):
    model, starts = stored.load_model(trained), torch.from_numpy(tokens(4, 2).astype("int64"))
    settings = {"energy": energy, "gauge": gauge, "sweeps": [2], "order": "permuted", "seed": 5}
    sample(model, starts, tmp_path / "clone", about={}, **settings)
    clone = Manifest.read(tmp_path / "clone" / "manifest.json", "clones")
    found = Sequences.open(clone.file("sweep-2.parquet")).tokens
    assert found.shape == (4, LENGTH)
    assert (found != starts.numpy()).any()


def test_its_masked_copies_are_made_one_by_one():
    model = models.build({**GRU, "vocabulary": VOCABULARY, "length": LENGTH}).double()
    given = torch.from_numpy(tokens(3, 6).astype("int64"))
    loss, _ = masked_loss(model, given)
    expected, _ = explicit.masked(model, given)
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-12)


def test_it_has_a_name_and_a_colour_in_legends():
    described = {**GRU, "vocabulary": VOCABULARY, "length": LENGTH}
    clone = {"original": False, "generator": {"description": described, "last": False, "step": 30}}
    assert labels.target(clone) == "GRU, any order, stopped at step 30"
    assert labels.short(clone) == "GRU"
    scale = labels.scale({"description": described, "source": "counting"}, 1)
    assert scale == "GRU 2 × 5 on counting: |V| = 6, L = 7, 1 run"
    assert style.colour(clone) == style.UNBOUNDED


def test_its_keys_in_the_config_are_typed():
    assert models.options("gru")(layers=2, width=5).width == 5
    with pytest.raises(ValidationError, match="width"):
        models.options("gru")(layers=2, width=0)


def test_no_other_room_tells_models_apart_by_their_architecture():
    """None compares with what the key `architecture` holds, or a variable of that name."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE)
        if room.parts[0] == "models":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            parts = ast.walk(node) if isinstance(node, ast.Compare) else ()
            words = [getattr(part, key, "") for part in parts for key in ("value", "id", "attr")]
            if any(word == "architecture" for word in words):
                found.append(f"{room}:{node.lineno}")
    assert not found
