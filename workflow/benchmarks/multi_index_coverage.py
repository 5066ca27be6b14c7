"""Coverage of the errors of state evolution and of its thresholds (multi-index, section 4).

A setting is one number of the demo: alpha_1 at a c, or alpha at an overlap, c = 1. It is computed
GROUPS times from scramblings of its own, as many as the demo takes, and compared with a reference
of MORE times the points. Errors cover where 68 % of the groups lie within their standard error and
95 % within two, each times Student's t of the group's scramblings over the normal distribution's.
"""

import math
from collections.abc import Callable, Iterator

import numpy as np
from scipy.stats import norm, t

from manybody.io.progress import Progress
from manybody.theory.multi_index.samples import Setting, draws, mean_error
from manybody.theory.multi_index.table import both, onset, onset_guess, single_layer, weak_recovery

GROUPS = 30
MORE = 64
SKIPS = (1.0, 0.5, 0.25, 2.0, 3.0, 4.0)
THRESHOLD = 2048, 8  # points and scramblings of `thresholds` in the demo
SECOND = (0.1, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9)  # Q22 at Q11 = 0
FIRST = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.96)  # Q11
CURVE = 1024, 4  # of `state-evolution`
LEVELS = 2 * norm.cdf(1) - 1, 0.95
LONGER = 8  # points of a scrambling of the reference over those of the demo
SEED = 17


def measure() -> list[dict]:
    """Rows `setting, reference, error, groups, bias, within_1, within_2`: the mean difference from
    the reference in standard errors of a group, and the shares of groups within one and two; the
    last row is of all settings together."""
    rows: list[dict] = []
    with Progress(2 + len(SKIPS), "settings", "coverage") as progress:
        for named in parts():
            rows += named
            progress.update(1)
    return [*rows, summary(rows)]


def parts(threads: int = 2) -> Iterator[list[dict]]:
    """Rows of the settings, of those that share their samples at a time."""
    setting = Setting(1.0, threads=threads)
    weak = weak_recovery(setting)

    def second(normal: np.ndarray) -> np.ndarray:
        return single_layer(SECOND, setting, normal, weak.alpha, 0.0).alphas[1:]

    yield compare([f"alpha at Q22 = {q:g}" for q in SECOND], second, *CURVE)
    rough = onset_guess(setting, draws(512, np.random.SeedSequence(SEED)))

    def first(normal: np.ndarray) -> np.ndarray:
        onset_point = onset(setting, normal, rough, weak)
        return both(FIRST, setting, normal, onset_point, 0.0, weak).alphas[1:]

    yield compare([f"alpha at Q11 = {q:g}" for q in FIRST], first, *CURVE)
    for skip in SKIPS:
        yield compare([f"alpha_1 at c = {skip:g}"], onset_of(skip, threads), *THRESHOLD)


def onset_of(skip: float, threads: int) -> Callable:
    setting = Setting(skip, threads=threads)
    weak = weak_recovery(setting)
    rough = onset_guess(setting, draws(512, np.random.SeedSequence(SEED)))
    rough = onset(setting, draws(2048, np.random.SeedSequence(SEED)), rough, weak)[0]
    return lambda normal: np.array([onset(setting, normal, rough, weak)[1]])


def compare(names: list[str], estimate: Callable, points: int, scrambles: int) -> list[dict]:
    """A row for each of the numbers (m,) that `estimate(normal)` gives."""
    groups, more = np.random.SeedSequence(SEED).spawn(2)
    count = MORE * scrambles // LONGER
    reference, error = mean_error(
        [estimate(draws(LONGER * points, seed)) for seed in more.spawn(count)]
    )
    each = [estimate(draws(points, seed)) for seed in groups.spawn(GROUPS * scrambles)]
    values, errors = mean_error(np.reshape(each, (GROUPS, scrambles, -1)).swapaxes(0, 1))
    rows = []
    for k, name in enumerate(names):
        apart = values[:, k] - reference[k]
        within = [np.abs(apart) <= width * errors[:, k] for width in widths(scrambles)]
        rows.append(
            dict(
                setting=name, reference=reference[k], error=error[k], groups=GROUPS,
                bias=apart.mean() / apart.std(ddof=1),
                within_1=within[0].mean(), within_2=within[1].mean(),
            )
        )  # fmt: skip
    return rows


def widths(scrambles: int) -> list[float]:
    """Half widths of the intervals of LEVELS, in standard errors of so many scramblings."""
    return [float(t.isf((1 - level) / 2, scrambles - 1)) for level in LEVELS]


def summary(rows: list[dict]) -> dict:
    """All settings together: bias is the mean of theirs."""
    means = {key: float(np.mean([row[key] for row in rows])) for key in rows[0] if key != "setting"}
    count = sum(row["groups"] for row in rows)
    return dict(means, setting="all", reference=math.nan, error=math.nan, groups=count)
