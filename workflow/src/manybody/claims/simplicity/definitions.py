"""Claims: do four definitions of order say that a student learns low before high?

Losses on clones and divergences from n-grams fall, and are learned when they have saturated; M_k
and multi-order interactions rise, and are learned when they have come to half their end.
Definitions order the learning alike where all say of the lowest order that it is learned before the
highest by a factor above 1.25, or all say that it is not.
"""

import math
from itertools import pairwise

import numpy as np
import pandas as pd

from manybody.claims import verdicts
from manybody.claims.simplicity.comparison import BOUND
from manybody.claims.simplicity.definitions_runs import Definition, Rung, Student, read_students

NEAR = 0.1  # of the largest value: how far the end may be from the truth


def judge(files, block: dict, context: dict) -> pd.DataFrame:
    """The claims, from files; see the package's docstring."""
    return verdicts.table(claims(read_students(files, block, context)))


def claims(students: list[Student]) -> list[dict]:
    """Of each student: its ends against the truth, the order in time, and whether all agree."""
    rows = []
    for student in students:
        answers = {}
        for definition in student.definitions:
            rows += _truth(student, definition) + _in_time(student, definition)
            learned = [rung for rung in definition.rungs if rung.times]
            if len(learned) > 1:
                answers[definition.name] = _first_by_far(learned[0], learned[-1])
        rows += _alike(student, answers)
    return rows


def _truth(student: Student, definition: Definition) -> list[dict]:
    """Whether what the runs end with is that of the true conditionals, where it is known."""
    largest = max(rung.truth for rung in definition.rungs)
    if math.isnan(largest):
        return []
    runs = list(definition.rungs[0].curves)
    found = np.array(
        [max(_apart(rung, seed, largest) for rung in definition.rungs) for seed in runs]
    )
    apart, contexts = found.mean(0)
    spread = found[:, 0].std(ddof=1) / math.sqrt(len(runs)) if len(runs) > 1 else 0.0
    claim = f"definitions, {student.name}, {definition.name}: the end is that of the truth"
    # Model and truth have the same contexts: their errors together are an upper bound.
    width = _width(spread, len(runs), contexts)
    holds = verdicts.decided(apart + width < NEAR, apart - width > NEAR)
    error = math.hypot(spread, contexts)
    return [verdicts.row(claim, "paper", holds, apart, error, f"< {NEAR:g}", width)]


def _width(spread: float, runs: int, contexts: float) -> float:
    """Half of the interval of a mean over runs, with the error that all runs have in common."""
    of_runs = verdicts.margin(spread, runs) if runs > 1 else 0.0
    return math.hypot(of_runs, verdicts.margin(contexts))


def _apart(rung: Rung, seed: int, largest: float) -> tuple[float, float]:
    """How far a run's end is from the truth, and the error that contexts give, over `largest`."""
    end = rung.curves[seed].iloc[-1]
    error = math.hypot(np.nan_to_num(end["se"]), rung.truth_error)
    return abs(end["value"] - rung.truth) / largest, error / largest


def _in_time(student: Student, definition: Definition) -> list[dict]:
    """Each order is learned before the next, and last the lowest before the highest."""
    rungs = [rung for rung in definition.rungs if rung.times]
    steps = [*pairwise(rungs)] + [(rungs[0], rungs[-1])] * (len(rungs) > 2)
    rows = []
    for low, high in steps:
        later, error = _later(low, high)
        runs = f"{len(later)} run{'s' if len(later) > 1 else ''}"
        claim = (
            f"definitions, {student.name}, {definition.name}: {low.label} is learned before "
            f"{high.label} (log of the ratio of steps, {runs})"
        )
        # One run answers for itself, by the error of its contexts and checkpoints.
        if len(later) > 1:
            rows.append(verdicts.positive(claim, later, error))
        else:
            rows.append(verdicts.gap(claim, later[0], error))
    return rows


def _later(low: Rung, high: Rung) -> tuple[list[float], float]:
    """Log of the ratio of the times of `high` and `low` for each run, and the largest error."""
    pairs = [(low.times[seed], high.times[seed]) for seed in low.times]
    later = [math.log(late.step / early.step) for early, late in pairs]
    return later, max(math.hypot(early.error, late.error) for early, late in pairs)


def _first_by_far(low: Rung, high: Rung) -> str:
    """Whether `low` is learned before `high` by a factor above 1.25: yes or no by an interval."""
    later, error = _later(low, high)
    mean = float(np.mean(later))
    spread = np.std(later, ddof=1) / math.sqrt(len(later)) if len(later) > 1 else 0.0
    width = _width(spread, len(later), error)
    return verdicts.decided(mean - width > BOUND, mean + width < BOUND)


def _alike(student: Student, answers: dict[str, str]) -> list[dict]:
    """Whether the definitions answer alike; the value is the share of them that say low first."""
    if len(answers) < 2:
        return []
    given = ", ".join(f"{name} {answer}" for name, answer in answers.items())
    found = set(answers.values())
    holds = verdicts.decided("undecided" not in found and len(found) == 1, {"yes", "no"} <= found)
    claim = (
        f"definitions, {student.name}: all definitions order the learning alike, the lowest order "
        f"before the highest by a factor above 1.25 or not [{given}]"
    )
    share = sum(answer == "yes" for answer in answers.values()) / len(answers)
    return [verdicts.row(claim, "paper", holds, share)]
