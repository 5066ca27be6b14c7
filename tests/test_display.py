"""The block below Snakemake's output on a terminal, and the jobs that it tells of."""

import io
import os
import re
import time
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from display import Block, Display, span
from manybody.pipeline.time_left import Plan


def screen(printed: str) -> list[str]:
    """The lines that a terminal shows after it has been sent this."""
    lines, row = [""], 0
    for part in re.findall(r"\x1b\[\d*[FJ]|\n|[^\x1b\n]+", printed):
        if part == "\n":
            row += 1
            lines += [""] * (row == len(lines))
        elif part.endswith("F") and part[0] == "\x1b":
            row -= int(part[2:-1])
        elif part.endswith("J") and part[0] == "\x1b":
            lines[row:] = [""]
        else:
            lines[row] += part
    return lines[:-1] if lines[-1] == "" else lines


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    return io.StringIO()


def test_messages_stand_above_the_block_whole_and_once(terminal):
    block = Block(terminal)
    block.show(["1 of 3 jobs", "  training"])
    for message in ("Finished job 1", "2 lines\nin one"):
        block.write("\n")
        block.write(message)
        block.write("\n")
        block.flush()
    block.show(["2 of 3 jobs"])
    expected = ["", "Finished job 1", "", "2 lines", "in one"]
    assert screen(terminal.getvalue()) == [*expected, "2 of 3 jobs"]
    block.show([])
    block.write("the end\n")
    block.flush()
    assert screen(terminal.getvalue()) == [*expected, "the end"]


def test_no_line_is_longer_than_the_terminal_is_wide(terminal):
    block = Block(terminal)
    block.show(["x" * 100, "y"])
    block.show(["z"])
    assert max(map(len, terminal.getvalue().splitlines())) < 40
    assert screen(terminal.getvalue()) == ["z"]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (3.2, "3 s"),
        (100, "2 min"),
        (3599, "1 h 0 min"),
        (5000, "1 h 23 min"),
        (172_700, "47 h 58 min"),
        (172_800, "2 d 0 h"),
    ],
)
def test_times_in_words(seconds, words):
    assert span(seconds) == words


@pytest.mark.parametrize(("nodes", "waits"), [(100, True), (None, False)])
def test_a_job_in_the_queue_of_a_cluster_has_not_started(tmp_path, nodes, waits):
    log = tmp_path / "a.log"
    log.write_text("of a run before\n")
    os.utime(log, (time.time() - 60,) * 2)
    job = Mock(log=[str(log)], message="Training")
    job.is_group.return_value = False
    followed = Display(
        SimpleNamespace(
            nodes=nodes,
            dag=SimpleNamespace(finished=lambda job: False),
            scheduler=SimpleNamespace(running={job}, failed=set()),
        )
    )
    followed.job, followed.names = {"a": job}, {job: "a"}
    followed.begin, followed.last = time.time() - 30, time.monotonic()
    followed.plan = Plan({"a": 5.0}, {"a": set()}, {"a": 1}, 1)
    followed._look()
    followed.started = {name: begin - 1000 for name, begin in followed.started.items()}
    first, *running = followed.lines()
    assert ("1 in the queue" in first, running == []) == (waits, waits)
    assert ("about 5 s left" in first) == waits
    os.utime(log)
    followed._look()
    assert "queue" not in followed.lines()[0]
    assert followed.lines()[1].startswith("  Training: ")
