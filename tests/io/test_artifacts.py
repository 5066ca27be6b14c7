"""Files are whole or not there; a manifest's payload is refused when altered; one writer."""

import json
import os
import socket
import threading
import time
from contextlib import ExitStack
from unittest.mock import patch

import child
import pytest

from manybody.io import lease as leases
from manybody.io.atomic import ArtifactError, atomic, write_json
from manybody.io.lease import lease
from manybody.io.manifest import Manifest, write_manifest


def test_an_interrupt_while_writing_leaves_the_old_file_alone(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write():
        with atomic(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_two_hosts_write_one_file_without_touching_each_others_half(tmp_path, monkeypatch):
    """Both with the same process number, as may be on a file system that they share."""
    path = tmp_path / "a.txt"
    with atomic(path) as first:
        first.write_text("first")
        with monkeypatch.context() as other:
            other.setattr(socket, "gethostname", lambda: "elsewhere")
            with atomic(path) as second:
                second.write_text("second")
        assert first.read_text() == "first"
        assert path.read_text() == "second"
    assert path.read_text() == "first"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def ended() -> int:
    """The number of a process that is no more."""
    with child.start("-c", "") as process:
        return process.pid


def test_what_killed_writers_left_is_removed_on_their_own_host_only(tmp_path):
    dead = ended()
    host = socket.gethostname()
    left = f".a.txt.{host}.{dead}.tmp"
    kept = [
        f".a.txt.{host}.{os.getppid()}.tmp",  # alive
        f".a.txt.elsewhere.{dead}.tmp",
        f".a.txt.{host}.domain.{dead}.tmp",
        f".b.txt.{host}.{dead}.tmp",
    ]
    for name in [left, *kept]:
        (tmp_path / name).write_text("half")
    with atomic(tmp_path / "a.txt") as temporary:
        temporary.write_text("whole")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted([*kept, "a.txt"])


def test_json_has_the_same_bytes_whatever_the_order(tmp_path):
    write_json(tmp_path / "a.json", {"b": 1, "a": [1.5, None]})
    write_json(tmp_path / "b.json", {"a": [1.5, None], "b": 1})
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()


@pytest.fixture
def run(tmp_path):
    (tmp_path / "x.bin").write_bytes(b"12345")
    write_manifest(tmp_path / "manifest.json", "model", ["x.bin"], {"steps": [1]})
    return tmp_path


def test_a_manifest_hands_out_its_files(run):
    manifest = Manifest.read(run / "manifest.json", "model")
    assert manifest.about == {"steps": [1]}
    assert manifest.file("x.bin").read_bytes() == b"12345"


@pytest.mark.parametrize("damage", ["12346", "1234", None])
def test_a_missing_or_altered_file_is_named(run, damage):
    if damage is None:
        (run / "x.bin").unlink()
    else:
        (run / "x.bin").write_text(damage)
    with pytest.raises(ArtifactError, match=r"x\.bin.*remake"):
        Manifest.read(run / "manifest.json", "model").file("x.bin")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *[(text, r"manifest\.json") for text in ("", "[]", '{"kind": "model"}', '{"kind": 1, "a')],
        (None, "'model', expected 'clones'"),
    ],
)
def test_a_foreign_manifest_is_refused(run, text, said):
    if text is not None:
        (run / "manifest.json").write_text(text)
    with pytest.raises(ArtifactError, match=said):
        Manifest.read(run / "manifest.json", "clones")


HOLD = """
import sys, time
from manybody.io import lease
lease.HEARTBEAT = float(sys.argv[2])
with lease.lease(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""
FOREIGN = {"host": "elsewhere", "boot": "x", "process": 1, "started": "1", "job": "7"}


def holding(folder, heartbeat=leases.HEARTBEAT):
    """A process that holds the lease of `folder`."""
    process = child.start("-c", HOLD, folder, heartbeat)
    assert process.stdout.readline() == "held\n"
    return process


@pytest.fixture
def holder(tmp_path):
    with holding(tmp_path) as process:
        yield process
        process.kill()


def test_a_second_writer_is_told_who_writes(tmp_path, holder):
    with (
        patch.object(leases, "WAIT", 0),
        pytest.raises(ArtifactError, match=f"process {holder.pid} on .*sign of life"),
        lease(tmp_path),
    ):
        pass


def test_a_second_writer_waits_for_the_first_one_and_says_so(tmp_path, capsys):
    first = ExitStack()
    first.enter_context(lease(tmp_path))
    soon = threading.Timer(1.0, first.close)
    soon.start()
    with lease(tmp_path):
        soon.join()
    told = f"{tmp_path} is being written by process {os.getpid()} on {socket.gethostname()}"
    assert capsys.readouterr().err.count(told) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_job_that_is_started_again_outwaits_the_lease_of_its_failed_node(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "SILENCE", 2.0)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    (tmp_path / ".lease").write_text(json.dumps(FOREIGN))  # its last sign of life is new
    with lease(tmp_path):
        assert json.loads((tmp_path / ".lease").read_text())["host"] != "elsewhere"


def test_the_usual_wait_is_longer_than_a_failed_node_takes_to_fall_silent():
    assert leases.WAIT > leases.SILENCE + 2 * leases.HEARTBEAT


def test_a_writer_misses_ten_signs_of_life_before_it_counts_as_dead():
    assert leases.SILENCE > 10 * leases.HEARTBEAT


def test_a_writer_whose_lease_was_taken_over_ends(tmp_path):
    """It was stopped for so long that another host took it for dead."""
    process = holding(tmp_path, heartbeat=0.1)
    draft = tmp_path / "heir"
    draft.write_text(json.dumps(FOREIGN))
    draft.replace(tmp_path / ".lease")
    _, said = process.communicate(timeout=50)
    assert process.returncode == 1
    assert f"{tmp_path} has another writer" in said
    assert json.loads((tmp_path / ".lease").read_text()) == FOREIGN


def test_the_lease_of_a_killed_writer_is_taken_over(tmp_path, holder):
    holder.kill()
    holder.wait()
    with lease(tmp_path):
        assert json.loads((tmp_path / ".lease").read_text())["process"] == os.getpid()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seen", [0, time.time() + 86_400], ids=["silent", "from the future"])
def test_a_silent_lease_of_another_host_is_taken_over(tmp_path, seen):
    path = tmp_path / ".lease"
    path.write_text(json.dumps(FOREIGN))
    with (
        patch.object(leases, "WAIT", 0),
        pytest.raises(ArtifactError, match="elsewhere, job 7"),
        lease(tmp_path),
    ):
        pass
    os.utime(path, (seen, seen))
    with lease(tmp_path):
        assert json.loads(path.read_text())["host"] != "elsewhere"


def test_drafts_of_killed_claimants_are_removed_and_those_of_live_ones_kept(tmp_path):
    dead = ended()
    here = socket.gethostname()
    names = {name: f".lease.{name}" for name in ("else.where.5", "else.where.6")}
    names |= {"live": f".lease.{here}.{os.getppid()}", "dead": f".lease.{here}.{dead}"}
    names |= {"grave": f".lease.{here}.{dead}.dead"}
    for name in names.values():
        (tmp_path / name).touch()
    os.utime(tmp_path / names["else.where.5"], (0, 0))
    with lease(tmp_path):
        pass
    assert {path.name for path in tmp_path.iterdir()} == {names["live"], names["else.where.6"]}
