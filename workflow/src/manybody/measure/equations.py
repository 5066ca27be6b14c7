"""Losses of one-layer models on each sequence, in double precision, so that models can be paired.

Histories hold means over sequences only. Losses are nats per token, every site masked in turn, of
factored attention (potts, eq. 4) and of the interpolation (eq. 2).
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from manybody.data.hamiltonian import Hamiltonian
from manybody.io.devices import torch_threads
from manybody.io.manifest import Manifest
from manybody.io.sequences import Sequences
from manybody.io.tables import rows
from manybody.measure.truths import of_truth
from manybody.models.objectives import sequence_sums
from manybody.models.stored import load_model


def evaluate(
    manifests: Iterable[str | Path], validation: str | Path, energy: str | Path
) -> pd.DataFrame:
    """Losses of a validation split, a table of theory: a row a sequence, its number x, its loss y.

    manifests: of runs on one source; a run that diverged, or that has no equation of one layer, has
    no rows. energy: the source's Hamiltonian. Quantity `optimum`: the true conditionals; `loss`:
    the last checkpoint of the model that the series names.
    """
    tokens = Sequences.open(validation).tokens
    places, given = range(len(tokens)), torch.from_numpy(tokens.astype(np.int64))
    frames = [rows("optimum", "", places, of_truth(Hamiltonian.load(energy), tokens))]
    with torch_threads(1):
        for run in (Manifest.read(path, "model") for path in manifests):
            model = load_model(run).double()
            if model.about.equation and "diverged" not in run.about:
                sums = sequence_sums(model, given)
                each, seed = (sums.loss_sum / sums.predictions).numpy(), run.about["seed"]
                frames.append(rows("loss", run.about["model"], places, each, seed=seed))
    return pd.concat(frames, ignore_index=True)
