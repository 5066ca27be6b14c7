"""Tables of losses on clones of four kinds of generators, with planted times and variances."""

import math

import numpy as np
import pandas as pd
import planted_losses as planted
from planted_losses import BERT, clone, factored

STEPS = np.concatenate([[0, 1, 10, 50], np.round(np.geomspace(100, 3000, 50))])
CHAINS = 80


def fall(time, steps=STEPS):
    """From 6 to 1, with 5 % of the drop left at about `time`."""
    return 1 + 5 / (1 + (np.asarray(steps, float) / time) ** 3 * 19)


GENERATORS = {
    "bert": BERT,
    "wide": factored(2, 64),
    "stopped": factored(4, 128),
    "low": factored(3, 96),
}
TARGETS = {
    f"{name}-{seed}": clone(description, name, last=name != "stopped", seed=seed)
    | {"rows": list(range(CHAINS))}
    for name, description in GENERATORS.items()
    for seed in (0, 1)
} | {"original": {"original": True}}
LATE, EARLY = ["bert-0", "bert-1"], ["wide-0", "wide-1"]
STOPPED, LOW = ["stopped-0", "stopped-1"], ["low-0", "low-1"]
SEEDS = 4


def losses(times, steps=STEPS, seeds=SEEDS, student=0.02, generator=0.02, shape=fall, draw=0):
    """A table of losses: target -> planted t, with small planted spreads of log t."""
    rng = np.random.default_rng(draw)
    difficulty = rng.normal(0, 0.2, CHAINS)
    lots = rng.normal(0, 0.1, seeds)
    frames = []
    for target, time in times.items():
        made = rng.normal(0, generator)
        for seed in range(seeds):
            shift = math.exp(made + lots[seed] + rng.normal(0, student))
            curve = shape(time * shift, steps)
            loss = curve[:, None] * (1 + 0.1 * rng.normal(size=CHAINS)) + difficulty
            frames.append(planted.table(target, seed, steps, loss))
    return pd.concat(frames, ignore_index=True)


def generators(apart=0.0):
    """Test losses of every generator; those of the low orders are worse by `apart`."""
    clones = [document for document in TARGETS.values() if not document["original"]]
    return planted.equal_generators(clones, apart)
