"""A run's folder as the training leaves it: with its history, or with its checkpoints."""

import numpy as np

from manybody.io.checkpoints import write_tensors
from manybody.io.manifest import write_manifest
from manybody.training.run_files import write_history


def rows(epochs, losses, tokens, steps_per_epoch):
    """Rows of the history of validation losses at `epochs`."""
    same = dict(learning_rate=0.1, split="validation", loss_se=0.0015, accuracy=0.3, tokens=tokens)
    return [
        {"step": round(epoch * steps_per_epoch), "epoch": float(epoch), "loss": float(loss), **same}
        for epoch, loss in zip(epochs, np.atleast_1d(losses), strict=True)
    ]


def write(folder, rows, **about):
    """Writes the history and a manifest; the manifest's path."""
    folder.mkdir(parents=True)
    write_history(folder / "history.parquet", rows)
    write_manifest(folder / "manifest.json", "model", ["history.parquet"], about)
    return folder / "manifest.json"


def of_checkpoints(folder, tensors, **about):
    """Writes checkpoints, step -> named tensors, and a manifest; the manifest's path."""
    folder.mkdir()
    for step, named in tensors.items():
        write_tensors(folder / f"step-{step}.safetensors", named, {"step": step})
    about = {"seed": 0, "steps": list(tensors), **about}
    names = [f"step-{step}.safetensors" for step in tensors]
    write_manifest(folder / "manifest.json", "model", names, about)
    return folder / "manifest.json"
