"""Training any model on any sequences; here what follows from a recipe alone, without torch."""

import math

import numpy as np


def learning_rate(step: int, recipe: dict) -> float:
    """Learning rate of step `step` (0 to steps - 1): a linear warm-up, which reaches the full rate
    with its last step, then constant or a cosine, which is 0 at `steps`."""
    peak, warmup, steps = recipe["learning_rate"], recipe["warmup"], recipe["steps"]
    if step < warmup:
        return peak * (step + 1) / warmup
    if recipe["schedule"] == "constant":
        return peak
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(steps - warmup, 1)))


def kept_steps(recipe: dict) -> list[int]:
    """The steps whose weights are kept, ascending: 0, the last, the spaced and the listed ones.

    `checkpoints.logarithmic` is how many are spaced evenly in log(step) from 1 to the last; those
    that round to the same step count once. `checkpoints.every` keeps all its multiples as well.
    """
    steps, wanted = recipe["steps"], recipe["checkpoints"]
    every = wanted.get("every")
    regular = range(every, steps, every) if every else ()
    count = wanted.get("logarithmic", 0)
    spaced = np.geomspace(1, steps, count).round().astype(int).tolist() if count else []
    return sorted({0, steps, *spaced, *wanted.get("listed", []), *regular})
