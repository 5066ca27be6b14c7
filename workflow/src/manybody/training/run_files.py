"""Files and messages of every training: its history, the data it saw, why it stopped."""

import hashlib
import math
from pathlib import Path

import numpy as np
import torch

from manybody.io import checkpoints
from manybody.io.atomic import ArtifactError, atomic
from manybody.io.manifest import Manifest, write_manifest
from manybody.io.quick_start import number_column, text_column
from manybody.io.resume import Resume
from manybody.training.batches import training_set, validation_set

HISTORY = {
    "step": "int64",
    "epoch": "float64",
    "learning_rate": "float64",
    "split": str,
    "loss": "float64",
    "loss_se": "float64",
    "accuracy": "float64",
    "tokens": "int64",
}


class NonFiniteLoss(RuntimeError):
    """The loss became infinite or not a number at step `step`."""

    step: int | None = None


def remove_leftovers(out: Path) -> None:
    """Removes the unfinished files of a writer that was killed."""
    for leftover in [*out.glob(".*.tmp"), *out.glob("resume/.*.tmp")]:
        leftover.unlink()


def clear(out: Path, resume: Resume, replace: bool = True) -> None:
    """An empty folder for a new run; `ArtifactError` where a run of other arguments is, finished or
    begun, that it may not `replace`."""
    others = (
        []
        if replace
        else [
            *resume.folder.glob("state-*"),
            *(
                path
                for path in out.glob("manifest.json")
                if (kept := Manifest.read(path, "model").about)
                != kept | resume.identity["about"] | {"data": resume.identity["data"]}
            ),
        ]
    )
    if others:
        raise ArtifactError(
            f"found {others[0]}, of a run with other arguments, or made with another torch; "
            f"expected none; give another folder, or remove {out}",
            "folder",
        )
    resume.clear()
    stale = ("manifest.json", "history.parquet", "timing.jsonl", "model.json", "step-*.safetensors")
    for pattern in stale:
        for path in out.glob(pattern):
            path.unlink()


def fingerprint(tokens, description: dict) -> str:
    """sha256 of tokens (sequences, L), read once; `ValueError` if the model does not fit them."""
    if tokens.shape[1] != description["length"]:
        raise ValueError(
            f"the sequences have length {tokens.shape[1]}, the model {description['length']}; "
            "train it on the source it was made for"
        )
    digest = hashlib.sha256(f"{tokens.dtype} {tokens.shape}".encode())
    for start in range(0, len(tokens), 2**16):
        part = np.ascontiguousarray(tokens[start : start + 2**16])
        if part.max() >= description["vocabulary"]:
            raise ValueError(
                f"the sequences hold the token {part.max()}, the model's vocabulary ends before "
                f"{description['vocabulary']}; train it on the source it was made for"
            )
        digest.update(part)
    return digest.hexdigest()


def opened(settings: dict, data: dict, out: Path, device: torch.device, code: str, **more) -> tuple:
    """The sequences of a run by its recipe, and its saved state, one of the same arguments.

    Returns the training tokens (N, L), validation tokens (n, L) int64, their masks as of
    `validation_set`, the fingerprints by split, and the state. `more` are digests of other data. A
    run may go on with another number of processes.
    """
    description, recipe = settings["description"], settings["recipe"]
    tokens, held_out = training_set(data["train"].tokens, recipe), data["validation"].tokens
    marks = {
        "train": fingerprint(tokens, description),
        "validation": fingerprint(held_out, description),
    }
    chosen, masks = validation_set(len(held_out), description["length"], recipe)
    validation = torch.from_numpy(np.asarray(held_out[chosen]).astype("int64"))
    identity = {
        "about": settings,
        "data": {**marks, **more},
        "code": code,
        "torch": torch.__version__,
        "device": device.type,
    }
    return tokens, validation, masks, marks, Resume(out / "resume", identity)


def save_checkpoint(out: Path, model, step: int, about: dict) -> Path:
    """Writes the weights after a step, with what of `about` says where they come from."""
    names = ("description", "seed", "stream", "init_seed")
    kept = {name: about[name] for name in names if name in about}
    path = out / f"step-{step}.safetensors"
    checkpoints.save(path, model, {"step": step, **kept})
    return path


def write_run(out: Path, about: dict, rows: list[dict]) -> None:
    """Writes the history of a finished run and, last of all, its manifest."""
    steps = about["steps"]
    last = {row["split"]: row for row in rows if row["step"] == steps[-1]}
    final = {f"{split}_{key}": last[split][key] for split in last for key in ("loss", "accuracy")}
    write_history(out / "history.parquet", rows)
    payload = ["model.json", "history.parquet", *(f"step-{step}.safetensors" for step in steps)]
    write_manifest(out / "manifest.json", "model", payload, {**about, "final": final})


def history_row(split, step, epoch, loss, accuracy, tokens, loss_se=None) -> dict:
    """A row of the history of a model that has no learning rate."""
    return {
        "step": step,
        "epoch": float(epoch),
        "learning_rate": math.nan,
        "split": split,
        "loss": loss,
        "loss_se": loss_se,
        "accuracy": accuracy,
        "tokens": tokens,
    }


def write_history(path: Path, rows: list[dict]) -> None:
    """Writes history.parquet; the columns are those of `checkpoints.history`."""
    import pyarrow as pa
    from pyarrow import parquet

    columns = {}
    for name, kind in HISTORY.items():
        values = [math.nan if row[name] is None else row[name] for row in rows]
        column = text_column(values) if kind is str else number_column(np.array(values, kind))
        columns[name] = column
    with atomic(path) as temporary:
        parquet.write_table(pa.table(columns), temporary, write_page_checksum=True)
