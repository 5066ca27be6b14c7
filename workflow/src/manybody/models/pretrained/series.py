"""The checkpoints of a model in order of steps: found, recorded, and opened one at a time.

A record is a mapping:

    checkpoints   step -> origin (what it is called), folder or repository and commit, and files,
                  name -> bytes and sha256
    downloads     the folder for what has to be fetched
    file          where the record lies

What a record says is not asked again: a branch that has moved, or a file that has changed, does not
change what is read.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from manybody.io.atomic import ArtifactError, read_json, sha256, write_json
from manybody.io.refusal import Refusal
from manybody.models.pretrained import hub, layout

STEP = re.compile(r"(?:^|.*[-_.]|.*step)(\d+)$")  # how a name ends that says a step
NAMED = re.compile(r"(?:checkpoint|step)[-_]?\d+$")


def recorded(
    where: Path, weights: str | list[str] | dict, steps: list[int] | None, downloads: Path
) -> dict:
    """The record of the series that an entry of the config names, completed in the file `where`.

    Checkpoints that are in the file already have to be what it says: `ArtifactError` names the
    first file that has changed. New ones are added.
    """
    before = read_json(where)["checkpoints"] if where.is_file() else {}
    known = {said["revision"]: said["commit"] for said in before.values() if "revision" in said}
    now = found(weights, steps, known)
    record = {"checkpoints": {}, "downloads": str(downloads), "file": str(where)}
    for step, checkpoint in now.items():
        old = before.get(str(step))
        if old and old["origin"] == checkpoint["origin"]:
            if "folder" in old:
                compare(Path(old["folder"]), old["files"], str(where))
            record["checkpoints"][str(step)] = old
            continue
        if "folder" in checkpoint:
            folder, origin = checkpoint["folder"], checkpoint["origin"]
            checkpoint["files"] = digests(folder, files(folder, origin))
        else:
            checkpoint["files"] = hub.record(checkpoint, downloads)
        record["checkpoints"][str(step)] = checkpoint
        write_json(where, {**record, "checkpoints": {**before, **record["checkpoints"]}})
    return record


def found(
    weights: str | list[str] | dict,
    steps: list[int] | None = None,
    known: dict[str, str] | None = None,
) -> dict[int, dict]:
    """The checkpoints that an entry of the config names, by step, as a record has them, without
    the digests of their files. `known`: the commits of revisions that were resolved before."""
    if isinstance(weights, dict):
        return hub.found(weights, steps, known or {})
    folders = [
        Path(name).expanduser() for name in ([weights] if isinstance(weights, str) else weights)
    ]
    for folder in folders:
        if not folder.is_dir():
            raise Refusal(
                f"found {folder}, which is no folder; expected one in save_pretrained layout "
                f"(relative paths start at {Path.cwd()}), or {{hub: owner/name}}; correct the path",
                "weights",
            )
    if isinstance(weights, str) and not (folders[0] / layout.CONFIG).is_file():
        inner = [path for path in folders[0].iterdir() if NAMED.search(path.name) and path.is_dir()]
        if inner:
            folders = inner
    at = steps or [_step(folder.name, alone=len(folders) == 1) for folder in folders]
    named = dict(zip(at, folders, strict=True))
    if len(named) < len(folders):
        raise Refusal(
            f"found {len(folders)} checkpoints of {len(named)} steps; expected one of each step; "
            f"take the others away, or say their steps under `steps`",
            "weights",
        )
    if isinstance(weights, list) and list(named) != sorted(named):
        raise Refusal(
            f"found the steps {list(named)}; expected folders in order of steps; list them so",
            "weights",
        )
    return {
        step: {"origin": str(path), "folder": str(path)} for step, path in sorted(named.items())
    }


def _step(name: str, alone: bool) -> int:
    match = STEP.match(name)
    if match:
        return int(match[1])
    if alone:
        return 0
    raise Refusal(
        f"found {name}, whose name does not end in its step; expected checkpoint-100 or step-100; "
        f"rename it, or say the steps under `steps`",
        "weights",
    )


def digests(folder: str | Path, names: list[str]) -> dict[str, dict[str, Any]]:
    """Size and sha256 of the files of these names in a folder."""
    return {
        name: {"bytes": (Path(folder) / name).stat().st_size, "sha256": sha256(Path(folder) / name)}
        for name in names
    }


def files(folder: str | Path, origin: str) -> list[str]:
    """The names of the files that a checkpoint in a folder is read from, those that are there."""
    names = [path.name for path in Path(folder).iterdir() if path.is_file()]
    small = layout.small_files(names, origin)
    index = read_json(Path(folder) / layout.INDEX) if layout.INDEX in small else None
    listed = (index or {}).get("weight_map", {layout.WHOLE: layout.WHOLE})
    return [*small, *sorted({str(name) for name in listed.values()} & set(names))]


@contextmanager
def opened(record: dict, step: int) -> Iterator[tuple[Path, str]]:
    """The folder that holds a checkpoint of a record, and what it is called.

    `ArtifactError` names a file that is not the one that was recorded.
    """
    checkpoint = record["checkpoints"][str(step)]
    if "folder" not in checkpoint:
        with hub.opened(checkpoint, Path(record["downloads"])) as folder:
            yield folder, checkpoint["origin"]
        return
    folder = Path(checkpoint["folder"])
    compare(folder, checkpoint["files"], record["file"])
    yield folder, checkpoint["origin"]


def compare(folder: Path, recorded: dict[str, dict], where: str) -> None:
    """`ArtifactError` names the first file of a folder that is not as the file `where` records."""
    for name, expected in recorded.items():
        path = folder / name
        if not path.is_file():
            raise ArtifactError(
                f"{path} is missing; expected the file that {where} records; put it back"
            )
        size = path.stat().st_size
        if size != expected["bytes"] or sha256(path) != expected["sha256"]:
            raise ArtifactError(
                f"{path} has changed since it was recorded: {size} bytes, expected "
                f"{expected['bytes']} with sha256 {expected['sha256']}; put the file back, or "
                f"delete {where} to take what is there now"
            )
