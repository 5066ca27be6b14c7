"""Downloads that go on where they stopped, and files that may not change afterwards.

This uses the standard library, because the hub's client loses its partial file when it is killed.
"""

import http.client
import json
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from manybody.files.atomic import sha256, write_json
from manybody.files.lease import lease
from manybody.runtime.progress import Progress
from manybody.sources import SourceError

BLOCK = 2**20  # bytes
TRIES = 5  # tries in a row that bring no new byte
TIMEOUT = 60.0  # seconds without a byte


def fetch(url: str, path: Path, expected: str | None = None, patience: float = 2.0) -> Path:
    """The file at `path`, downloaded from `url` if it is not there yet.

    What a killed download leaves (`path` + ".part") is continued by an HTTP range request, if the
    server still has the same file. The sha256 is compared with `expected` or, where none is known,
    with the one that the first download recorded beside the file. `patience`: seconds before the
    second try, doubled each time. `SourceError` says what failed and how to do without a download.
    """
    record = path.with_name(f"{path.name}.json")
    with lease(path.parent):
        recorded = json.loads(record.read_text()) if record.is_file() else {}
        if path.is_file():
            _compare(path, sha256(path), expected, recorded)
            if not recorded:
                write_json(record, {"url": _public(url), "sha256": sha256(path)})
            return path
        part = path.with_name(f"{path.name}.part")
        _download(url, part, patience)
        found = sha256(part)
        try:
            _compare(path, found, expected, recorded)
        except SourceError:
            part.unlink()
            raise
        write_json(record, {"url": _public(url), "sha256": found})
        part.replace(path)
    return path


def _compare(path: Path, found: str, expected: str | None, recorded: dict) -> None:
    if expected and found != expected:
        raise SourceError(
            f"{path} has sha256 {found}, the config's `sha256` expects {expected}. "
            "Delete the file to download it again, or correct the config"
        )
    if not expected and recorded and found != recorded["sha256"]:
        raise SourceError(
            f"{path} has sha256 {found}, but {recorded['sha256']} was recorded when it was first "
            f"downloaded ({path.name}.json). Delete both to accept what the server has now"
        )


def _download(url: str, part: Path, patience: float) -> None:
    """Completes `part` from `url`; what arrived stays on disk whatever happens."""
    failures = 0
    while True:
        before = part.stat().st_size if part.is_file() else 0
        try:
            if _receive(url, part):
                return
            reason: object = "the connection ended early"
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code not in (408, 429):
                raise _unreachable(url, part, error) from error
            reason = error
        except (OSError, http.client.HTTPException) as error:
            reason = error
        after = part.stat().st_size if part.is_file() else 0
        failures = 0 if after > before else failures + 1
        if failures == TRIES:
            raise _unreachable(url, part, reason)
        time.sleep(patience * 2**failures)


def _unreachable(url: str, part: Path, reason: object) -> SourceError:
    return SourceError(
        f"cannot download {_public(url)}: {reason}. Run again to go on with what is in {part}, or "
        "fetch the file elsewhere and name it under the corpus's `files` in the config"
    )


def _public(url: str) -> str:
    """The address without user, password, query and fragment, as it may be shown and kept."""
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(
        (parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")
    )


def _receive(url: str, part: Path) -> bool:
    """One request for what `part` lacks; True if the file is complete."""
    state = part.with_name(f"{part.name}.json")
    have = part.stat().st_size if part.is_file() and state.is_file() else 0
    known = json.loads(state.read_text()) if have else {}
    request = urllib.request.Request(url, headers={"Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
        if known.get("etag"):
            request.add_header("If-Range", known["etag"])
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        # The server has nothing left to send: the file is complete, or is another one there now.
        total = (error.headers.get("Content-Range") or "").rpartition("/")[2]
        if total == str(have) == str(known.get("total")):
            state.unlink()
            return True
        part.unlink()
        return False
    with response:
        total = _continued(response, have, known)
        if total is None:
            # The answer is the whole file or another part of it: what is here cannot be continued.
            have = 0
            part.unlink(missing_ok=True)
            if response.status != 200:
                return False
            length = response.headers.get("Content-Length")
            total = int(length) if length else None
        etag = response.headers.get("ETag") or ""
        write_json(state, {"etag": "" if etag.startswith("W/") else etag, "total": total})
        label = f"download {part.name.removesuffix('.part')}"
        with (
            part.open("ab" if have else "wb") as out,
            Progress(total or 0, "bytes", label, done=have) as progress,
        ):
            while block := response.read1(BLOCK):
                out.write(block)
                progress.update(len(block))
            out.flush()
            os.fsync(out.fileno())
    # No length was sent: the file is complete where the answer ends.
    complete = total is None or part.stat().st_size == total
    if complete:
        state.unlink()
    elif part.stat().st_size > total:
        part.unlink()
    return complete


def _continued(response: http.client.HTTPResponse, have: int, known: dict) -> int | None:
    """Bytes of the whole file if the answer continues what we have, else None."""
    if response.status != 206:
        return None
    total = known.get("total")
    asked = total is not None and f"bytes {have}-{total - 1}/{total}"
    return total if response.headers.get("Content-Range") == asked else None
