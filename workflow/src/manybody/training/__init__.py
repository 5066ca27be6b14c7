"""Training any model on any sequences; here the learning rate of a step."""

import math


def learning_rate(step: int, recipe: dict) -> float:
    """Learning rate of step `step` (0 to steps - 1): a linear warm-up, then constant or cosine.

    The warm-up reaches the full rate with its last step. The cosine starts `hold` steps later (0
    where the recipe does not say) and is 0 at `steps`.
    """
    peak, warmup, steps = recipe["learning_rate"], recipe["warmup"], recipe["steps"]
    if step < warmup:
        return peak * (step + 1) / warmup
    if recipe["schedule"] == "constant":
        return peak
    start = warmup + recipe.get("hold", 0)
    if step < start:
        return peak
    return peak * 0.5 * (1 + math.cos(math.pi * (step - start) / max(steps - start, 1)))
