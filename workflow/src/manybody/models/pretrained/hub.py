"""Checkpoints that are revisions of a repository of the hub: at most two on disk at a time."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from manybody.data import download
from manybody.io.atomic import read_json, sha256
from manybody.io.lease import lease
from manybody.io.refusal import Refusal
from manybody.models.pretrained import layout

KEPT = 2  # checkpoints of a repository that stay on disk
COMMIT = re.compile(r"[0-9a-f]{40}$")


def found(weights: dict, steps: list[int] | None, known: dict[str, str]) -> dict[int, dict]:
    """The checkpoints that `weights` names, by step; `known` has the commits of revisions that
    were resolved before."""
    repository, asked = weights["hub"], weights.get("revisions", ["main"])
    if isinstance(asked, str):
        ends = re.compile(re.escape(asked) + r"[-_]?(\d+)$")
        there = download.references(repository)
        asked = [name for name in there if ends.match(name)]
        if not asked:
            raise Refusal(
                f"found {weights['revisions']}, but of the branches and tags of {repository} none "
                f"is called so with a number after it; expected one of {', '.join(there) or 'none'}"
                f"; correct it",
                "weights.revisions",
            )
        asked.sort(key=lambda name: int(ends.match(name)[1]))
    new = [name for name in asked if name not in known and not COMMIT.match(name)]
    there = download.references(repository) if new else {}
    if missing := [name for name in new if name not in there]:
        raise Refusal(
            f"found {missing[0]}, but {repository} has no such branch or tag; expected one of "
            f"{', '.join(there) or 'none'}, or a commit of 40 digits; correct it",
            "weights.revisions",
        )
    at = steps or [_step(name, alone=len(asked) == 1) for name in asked]
    return {
        step: {
            "origin": f"{repository}@{name}",
            "repository": repository,
            "revision": name,
            "commit": known.get(name) or there.get(name) or name,
        }
        for step, name in sorted(zip(at, asked, strict=True))
    }


def _step(name: str, alone: bool) -> int:
    match = re.search(r"(?<![0-9a-f])(\d+)$", name) if not COMMIT.match(name) else None
    if match:
        return int(match[1])
    if alone:
        return 0
    raise Refusal(
        f"found the revision {name}, whose name does not end in its step; expected step1000 or "
        f"the like; say the steps under `steps`",
        "weights.revisions",
    )


def record(checkpoint: dict, downloads: Path) -> dict:
    """The sizes and digests of the files that a checkpoint is read from, by name.

    `Refusal` where it has no safetensors. A missing shard is left to the audit.
    """
    there = download.listing(checkpoint["repository"], checkpoint["commit"])
    small = layout.small_files(there, checkpoint["origin"])
    folder = _folder(checkpoint, downloads)
    with lease(folder.parent):
        download.take(checkpoint["repository"], checkpoint["commit"], small, folder, {})
    index = read_json(folder / layout.INDEX) if layout.INDEX in small else None
    listed = (index or {}).get("weight_map", {layout.WHOLE: layout.WHOLE})
    names = [*small, *sorted({str(name) for name in listed.values()} & set(there))]
    known = {name: sha256(folder / name) for name in small}
    return {
        name: {"bytes": there[name].bytes, "sha256": there[name].sha256 or known.get(name)}
        for name in names
    }


@contextmanager
def opened(checkpoint: dict, downloads: Path) -> Iterator[Path]:
    """The folder with the files of a checkpoint, downloaded where they are not there.

    Before that, older checkpoints of the repository go until one is left. The folder stays while
    the context is open; another process that wants to read one waits meanwhile.
    """
    folder = _folder(checkpoint, downloads)
    files = checkpoint["files"]
    with lease(folder.parent):
        others = [path for path in folder.parent.iterdir() if path.is_dir() and path != folder]
        whole = [path for path in others if {".safetensors", ".part"} & _endings(path)]
        whole.sort(key=lambda path: path.stat().st_mtime)
        for path in whole[: max(0, len(whole) - KEPT + 1)]:
            shutil.rmtree(path)
        known = {name: said["sha256"] for name, said in files.items()}
        download.take(checkpoint["repository"], checkpoint["commit"], files, folder, known)
        yield folder


def _endings(folder: Path) -> set[str]:
    return {path.suffix for path in folder.iterdir()}


def _folder(checkpoint: dict, downloads: Path) -> Path:
    name = checkpoint["repository"].replace("/", "--")
    return downloads / name / checkpoint["commit"]
