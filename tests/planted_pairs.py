"""Small Potts models of families with random couplings, and their laws by all states."""

import numpy as np
from enumerated import all_states

from manybody.data.pair_model import PairModel, of_pairs


def planted(length, vocabulary, scale=1.0, seed=0, about=None) -> PairModel:
    """Normal fields, and for each pair a normal block times `scale`."""
    rng = np.random.default_rng(seed)
    pairs = scale * rng.normal(size=(length * (length - 1) // 2, vocabulary, vocabulary))
    return PairModel(rng.normal(size=(length, vocabulary)), of_pairs(pairs, length), about or {})


def law(model: PairModel) -> tuple[np.ndarray, np.ndarray, float]:
    """All states, their probabilities, and log Z."""
    every = all_states(model.vocabulary, model.length)
    scores = model.scores(every)
    log_z = np.logaddexp.reduce(scores)
    return every, np.exp(scores - log_z), log_z
