"""Claims: does a student of a known law end with the exact losses, and which order is learned when?

The order is asked three times: of the losses on cuts of the law, whose exact values are known, of
the half-times of the student's own M_k, and of clones of generators that were trained on the law.
"""

import math
from itertools import pairwise

import numpy as np
import pandas as pd

from manybody.claims import verdicts
from manybody.claims.saturation import SATURATION
from manybody.claims.simplicity import comparison
from manybody.claims.simplicity.comparison import BOUND, RESOLVED, Interval
from manybody.claims.simplicity.regression import consistent
from manybody.claims.simplicity.truths_runs import Ladder, Rung, Student, log_ratios, read_students

CUT = 0.02  # nats per token from the exact loss on a cut
WHOLE = 0.01  # and on the law that the student is trained on


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from files; see the package's docstring."""
    return verdicts.table(claims(read_students(files, block, context)))


def claims(students: list[Student]) -> list[dict]:
    """The rows, student by student."""
    return [row for student in students for row in of_student(student)]


def of_student(student: Student) -> list[dict]:
    """Ends, then order in time by each ladder and by M_k, then what agrees with what."""
    exact = [ladder for ladder in student.ladders if ladder.known]
    clones = [ladder for ladder in student.ladders if not ladder.known]
    rows = list({row["claim"]: row for one in exact for row in ends(student, one)}.values())
    steps = steps_of(student)
    halves = [half_times(student, low, high) for low, high in steps]
    rows += halves
    answers = {}
    for ladder in student.ladders:
        mine = [in_time(student, ladder, low, high) for low, high in steps]
        answers[ladder.label] = mine
        rows += mine
    for ladder in student.ladders:
        claim = f"the losses on {ladder.label} stop falling in the order of the half-times of M_k"
        rows.append(alike(student, claim, answers[ladder.label], halves))
    for one in clones:
        for other in exact:
            claim = f"the losses on {one.label} stop falling in the order of those on {other.label}"
            rows.append(alike(student, claim, answers[one.label], answers[other.label]))
            rows += [together(student, one, other, place) for place in range(len(other.rungs))]
    return rows


def steps_of(student: Student) -> list[tuple[int, int]]:
    """Neighbouring rungs, and the first with the last."""
    rungs = len(student.halves)
    return [*pairwise(range(rungs)), *([(0, rungs - 1)] if rungs > 2 else [])]


def ends(student: Student, ladder: Ladder) -> list[dict]:
    """At the last checkpoint the loss on each set is that of the exact conditionals."""
    rows = []
    for place, rung in enumerate(ladder.rungs):
        whole = place == len(ladder.rungs) - 1
        where = rung.label if whole else f"{ladder.label}: {rung.label}"
        value, runs = float(rung.apart.mean()), len(rung.apart)
        by_run = rung.apart.std(ddof=1) / math.sqrt(runs) if runs > 1 else math.nan
        width = math.hypot(verdicts.margin(by_run, runs), verdicts.margin(rung.apart_error))
        bound = WHOLE if whole else CUT
        holds = verdicts.decided(abs(value) + width < bound, abs(value) - width > bound)
        claim = f"truths, {student.name}, {where}: the last loss is that of the exact conditionals"
        error = math.hypot(by_run, rung.apart_error)
        rows.append(verdicts.row(claim, "paper", holds, value, error, 0, bound))
    return rows


def half_times(student: Student, low: int, high: int) -> dict:
    """M_k comes to half its end before M_l."""
    later, error = log_ratios(student.halves[low], student.halves[high])
    claim = (
        f"truths, {student.name}: M_{low + 1} comes to half its end before M_{high + 1} (log of "
        f"the ratio of steps, {len(later)} runs)"
    )
    return verdicts.positive(claim, later, error)


def interval(late: Rung, early: Rung, share: float) -> Interval:
    """log t of one rung less that of another, over runs and sequences."""
    return comparison.interval(late.kinds[share], early.kinds[share], (math.nan, 0))


def unresolved(*rungs: Rung) -> float:
    """How far apart (log) checkpoints lie that are too far apart where the losses stop falling,
    of all rungs together; 0 where they are near enough."""
    widths = [np.max([kind.width for kind in rung.kinds.values()]) for rung in rungs]
    return 0.0 if all(width <= RESOLVED for width in widths) else float(sum(widths))


def in_time(student: Student, ladder: Ladder, low: int, high: int) -> dict:
    """The loss on a rung stops falling before that on a higher one, by both definitions.

    Where checkpoints are far apart, the times have to differ by more than lies between these.
    """
    early, late = ladder.rungs[low], ladder.rungs[high]
    found = {share: interval(late, early, share) for share in SATURATION}
    slack = unresolved(early, late)
    answers = [verdicts.decided(one.low > slack, one.high < -slack) for one in found.values()]
    claim = (
        f"truths, {student.name}, {ladder.label}: the loss on {early.label} stops falling before "
        f"that on {late.label}"
    )
    return _decided(claim, found, answers, slack, "> 0")


def together(student: Student, clones: Ladder, exact: Ladder, place: int) -> dict:
    """The losses on a clone and on the cut that it stands for stop falling at one time."""
    clone, cut = clones.rungs[place], exact.rungs[place]
    found = {share: interval(clone, cut, share) for share in SATURATION}
    claim = (
        f"truths, {student.name}: the loss on {clone.label} ({clones.label}) stops falling with "
        f"that on {cut.label} ({exact.label}), within a factor 1.25"
    )
    slack = unresolved(clone, cut)
    answers = [
        verdicts.decided(
            slack == 0 and abs(one.value) + one.half < BOUND,
            abs(one.value) - one.half > BOUND + slack,
        )
        for one in found.values()
    ]
    return _decided(claim, found, answers, slack, "0")


def _decided(claim: str, found: dict, answers: list[str], slack: float, expected: str) -> dict:
    values = "; ".join(f"{share:.0%}: log of the ratio {one}" for share, one in found.items())
    claim = f"{claim} ({values})"
    holds, first = consistent(answers), found[SATURATION[0]]
    if slack != 0 and holds == "undecided":
        claim = f"{claim} [checkpoints do not resolve the times]"
    holds = holds if np.isfinite(first.value) else "undecided"
    return verdicts.row(claim, "paper", holds, first.value, first.error, expected, first.half)


def alike(student: Student, claim: str, one: list[dict], other: list[dict]) -> dict:
    """Whether two orders are the same: no if they put any two rungs the other way round.

    The value is the share of pairs of which both say the same.
    """
    pairs = [(first["holds"], second["holds"]) for first, second in zip(one, other, strict=True)]
    open_ = sum("undecided" in pair for pair in pairs)
    against = sum({*pair} == {"yes", "no"} for pair in pairs)
    agree = len(pairs) - open_ - against
    text = (
        f"truths, {student.name}: {claim} [{agree} pairs alike, {against} not, {open_} undecided]"
    )
    holds = verdicts.decided(agree == len(pairs), against > 0)
    return verdicts.row(text, "paper", holds, agree / len(pairs))
