"""A training that is killed at any moment and started again ends with the same bytes."""

import json
import signal
from pathlib import Path

import numpy as np
import pytest
from training_jobs import outcomes

from manybody.files import checkpoints

# Far fewer checkpoints than saved states, so that runs are taken up between checkpoints as well.
RECIPE = {
    "objective": "masked",
    "steps": 160,
    "batch": 15,
    "masks": 0.25,
    "learning_rate": 0.01,
    "schedule": "cosine",
    "warmup": 5,
    "clip": 1.0,
    "checkpoints": {"logarithmic": 2, "listed": [20]},
    "validation": 33,
    "precision": "float32",
    "compile": False,
    "threads": 1,
}
FACTORED = {"architecture": "factored", "vocabulary": 12, "length": 8, "layers": 2, "rank": 4}
BERT = {
    "architecture": "bert",
    "vocabulary": 12,
    "length": 8,
    "layers": 2,
    "heads": 2,
    "width": 16,
    "mlp": 32,
}
CASES = {
    "factored-sgd": (FACTORED, {"name": "sgd", "momentum": 0.9, "weight_decay": 0.01}),
    "bert-adamw": (BERT, {"name": "adamw", "betas": [0.9, 0.98], "weight_decay": 0.01}),
}
KILLED = -signal.SIGKILL


def job(out: Path, description, optimizer, save_every=0.0, **options) -> dict:
    recipe = {**RECIPE, "optimizer": optimizer}
    settings = {"description": description, "recipe": recipe, "save_every": save_every}
    return {**settings, "out": str(out), **options}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Folder of all runs, and the exit codes of each one, by name, in order.

    `killed` is stopped at seeded writes (before the rename or after it), then at seeded times,
    then left to finish; `resumed` is stopped once, late.
    """
    folder = tmp_path_factory.mktemp("runs")
    draw = np.random.default_rng(11)
    writes = [1, 3, *draw.integers(4, 8, 4).tolist()]
    times = draw.uniform(0.02, 0.3, 5).tolist()
    jobs = []
    for name, (description, optimizer) in CASES.items():
        common = {"description": description, "optimizer": optimizer}
        killed = folder / name / "killed"
        jobs += [
            job(folder / name / "whole", save_every=1e9, **common),
            *(job(killed, **common, die_at_write=count) for count in writes),
            *(job(killed, **common, kill_after=seconds) for seconds in times),
            job(killed, **common),
        ]
    jobs += [
        job(folder / "resumed", *CASES["factored-sgd"], die_at_write=16),
        job(folder / "resumed", *CASES["factored-sgd"]),
    ]
    return folder, outcomes("training_jobs.py", jobs, folder)


def same_bytes(first: Path, second: Path) -> None:
    """Every file but the times, and no file but the artifact's."""
    files = sorted(path.name for path in first.iterdir())
    assert files == sorted(path.name for path in second.iterdir())
    assert "resume" not in files
    for name in set(files) - {"timing.jsonl"}:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


@pytest.mark.parametrize("name", CASES)
def test_bytes_do_not_depend_on_kills(runs, name):
    folder, codes = runs
    assert codes[f"{name}/whole"] == [0]
    *stopped, last = codes[f"{name}/killed"]
    assert stopped[:6] == [KILLED] * 6
    assert KILLED in stopped[6:]
    assert last == 0
    same_bytes(folder / name / "whole", folder / name / "killed")


def test_a_kill_loses_only_the_steps_since_the_last_save(runs):
    """timing.jsonl has one line a checkpoint, and one more at most for the one cut short."""
    folder, codes = runs
    assert codes["resumed"] == [KILLED, 0]
    steps = [json.loads(line)["step"] for line in (folder / "resumed/timing.jsonl").open()]
    kept = checkpoints.checkpoint_steps(folder / "resumed/manifest.json")
    assert sorted(set(steps)) == kept
    assert len(steps) <= len(kept) + 1
