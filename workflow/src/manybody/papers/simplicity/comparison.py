"""Comparisons of the times at which a student's losses on two kinds of clones saturate.

Two kinds of generators of equal test loss and different order are compared, each with one or more
runs of its own, by

    d = mean over students s and generators g of log t(s, g), late kind, less that of the early kind

with t the step at which the loss of student s on the clone of generator g saturates, interpolated
in log t between checkpoints. Three kinds of chance enter, each estimated on its own:

    V_s = var over s of (mean over g of log t, late less early) / S            S - 1 degrees
    V_g = pooled variance over g of (mean over s of log t) (1/G_late + 1/G_early)
    V_c = variance of d over bootstraps of the chains                          C - 1 degrees

and the half width of the 95 % interval is sqrt(t_s^2 V_s + t_g^2 V_g + t_c^2 V_c), where each t is
Student's with the degrees of freedom of its own part (Banerjee 1960: the interval covers at least
as often as it says, whichever part is the large one). The variance of log t over generators is
taken to be the same for all kinds that a figure compares; its degrees of freedom are the number of
generators less the number of kinds. Every generator has chains of its own, so chains enter V_g as
well as V_c: the interval is rather too wide. Chains that start from the same sequences are drawn
together.

The order sets the time if d is above log 1.25 by both definitions of saturation. d decides nothing
where the generators' test losses are not shown to be equal within 0.05 nats by the error of their
difference, or where checkpoints do not resolve the times.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody.io import tables
from manybody.models import labels
from manybody.papers import claims as records
from manybody.papers.saturation import BOOTSTRAPS, SATURATION, Kind, read_kinds
from manybody.papers.simplicity.students import Evaluated

BOUND = math.log(1.25)  # of log t: what counts as a difference
EQUAL = 0.05  # nats per token, between generators that are to differ in order alone
RESOLVED = BOUND + 1e-9  # log of the ratio of the two checkpoints between which t is interpolated


class Interval(NamedTuple):
    """A number, its standard error, the half width of its 95 % interval, and the parts of the error
    by what is drawn: `students`, `generators`, `chains`.

    Of generators it is NaN where there is one of each kind: the interval is then that of these two.
    """

    value: float
    error: float
    half: float
    parts: dict[str, float] | None = None


def spread(kinds: Sequence[Kind]) -> tuple[float, int]:
    """Variance of log t over generators, pooled over kinds, and its degrees of freedom."""
    degrees = sum(kind.times.shape[1] - 1 for kind in kinds)
    means = [kind.times.mean(axis=0) for kind in kinds]
    squares = sum(((one - one.mean()) ** 2).sum() for one in means)
    return (squares / degrees if degrees else math.nan), degrees


def interval(late: Kind, early: Kind, generators: tuple[float, int]) -> Interval:
    """d of two kinds, from the variance over generators that `spread` gives; see the module."""
    differences = late.times.mean(axis=1) - early.times.mean(axis=1)
    resampled = late.resampled.mean(axis=(1, 2)) - early.resampled.mean(axis=(1, 2))
    students, (variance, degrees) = len(differences), generators
    runs = 1 / late.times.shape[1] + 1 / early.times.shape[1]
    parts = {
        "students": float(differences.std(ddof=1) / math.sqrt(students))
        if students > 1
        else math.nan,
        "generators": math.sqrt(variance * runs) if degrees else math.nan,
        "chains": float(resampled.std(ddof=1)),
    }
    counts = {"students": students, "chains": min(late.chains, early.chains)}
    if degrees:
        counts["generators"] = degrees + 1
    error = math.hypot(*(part for part in parts.values() if not math.isnan(part)))
    half = math.hypot(*(records.margin(parts[name], count) for name, count in counts.items()))
    return Interval(float(differences.mean()), error, half, parts)


def tested(generators: Sequence[Evaluated], made: dict, test: str) -> pd.DataFrame | None:
    """Losses on test text of the checkpoint behind a clone (`generator` of its document)."""
    for run in generators:
        if all(run.about[name] == made[name] for name in ("description", "seed")):
            mine = run.losses[run.losses["target"] == test]
            if made["step"] in set(mine["step"]):
                return tables.select(mine, test, made["step"])
    return None


def unequal(
    generators: Sequence[Evaluated],
    targets: dict,
    late: Sequence[str],
    early: Sequence[str],
    test: str,
) -> str:
    """The reason why generators of two kinds do not pass for equally good; empty if they do.

    They are compared pair by pair; the reason has the pair that is farthest apart.
    """
    parts = []
    for pair in zip(late, early, strict=False):
        found = [tested(generators, targets[name]["generator"], test) for name in pair]
        for name, part in zip(pair, found, strict=True):
            if part is None:
                return f"the generator of {name} was not tested at its step"
        parts.append(records.near("", *tables.paired_difference(*found), 0.0, EQUAL))
    verdicts = {part.verdict() for part in parts}
    if verdicts == {"yes"}:
        return ""
    farthest = max(parts, key=lambda part: abs(part.value))
    words = "are apart" if "no" in verdicts else "are not shown to be equal"
    number = records.written(farthest.value, *farthest.interval())
    return f"test losses of the generators {words}: {number} nats, {EQUAL:g} may be"


class Compared(NamedTuple):
    """Two kinds: their targets, what they are called, d by share of the drop that is left, and the
    reason why d decides nothing, if there is one."""

    late: list[str]
    early: list[str]
    words: str
    found: dict[float, Interval]
    unusable: str

    def parts(self) -> list[records.Comparison]:
        """d by both definitions of saturation."""
        return [
            records.above(
                f"log ratio of times, {self.words}, {share:.0%} of the drop left",
                *(one.value, one.error, BOUND),
                half=one.half,
                unusable=self.unusable,
            )
            for share, one in self.found.items()
        ]


def compare(
    student: Evaluated,
    generators: Sequence[Evaluated],
    test: str,
    pairs: Sequence[tuple[list[str], list[str]]],
    bootstraps: int = BOOTSTRAPS,
) -> list[Compared]:
    """Each pair (late, early) of kinds of clones.

    generators: runs with their losses on the target `test`. The variance over generators is pooled
    over the kinds of all pairs.
    """
    targets = student.targets
    kinds = list(dict.fromkeys(tuple(kind) for pair in pairs for kind in pair))
    made = [[targets[name]["generator"] for name in kind] for kind in kinds]
    runs = [[(one["description"], one["seed"]) for one in kind] for kind in made]
    # Of kinds with runs of the same generators one is pooled.
    own = [kind for place, kind in enumerate(kinds) if runs.index(runs[place]) == place]
    read = {
        share: dict(
            zip(kinds, read_kinds(student.losses, targets, kinds, share, bootstraps), strict=True)
        )
        for share in SATURATION
    }
    pooled = {share: spread([found[kind] for kind in own]) for share, found in read.items()}
    compared = []
    for late, early in pairs:
        both = {share: (found[tuple(late)], found[tuple(early)]) for share, found in read.items()}
        intervals = {share: interval(*kinds, pooled[share]) for share, kinds in both.items()}
        width = np.max([kind.width for kinds in both.values() for kind in kinds])
        reasons = [unequal(generators, targets, late, early, test)]
        reasons += [] if width <= RESOLVED else ["checkpoints do not resolve the times"]
        words = f"{kind_label(targets, late)} against {kind_label(targets, early)}"
        reason = "; ".join(filter(None, reasons))
        compared.append(Compared(list(late), list(early), words, intervals, reason))
    return compared


def claim(id: str, about: str, compared: Sequence[Compared], scope: str) -> records.Claim:
    """The claim that the order sets the time, on which all pairs and both definitions must agree.

    about: the clones, in the statement; empty where all of a figure are compared.
    """
    return records.judged(
        id,
        f"At equal loss of the generators their order sets the time{about and f' ({about})'}",
        [part for one in compared for part in one.parts()],
        scope,
        f"the log of the ratio of times is above log 1.25 = {BOUND:.3f}, by both definitions",
        share=1.0,
    )


def kind_label(targets: dict, names: Sequence[str]) -> str:
    """`n = 2, order 3, rank 160, from noise`: what is common to the clones of a kind."""
    document = targets[names[0]]
    made = document["generator"]
    text = labels.target(document, rank=labels.bounded(made["description"]))
    text = text.partition(", stopped at")[0] + ("" if made["last"] else ", stopped")
    return f"{text}, from noise" if document["chain_init"] == "unigram" else text
