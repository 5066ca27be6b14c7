"""Tables of losses on clones of two generators, with planted times and variances."""

import math

import numpy as np
import pandas as pd
import planted_losses as planted
from planted_losses import BERT, clone, factored

STEPS = np.concatenate([[0, 1, 10, 50], np.round(np.geomspace(100, 3000, 50))])
CHAINS = 80
GENERATORS = {"bert": BERT, "wide": factored(2, 64)}
TARGETS = {
    name: clone(description, name) | {"rows": list(range(CHAINS))}
    for name, description in GENERATORS.items()
}


def fall(time, steps=STEPS):
    """From 6 to 1, with 5 % of the drop left at about `time`."""
    return 1 + 5 / (1 + (np.asarray(steps, float) / time) ** 3 * 19)


def losses(times, steps=STEPS, seeds=4, student=0.02, shape=fall):
    """A table of losses: target -> planted t, with a planted spread of log t over students."""
    rng = np.random.default_rng(0)
    difficulty = rng.normal(0, 0.2, CHAINS)
    lots = rng.normal(0, 0.1, seeds)
    frames = []
    for target, time in times.items():
        for seed in range(seeds):
            curve = shape(time * math.exp(lots[seed] + rng.normal(0, student)), steps)
            loss = curve[:, None] * (1 + 0.1 * rng.normal(size=CHAINS)) + difficulty
            frames.append(planted.table(target, seed, steps, loss))
    return pd.concat(frames, ignore_index=True)


def generators(apart=0.0):
    """Test losses of both generators; those of the lower order are worse by `apart`."""
    return planted.equal_generators(TARGETS.values(), apart)
