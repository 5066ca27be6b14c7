"""Leases: one writer of a folder at a time, on any host that shares it.

`filelock.SoftFileLease` judges a writer on another host dead only after it has watched it for the
whole `SILENCE`, so it cannot say at once, as `held` does before `make resume` unlocks a folder,
that a writer has been silent for hours. Its record has no place for the SLURM job.
"""

import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from manybody.io.atomic import ArtifactError, read_json, to_json
from manybody.io.processes import boot, started

HEARTBEAT = 5.0  # seconds between two signs of life of a writer
SILENCE = 60.0  # seconds without a sign of life after which another host's writer counts as dead
WAIT = 90.0  # seconds that a second writer waits: more than SILENCE


@contextmanager
def lease(folder: str | Path) -> Iterator[None]:
    """Holds the right to write `folder`; one writer at a time, on any host that shares it.

    A second writer says so and waits up to `WAIT` seconds, then raises `ArtifactError` that names
    the first one's host, process and job. A lease is taken over if its process is gone (same
    host) or has given no sign of life for a minute (another host), as after its node failed. A
    writer that was stopped for so long that its lease was taken over ends its process.
    """
    path = Path(folder) / ".lease"
    path.parent.mkdir(parents=True, exist_ok=True)
    mine = {
        "host": socket.gethostname(),
        "boot": boot(),
        "process": os.getpid(),
        "started": started(os.getpid()),
        "job": os.environ.get("SLURM_JOB_ID", ""),
    }
    deadline, told = time.monotonic() + WAIT, False
    while not _claim(path, mine):
        if time.monotonic() >= deadline:
            raise ArtifactError(f"{holder(folder)} Wait for it or end it, then run again.")
        if not told:
            told = True
            print(
                f"{holder(folder)} Waiting up to {WAIT:.0f} s for it.", file=sys.stderr, flush=True
            )
        time.sleep(0.5)
    _tidy(path, mine)
    stop = threading.Event()
    beat = threading.Thread(target=_beat, args=(path, mine, stop), daemon=True)
    beat.start()
    try:
        yield
    finally:
        stop.set()
        beat.join()
        if _holds(path, mine):
            path.unlink(missing_ok=True)


def held(folder: str | Path, alive: bool = True) -> list[Path]:
    """Artifacts under `folder` with a lease whose writer lives, or else of which it is dead."""
    with tempfile.TemporaryFile(dir=folder) as clock:
        mine = {"host": socket.gethostname(), "boot": boot()}
        now = os.fstat(clock.fileno()).st_mtime
    return [
        path.parent
        for path in sorted(Path(folder).rglob(".lease"))
        if path.exists() and _dead(path, mine, now) != alive
    ]


def _claim(path: Path, mine: dict) -> bool:
    # The document is complete before it gets its name: link() fails if the name is taken.
    draft = path.with_name(f".lease.{mine['host']}.{mine['process']}")
    draft.write_text(to_json(mine), encoding="utf-8")
    now = draft.stat().st_mtime  # the file system's clock, as for the other writer's signs of life
    try:
        if _dead(path, mine, now):
            # Of two writers that take over a dead lease, the slower may find the other's live one.
            with suppress(FileNotFoundError):
                grave = path.with_name(f"{draft.name}.dead")
                path.rename(grave)
                if not _dead(grave, mine, now):
                    os.link(grave, path)
                grave.unlink()
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    return True


def _tidy(path: Path, mine: dict) -> None:
    """Removes the drafts of writers that were killed while they claimed the lease."""
    for draft in path.parent.glob(f"{path.name}.*"):
        host, _, process = draft.name.removesuffix(".dead")[len(path.name) + 1 :].rpartition(".")
        with suppress(FileNotFoundError):
            if host == mine["host"]:
                dead = not started(process)
            else:
                dead = time.time() - draft.stat().st_mtime > SILENCE
            if dead:
                draft.unlink()


def _dead(path: Path, mine: dict, now: float) -> bool:
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        # A sign of life from the future was given before the clock was set back.
        silence = abs(now - path.stat().st_mtime)
    except FileNotFoundError:
        return False
    except ValueError:
        return True
    if (holder["host"], holder["boot"]) == (mine["host"], mine["boot"]):
        return started(holder["process"]) != holder["started"]
    return silence > SILENCE


def holder(folder: str | Path) -> str:
    """A sentence that names the writer of `folder`."""
    path = Path(folder) / ".lease"
    try:
        writer, age = read_json(path), time.time() - path.stat().st_mtime
    except (ArtifactError, FileNotFoundError):
        return f"{path.parent} is changing hands between writers."
    job = f", job {writer['job']}" if writer["job"] else ""
    return (
        f"{path.parent} is being written by process {writer['process']} on {writer['host']}{job} "
        f"(last sign of life {age:.0f} s ago)."
    )


def _holds(path: Path, mine: dict) -> bool:
    """True if the lease is this writer's, or cannot be read now: it may be changing hands."""
    try:
        return json.loads(path.read_text(encoding="utf-8")) == mine
    except OSError:
        return True
    except ValueError:
        return False


def _beat(path: Path, mine: dict, stop: threading.Event) -> None:
    while not stop.wait(HEARTBEAT):
        if not _holds(path, mine):
            print(
                f"{path.parent} has another writer: this process gave no sign of life for over "
                f"{SILENCE:.0f} s, and ends.",
                file=sys.stderr,
                flush=True,
            )
            os._exit(1)
        with suppress(OSError):
            os.utime(path)
