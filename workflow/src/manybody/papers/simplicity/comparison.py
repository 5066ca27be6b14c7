"""Comparisons of the times at which a student's losses on two clones saturate.

The clones' generators are of equal test loss and different order. They are compared by

    d = mean over students s of log t(s), late clone, less that of the early one

with t the step at which the loss of student s on a clone saturates, interpolated in log t between
checkpoints. Two kinds of chance enter, each estimated on its own:

    V_s = var over s of (log t, late less early) / S       S - 1 degrees of freedom
    V_c = variance of d over bootstraps of the chains      C - 1 degrees

and the half width of the 95 % interval is sqrt(t_s^2 V_s + t_c^2 V_c), where each t is Student's
with the degrees of freedom of its own part (Banerjee 1960: the interval covers at least as often as
it says, whichever part is larger). The interval is that of these two generators: what others of
their kinds would give is not in it. Chains that start from the same sequences are drawn together.

The order sets the time if d is above log 1.25 by both definitions of saturation. d decides nothing
where the generators' test losses are not shown to be equal within 0.05 nats by the error of their
difference, or where checkpoints do not resolve the times.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from manybody import models
from manybody.io import tables
from manybody.measure.intervals import mean
from manybody.measure.saturation import SATURATION, Times, read_times
from manybody.models import labels
from manybody.papers import claims as records
from manybody.papers.simplicity.students import Evaluated

BOUND = math.log(1.25)  # of log t: what counts as a difference
EQUAL = 0.05  # nats per token, between generators that are to differ in order alone
RESOLVED = BOUND + 1e-9  # log of the ratio of the two checkpoints between which t is interpolated


def difference(
    label: str,
    late: Times,
    early: Times,
    bound: float = BOUND,
    slack: float = 0.0,
    unusable: str = "",
) -> records.Comparison:
    """d of two clones, above a bound. The error of one student is that of the chains alone, and its
    interval has no end. slack: is added to the half width."""
    value, by_student, students = mean(late.times - early.times)
    by_chain = float((late.resampled.mean(axis=1) - early.resampled.mean(axis=1)).std(ddof=1))
    half = slack + math.hypot(
        records.margin(by_student, students),
        records.margin(by_chain, min(late.chains, early.chains)),
    )
    error = math.hypot(by_student if students > 1 else 0.0, by_chain)
    return records.above(label, value, error, bound, half=half, unusable=unusable)


def tested(generators: Sequence[Evaluated], made: dict, test: str) -> pd.DataFrame | None:
    """Losses on test text of the checkpoint behind a clone (`generator` of its document)."""
    for run in generators:
        if all(run.about[name] == made[name] for name in ("description", "seed")):
            mine = run.losses[run.losses["target"] == test]
            if made["step"] in set(mine["step"]):
                return tables.select(mine, test, made["step"])
    return None


def unequal(
    generators: Sequence[Evaluated], targets: dict, pair: tuple[str, str], test: str
) -> str:
    """The reason why the generators of two clones do not pass for equally good, if there is one."""
    found = [tested(generators, targets[name]["generator"], test) for name in pair]
    for name, part in zip(pair, found, strict=True):
        if part is None:
            return f"the generator of {name} was not tested at its step"
    part = records.near("", *tables.paired_difference(*found), 0.0, EQUAL)
    if part.verdict() == "yes":
        return ""
    words = "are apart" if part.verdict() == "no" else "are not shown to be equal"
    number = records.written(part.value, *part.interval())
    return f"test losses of the generators {words}: {number} nats, {EQUAL:g} may be"


def compare(
    student: Evaluated, generators: Sequence[Evaluated], test: str, pairs: Sequence[tuple[str, str]]
) -> Iterator[records.Comparison]:
    """d of each pair (late, early) of clones, by both definitions of saturation. generators: runs
    with their losses on the target `test`."""
    targets = student.targets
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    read = {share: read_times(student.losses, targets, names, share) for share in SATURATION}
    for pair in pairs:
        both = {share: [found[name] for name in pair] for share, found in read.items()}
        width = np.max([one.width for times in both.values() for one in times])
        reasons = [unequal(generators, targets, pair, test)]
        reasons += [] if width <= RESOLVED else ["checkpoints do not resolve the times"]
        unusable = "; ".join(filter(None, reasons))
        words = " against ".join(clone_label(targets[name]) for name in pair)
        for share, times in both.items():
            label = f"log ratio of times, {words}, {share:.0%} of the drop left"
            yield difference(label, *times, unusable=unusable)


def claim(id: str, compared: Sequence[records.Comparison], scope: str) -> records.Claim:
    """The order sets the time: all pairs and both definitions must agree on it."""
    return records.judged(
        id,
        "At equal loss of the generators their order sets the time",
        compared,
        scope,
        f"the log of the ratio of times is above log 1.25 = {BOUND:.3f}, by both definitions",
        unanimous=True,
    )


def clone_label(document: dict) -> str:
    """`n = 2, order 3, rank 160, from noise`."""
    made = document["generator"]
    text = labels.target(document, rank=models.about(made["description"]).bounded)
    text = text.partition(", stopped at")[0] + ("" if made["last"] else ", stopped")
    return f"{text}, from noise" if document["chain_init"] == "unigram" else text
