"""Files that are written whole or not at all, and the error for a file that cannot be used."""

import glob
import hashlib
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from manybody.io.processes import started
from manybody.io.refusal import Refusal


class ArtifactError(Refusal):
    """A file of the pipeline is missing, altered, foreign or held by another writer."""


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """A temporary path in the folder of `path`, renamed to it when the block ends well.

    The data is on disk before the rename. After an error nothing is left under either name. What a
    killed writer left is removed by the next writer on the same host.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    own = f".{path.name}.{socket.gethostname()}."
    for leftover in path.parent.glob(f"{glob.escape(own)}*.tmp"):
        process = leftover.name[len(own) : -len(".tmp")]
        # The rest is not a number where another host's name begins with this host's and a dot.
        if process.isdigit() and not started(process):
            leftover.unlink(missing_ok=True)
    temporary = path.with_name(f"{own}{os.getpid()}.tmp")
    try:
        yield temporary
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    finally:
        temporary.unlink(missing_ok=True)


def to_json(value) -> str:
    """The one JSON text of `value`: sorted keys, no NaN."""
    return json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def write_text(path: str | Path, text: str) -> None:
    """Writes `text` to `path` atomically, in UTF-8."""
    with atomic(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value) -> None:
    """Writes `value` to `path` atomically, the same bytes for equal values."""
    write_text(path, to_json(value))


def read_json(path: str | Path):
    """The JSON document in `path`, else `ArtifactError`. Numbers that JSON does not have, as some
    config.json do, come as transformers writes them."""
    try:
        return json.loads(
            Path(path).read_text(encoding="utf-8-sig"),
            parse_constant=lambda name: {"__float__": name},
        )
    except (OSError, ValueError, RecursionError) as error:
        raise ArtifactError(
            f"{path} is not a readable JSON document: {error}"
            + f"; give {path}/manifest.json" * Path(path, "manifest.json").is_file()
        ) from error


def sha256(path: str | Path) -> str:
    """Hexadecimal sha256 of a file's bytes."""
    with Path(path).open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
