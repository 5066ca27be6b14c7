"""How far the layers of a factored model have moved since the start of training."""

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from safetensors import safe_open

from manybody.io.manifest import Manifest

LAYER = re.compile(r"(attention|left|right)\.(\d+)")  # a parameter of one layer


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
        about, initial = manifest.about, {}
        softmax = about["description"].get("attention") == "softmax"
        for step in about["steps"]:
            layers = _layers(manifest.file(f"step-{step}.safetensors"), softmax)
            initial = initial or layers
            for layer, matrices in sorted(layers.items()):
                moved = zip(matrices, initial[layer], strict=True)
                value = sum(float(np.mean((now - before) ** 2)) for now, before in moved)
                rows.append((about["seed"], step, layer, value))
    return pd.DataFrame(rows, columns=["seed", "step", "layer", "value"])


def _layers(path: Path, softmax: bool) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """A (L, L) and V (|V|, |V|) of each layer, 1 to n, with heads in front where there are several.

    softmax: the stored maps are W of A = softmax(W). Values of low rank are multiplied out.
    """
    found: dict[int, dict[str, np.ndarray]] = {}
    with safe_open(path, framework="numpy") as opened:
        for name in sorted(opened.keys()):
            if match := LAYER.fullmatch(name):
                layer = found.setdefault(int(match[2]) + 1, {})
                layer[match[1]] = opened.get_tensor(name).astype(np.float64)
    layers = {}
    for number, part in found.items():
        attention, values = part["attention"], part["left"]
        if "right" in part:
            values = values @ part["right"]
        if softmax:
            weights = np.exp(attention - attention.max(axis=-1, keepdims=True))
            attention = weights / weights.sum(axis=-1, keepdims=True)
        layers[number] = attention, values
    return layers
