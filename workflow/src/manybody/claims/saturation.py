"""When a loss has saturated, as figures draw it and claims judge it."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

SATURATION = (0.05, 0.02)  # shares of the total drop that may remain at saturation


def saturation(steps: Sequence[float], losses: Sequence[float], share: float = SATURATION[0]):
    """Saturation step of a loss curve, and the spacing to the checkpoint before it.

    The first checkpoint from which the drop that remains to the minimum is below `share` of the
    total drop, from the first checkpoint to the minimum. A minimum followed by a rise counts as
    saturation at the minimum at the latest. No curve is fitted. (NaN, NaN) below three checkpoints.
    """
    steps, losses = np.asarray(steps, float), np.asarray(losses, float)
    if len(steps) < 3:
        return math.nan, math.nan
    lowest = int(losses.argmin())
    remaining = losses[: lowest + 1] - losses[lowest]
    above = np.flatnonzero(remaining >= share * remaining[0])
    first = min(int(above[-1]) + 1, lowest) if len(above) else 0
    return float(steps[first]), float(steps[first] - steps[max(first - 1, 0)])


def saturations(curves: pd.DataFrame, target: str, share: float = SATURATION[0]) -> pd.DataFrame:
    """Saturation step and spacing for each seed (the index) of a target's curves."""
    mine = curves[curves["target"] == target].sort_values("step")
    rows = {
        seed: saturation(curve["step"], curve["loss"], share)
        for seed, curve in mine.groupby("seed", sort=True)
    }
    return pd.DataFrame.from_dict(rows, orient="index", columns=["step", "spacing"])
