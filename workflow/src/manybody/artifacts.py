"""Files that are whole or not there: atomic writes, manifests and leases.

A job whose files depend on its settings declares one output, its manifest, written last. The
manifest lists every payload file beside it with size and sha256; readers open payload through it.
"""

import glob
import hashlib
import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

HEARTBEAT = 5.0  # seconds between two signs of life of a writer
SILENCE = 60.0  # seconds without one after which a writer on another host counts as dead
WAIT = 90.0  # seconds that a second writer waits: by then a dead one has been silent long enough


class ArtifactError(RuntimeError):
    """A file of the pipeline is missing, altered, foreign or held by another writer."""


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """A temporary path in the folder of `path`, renamed to it when the block ends well.

    The data is on disk before the rename; after an error nothing is left under either name. What
    a writer that was killed has left is removed by the next one on the same host.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    own = f".{path.name}.{socket.gethostname()}."
    for leftover in path.parent.glob(f"{glob.escape(own)}*.tmp"):
        process = leftover.name[len(own) : -len(".tmp")]
        # Another host's name may begin with this one's and a dot.
        if process.isdigit() and not _started(process):
            leftover.unlink(missing_ok=True)
    temporary = path.with_name(f"{own}{os.getpid()}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def to_json(value) -> str:
    """The one JSON text of `value`: sorted keys, no NaN."""
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(path: str | Path, value) -> None:
    """Writes `value` to `path` atomically, the same bytes for equal values."""
    with atomic(path) as temporary:
        temporary.write_text(to_json(value), encoding="utf-8")


def read_json(path: str | Path):
    """The JSON document in `path`; `ArtifactError` names the file when it is not one."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ArtifactError(f"{path} is not a readable JSON document: {error}") from error


def sha256(path: str | Path) -> str:
    """Hexadecimal sha256 of a file's bytes."""
    with Path(path).open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def write_manifest(path: str | Path, kind: str, payload: Iterable[str], about: dict) -> None:
    """Writes the manifest of the files named in `payload`, relative to its folder."""
    folder = Path(path).parent
    files = {
        name: {"bytes": (folder / name).stat().st_size, "sha256": sha256(folder / name)}
        for name in sorted(payload)
    }
    document = {"kind": kind, "about": about, "files": files}
    write_json(path, {**document, "sha256": _seal(document)})


def _seal(document: dict) -> str:
    return hashlib.sha256(to_json(document).encode()).hexdigest()


class Manifest:
    """A job's list of payload files. `file` hands them out only while they are unaltered."""

    def __init__(self, path: Path, kind: str, about: dict, files: dict):
        self.path, self.kind, self.about, self._files = path, kind, about, files
        self._checked: set[str] = set()

    @classmethod
    def read(cls, path: str | Path, kind: str) -> "Manifest":
        """The manifest at `path`; `ArtifactError` if it is missing or not of this `kind`."""
        document = read_json(path)
        if not isinstance(document, dict) or document.keys() != {
            "kind",
            "about",
            "files",
            "sha256",
        }:
            raise ArtifactError(
                f"{path} is not a manifest: it should hold kind, about, files and sha256"
            )
        if document.pop("sha256") != _seal(document):
            raise ArtifactError(
                f"{path} was altered after it was written. Delete it and run the same snakemake "
                "command again to remake it."
            )
        if document["kind"] != kind:
            raise ArtifactError(
                f"{path} lists files of kind {document['kind']!r}, expected {kind!r}"
            )
        return cls(Path(path), kind, document["about"], document["files"])

    def names(self) -> list[str]:
        """Names of the payload files, sorted."""
        return sorted(self._files)

    def file(self, name: str) -> Path:
        """Path of a payload file, its size and sha256 compared with the manifest's once."""
        if name not in self._files:
            known = ", ".join(self.names())
            raise ArtifactError(f"{self.path} lists no file {name!r}; it lists {known}")
        path = self.path.parent / name
        if name not in self._checked:
            expected = self._files[name]
            if not path.is_file():
                raise ArtifactError(f"{path} is missing. {self._remake()}")
            size = path.stat().st_size
            if size != expected["bytes"] or sha256(path) != expected["sha256"]:
                raise ArtifactError(
                    f"{path} is not the file that was written: {size} bytes, expected "
                    f"{expected['bytes']} with sha256 {expected['sha256']}. {self._remake()}"
                )
            self._checked.add(name)
        return path

    def _remake(self) -> str:
        return f"Delete {self.path} and run the same snakemake command again to remake it."


@contextmanager
def lease(folder: str | Path, wait: float | None = None) -> Iterator[None]:
    """Holds the right to write `folder`; one writer at a time, on any host that shares it.

    A second writer says so and waits up to `wait` seconds (WAIT), then raises `ArtifactError` that
    names the first one's host, process and job. A lease whose process is gone (same host) or
    silent for a minute (another host) is taken over: a job that is started again after its node
    failed waits for its own former self to fall silent. A writer that finds its lease taken over,
    since it was stopped for so long, ends its process.
    """
    wait = WAIT if wait is None else wait
    path = Path(folder) / ".lease"
    path.parent.mkdir(parents=True, exist_ok=True)
    mine = {
        "host": socket.gethostname(),
        "boot": _boot(),
        "process": os.getpid(),
        "started": _started(os.getpid()),
        "job": os.environ.get("SLURM_JOB_ID", ""),
    }
    deadline, told = time.monotonic() + wait, False
    while not _claim(path, mine):
        if time.monotonic() >= deadline:
            raise ArtifactError(f"{_held(path)} Wait for it or end it, then run again.")
        if not told:
            told = True
            print(f"{_held(path)} Waiting up to {wait:.0f} s for it.", file=sys.stderr, flush=True)
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


def holders(folder: str | Path) -> list[str]:
    """Of every artifact under `folder` that a living writer holds, a sentence that names it."""
    with tempfile.TemporaryFile(dir=folder) as clock:
        mine = {"host": socket.gethostname(), "boot": _boot()}
        now = os.fstat(clock.fileno()).st_mtime
    paths = sorted(Path(folder).rglob(".lease"))
    alive = [path for path in paths if path.exists() and not _dead(path, mine, now)]
    return [f"{_held(path)} Wait for it or end it, then run again." for path in alive]


def _claim(path: Path, mine: dict) -> bool:
    # The document is complete before it gets its name: link() fails if the name is taken.
    draft = path.with_name(f".lease.{mine['host']}.{mine['process']}")
    draft.write_text(to_json(mine), encoding="utf-8")
    now = draft.stat().st_mtime  # by the clock that the other writer's signs of life have, too
    try:
        if _dead(path, mine, now):
            # Of two heirs to a dead lease the slower one may find its rival's live lease here.
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
    """Removes what writers that were killed while they claimed the lease left beside it."""
    for draft in path.parent.glob(f"{path.name}.*"):
        host, _, process = draft.name.removesuffix(".dead")[len(path.name) + 1 :].rpartition(".")
        with suppress(FileNotFoundError):
            if host == mine["host"]:
                dead = not _started(process)
            else:
                dead = time.time() - draft.stat().st_mtime > SILENCE
            if dead:
                draft.unlink()


def _dead(path: Path, mine: dict, now: float) -> bool:
    try:
        holder = json.loads(path.read_text(encoding="utf-8"))
        # A sign of life from the future is one from before the clock was set back.
        silence = abs(now - path.stat().st_mtime)
    except FileNotFoundError:
        return False
    except ValueError:
        return True
    if (holder["host"], holder["boot"]) == (mine["host"], mine["boot"]):
        return _started(holder["process"]) != holder["started"]
    return silence > SILENCE


def _held(path: Path) -> str:
    try:
        holder, age = read_json(path), time.time() - path.stat().st_mtime
    except (ArtifactError, FileNotFoundError):
        return f"{path.parent} is changing hands between writers."
    job = f", job {holder['job']}" if holder["job"] else ""
    return (
        f"{path.parent} is being written by process {holder['process']} on {holder['host']}{job} "
        f"(last sign of life {age:.0f} s ago)."
    )


def _holds(path: Path, mine: dict) -> bool:
    """Whether the lease is this writer's, or cannot be read now: it may be changing hands."""
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


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _started(process: int | str) -> str:
    """Start time of a process in clock ticks since boot; empty if there is no such process."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return ""
    fields = status.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
