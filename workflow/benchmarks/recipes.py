"""Losses of generators of a text by their recipe, which `advise` suggests from.

Each recipe is the demo's for factored attention but for its rate, rank and steps. Recipes of one
number of layers share their start, batches and masks.
"""

import tempfile
from functools import partial
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import timed
from manybody.io.progress import Progress
from manybody.io.sequences import Sequences
from manybody.io.tables import read_run
from manybody.training import loop

ADAM = dict(
    objective="masked",
    batch=256,
    masks=0.15,
    optimizer=dict(name="adamw", betas=[0.9, 0.98], weight_decay=0.0),
    schedule="cosine",
    warmup=100,
    clip=1.0,
    checkpoints=dict(logarithmic=0, listed=[]),
    validation=600,
    validation_masks="all",
    precision="float32",
    compile=False,
    threads=1,
)


class Recipe(NamedTuple):
    layers: int
    rank: int
    learning_rate: float
    steps: int = 2500


RECIPES = (
    *(Recipe(2, 32, rate) for rate in (0.004, 0.016, 0.032)),
    *(Recipe(2, 160, rate) for rate in (0.004, 0.008, 0.016, 0.032)),
    Recipe(2, 160, 0.016, 1250),
    *(Recipe(4, 32, rate) for rate in (0.008, 0.016, 0.032, 0.064)),
)


def measure(train: str, validation: str, tried: tuple[Recipe, ...] = RECIPES) -> list[dict]:
    """Rows `layers, rank, learning_rate, steps, loss, seconds`: nats per masked validation token
    at the end, and seconds of processor time. train, validation: files of sequences."""
    data = {"train": Sequences.open(train), "validation": Sequences.open(validation)}
    rows = []
    with Progress(len(tried), "recipes", "losses") as progress:
        for recipe in tried:
            rows.append(_run(recipe, data))
            progress.update(1)
    return rows


def _run(recipe: Recipe, data: dict[str, Sequences]) -> dict:
    described = dict(
        architecture="factored", layers=recipe.layers, rank=recipe.rank, bias=True, variant="exact",
        vocabulary=data["train"].vocabulary, length=data["train"].length,
    )  # fmt: skip
    training = {**ADAM, "learning_rate": recipe.learning_rate, "steps": recipe.steps}
    # as of n2 and n4 of the demo
    init_seed, stream = {2: 11, 4: 13}[recipe.layers], f"n{recipe.layers}"
    train = partial(loop.train, described, training, data, stream=stream)
    with tempfile.TemporaryDirectory() as folder:
        run, _, seconds = timed(train, Path(folder) / "run", 0, init_seed, {}, "cpu")
        history = read_run(run)[1]
    last = history[(history["split"] == "validation") & (history["step"] == recipe.steps)]
    return {
        **recipe._asdict(),
        "loss": round(float(last["loss"].iloc[0]), 4),
        "seconds": round(seconds, 1),
    }
