"""What a job's log says of its progress can be read there."""

import os
import sys
import time
from contextlib import redirect_stderr

import pytest

from manybody.io import progress
from manybody.io.progress import Progress, last_lines, last_progress


@pytest.fixture
def log(tmp_path, monkeypatch):
    """A log that takes each update."""
    monkeypatch.setattr(progress, "INTERVAL", 0.0)
    path = tmp_path / "job.log"
    path.touch()
    return path


def said_to(log):
    """What is printed inside goes to the log."""
    return redirect_stderr(log.open("a", buffering=1))


@pytest.mark.parametrize(
    ("unit", "left", "seconds"),
    [("steps", 40.0, 40), ("values of c", 62.0, 62), ("sets", 2 * 3600 + 65, 7265)],
)
def test_the_last_line_is_found(log, unit, left, seconds):
    with said_to(log), Progress(80, unit, "train n2: odd, (1/2) (9%)") as bar:
        bar.update(8, left=500.0)
        bar.update(4, left=left, loss=2.5)
        print("a warning", file=sys.stderr)
    said = last_progress(log, 100.0)
    assert said.text == f"12/80 {unit} (15%)"
    assert said.share == 0.15
    assert seconds - 2 < said.left <= seconds


def test_what_was_done_before_says_nothing_of_the_time_left(log, monkeypatch):
    seconds = iter(range(0, 100, 10))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(seconds))
    with said_to(log), Progress(80, "steps", "fit") as bar:
        bar.update(60, before=True)
        bar.update(4)
        assert last_progress(log, 100.0).left == pytest.approx(80, abs=1)  # 16 steps, 4 in 20 s


def test_finished_work_has_one_last_line(log):
    with said_to(log), Progress(4, "steps", "fit") as bar:
        for _ in range(2):
            bar.update(2)
    lines = [line.partition(",")[0] for line in log.read_text().splitlines()]
    assert lines == ["fit: 2/4 steps (50%)", "fit: 4/4 steps (100%)"]


def test_nothing_is_found_in_a_log_that_is_old_or_silent_or_not_there(log):
    assert last_progress(log.with_name("other.log"), 100.0) is None
    with said_to(log):
        print("imports", file=sys.stderr)
    assert last_progress(log, 100.0) is None
    with said_to(log), Progress(10, "steps", "fit") as bar:
        bar.update(5)
    assert last_progress(log, 100.0)
    before = time.time() - 200
    os.utime(log, (before, before))
    assert last_progress(log, 100.0) is None


def test_the_end_of_a_long_log(tmp_path):
    path = tmp_path / "job.log"
    path.write_bytes(b"x" * 10**6 + b"\nlast but one\n\xff last")
    assert last_lines(path)[-2:] == ["last but one", "\ufffd last"]
    assert len("".join(last_lines(path))) <= progress.TAIL
