"""Times at which losses saturate, at checkpoints and between them, with bootstraps over chains."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

SATURATION = (0.05, 0.02)  # shares of the total drop that may remain at saturation
BOOTSTRAPS = 1000
SEED = 0  # of the bootstrap


def saturation(steps: Sequence[float], losses: Sequence[float], share: float = SATURATION[0]):
    """Saturation step of a loss curve, and the spacing to the checkpoint before it.

    The first checkpoint from which less than `share` of the total drop, from the first checkpoint
    to the minimum, remains; the minimum at the latest. (NaN, NaN) below three checkpoints.
    """
    if len(steps) < 3:
        return math.nan, math.nan
    steps = np.asarray(steps, float)
    first = _last_above(losses, share)[2][0] + 1
    return float(steps[first]), float(steps[first] - steps[max(first - 1, 0)])


def _last_above(losses, share: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Drops that remain to the minimum of curves (..., checkpoints), and `share` of the total one.

    At last the checkpoint before the minimum from which less than that share remains; -1: none.
    """
    losses = np.asarray(losses, float)
    lowest = losses.argmin(axis=-1, keepdims=True)
    remaining = losses - losses.min(axis=-1, keepdims=True)
    bound = share * remaining[..., :1]
    places = np.arange(losses.shape[-1])
    above = (remaining >= bound) & (places < lowest)
    return remaining, bound, np.where(above, places, -1).max(axis=-1, keepdims=True)


def saturations(
    curves: Iterable[tuple[int, pd.DataFrame]], share: float = SATURATION[0], time: str = "step"
) -> pd.DataFrame:
    """Saturation time and spacing by seed, the index, of loss curves ordered by column `time`."""
    rows = {seed: saturation(curve[time], curve["loss"], share) for seed, curve in curves}
    return pd.DataFrame.from_dict(rows, orient="index", columns=["time", "spacing"])


def later(early: pd.DataFrame, late: pd.DataFrame) -> tuple[pd.Series, float]:
    """Times from one saturation to another, by the seeds that both have, and the standard deviation
    that the spacing of checkpoints gives them: w / sqrt(12) of an interval of width w."""
    late, early = late.align(early, "inner", axis=0)
    widths = early["spacing"] ** 2 + late["spacing"] ** 2
    return late["time"] - early["time"], math.sqrt(widths.mean() / 12)


def plateau_end(curve: pd.Series) -> float:
    """Last checkpoint of the initial plateau: the loss, by step, has not yet made half of its total
    drop. NaN when the drop is not resolved by checkpoints."""
    late = np.flatnonzero(curve.to_numpy() < (curve.iloc[0] + curve.min()) / 2)
    return float(curve.index[late[0] - 1]) if len(late) and late[0] > 1 else math.nan


def log_times(
    steps: Sequence[float], losses: np.ndarray, share: float
) -> tuple[np.ndarray, np.ndarray]:
    """log t of curves (..., checkpoints), and the log of the ratio of the checkpoints around it.

    t is where the drop that remains to the minimum falls below `share` of the total drop for good
    (`saturation`), between two checkpoints by linear interpolation of the loss in log t.
    NaN for a curve that does not fall, and where t lies before the first checkpoint above step 0.
    """
    remaining, bound, last = _last_above(losses, share)
    falls = last >= 0
    last = np.maximum(last, 0)
    following = np.minimum(last + 1, len(steps) - 1)
    before, after = (np.take_along_axis(remaining, at, axis=-1) for at in (last, following))
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(steps)
        width = logs[following] - logs[last]
        found = logs[last] + width * (before - bound) / (before - after)
    known = falls & np.isfinite(found)
    return np.where(known, found, np.nan)[..., 0], np.where(known, width, np.nan)[..., 0]


@dataclass(frozen=True)
class Times:
    """log t of a student's loss on a clone (students,), and its bootstraps over chains.

    resampled: (bootstraps, students). width: the largest log of the ratio of two checkpoints
    between which a time was interpolated.
    """

    times: np.ndarray
    resampled: np.ndarray
    width: float
    chains: int


def read_times(
    losses: pd.DataFrame,
    targets: dict,
    names: Sequence[str],
    share: float,
    bootstraps: int = BOOTSTRAPS,
) -> dict[str, Times]:
    """Times on each target of `names`, from a table of losses with seeds.

    Clones whose chains started from the same sequences (equal `rows`) share the draws of a
    bootstrap; others are drawn on their own.
    """
    draws, found = {}, {}
    generator = np.random.default_rng(SEED)
    for name in names:
        # Loss sums and predictions (students, checkpoints, chains).
        keys = ["seed", "step", "sequence"]
        mine = losses[losses["target"] == name].sort_values(keys)
        sums, counts = (
            mine[column].to_numpy(float).reshape([mine[key].nunique() for key in keys])
            for column in ("loss_sum", "predictions")
        )
        steps, start, chains = mine["step"].unique(), targets[name].get("rows"), sums.shape[-1]
        key = (tuple(start) if start else name, chains)
        if key not in draws:
            draws[key] = generator.multinomial(
                chains, np.full(chains, 1 / chains), size=bootstraps
            ).T.astype(float)
        times, width = log_times(steps, sums.sum(axis=-1) / counts.sum(axis=-1), share)
        curves = np.moveaxis((sums @ draws[key]) / (counts @ draws[key]), -1, 0)
        resampled = log_times(steps, curves, share)[0]
        found[name] = Times(times, resampled, float(np.max(width)), chains)
    return found
