"""What the order spectrum of a planted Hamiltonian's samples is compared with."""

from typing import NamedTuple

import pandas as pd

from manybody.claims import training_runs
from manybody.claims.simplicity.spectra import Spectra, read

NEAR = 0.01  # nats per token above the true conditionals, at which a model counts as near


class Truth(NamedTuple):
    """The spectra by their roles, and held-out losses above that of the true conditionals.

    losses: of the student, a row a checkpoint: step, excess. pairs_excess: that of the model of
    pairs. All are means over the same sequences, every position masked in turn.
    """

    truth: Spectra
    estimate: Spectra
    student: Spectra
    pairs: Spectra
    losses: pd.DataFrame
    pairs_excess: float

    @property
    def degrees(self) -> range:
        """Degrees of the true conditionals in the context, one less than their orders."""
        return range(1, self.truth.order)


def read_truth(files, block: dict, context: dict) -> Truth:
    """The figure's inputs, from the files of its rule."""
    named = [block[role] for role in ("truth", "estimate", "student", "pairs")]
    spectra = read(files, named, context)
    runs = dict(zip(map(tuple, context["models"]), files["models"], strict=True))
    curves = [
        training_runs.read(runs[one.about["source"], one.about["model"], one.about["seed"]])[1]
        for one in spectra
    ]
    true, student, pairs = (curves[place].sort_values("step") for place in (0, 2, 3))
    entropy = true["loss"].iloc[-1]
    losses = student.assign(excess=student["loss"] - entropy)[["step", "excess"]]
    return Truth(*spectra, losses, float(pairs["loss"].iloc[-1] - entropy))


def share(one: Spectra, degree: int) -> float:
    """W_d / Var g at the last checkpoint of the first run."""
    return float(one.end(next(iter(one.runs)), "W", degree)["share"])
