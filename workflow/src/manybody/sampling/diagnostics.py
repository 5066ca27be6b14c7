"""Records of chains, and how far they have settled: autocorrelation time, R-hat."""

import numpy as np

FEWEST = 4  # draws of a chain that split statistics need


class Record:
    """Moves and scores of C chains in some sweeps: arrays with one row a sweep.

    `energies` (nats) and `changed` (positions that differ from the start) hold at the end of each
    sweep, `same` and `accepted` count proposals; `tokens[n]` (C, L) is the state after sweep n.
    """

    def __init__(self, sweeps: int, chains: int):
        self.energies = np.zeros((sweeps, chains))
        self.same = np.zeros((sweeps, chains), dtype=np.int64)
        self.accepted = np.zeros((sweeps, chains), dtype=np.int64)
        self.changed = np.zeros((sweeps, chains), dtype=np.int64)
        self.tokens: dict[int, np.ndarray] = {}


def settled(scores: np.ndarray) -> dict[str, float]:
    """Statistics of `scores` (sweeps, C), one value a sweep and chain, of the second half.

    `effective_samples` is the number of independent draws of the mean among the C chains together
    (Vehtari et al. 2021, rank-free), `autocorrelation` the integrated autocorrelation time, sweeps
    x C / effective_samples (chains that disagree lengthen it), and `rhat` the split R-hat. NaN
    where fewer than four sweeps remain or the score does not move.
    """
    half = np.ascontiguousarray(scores[(len(scores) + 1) // 2 :].T, dtype=np.float64)
    if not half.size or half.shape[1] < FEWEST or np.ptp(half) == 0.0:
        return dict(autocorrelation=np.nan, effective_samples=np.nan, rhat=np.nan)
    from arviz_stats.base import array_stats  # takes as long to import as torch

    effective = float(array_stats.ess(half, chain_axis=0, draw_axis=1, method="mean"))
    rhat = float(array_stats.rhat(half, chain_axis=0, draw_axis=1, method="split"))
    return dict(autocorrelation=half.size / effective, effective_samples=effective, rhat=rhat)


def trace(
    energies: np.ndarray, same: np.ndarray, accepted: np.ndarray, changed: np.ndarray, length: int
) -> dict[str, np.ndarray]:
    """The columns of `trace.parquet`, one row a sweep (row 0: the starts).

    `energies` and `changed` are (sweeps + 1, C): E in nats, positions that differ from the start.
    `same` and `accepted` are (sweeps, C): proposals of a sweep that equal the current token, and
    accepted ones among the others. `length` is L.
    """
    sweeps, chains = same.shape
    scores = -energies / length
    error, equal = np.full(sweeps + 1, np.nan), same.sum(axis=1)
    if chains > 1:
        error = scores.std(axis=1, ddof=1) / np.sqrt(chains)
    with np.errstate(invalid="ignore"):  # a sweep without a real proposal has no acceptance
        taken = accepted.sum(axis=1) / (chains * length - equal)
    columns = dict(
        sweep=np.arange(sweeps + 1),
        score=scores.mean(axis=1),
        score_se=error,
        same=np.append(np.nan, equal / (chains * length)),
        accepted=np.append(np.nan, taken),
        changed=changed.mean(axis=1) / length,
    )
    return columns | {name: np.full(sweeps + 1, value) for name, value in settled(scores).items()}
