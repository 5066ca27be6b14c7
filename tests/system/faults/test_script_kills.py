"""Kills of the scripts' own work: what is started again ends with the same bytes."""

import hashlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from http_server import server

from manybody.io import checkpoints

__all__ = ["server"]  # a fixture
KILLED = -signal.SIGKILL
FACTORED = dict(architecture="factored", vocabulary=12, length=8, layers=2, rank=4)
BERT = dict(architecture="bert", vocabulary=12, length=8, layers=2, heads=2, width=16, mlp=32)
SGD = {"name": "sgd", "momentum": 0.9, "weight_decay": 0.01}
ADAMW = {"name": "adamw", "betas": [0.9, 0.98], "weight_decay": 0.01}
RAW = dict(work="sampling", description=FACTORED, energy="raw", order="left-to-right", together=14)
CASES = {
    "training": dict(work="training", description=FACTORED, optimizer=SGD),
    "training of bert": dict(work="training", description=BERT, optimizer=ADAMW),
    "sampling": RAW,
    "sampling in groups": RAW | dict(order="permuted", together=5),
    "sampling of bert": RAW | dict(description=BERT, energy="norm", order="permuted"),
    "tokenising": dict(work="tokenising"),
    "download": dict(work="download"),
}


def outcomes(settings: dict, folder: Path, kills: dict[str, list]) -> dict[str, list]:
    """Exit codes and bytes left: of a run in folder/whole, and of those in a folder for each of
    `kills`, where one try after another is killed in its way and the last one is not.
    """
    jobs = [settings | {"out": str(folder / "whole")}]
    for name, ways in kills.items():
        jobs += [settings | {"out": str(folder / name)} | way for way in (*ways, {})]
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("script_jobs.py")],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found = {}
    for job, outcome in zip(jobs, json.loads(done.stdout.splitlines()[-1]), strict=True):
        found.setdefault(Path(job["out"]).name, []).append(outcome)
    return found


def contents(folder: Path) -> dict[str, str]:
    """sha256 of all files by name, but for the times; hidden ones and saved states included."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "timing.jsonl"
    }


@pytest.mark.parametrize(
    "case",
    [
        "training",
        "training of bert",
        "sampling",
        "sampling in groups",
        pytest.param("sampling of bert", marks=pytest.mark.slow),
    ],
)
def test_kills_one_after_another_change_no_byte(case, tmp_path):
    """In one folder: at writes, before the rename or after it, then at times of the run."""
    ways = [{"write": count} for count in (1, 2, 3, 6)]
    ways += [{"share": share} for share in np.random.default_rng(11).uniform(0.05, 0.9, 4)]
    found = outcomes(CASES[case], tmp_path, {"killed": ways})
    assert [code for code, _ in found["killed"]] == [KILLED] * len(ways) + [0]
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")


def words(path: Path) -> None:
    """A text of 1.5 MB of made-up words."""
    draw = np.random.default_rng(5)
    letters = np.array(list("etaoinshrdlu"))
    made = ["".join(draw.choice(letters, size)) for size in draw.integers(2, 9, 3000)]
    chosen = draw.choice(made, 250_000)
    lines = [" ".join(chosen[i : i + 25]) for i in range(0, len(chosen), 25)]
    path.write_text("\n\n".join(lines) + "\n")


@pytest.mark.parametrize(
    "case",
    [
        "training",
        pytest.param("sampling in groups", marks=pytest.mark.slow),
        pytest.param("tokenising", marks=pytest.mark.slow),
        pytest.param("download", marks=pytest.mark.slow),
    ],
)
def test_ten_kills_change_no_byte(case, tmp_path, server):
    """Each in a folder of its own."""
    server.pause = 0.01  # a second or so in all
    words(tmp_path / "words.txt")
    sources = {"url": f"{server.url}/text.txt", "text": str(tmp_path / "words.txt")}
    shares = np.random.default_rng(len(case)).uniform(0.02, 0.95, 10)
    kills = {str(number): [{"share": share}] for number, share in enumerate(shares)}
    found = outcomes(CASES[case] | sources, tmp_path, kills)
    whole = contents(tmp_path / "whole")
    assert whole
    for name in kills:
        (killed, kept), (ended, _) = found[name]
        assert (killed, ended) == (KILLED, 0)
        assert contents(tmp_path / name) == whole
        if case == "training":
            lines = (tmp_path / name / "timing.jsonl").read_text().splitlines()
            # A line a checkpoint: at most the one that was being reached is reached twice.
            assert (
                len(lines)
                <= len(checkpoints.checkpoint_steps(tmp_path / name / "manifest.json")) + 1
            )
        if case == "download":
            # The last request for a file asks for what was not on disk, and no more.
            last = dict(zip(server.paths, server.asked, strict=True))[f"/text.txt?{name}"]
            assert last == (f"bytes={kept}-" if kept else None)
    assert case != "download" or any(tries[0][1] for tries in found.values())
