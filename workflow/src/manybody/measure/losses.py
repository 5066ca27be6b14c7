"""Every checkpoint of a run on sets of sequences: one row a target, checkpoint and sequence."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from manybody.io import checkpoints
from manybody.io.devices import tensor_cores, torch_threads
from manybody.io.manifest import Manifest
from manybody.io.progress import Progress
from manybody.io.sequences import Sequences
from manybody.io.tables import LOSSES
from manybody.models import stored
from manybody.models.objectives import masked_positions, sequence_sums


def evaluate(
    manifest: str | Path,
    targets: Mapping[str, tuple[str | Path, int | None]],
    positions: float | str = "all",
    steps: str = "all",
    seed: int = 0,
    device: str = "cpu",
    label: str = "",
) -> pd.DataFrame:
    """Losses of a run's checkpoints on named sets, in the columns of a table of losses.

    manifest: that of the run. targets: name -> (path of a Sequences file, how many of its first
    sequences; None for all). A masked model is asked for `positions`, "all" L of them or a share
    drawn once from `seed`: the same masks for all checkpoints, targets and runs, so that losses can
    be paired. A causal model predicts tokens 2..L. `steps` is "all" or "last". Losses are sums over
    a sequence's predicted tokens, in nats. One thread computes them, for the same bits on one type
    of CPU. Raises `ValueError` for sets that are too short or not of the model's |V| or L.
    """
    sets = {name: _read(name, *chosen) for name, chosen in targets.items()}
    run = Manifest.read(manifest, "model")
    asked = checkpoints.checkpoint_steps(run)[0 if steps == "all" else -1 :]
    rows = []
    with (
        torch_threads(1),
        tensor_cores(),
        Progress(len(asked) * len(sets), "sets", label) as progress,
    ):
        for step in asked:
            model = stored.load_model(run, step, device)
            for name, (tokens, vocabulary) in sets.items():
                if model.about.read and tokens.max() < model.vocabulary:
                    vocabulary = model.vocabulary  # tokens that its tokenizer alone has
                if (model.vocabulary, model.length) != (vocabulary, tokens.shape[1]):
                    raise ValueError(
                        f"target {name}: |V| = {vocabulary} and L = {tokens.shape[1]}, but the "
                        f"model of {run.path} has |V| = {model.vocabulary} and L = {model.length}; "
                        f"evaluate it on sequences of its own source"
                    )
                masks = (
                    None if model.about.causal else masked_positions(*tokens.shape, positions, seed)
                )
                sums = sequence_sums(model, tokens, masks)
                columns = {column: part.numpy() for column, part in sums._asdict().items()}
                known = {"target": name, "step": step, "sequence": np.arange(len(tokens))}
                rows.append(pd.DataFrame(known | columns))
                progress.update(1, loss=float(sums.loss_sum.sum() / sums.predictions.sum()))
    return pd.concat(rows, ignore_index=True)[LOSSES.schema.names]


def _read(name: str, path: str | Path, count: int | None) -> tuple[torch.Tensor, int]:
    sequences = Sequences.open(path)
    tokens = sequences.first(count, f"targets.{name}.sequences")
    return torch.from_numpy(tokens.astype(np.int64)), sequences.vocabulary
