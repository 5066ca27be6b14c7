"""The training that a recipe asks for: on files of sequences, or a fit to all masks."""

from importlib import import_module
from pathlib import Path

from manybody.data import sequence_weights
from manybody.io.sequences import Sequences
from manybody.training.loop import train


def train_files(description: dict, paths: dict, **settings) -> Path:
    """`train` on the Sequences files in `paths`, which give the model its |V| and L.

    A recipe with the optimizer lbfgs goes to `lbfgs.fit`, imported when it is needed. With
    `sequence_weights: identity` it takes the weights of the training sequences from
    `paths["sequence_weights"]`.
    """
    data = {split: Sequences.open(paths[split]) for split in ("train", "validation")}
    sizes = {"vocabulary": data["train"].vocabulary, "length": data["train"].length}
    if settings["recipe"].get("sequence_weights"):
        data["sequence_weights"] = sequence_weights.read(paths["sequence_weights"], data["train"])
    name = settings["recipe"]["optimizer"]["name"]
    call = import_module("manybody.training.lbfgs").fit if name == "lbfgs" else train
    return call({**description, **sizes}, data=data, **settings)
