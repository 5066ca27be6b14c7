"""Training runs as the figures of known Hamiltonians read them: the losses at each checkpoint."""

import math
from dataclasses import dataclass

import pandas as pd

from manybody.io import tables


@dataclass
class TrainedRun:
    """The document of a manifest, and a row a checkpoint: step, epoch, loss, loss_se, tokens."""

    about: dict
    curve: pd.DataFrame

    @property
    def end(self) -> float:
        """Loss at the last step; infinite if training diverged."""
        return math.inf if "diverged" in self.about else float(self.curve["loss"].iloc[-1])


def read(path) -> tuple[dict, pd.DataFrame]:
    """The document and the curve of the run with the manifest at `path`."""
    about, history = tables.read_run(path)
    held_out = history[history["split"] == "validation"].sort_values("step", kind="stable")
    columns = ["step", "epoch", "loss", "loss_se", "tokens"]
    return about, held_out[columns].reset_index(drop=True)


def chosen(runs: dict[int, TrainedRun]) -> int:
    """The seed that is shown: the lower median of the final loss, ties to the lower seed."""
    ranked = sorted(runs, key=lambda seed: (runs[seed].end, seed))
    return ranked[(len(ranked) - 1) // 2]
