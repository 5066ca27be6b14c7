"""Weights on disk, and the checkpoints of a finished run."""

import json
import math
import stat

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from manybody import models
from manybody.io import checkpoints
from manybody.io.atomic import ArtifactError, write_json
from manybody.io.manifest import write_manifest
from manybody.io.tensor_files import read_about
from manybody.models import stored
from manybody.training.run_files import write_history

FACTORED = {"architecture": "factored", "vocabulary": 5, "length": 4, "layers": 2, "rank": 3}


def model(seed: int = 0, **changes) -> torch.nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return models.build({**FACTORED, **changes})


class Tied(torch.nn.Module):
    """One matrix under two names, as in a language model with a tied head."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Linear(3, 2, bias=False)
        self.head = torch.nn.Linear(3, 2, bias=False)
        self.head.weight = self.embedding.weight


def row(step: int, split: str, loss: float) -> dict:
    numbers = {"epoch": step / 10, "learning_rate": 0.1, "accuracy": 0.5, "tokens": 20}
    return {"step": step, "split": split, "loss": loss, "loss_se": None, **numbers}


@pytest.fixture
def run(tmp_path):
    """A finished run with checkpoints 0, 5, 10, 20; its loss falls, then rises a little."""
    steps = [0, 5, 10, 20]
    for step in steps:
        checkpoints.save(tmp_path / f"step-{step}.safetensors", model(step), {"step": step})
    losses = [3.0, 2.0, 1.0, 2.25]
    rows = [row(step, "validation", loss) for step, loss in zip(steps, losses, strict=True)]
    write_history(tmp_path / "history.parquet", [*rows, row(10, "train", 2.1)])
    write_json(tmp_path / "model.json", FACTORED)
    payload = ["model.json", "history.parquet", *(f"step-{s}.safetensors" for s in steps)]
    about = {"description": FACTORED, "steps": steps}
    write_manifest(tmp_path / "manifest.json", "model", payload, about)
    return tmp_path / "manifest.json"


def test_weights_come_back_exactly_with_their_document(tmp_path):
    saved, loaded = model(1), model(2)
    checkpoints.save(tmp_path / "a.safetensors", saved, {"step": 7, "δ": [0.1, None]})
    assert checkpoints.load_into(tmp_path / "a.safetensors", loaded) == {
        "step": 7,
        "δ": [0.1, None],
    }
    for name, tensor in saved.state_dict().items():
        assert torch.equal(tensor, loaded.state_dict()[name]), name


def test_one_metadata_key_and_the_same_bytes_whatever_the_order(tmp_path):
    checkpoints.save(tmp_path / "a", model(), {"x": 1, "y": 2})
    checkpoints.save(tmp_path / "b", model(), {"y": 2, "x": 1})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    with safe_open(tmp_path / "a", framework="pt") as opened:
        assert list(opened.metadata()) == ["manybody"]
        assert json.loads(opened.metadata()["manybody"]) == {"x": 1, "y": 2}


@pytest.mark.parametrize("read", [checkpoints.read_tensors, read_about])
def test_tensors_without_a_document_are_refused_by_name(tmp_path, read):
    save_file({"weight": torch.zeros(2)}, tmp_path / "a", {"another": "{}"})
    with pytest.raises(ArtifactError, match="a has no metadata under 'manybody'"):
        read(tmp_path / "a")


def test_weights_are_readable_like_any_other_file(tmp_path):
    checkpoints.save(tmp_path / "a", model(), {})
    (tmp_path / "b").touch()
    assert len({stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"}) == 1


def test_shared_weights_are_saved_once_and_stay_shared(tmp_path):
    saved, loaded = Tied(), Tied()
    checkpoints.save(tmp_path / "a", saved, {})
    checkpoints.load_into(tmp_path / "a", loaded)
    assert list(checkpoints.read_tensors(tmp_path / "a")[0]) == ["embedding.weight"]
    assert torch.equal(loaded.head.weight, saved.embedding.weight)
    assert loaded.head.weight is loaded.embedding.weight


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": 3}, r"lacks the tensor 'attention\.2'"),
        ({"layers": 1}, r"holds, but the model lacks, the tensor 'attention\.1'"),
        (
            {"rank": 2},
            r"left\.0 is torch\.float32 \(5, 3\), the model's is torch\.float32 \(5, 2\)",
        ),
    ],
)
def test_weights_of_another_model_are_refused(tmp_path, changes, message):
    checkpoints.save(tmp_path / "a", model(), {})
    other = model(**changes)
    before = {name: tensor.clone() for name, tensor in other.state_dict().items()}
    with pytest.raises(ArtifactError, match=message):
        checkpoints.load_into(tmp_path / "a", other)
    for name, tensor in other.state_dict().items():
        assert torch.equal(tensor, before[name]), name


def test_load_model_gives_the_checkpoint_asked_for(run):
    assert checkpoints.checkpoint_steps(run) == [0, 5, 10, 20]
    before = torch.get_rng_state()
    for step, seed in [(5, 5), (20, 20), ("last", 20)]:
        loaded = stored.load_model(run, step)
        assert not loaded.training
        assert torch.equal(loaded.attention[0], model(seed).attention[0])
    assert torch.equal(torch.get_rng_state(), before)  # the caller's generator is left alone
    with pytest.raises(ArtifactError, match="step 7 was not kept; kept are 0, 5, 10, 20"):
        stored.load_model(run, 7)


def test_history_has_the_contracts_columns_and_types(run):
    table = checkpoints.history(run)
    names = ["step", "epoch", "learning_rate", "split", "loss", "loss_se", "accuracy", "tokens"]
    assert list(table.columns) == names
    assert table.dtypes[["step", "tokens"]].eq("int64").all()
    assert (
        table.dtypes[["epoch", "learning_rate", "loss", "loss_se", "accuracy"]].eq("float64").all()
    )
    assert math.isnan(table["loss_se"].iloc[0])


@pytest.mark.parametrize(
    ("target", "step"),
    [(9.0, 0), (2.75, 0), (2.2, 20), (2.1, 5), (0.0, 10), (2.125, 5), (2.625, 0)],
)
def test_checkpoint_at_loss_is_the_nearest_validation_loss(run, target, step):
    """The earlier of equally near ones; the training loss of 2.1 at step 10 does not count."""
    assert checkpoints.checkpoint_at_loss(run, target) == step


def test_a_configs_step_is_the_last_a_number_or_another_runs_loss(run, tmp_path):
    assert checkpoints.chosen_step(run, "last") == 20
    assert checkpoints.chosen_step(run, 5) == 5
    other = tmp_path / "other.json"
    write_manifest(other, "model", [], {"final": {"validation_loss": 1.2, "train_loss": 3.0}})
    assert checkpoints.chosen_step(run, {"loss_of": {"model": "n2", "seed": 0}}, other) == 10
