"""Displacements of the layers of a factored model since the start of training."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from manybody import models
from manybody.io.manifest import Manifest
from manybody.io.tensor_files import read_tensor


def measure(runs: Iterable[str | Path]) -> pd.DataFrame:
    """Mean square displacements of the runs with these manifests, which differ by their seed.

    Columns seed, step (of each checkpoint), layer (1 to n), value:

        MSD_l(t) = |A(t) - A(0)|^2 / L^2 + |V(t) - V(0)|^2 / |V|^2   (simplicity, eq. 6)

    the mean over the entries of A and that over the entries of V, added. Of several heads it is
    the mean. A model without factored layers has no rows.
    """
    rows = []
    for run in runs:
        manifest = Manifest.read(run, "model")
        model, initial = models.about(manifest.about["description"]), {}
        for step in manifest.about["steps"]:
            tensor = partial(read_tensor, manifest.file(f"step-{step}.safetensors"))
            for layer in range(model.depth or 0):
                matrices = model.pair_factors(tensor, layer)
                moved = zip(matrices, initial.setdefault(layer, matrices), strict=True)
                value = sum(float(np.mean((now - before) ** 2)) for now, before in moved)
                rows.append((manifest.about["seed"], step, layer + 1, value))
    return pd.DataFrame(rows, columns=["seed", "step", "layer", "value"])
