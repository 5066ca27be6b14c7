"""Records of chains."""

import numpy as np


class Record:
    """Moves and scores of C chains in some sweeps: arrays with one row a sweep.

    `energies` (nats) and `changed` (positions that differ from the start) hold at the end of each
    sweep, `same` and `accepted` count proposals; `tokens[n]` (C, L) is the state after sweep n.
    Of R temperatures these are the coldest replicas; `levels` (sweeps, R) are then the
    mean energies of all, and `swaps` (sweeps, R - 1) count the chains in which neighbours swapped.
    """

    def __init__(self, sweeps: int, chains: int):
        self.energies = np.zeros((sweeps, chains))
        self.same = np.zeros((sweeps, chains), dtype=np.int64)
        self.accepted = np.zeros((sweeps, chains), dtype=np.int64)
        self.changed = np.zeros((sweeps, chains), dtype=np.int64)
        self.tokens: dict[int, np.ndarray] = {}
        self.levels = np.zeros((sweeps, 0))
        self.swaps = np.zeros((sweeps, 0), dtype=np.int64)
