"""Ten kills each of the scripts' own work: what is started again ends with the same bytes."""

import hashlib
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from http_server import server

from manybody.files import checkpoints

KILLS = 10
PARTS = ("training", "sampling", "tokenising", "download")
__all__ = ["server"]  # a fixture


def contents(folder: Path) -> dict[str, str]:
    """sha256 of all files by name, but for the times; hidden ones and saved states included."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "timing.jsonl"
    }


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_ten_kills_change_no_byte(part, tmp_path, server):
    draw = np.random.default_rng(PARTS.index(part))
    server.pause = 0.01  # a second or so in all
    asked = {
        "part": part,
        "folder": str(tmp_path),
        "fractions": draw.uniform(0.02, 0.95, KILLS).tolist(),
        "url": f"http://127.0.0.1:{server.server_port}/text.txt",
    }
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("script_jobs.py")],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    codes = json.loads(done.stdout.splitlines()[-1])
    assert [pair for *pair, _ in codes] == [[-signal.SIGKILL, 0]] * KILLS, done.stderr[-4000:]
    whole = contents(tmp_path / "whole")
    assert whole
    for number in range(KILLS):
        assert contents(tmp_path / str(number)) == whole
    if part == "training":
        for number in range(KILLS):
            run = tmp_path / str(number) / "run"
            lines = (run / "timing.jsonl").read_text().splitlines()
            kept = checkpoints.checkpoint_steps(run / "manifest.json")
            # A line a checkpoint: at most the one that was being reached is reached twice.
            assert len(lines) <= len(kept) + 1
    if part == "download":
        # The last request for each file asks for what was not on disk, and no more.
        last = dict(zip(server.paths, server.asked, strict=True))
        for number, (*_, kept) in enumerate(codes):
            assert last[f"/text.txt?{number}"] == (f"bytes={kept}-" if kept else None)
        assert any(kept for *_, kept in codes)
