"""Downloads, at addresses whose file never changes, that go on where they stopped.

They use the standard library, because the hub's client loses its partial file when it is killed.
That client only says what a public repository of the Hugging Face hub holds.
"""

import http.client
import os
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from manybody.data import SourceError
from manybody.io.atomic import read_json, sha256, write_json
from manybody.io.lease import lease
from manybody.io.progress import Progress

BLOCK = 2**20  # bytes
TRIES = 5  # tries in a row that bring no new byte
TIMEOUT = 60.0  # seconds without a byte
CORPUS = "name it under the corpus's `files` in the config"
ELSEWHERE = "name the folder that it is in instead of the repository"


def fetch(
    url: str, path: Path, expected: str | None = None, patience: float = 2, otherwise: str = CORPUS
) -> Path:
    """The file at `path`, downloaded from `url` if it is not there yet.

    The address must name one file for good, as at a commit: a range request continues what a killed
    one leaves (`path` + ".part"). The sha256 must be `expected` or, if None, what the first
    download recorded beside the file. `patience`: seconds before the second try, doubled each time.
    `SourceError` says what failed and, by `otherwise`, what to do with a file fetched elsewhere.
    """
    record = path.with_name(f"{path.name}.json")
    with lease(path.parent):
        recorded = read_json(record) if record.is_file() else {}
        if path.is_file():
            _compare(path, sha256(path), expected, recorded)
            if not recorded:
                write_json(record, {"url": _public(url), "sha256": sha256(path)})
            return path
        part = path.with_name(f"{path.name}.part")
        _download(url, part, patience, otherwise)
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
            f"{path} has sha256 {found}, the config's `sha256` expects {expected}. Delete the file "
            "to download it again, or correct the config"
        )
    if not expected and recorded and found != recorded["sha256"]:
        raise SourceError(
            f"{path} has sha256 {found}, but {recorded['sha256']} was recorded when it was first "
            f"downloaded ({path.name}.json). Delete both to accept what the server has now"
        )


def _download(url: str, part: Path, patience: float, otherwise: str) -> None:
    """Completes `part` from `url`; what arrived stays on disk whatever happens."""
    failures = 0
    while True:
        before, final, reason = _size(part), False, ConnectionError("the connection ended early")
        try:
            if _receive(url, part):
                return
        except urllib.error.HTTPError as error:
            reason, final = error, error.code < 500 and error.code not in (408, 429)
        except (OSError, http.client.HTTPException) as error:
            reason = error
        failures = 0 if _size(part) > before else failures + 1
        if final or failures == TRIES:
            raise SourceError(
                f"cannot download {_public(url)}: {reason}. Run again to go on with what is in "
                f"{part}, or fetch the file elsewhere and {otherwise}"
            ) from reason
        time.sleep(patience * 2**failures)


def _size(part: Path) -> int:
    return part.stat().st_size if part.is_file() else 0


def _public(url: str) -> str:
    """The address without user, password, query and fragment, as it may be shown and kept."""
    parts = urllib.parse.urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _receive(url: str, part: Path) -> bool:
    """One request for what `part` lacks; True if the file is complete."""
    have = _size(part)
    wanted = {"Range": f"bytes={have}-"} if have else {}
    request = urllib.request.Request(url, headers={"Accept-Encoding": "identity", **wanted})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        # The server has nothing left to send: what is here is all, or longer than the file.
        if error.headers.get("Content-Range") == f"bytes */{have}":
            return True
        part.unlink()
        return False
    with response:
        if response.status == 200:  # the whole file, also from a server that knows no ranges
            have = 0
        length = response.headers.get("Content-Length")
        total = have + int(length) if length else None
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
    return total is None or _size(part) == total


class Remote(NamedTuple):
    """A file of a repository of the hub: its size in bytes, and its sha256 where that is known."""

    bytes: int
    sha256: str | None


def references(repository: str) -> dict[str, str]:
    """The branches and tags of a repository of the hub and their commits now."""
    with _said(repository):
        refs = _api().list_repo_refs(repository, token=False)
    return {ref.name: ref.target_commit for ref in [*refs.tags, *refs.branches]}


def listing(repository: str, commit: str) -> dict[str, Remote]:
    with _said(f"{repository} at {commit}"):
        info = _api().model_info(repository, revision=commit, files_metadata=True, token=False)
    return {
        part.rfilename: Remote(part.size or 0, part.lfs.sha256 if part.lfs else None)
        for part in info.siblings or ()
    }


def take(
    repository: str, commit: str, names: Iterable[str], folder: Path, known: dict[str, str | None]
) -> None:
    """Downloads files at a commit to a folder; `known` has the sha256 of some of them."""
    from huggingface_hub import hf_hub_url

    for name in names:
        url = hf_hub_url(repository, name, revision=commit, endpoint=_api().endpoint)
        fetch(url, folder / name, known.get(name), otherwise=ELSEWHERE)


def _api():
    from huggingface_hub import HfApi

    # Not the library's constant, which is read when it is first imported.
    return HfApi(endpoint=os.environ.get("HF_ENDPOINT"))


@contextmanager
def _said(what: str):
    """Errors of the library in a sentence."""
    try:
        yield
    except Exception as error:  # those of the HTTP client, too, which the library chooses
        first = str(error).strip().splitlines()[0]
        raise SourceError(
            f"cannot ask the hub for {what}: {first}. Expected a public repository; correct its "
            f"name, run again where the hub can be reached, or fetch the files elsewhere and "
            f"{ELSEWHERE}"
        ) from error
