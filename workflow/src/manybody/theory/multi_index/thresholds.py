"""Thresholds at which two layers of attention begin to be learned, over the skip connection c
(docs/science/multi-index.md, section 4).

The layer of the larger eigenvalue lambda at Q = 0 is first, at alpha = 1 / lambda, with no noise
(`table.weak_recovery`): layer 2 of softmax attention, layer 1 of linear attention with c up to
about 1. The other one, layer 1 say, has two definitions. Literal: layer 2 is known, and lambda_1 =
T (T + 1) = 6 whatever c > 0 is. Then z_1 is given up to its sign, and alpha_1 = 1/6, a bound of
every threshold; it is approached so slowly as V22 falls that it says little. Self-consistent: alpha
lambda_1 = 1 along alpha(Q22), the curve of layer 2 alone, which is what state evolution does.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from manybody.io.progress import Progress
from manybody.io.tables import joined, rows
from manybody.theory.multi_index.samples import Setting, draws, mean_error
from manybody.theory.multi_index.table import Weak, onset, onset_guess, weak_recovery

LITERAL = 1 / 6  # 1 / T (T + 1), T = 2


def second_layer(
    setting: Setting, points: int, streams: Sequence[np.random.SeedSequence], weak: Weak
) -> np.ndarray:
    """The self-consistent threshold of the layer that is learned second, from a scrambling of
    `points` samples by each of `streams`: (scramblings, 2), Q of the first layer there and alpha.
    To stop where the error of a few happens to be small would leave errors too small."""
    found = []
    for stream in streams:
        normal = draws(points, stream)
        guess = found[-1][0] if found else onset_guess(setting, normal[:512], weak.first)
        found.append(onset(setting, normal, guess, weak))
    return np.array(found)


@dataclass(frozen=True)
class Thresholds:
    """The layer (1 or 2) learned first, its alpha, that of the other one and its standard error."""

    first: int
    alpha_first: float
    alpha_second: float
    error: float


def at_skip(skip: float, activation: str, points: int, scrambles: int, seed: int) -> Thresholds:
    """The thresholds of both layers at one c > 0, without a regulariser."""
    setting = Setting(skip, activation)
    with threadpool_limits(1):
        weak = weak_recovery(setting)
        streams = np.random.SeedSequence(seed).spawn(scrambles)
        (_, alpha), (_, error) = mean_error(second_layer(setting, points, streams, weak))
    return Thresholds(weak.first + 1, weak.alpha, float(alpha), float(error))


def compute(entry: dict) -> tuple[pd.DataFrame, dict]:
    """The table of one entry of the config, and what it was made from.

    entry: the keys of `config.theory.Thresholds`. x is c. Quantities, by series, of a c at which
    layer 2 is learned first; 1 and 2 are swapped where layer 1 is:

    - `alpha_1`: literal, 1/6; self-consistent, with `converged` alpha_1;
    - `alpha_2`: exact;
    - `alpha_1 difference`: from that at the c closest to 1, the series, over the same samples.
    """
    parts, onsets = [], {1: {}, 2: {}}  # alphas of the scramblings, of each layer and c
    skips = sorted(entry["skips"])
    with threadpool_limits(1), Progress(len(skips), "values of c", "thresholds") as progress:
        for skip in skips:
            setting = Setting(skip, entry["activation"], entry["regulariser"], entry["threads"])
            weak = weak_recovery(setting)
            # The same points at every c: what differs between them is not noise. Seeds are made
            # anew, as Sobol sequences move them.
            (own,) = np.random.SeedSequence(entry["seed"]).spawn(1)
            found = second_layer(setting, entry["points"], own.spawn(entry["scrambles"]), weak)
            (_, alpha), (_, error) = mean_error(found)
            onsets[2 - weak.first][skip] = found[:, 1]
            name = f"alpha_{2 - weak.first}"
            parts += [
                rows(f"alpha_{weak.first + 1}", "exact", [skip], weak.alpha),
                rows(name, "self-consistent", [skip], alpha, error),
                rows(name, "literal", [skip], LITERAL),
                rows("converged", name, [skip], error < entry["tolerance_1"] * alpha),
            ]
            progress.update(1, c=skip, **{name: alpha})
    # Of the same layer, scrambling by scrambling, whose common noise drops out.
    for layer, found in onsets.items():
        middle = min(found, key=lambda skip: abs(math.log(skip)), default=None)
        for skip, alphas in found.items():
            of = f"alpha_{layer} difference", f"c = {middle:g}"
            parts.append(rows(*of, [skip], *mean_error(alphas - found[middle])))
    return joined(parts, entry)
