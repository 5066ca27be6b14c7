"""Data-parallel training: processes that one rule launches together do the work of one."""

import json
import os
import time

import numpy as np
import pytest
import torch
from torch.multiprocessing import ProcessRaisedException

from manybody.io import checkpoints, sequences
from manybody.io.devices import launch, pick
from manybody.training.loop import train_files

SIZES = {"vocabulary": 12, "length": 8}
BERT = {"architecture": "bert", "layers": 2, "heads": 2, "width": 16, "mlp": 32}
RECIPE = {
    "objective": "masked",
    "steps": 60,
    "batch": 15,  # 2 copies of a sequence: 8 copies in one process, 7 in the other
    "masks": 0.25,
    "optimizer": {"name": "adamw", "betas": [0.9, 0.98], "weight_decay": 0.01},
    "learning_rate": 0.02,
    "schedule": "cosine",
    "warmup": 5,
    "clip": 1.0,
    "checkpoints": {"logarithmic": 2, "listed": [20]},
    "validation": 33,
    "precision": "float32",
    "compile": False,
    "threads": 1,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A folder with the same run in `one` process and in `two`, and the logs of the latter."""
    folder = tmp_path_factory.mktemp("launch")
    draw = np.random.default_rng(7)
    paths = {}
    for split, count in (("train", 300), ("validation", 41)):
        # Each token is the last one plus 0, 1 or 2.
        tokens = draw.integers(0, 3, (count, SIZES["length"])).cumsum(1) % SIZES["vocabulary"]
        paths[split] = folder / f"{split}.parquet"
        sequences.write(paths[split], tokens, SIZES["vocabulary"], {"split": split})
    log = folder / "two.log"
    log.write_text("what the parent printed\n")
    for name, processes in (("one", 1), ("two", 2)):
        launch(
            processes,
            str(log),
            train_files,
            description=BERT,
            recipe=RECIPE,
            paths=paths,
            out=folder / name,
            seed=3,
            init_seed=4,
            about={"source": "counting"},
            device="cpu",
        )
    return folder


def test_two_processes_equal_one(runs):
    one, two = (checkpoints.history(runs / name / "manifest.json") for name in ("one", "two"))
    np.testing.assert_allclose(two["loss"], one["loss"], rtol=2e-5)
    np.testing.assert_allclose(two["loss_se"], one["loss_se"], rtol=2e-4)
    assert one["tokens"].equals(two["tokens"])
    losses = one[one["split"] == "validation"]["loss"].to_numpy()
    assert losses[-1] < losses[0] - 0.3  # the comparison is of a run that has learned something
    for name, processes in (("one", 1), ("two", 2)):
        lines = (runs / name / "timing.jsonl").read_text().splitlines()
        assert {json.loads(line)["processes"] for line in lines} == {processes}


def test_the_first_process_goes_on_with_the_log_and_the_others_have_their_own(runs):
    first, *rest = (runs / "two.log").read_text().splitlines()
    assert first == "what the parent printed"
    assert any("60/60 steps (100%)" in line for line in rest)
    assert "steps" not in (runs / "two.log.process-1").read_text()


def stop_the_second(seconds: float) -> None:
    if os.environ["RANK"] == "1":
        raise RuntimeError("no such corpus")
    time.sleep(seconds)


def test_an_error_in_one_process_ends_all_and_names_it(tmp_path):
    with pytest.raises(ProcessRaisedException, match="Process 1 terminated") as raised:
        launch(2, str(tmp_path / "log"), stop_the_second, seconds=1000)
    assert "RuntimeError: no such corpus" in str(raised.value)


def test_devices_are_picked_by_name(monkeypatch):
    for there, automatic in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert [pick("auto"), pick("cpu")] == [automatic, "cpu"]
    with pytest.raises(
        ValueError, match=r"device is cuda, .*install the cuda lock.*choose device auto"
    ):
        pick("cuda")
