"""Times at which students of a code law saturate on its clones: predicted from its terms, seen."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody.io import tables as stored
from manybody.io.manifest import Manifest
from manybody.io.sequences import Sequences
from manybody.measure.intervals import Value, margin, mean
from manybody.measure.saturation import SATURATION, log_times


class Saturation(NamedTuple):
    """Saturation of the losses on a clone.

    told, seen: log t as predicted and as seen. half: half width of the interval of their
    difference. trained: true of a clone of a model, false of a part of the law. kappa: the mean
    order of the clone's own information, NaN where that is not known.
    """

    told: float
    half: float
    seen: float
    trained: bool
    kappa: float


def kappa(information: Mapping) -> float:
    """The mean order k of information c_k by order: sum_k k c_k / sum_k c_k."""
    total = sum(information.values())
    return sum(int(k) * c for k, c in information.items()) / total if total else math.nan


def predicted_and_seen(
    clocks: Mapping[int, str | Path],
    losses: Mapping[int, str | Path],
    laws: Mapping[str, dict],
    parts: Mapping[str, str | Path],
    clones: Mapping[str, tuple[str | Path, int]],
) -> dict[str, Saturation]:
    """Times of saturation on each clone, by the half-logits of some students and in the others.

    clocks: tables of the students that predict, by seed. losses: those of all students. laws: the
    entry of the law, called '', and of the clones that are parts of it. parts: the sequences of the
    latter. clones: manifests of those of trained generators, and their sweeps.
    The interval is that of the difference of two means, with the spread of those that predict.
    Drops count from ln 2, the loss of equal chances, below which a student may never come: random
    initial weights start higher, and that they lose this first says nothing of the law. A time is
    the mean of those of the students that have one, NaN if these are half of them or fewer.
    """
    from manybody.data import code

    law, drawn = code.of(laws[""]), dict(parts)
    orders = {name: kappa(code.of(entry).information()) for name, entry in laws.items()}
    for name, (manifest, sweep) in clones.items():
        made = Manifest.read(manifest, "clones")
        orders[name] = kappa(made.about.get("information", {}))
        drawn[name] = made.file(f"sweep-{sweep}.parquet")
    means = {name: law.means_in(Sequences.open(path).tokens) for name, path in drawn.items()}
    students = {}
    for seed, path in clocks.items():
        table = stored.CLOCKS.read(path)[0].query("step > 0")
        shares = table.pivot(index="step", columns="term", values="own_share")
        gaps = table.pivot(index="step", columns="term", values="gap")
        # What the logits beside those of the law's terms add to a student's loss, in nats a token
        # (steps,): its divergence from the law, less the part of the terms. To second order in
        # these logits it is the same on any clone.
        of_terms = clone_losses(law, law.means, shares.to_numpy())
        of_terms -= clone_losses(law, law.means, np.ones(shares.shape))
        more = gaps.to_numpy() @ law.orders / law.length - of_terms
        students[seed] = shares.index, shares.to_numpy(), more
    curves = stored.learning_curves(stored.read_losses(losses)).query("step > 0")
    found = {}
    for name, mine in curves.groupby("target", sort=False):
        seen = mine.pivot(index="step", columns="seed", values="loss")
        others = _of_most([_time(seen.index, seen[seed]) for seed in seen if seed not in students])
        log, error, count = _of_most(
            [
                _time(steps, clone_losses(law, means[name], shares) + more)
                for steps, shares, more in students.values()
            ]
        )
        half = margin(error * math.sqrt(1 + count / max(others.runs, 1)), count)
        found[name] = Saturation(log, half, others.value, name in clones, orders[name])
    return found


def clone_losses(law, means: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Losses on a clone, in nats a token, of students with half-logits shares (steps, terms) x J:

    sum_e |e| 1/2 [(1 + t'_e) z(-2 a_e) + (1 - t'_e) z(2 a_e)] + ln 2 at free sites, z the softplus,
    t' = `means` (terms,) those of the law's terms in the clone.
    """
    logits = 2 * shares * law.couplings
    up, down = np.logaddexp(0, -logits), np.logaddexp(0, logits)
    each = ((1 + means) * up + (1 - means) * down) / 2
    # the tokens that no form fixes
    return (each @ law.orders + (law.length - law.orders.sum()) * math.log(2)) / law.length


def _of_most(times: list[float]) -> Value:
    known = [time for time in times if math.isfinite(time)]
    return mean(known if 2 * len(known) > len(times) else [])


def _time(steps: pd.Index, losses: Sequence[float]) -> float:
    return float(log_times(steps.to_numpy(), np.minimum(losses, math.log(2)), SATURATION[0])[0])
