"""What a recipe says about time: the learning rate of each step, the steps that are kept."""

import math

import numpy as np


def learning_rate(step: int, recipe: dict) -> float:
    """Learning rate of step `step` (0 to steps - 1): a linear warm-up, then constant or cosine.

    The warm-up reaches the full rate with its last step; the cosine starts there and is 0 at
    `steps`.
    """
    peak, warmup, steps = recipe["learning_rate"], recipe["warmup"], recipe["steps"]
    if step < warmup:
        return peak * (step + 1) / warmup
    if recipe["schedule"] == "constant":
        return peak
    return peak * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(steps - warmup, 1)))


def checkpoint_steps(recipe: dict) -> list[int]:
    """The steps whose weights are kept, ascending: 0, the last, the spaced and the listed ones.

    `checkpoints.logarithmic` is how many are spaced evenly in log(step) from 1 to the last; those
    that round to the same step count once.
    """
    steps, wanted = recipe["steps"], recipe["checkpoints"]
    listed = wanted.get("listed", [])
    beyond = [step for step in listed if not 0 <= step <= steps]
    if beyond:
        raise ValueError(
            f"training.checkpoints.listed: step {beyond[0]} is not between 0 and the last step, "
            f"{steps}; remove it or raise training.steps"
        )
    count = wanted.get("logarithmic", 0)
    spaced = np.geomspace(1, steps, count).round().astype(int).tolist() if count else []
    return sorted({0, steps, *spaced, *listed})
