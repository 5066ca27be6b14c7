"""Public repositories of the Hugging Face hub: what they hold, and their files at a commit.

The hub's library says what there is. `download` brings the files, since it goes on where a killed
job stopped.
"""

import os
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from huggingface_hub import HfApi, hf_hub_url

from manybody.data import SourceError
from manybody.data.download import fetch

ELSEWHERE = "name the folder that it is in instead of the repository"


class Remote(NamedTuple):
    """A file of a repository: its size in bytes, and its sha256 where the hub has it."""

    bytes: int
    sha256: str | None


def references(repository: str) -> dict[str, str]:
    """The branches and tags of a repository and their commits now."""
    with _said(repository):
        refs = _api().list_repo_refs(repository, token=False)
    return {ref.name: ref.target_commit for ref in [*refs.tags, *refs.branches]}


def listing(repository: str, commit: str) -> dict[str, Remote]:
    """The files of a repository at a commit."""
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
    for name in names:
        url = hf_hub_url(repository, name, revision=commit, endpoint=_api().endpoint)
        fetch(url, folder / name, known.get(name), otherwise=ELSEWHERE)


def _api() -> HfApi:
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
