"""The steps of a training whose weights have a file, from its recipe alone."""

import numpy as np


def kept_steps(recipe: dict) -> list[int]:
    """The steps whose weights are kept, ascending: 0, the last, the spaced and the listed ones.

    `checkpoints.logarithmic` is how many are spaced evenly in log(step) from 1 to the last; those
    that round to the same step count once. `checkpoints.every` keeps all its multiples as well.
    """
    steps, wanted = recipe["steps"], recipe["checkpoints"]
    listed = wanted.get("listed", [])
    every = wanted.get("every")
    regular = range(every, steps, every) if every else ()
    count = wanted.get("logarithmic", 0)
    spaced = np.geomspace(1, steps, count).round().astype(int).tolist() if count else []
    return sorted({0, steps, *spaced, *listed, *regular})
