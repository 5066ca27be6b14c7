"""The checkpoints of a model in order of steps: found, recorded, and opened one at a time.

They lie in folders, or are revisions of a repository of the hub, of which at most two are on disk
at a time. A record is a mapping:

    checkpoints   step -> origin (what it is called), folder or repository and commit, and files,
                  name -> bytes and sha256
    downloads     the folder for what has to be fetched
    file          where the record lies

What a record says is not asked again: a moved branch or a changed file changes nothing.
"""

import os
import re
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from manybody.data import download
from manybody.io.atomic import ArtifactError, read_json, sha256, write_json
from manybody.io.lease import lease
from manybody.io.refusal import Refusal
from manybody.models.pretrained import layout

# Behind the step OLMo's names say the tokens, and some that the weights were joined or converted,
# or what is counted: 100-steps.
SEEN = r"(?:[-_]?steps?)?(?:-tokens\d+[MBT])?(?:[-_](?i:hf|merged|unsharded))?$"
# What stands before a step: Composer writes ep1-ba100, BabyLM counts words, as in chck_10M.
BEFORE = r"(?i:checkpoint|ckpt|chck|step|iter|epoch|update|(?<![a-z])(?:ba|it))"
STEP = re.compile(rf"(?:(?:^|.*[-_.=]|.*{BEFORE})(\d+)|(?:^|.*{BEFORE})[-_=]?(\d+)([kKM])){SEEN}")
# simpletransformers writes the epoch behind the step: checkpoint-564-epoch-1.
EPOCH = re.compile(r"((?:checkpoint|ckpt|step|iter)[-_=]?\d+)[-_]epoch[-_=]?\d+$")
NAMED = re.compile(rf"(?:^|{BEFORE})[-_=]?\d+[kKM]?{SEEN}")
# Numbers before that: those of a run or its setting tell runs apart, others are epochs or dates.
NUMBER = re.compile(
    r"((?:run|seed|trial|fold|version|exp|experiment|rep|(?<![a-z])[rv])[-_=]?\d{1,3}(?!\d)"
    r"|(?<![a-z])(?:lr|wd)[-_=]?[\d.]+(?:e-?\d+)?)|[\d.]+",
    re.IGNORECASE,
)
COMMIT = re.compile(r"[0-9a-f]{40}$")
REVISION = re.compile(rf".*?(?<![0-9a-f])(?:(\d+)|(\d+)([kM])){SEEN}")
KEPT = 2  # checkpoints of a repository that stay on disk


def recorded(
    where: Path, weights: str | list[str] | dict, steps: list[int] | None, downloads: Path
) -> dict:
    """The record of the series that an entry of the config names, completed in the file `where`.

    What the file says of a checkpoint already stays, and `opened` compares with it. New ones are
    added. `Refusal` where one has no safetensors; a missing shard is left to the audit.
    """
    before = read_json(where)["checkpoints"] if where.is_file() else {}
    known = {said["revision"]: said["commit"] for said in before.values() if "revision" in said}
    record = {"checkpoints": {}, "downloads": str(downloads), "file": str(where)}
    for step, checkpoint in found(weights, steps, known).items():
        old = before.get(str(step), {})
        if old.get("origin") == checkpoint["origin"]:
            record["checkpoints"][str(step)] = old
            continue
        files = _files_in_folder if "folder" in checkpoint else _files_on_hub
        checkpoint["files"] = files(checkpoint, downloads)
        record["checkpoints"][str(step)] = checkpoint
        write_json(where, {**record, "checkpoints": before | record["checkpoints"]})
    return record


def found(
    weights: str | list[str] | dict,
    steps: list[int] | None = None,
    known: dict[str, str] | None = None,
) -> dict[int, dict]:
    """The checkpoints that an entry of the config names, by step, as a record has them, without
    their files. `known`: the commits of revisions that were resolved before."""
    if isinstance(weights, dict):
        return _revisions(weights, steps, known or {})
    asked = [weights] if isinstance(weights, str) else weights
    folders = [Path(os.path.expanduser(name)) for name in asked]
    for folder in folders:
        if not folder.is_dir():
            raise Refusal(
                f"found {folder}, which is no folder; expected one in save_pretrained layout "
                f"(relative paths start at {Path.cwd()}); "
                + (
                    f"name {folder.parent}"
                    if folder.exists()
                    else f"correct the path; what lies on the hub is {{hub: owner/name}} in a "
                    f"config, or comes by: hf download {folder} --local-dir other"
                ),
                "weights",
            )
    if isinstance(weights, str):
        inner, passed = checkpoints(folders[0])
        names = os.listdir(folders[0])
        if not inner and not (
            {layout.CONFIG, layout.ADAPTER} & {*names}
            and (any(map(layout.WEIGHTS.match, names)) or not passed)
        ):
            raise Refusal(
                f"found {folders[0]}, which has no "
                f"{'weights' if layout.CONFIG in names else layout.CONFIG} and no "
                f"whole checkpoints ({'; '.join(passed) or 'nor parts'}); expected a model in "
                f"save_pretrained layout, or folders such as checkpoint-100 of such; "
                f"{layout.how_to_save(names, str(folders[0]))}",
                "weights",
            )
        runs = {
            NUMBER.sub(lambda found: found[1] or "*", NAMED.sub("", EPOCH.sub(r"\1", name))): name
            for name in (path.name for path in inner)
        }
        if len(runs) > 1:
            raise Refusal(
                f"found {folders[0]}, whose checkpoints have names that begin differently, such as "
                f"{' and '.join(sorted(runs.values()))}; expected those of one run; move those of "
                "other runs away, or let all names of one run begin the same",
                "weights",
            )
        folders = inner or folders
    at = steps or _steps([folder.name for folder in folders])
    order = at if isinstance(weights, list) else sorted(at)
    if order != sorted(set(at)) or len(at) != len(folders):
        twice = [path.name for step, path in zip(at, folders, strict=False) if at.count(step) > 1]
        raise Refusal(
            f"found {len(folders)} checkpoints of steps {order}{', of one step ' if twice else ''}"
            f"{' and '.join(sorted(twice))}; expected one checkpoint of each step, in order; "
            f"{'take one of them away' if twice else 'list them so'}",
            "weights",
        )
    return {
        step: {"origin": str(path), "folder": str(path)}
        for step, path in sorted(zip(at, folders, strict=True))
    }


def checkpoints(folder: Path) -> tuple[list[Path], list[str]]:
    """The checkpoints in a folder, none where it is a model itself, and what is passed over, with
    reasons: a run that is stopped while it saves leaves temporary folders and some without weights.
    """
    held, groups = os.listdir(folder), defaultdict(list)
    itself = layout.CONFIG in held and any(map(layout.WEIGHTS.match, held))
    for path in sorted(path for path in folder.iterdir() if path.is_dir()):
        names, why = os.listdir(path), ""
        if not NAMED.search(path.name):
            why = "no step at the end of the name, as in checkpoint-100"
        elif itself:
            why = f"{folder} holds a model itself; to read these, take its config.json elsewhere"
        elif path.name.startswith(("tmp", ".")):
            why = "temporary, and renamed by the trainer when whole"
        elif not {layout.CONFIG, layout.ADAPTER} & {*names} or not any(
            map(layout.WEIGHTS.match, names)
        ):
            why = "without weights or config.json (copy it there, where it is of one model)"
        if NAMED.search(path.name) or layout.CONFIG in names:
            groups[why].append(path)
    found = groups.pop("", [])
    return found, [f"{', '.join(p.name for p in group)}: {why}" for why, group in groups.items()]


def _revisions(weights: dict, steps: list[int] | None, known: dict[str, str]) -> dict[int, dict]:
    repository, asked = weights["hub"], weights.get("revisions", ["main"])
    new = {asked} if isinstance(asked, str) else {*asked} - known.keys()
    there = {} if all(map(COMMIT.match, new)) else download.references(repository)
    if isinstance(asked, str):
        ends = re.compile(re.escape(asked) + rf"[-_]?\d+[kM]?{SEEN}")
        ended = sorted(filter(ends.match, there), key=lambda name: _steps([name], True)[0])
        asked = ended or [asked]
    if missing := [name for name in asked if name not in known | there and not COMMIT.match(name)]:
        raise Refusal(
            f"found {missing[0]}, but {repository} has no such branch or tag, with or without a "
            f"number; expected one of {', '.join(there) or 'none'}, or a commit of 40 digits; "
            f"correct it",
            "weights.revisions",
        )
    at = steps or _steps(asked, revisions=True)
    return {
        step: {
            "origin": f"{repository}@{name}",
            "repository": repository,
            "revision": name,
            "commit": known.get(name) or there.get(name) or name,
        }
        for step, name in sorted(zip(at, asked, strict=True))
    }


def _steps(names: list[str], revisions: bool = False) -> list[int]:
    """The steps in which names of folders or revisions end; 0 for a single one without."""
    found = []
    for name in names:
        match = (REVISION if revisions else STEP).match(EPOCH.sub(r"\1", name))
        if match and not (revisions and COMMIT.match(name)):
            found.append(int(match[1] or match[2] + "000" * (1 + (match[3] == "M"))))
        elif len(names) == 1:
            found.append(0)
        else:
            raise Refusal(
                f"found {'the revision ' if revisions else ''}{name}, whose name does not end in "
                f"its step; expected step1000 or checkpoint-1000; rename it, or say the steps "
                f"under `steps`",
                "weights.revisions" if revisions else "weights",
            )
    return found


def _files_in_folder(checkpoint: dict, downloads: Path) -> dict[str, dict]:
    """The sizes and digests of the files that a checkpoint is read from, those that are there."""
    folder = Path(checkpoint["folder"])
    there = {path.name for path in folder.iterdir() if path.is_file()}
    names = _names(folder, layout.small_files(there, checkpoint["origin"]), there)
    return {
        name: {"bytes": (folder / name).stat().st_size, "sha256": sha256(folder / name)}
        for name in names
    }


def _files_on_hub(checkpoint: dict, downloads: Path) -> dict[str, dict]:
    """The same of a revision, of which the small files are fetched."""
    there = download.listing(checkpoint["repository"], checkpoint["commit"])
    small = layout.small_files(there, checkpoint["origin"])
    folder = _fetched(checkpoint, downloads)
    with lease(folder.parent):
        download.take(checkpoint["repository"], checkpoint["commit"], small, folder, {})
    known = {name: sha256(folder / name) for name in small}
    return {
        name: {"bytes": there[name].bytes, "sha256": there[name].sha256 or known.get(name)}
        for name in _names(folder, small, there)
    }


def _names(folder: Path, small: list[str], there: Collection[str]) -> list[str]:
    """The files of a checkpoint of those that are `there`; its small files lie in the folder."""
    index = read_json(folder / layout.INDEX) if layout.INDEX in small else None
    listed = index.get("weight_map") if isinstance(index, dict) else None
    shards = listed.values() if isinstance(listed, dict) else [layout.WHOLE]
    return [*small, *sorted({str(name) for name in shards} & set(there))]


@contextmanager
def opened(record: dict, step: int) -> Iterator[tuple[Path, str]]:
    """The folder that holds a checkpoint of a record, and what it is called.

    `ArtifactError` names a file that is not the one that was recorded. A revision that is not there
    is downloaded, after older checkpoints of the repository are removed until one is left. Another
    process that wants to read one waits until the context ends.
    """
    checkpoint = record["checkpoints"][str(step)]
    if "folder" in checkpoint:
        _compare(checkpoint, record["file"])
        yield Path(checkpoint["folder"]), checkpoint["origin"]
        return
    folder, files = _fetched(checkpoint, Path(record["downloads"])), checkpoint["files"]
    with lease(folder.parent):
        held = [*folder.parent.glob("*/*.safetensors"), *folder.parent.glob("*/*.part")]
        others = {path.parent for path in held} - {folder}
        for path in sorted(others, key=os.path.getmtime)[: 1 - KEPT]:
            shutil.rmtree(path)
        known = {name: said["sha256"] for name, said in files.items()}
        download.take(checkpoint["repository"], checkpoint["commit"], files, folder, known)
        yield folder, checkpoint["origin"]


def _fetched(checkpoint: dict, downloads: Path) -> Path:
    return downloads / checkpoint["repository"].replace("/", "--") / checkpoint["commit"]


def _compare(checkpoint: dict, where: str) -> None:
    for name, expected in checkpoint["files"].items():
        path = Path(checkpoint["folder"]) / name
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
