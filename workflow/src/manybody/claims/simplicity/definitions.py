"""Claims: do four definitions of order say that a student learns low before high?

Losses on clones and divergences from n-grams fall, and are learned when they have saturated; M_k
and multi-order interactions rise, and are learned when they have come to half their end.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import pandas as pd

from manybody.claims import labels, verdicts
from manybody.claims.saturation import saturation
from manybody.claims.simplicity.evaluated import read_student
from manybody.claims.simplicity.spectra import HalfTime, Spectra, read
from manybody.files import tables

ABSENT = 1e-3  # of the largest value: an order that has less in the truth is not followed
NEAR = 0.1  # of the largest value: how far the end may be from the truth


class Rung(NamedTuple):
    """One order of a definition.

    curves: of each run step, value, se. times: of each run when it is learned, with the standard
    error of the logarithm; none if it is known from the start. truth: the value of the true
    conditionals, NaN if it is not known.
    """

    label: str
    curves: dict[int, pd.DataFrame]
    times: dict[int, HalfTime]
    truth: float = math.nan


class Definition(NamedTuple):
    """What it is called, the `key` of its entry in the block, and its orders from low to high."""

    name: str
    key: str
    rungs: list[Rung]


class Student(NamedTuple):
    """A model on a source, judged by several definitions."""

    name: str
    definitions: list[Definition]


def read_students(files, block: dict, context: dict) -> list[Student]:
    """The block's students, from the files of a rule."""
    return [_student(files, part, context) for part in block["students"]]


def _student(files, part: dict, context: dict) -> Student:
    (spectra,) = read(files, [part["spectrum"]], context)
    found = []
    if part.get("clones"):
        found.append(_clones(files, part["clones"], context))
    found.append(_definition("order spectrum", "spectrum", spectra, "M", "M_{}"))
    if part.get("n_grams"):
        (divergences,) = read(files, [part["n_grams"]], context)
        for name in ("KL(p||q)", "KL(q||p)"):
            shown = f"n-grams, {name.replace('||', '‖')}"
            found.append(_definition(shown, "n_grams", divergences, name, "n = {}", falls=True))
    if part.get("interactions"):
        (interactions,) = read(files, [part["interactions"]], context)
        found.append(_definition("interactions", "interactions", interactions, "J", "m = {}"))
    about = spectra.about
    return Student(f"{labels.network(about['description'])} on {about['source']}", found)


def _clones(files, part: dict, context: dict) -> Definition:
    student, rungs = read_student(files, part, context), []
    curves = tables.learning_curves(student.losses)
    for target in part["ladder"]:
        mine = curves[curves["target"] == target].rename(columns={"loss": "value", "loss_se": "se"})
        runs = {seed: run.sort_values("step") for seed, run in mine.groupby("seed")}
        times = {seed: _saturated(run) for seed, run in runs.items()}
        document = student.targets[target]
        # A target that is no clone of a model is a law of its own, and has a name alone.
        label = labels.short(document).replace("\n", " ") if "generator" in document else target
        rungs.append(Rung(f"order {label}" if label[0].isdigit() else label, runs, times))
    return Definition("clones", "clones", rungs)


def _definition(
    name: str, key: str, spectra: Spectra, quantity: str, label: str, falls: bool = False
) -> Definition:
    first = next(iter(spectra.runs.values()))
    rungs = []
    for order in sorted(first["order"][first["quantity"] == quantity].unique()):
        curves = {seed: spectra.curve(seed, quantity, order) for seed in spectra.runs}
        if falls:
            times = {seed: _saturated(curve) for seed, curve in curves.items()}
            # What a run begins with at its least, as a uniform law may be, it does not learn.
            times = {} if any(time.step == 0 for time in times.values()) else times
        else:
            times = {seed: spectra.half_time(seed, order, quantity) for seed in curves}
        truth = first["quantity"].eq(f"truth {quantity}") & first["order"].eq(order)
        value = float(first["value"][truth].iloc[0]) if truth.any() else math.nan
        rungs.append(Rung(label.format(order), curves, times, value))
    # Of an order that the data hardly have, there is nothing to be learned.
    largest = max(rung.truth for rung in rungs)
    return Definition(name, key, [one for one in rungs if not one.truth < ABSENT * largest])


def _saturated(curve: pd.DataFrame) -> HalfTime:
    """The checkpoint of saturation; the one before it sets the error."""
    step, spacing = saturation(curve["step"], curve["value"])
    return HalfTime(step, spacing / math.sqrt(12) / step if step else math.nan)


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
