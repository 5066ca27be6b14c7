"""What four definitions of order measured of students: the input of figure and claims."""

import math
from typing import NamedTuple

import pandas as pd

from manybody.claims import labels
from manybody.claims.saturation import saturation
from manybody.claims.simplicity.evaluated import read_student
from manybody.claims.simplicity.spectra import HalfTime, Spectra, read
from manybody.io import tables

ABSENT = 1e-3  # of the largest value: an order that has less in the truth is not followed


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
    truth_error: float = 0.0


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
        known = first.loc[truth, ["value", "se"]].fillna(0.0).to_numpy(float).tolist()
        rungs.append(Rung(label.format(order), curves, times, *(known[0] if known else ())))
    # Of an order that the data hardly have, there is nothing to be learned.
    largest = max(rung.truth for rung in rungs)
    return Definition(name, key, [one for one in rungs if not one.truth < ABSENT * largest])


def _saturated(curve: pd.DataFrame) -> HalfTime:
    """The checkpoint of saturation; the one before it sets the error."""
    step, spacing = saturation(curve["step"], curve["value"])
    return HalfTime(step, spacing / math.sqrt(12) / step if step else math.nan)
