"""Does the order of interaction set the time at which a student's loss saturates? (claim 11)

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

The answer is `yes` (the order matters) where the interval lies above log 1.25, `no` where it lies
below log 1.25, else `undecided`; both definitions of saturation must agree. Premises gate it: both
kinds have clones, their generators' test losses differ by less than 0.05 nats by the error of the
difference, and checkpoints resolve the times.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody.claims import labels, verdicts
from manybody.claims.saturation import BOOTSTRAPS, SATURATION, Kind, read_kinds
from manybody.claims.simplicity.evaluated import Evaluated
from manybody.claims.simplicity.learning import Student
from manybody.io import tables

BOUND = math.log(1.25)  # of log t: what counts as a difference
EQUAL = 0.05  # nats per token, between generators that are to differ in order alone
RESOLVED = BOUND + 1e-9  # log of the ratio of the two checkpoints between which t is interpolated


class Interval(NamedTuple):
    """d, its standard error, the half width of its 95 % interval, and the three parts of the error.

    generators is NaN where there is one of each kind: the interval is then that of these two.
    """

    value: float
    error: float
    half: float
    students: float
    generators: float
    chains: float

    @property
    def low(self) -> float:
        return self.value - self.half

    @property
    def high(self) -> float:
        return self.value + self.half

    def __str__(self) -> str:
        return f"{self.value:.3f} ({self.low:.3f} to {self.high:.3f})"


def spread(kinds: Sequence[Kind]) -> tuple[float, int]:
    """Variance of log t over generators, pooled over kinds, and its degrees of freedom."""
    degrees = sum(kind.times.shape[1] - 1 for kind in kinds)
    squares = 0.0
    for kind in kinds:
        means = kind.times.mean(axis=0)
        squares += ((means - means.mean()) ** 2).sum()
    return (squares / degrees if degrees else math.nan), degrees


def interval(late: Kind, early: Kind, generators: tuple[float, int]) -> Interval:
    """d of two kinds, from the variance over generators that `spread` gives; see the module."""
    one, two = (kind.times.mean(axis=1) for kind in (late, early))
    differences = one - two
    students = len(differences)
    value = float(differences.mean())
    resampled = late.resampled.mean(axis=(1, 2)) - early.resampled.mean(axis=(1, 2))
    by_student = float(differences.std(ddof=1) / math.sqrt(students)) if students > 1 else math.nan
    by_chain = float(resampled.std(ddof=1))
    variance, degrees = generators
    by_generator = math.nan
    parts = [
        verdicts.margin(by_student, students),
        verdicts.margin(by_chain, min(late.chains, early.chains)),
    ]
    if degrees:
        by_generator = math.sqrt(variance * (1 / late.times.shape[1] + 1 / early.times.shape[1]))
        parts.append(verdicts.margin(by_generator, degrees + 1))
    known = [part for part in (by_student, by_generator, by_chain) if not math.isnan(part)]
    return Interval(
        value, math.hypot(*known), math.hypot(*parts), by_student, by_generator, by_chain
    )


def answer(found: Interval) -> str:
    """`yes` above log 1.25, `no` below it, by the whole interval."""
    return verdicts.decided(found.low > BOUND, found.high < BOUND)


def decide(found: Sequence[Interval]) -> str:
    """The answer on which all definitions agree."""
    answers = {answer(one) for one in found}
    return answers.pop() if len(answers) == 1 else "undecided"


# --- Premises ------------------------------------------------------------------------------------


def tested(generators: Sequence[Evaluated], made: dict, test: str) -> pd.DataFrame | None:
    """Losses on test text of the checkpoint behind a clone (`generator` of its document)."""
    for run in generators:
        same = run.about["description"] == made["description"]
        if same and run.about["seed"] == made["seed"]:
            mine = run.losses[run.losses["target"] == test]
            if made["step"] in set(mine["step"]):
                return tables.select(mine, test, made["step"])
    return None


def equal_losses(
    claim: str,
    generators: Sequence[Evaluated],
    targets: dict,
    late: Sequence[str],
    early: Sequence[str],
    test: str,
) -> dict:
    """The premise: generators of both kinds, pair by pair, are equal in test loss within 0.05.

    Reports the pair that is farthest apart; holds if every pair does and fails if any does.
    """
    rows = []
    for one, two in zip(late, early, strict=False):
        found = [tested(generators, targets[name]["generator"], test) for name in (one, two)]
        if any(part is None for part in found):
            missing = [name for name, part in zip((one, two), found, strict=True) if part is None]
            reason = f"the generator of {', '.join(missing)} was not tested at its step"
            return verdicts.not_run(claim, reason)
        rows.append(verdicts.within(claim, *tables.paired_difference(*found), 0.0, EQUAL))
    farthest = max(rows, key=lambda row: abs(row["value"]))
    return farthest | {"holds": verdicts.together(rows)}


# --- Claims --------------------------------------------------------------------------------------


class Comparison(NamedTuple):
    """Two kinds that are compared: their targets, the intervals by share, premise and claim."""

    late: list[str]
    early: list[str]
    words: str
    found: dict[float, Interval]
    premise: dict
    claim: dict


def compare(
    name: str,
    losses: pd.DataFrame,
    targets: dict,
    generators: Sequence[Evaluated],
    test: str,
    pairs: Sequence[tuple[list[str], list[str]]],
    bootstraps: int = BOOTSTRAPS,
) -> list[Comparison]:
    """Each pair (late, early) of kinds, decided; `name` is the figure's.

    The variance over generators is pooled over the kinds of all pairs.
    """
    kinds = list(dict.fromkeys(tuple(kind) for pair in pairs for kind in pair))
    intervals: list[dict[float, Interval]] = [{} for _ in pairs]
    widths = [0.0 for _ in pairs]
    for share in SATURATION:
        read = dict(zip(kinds, read_kinds(losses, targets, kinds, share, bootstraps), strict=True))
        pooled = spread([kind for names, kind in read.items() if _own(names, kinds, targets)])
        for place, pair in enumerate(pairs):
            late, early = (read[tuple(kind)] for kind in pair)
            intervals[place][share] = interval(late, early, pooled)
            widths[place] = float(np.max([widths[place], late.width, early.width]))
    students = losses["seed"].nunique()
    return [
        _decided(name, targets, generators, test, pair, found, width, students)
        for pair, found, width in zip(pairs, intervals, widths, strict=True)
    ]


def _own(names: tuple[str, ...], kinds: list[tuple[str, ...]], targets: dict) -> bool:
    """Whether no kind before has runs of the same generators: what is pooled is counted once."""
    made = [_runs(kind, targets) for kind in kinds]
    return made.index(_runs(names, targets)) == kinds.index(names)


def _runs(names: Sequence[str], targets: dict) -> list[tuple[dict, int]]:
    generators = [targets[name]["generator"] for name in names]
    return [(made["description"], made["seed"]) for made in generators]


def kind_label(targets: dict, names: Sequence[str], chains: bool = True) -> str:
    """`n = 2, order 3, rank 160, from noise`: what is common to the clones of a kind.

    Without `chains` of their generators only.
    """
    document = targets[names[0]]
    text = labels.target(document, rank=labels.bounded(document["generator"]["description"]))
    text = text.partition(", stopped at")[0]
    stopped = not document["generator"]["last"]
    noise = chains and document["chain_init"] == "unigram"
    return f"{text}{', stopped' if stopped else ''}{', from noise' if noise else ''}"


def _decided(name, targets, generators, test, pair, found, width, students) -> Comparison:
    late, early = pair
    words = f"{kind_label(targets, late)} against {kind_label(targets, early)}"
    made = " and ".join(kind_label(targets, kind, chains=False) for kind in pair)
    premise = equal_losses(
        f"11, premise ({name}): equal test loss: {made}", generators, targets, late, early, test
    )
    causes = []
    if premise["holds"] != "yes":
        causes.append(f"equal loss: {premise['holds']}")
    if not width <= RESOLVED:
        causes.append("checkpoints do not resolve the times")
    scope = (
        f"{len(late)} and {len(early)} generators"
        if len(late) > 1 or len(early) > 1
        else "these two generators only"
    )
    values = "; ".join(f"{share:.0%}: d = {one}" for share, one in found.items())
    claim = (
        f"11 ({name}), on this corpus, at this scale: at equal loss the order sets the time, by a "
        f"factor above 1.25: {words} ({values}; {students} students, {scope})"
    )
    generator = targets[late[0]]["generator"]
    if labels.bounded(generator["description"]) and not generator["last"]:
        claim = f"{claim}; a stopped deep network may itself be of low effective order"
    first = found[SATURATION[0]]
    if causes:
        claim = f"{claim} [{'; '.join(causes)}]"
    holds = decide(list(found.values())) if not causes else "undecided"
    row = verdicts.row(
        claim, "paper", holds, first.value, first.error, f"> {BOUND:.3f}", first.half
    )
    return Comparison(list(late), list(early), words, found, premise, row)


def compared(student: Student, figure: str) -> dict[str, Comparison]:
    """The pairs of clones of equal loss and different order that the block has."""
    block, pairs = student.block, {}
    if "early_stopped" in block:
        pairs["stopped"] = ([block["early_stopped"]], [block["ladder"][0]])
    if "wide" in block:
        pairs["wide"] = ([block["ladder"][-1]], [block["wide"]])
    tested, test = (student.losses, student.targets, student.generators), block.get("test", "")
    made = compare(figure, *tested, test, list(pairs.values()))
    return dict(zip(pairs, made, strict=True))
