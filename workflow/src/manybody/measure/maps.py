"""Attention of a trained model: A, V and averaged maps, as a long table.

Factored attention has its A and V as parameters. Attention that depends on its input is averaged
(docs/science/potts.md, section 2): row k over the sequences with site k masked; then the diagonal
is dropped and the rows are renormalised.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import torch

from manybody import models
from manybody.io import checkpoints
from manybody.io.devices import torch_threads
from manybody.io.manifest import Manifest
from manybody.io.progress import Progress
from manybody.io.sequences import Sequences
from manybody.io.tables import MAPS
from manybody.models import stored
from manybody.models.base import Model

COPIES = 2**21  # numbers in the widest array of the copies that are done together, on a CPU


def extract(
    manifest: str | Path,
    validation: str | Path | None = None,
    steps: str = "last",
    sequences: int | None = None,
    threads: int = 1,
    label: str = "",
) -> pd.DataFrame:
    """The maps of a run, in the columns of a table of maps (`tables.MAPS.write`).

    manifest: the run's. For factored attention with one head, `A` (softmax maps as used, diagonal
    included) and `V` of each layer. For an encoder or the interpolation, `attention` of each layer,
    the mean over heads and the first `sequences` of `validation` (None: all); with two layers or
    more, layer 0 is the mean of the last two maps. The interpolation also has `V`, of tokens.

    `steps` is "all" checkpoints or the "last". Raises `ValueError` for a model without such maps.
    """
    run = Manifest.read(manifest, "model")
    kind, frames, tokens = models.about(run.about["description"]).maps, [], None
    if kind is None:
        raise ValueError(
            f"{run.path}: no maps are known of the architecture "
            f"{run.about['description']['architecture']!r}; take a run of one of "
            f"{', '.join(models.architectures_with('maps'))}"
        )
    if kind != "fixed":
        tokens = torch.from_numpy(Sequences.open(validation)[:sequences].astype(np.int64))
    asked = checkpoints.checkpoint_steps(run)[0 if steps == "all" else -1 :]
    with torch_threads(threads), Progress(len(asked), "checkpoints", label) as progress:
        for step in asked:
            for name, layer, matrix in _maps(stored.load_model(run, step), tokens):
                row, column = np.indices(matrix.shape)
                places = {"row": row.ravel(), "column": column.ravel(), "value": matrix.ravel()}
                frames.append(pd.DataFrame({"name": name, "step": step, "layer": layer} | places))
            progress.update(1)
    return pd.concat(frames, ignore_index=True)[MAPS.schema.names]


@torch.no_grad()
def mean_maps(model: Model, tokens: torch.Tensor) -> np.ndarray:
    """Row k of each layer's attention with site k masked, averaged over tokens (B, L).

    (layers, L, L), double precision; the diagonal is 0 and rows sum to 1.
    """
    length = model.length
    size = max(1, COPIES // max(model.activation_size, length * max(length, model.vocabulary)))
    total: torch.Tensor | float = 0.0
    for part in tokens.split(size):
        rows = []
        for site, mask in enumerate(torch.eye(length, dtype=torch.bool)):
            rows.append(model.attention_maps(part, mask)[:, :, site].double().sum(1))
        total += torch.stack(rows, dim=1)
    found = (total / len(tokens)).numpy()
    found[:, np.eye(length, dtype=bool)] = 0
    return found / found.sum(-1, keepdims=True)


def _maps(model: Model, tokens: torch.Tensor | None) -> list[tuple[str, int, np.ndarray]]:
    """Name, layer and matrix of all maps."""
    fixed, found = model.parameter_maps(), []
    if tokens is not None:
        maps = mean_maps(model, tokens)
        found = [("attention", layer + 1, matrix) for layer, matrix in enumerate(maps)]
        if len(maps) > 1:
            found.append(("attention", 0, maps[-2:].mean(0)))
    return found + [(*key, matrix.detach().double().numpy()) for *key, matrix in fixed]
