"""Claims: do four definitions of order say that a student learns low before high?

Losses on clones and divergences from n-grams fall, and are learned when they have saturated; M_k
and multi-order interactions rise, and are learned when they have come to half their end.
"""

import math
from itertools import pairwise

import pandas as pd

from manybody.claims import verdicts
from manybody.claims.simplicity.definitions_runs import Definition, Student, read_students

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
            mine = _in_time(student, definition)
            rows += _truth(student, definition) + mine
            if mine:  # the last is that of the lowest and the highest order
                answers[definition.name] = mine[-1]["holds"]
        rows += _alike(student, answers)
    return rows


def _truth(student: Student, definition: Definition) -> list[dict]:
    """Whether what the runs end with is that of the true conditionals, where it is known."""
    largest = max(rung.truth for rung in definition.rungs)
    if math.isnan(largest):
        return []
    apart = max(
        abs(curve["value"].iloc[-1] - rung.truth) / largest
        for rung in definition.rungs
        for curve in rung.curves.values()
    )
    claim = f"definitions, {student.name}, {definition.name}: the end is that of the truth"
    return [verdicts.bounded(claim, "<", apart, 0.0, NEAR)]


def _in_time(student: Student, definition: Definition) -> list[dict]:
    """Each order is learned before the next, and last the lowest before the highest."""
    rungs = [rung for rung in definition.rungs if rung.times]
    steps = [*pairwise(rungs)] + [(rungs[0], rungs[-1])] * (len(rungs) > 2)
    rows = []
    for low, high in steps:
        pairs = [(low.times[seed], high.times[seed]) for seed in low.times]
        later = [math.log(late.step / early.step) for early, late in pairs]
        errors = [math.hypot(early.error, late.error) for early, late in pairs]
        runs = f"{len(pairs)} run{'s' if len(pairs) > 1 else ''}"
        claim = (
            f"definitions, {student.name}, {definition.name}: {low.label} is learned before "
            f"{high.label} (log of the ratio of steps, {runs})"
        )
        # One run answers for itself, by the error of its contexts and checkpoints.
        if len(pairs) > 1:
            rows.append(verdicts.positive(claim, later, max(errors)))
        else:
            rows.append(verdicts.gap(claim, later[0], errors[0]))
    return rows


def _alike(student: Student, answers: dict[str, str]) -> list[dict]:
    """Whether the definitions answer alike; the value is the share of them that say low first."""
    if len(answers) < 2:
        return []
    given = ", ".join(f"{name} {answer}" for name, answer in answers.items())
    found = set(answers.values())
    holds = verdicts.decided("undecided" not in found and len(found) == 1, {"yes", "no"} <= found)
    claim = f"definitions, {student.name}: all definitions order the learning alike [{given}]"
    share = sum(answer == "yes" for answer in answers.values()) / len(answers)
    return [verdicts.row(claim, "paper", holds, share)]
