"""A student that learns orders at planted steps, by every definition."""

import numpy as np
import pandas as pd
import planted_losses
import planted_spectra
from planted_spectra import ENDS, HALVES, STEPS, rise, rows

from manybody.io import tables

FALLS = {1: 60.0, 2: 150.0, 3: 400.0}  # steps at which divergences have half fallen
SIZES = {0: 500.0, 6: 900.0, 12: 1400.0}  # half-times of J
LADDER = ["n2", "n4", "bert"]
KINDS = ("KL(p||q)", "KL(q||p)")


def rising(quantity, halves, ends, truth=None):
    found = []
    for step in STEPS:
        for order, end in ends.items():
            value = rise(step, halves[order], end)
            found.append(rows(step, quantity, order, value, 0.01 * value + 1e-9))
    return found + at_the_end(quantity, truth)


def falling(quantity, middles, truth=None):
    """From 2 nats to 0.5 / n, and a little up again."""
    found = []
    for step in STEPS:
        for order, middle in middles.items():
            fallen = 1 / (1 + (step / middle) ** 4)
            value = 0.5 / order + (2 - 0.5 / order) * fallen + 0.02 * step / 3000
            found.append(rows(step, quantity, order, value, 0.003))
    return found + at_the_end(quantity, truth)


def at_the_end(quantity, truth):
    return [rows(STEPS[-1], f"truth {quantity}", k, v, 0.0) for k, v in (truth or {}).items()]


def make(folder, halves=HALVES, falls=FALLS, sizes=SIZES, seeds=(0, 1, 2), truth=None, clones=True):
    """Files, block and context of one student; truth: of M_k, by k."""
    ends = {size: 2.0 / (1 + size) for size in sizes}
    made = {
        "one": rising("M", halves, ENDS, truth),
        "one-n-grams": [row for kind in KINDS for row in falling(kind, falls)],
        "one-interactions": rising("J", sizes, ends),
    }
    part = {"spectrum": "one", "n_grams": "one-n-grams", "interactions": "one-interactions"}
    files, context = {}, {"runs": [], "clones": [], "targets": {}}
    if clones:
        part["clones"] = {"evaluation": "bert", "control": "original", "ladder": LADDER}
        files, context = planted_losses.written(folder)(part["clones"])
    files["spectra"], context["spectra"] = [], []
    for name, found in made.items():
        for seed in seeds:
            path = folder / name / f"seed-{seed}.parquet"
            table = pd.DataFrame(found)[tables.SPECTRA_SCHEMA.names]
            planted_spectra.write(path, table, name, seed)
            files["spectra"].append(path)
            context["spectra"].append((name, seed))
    return files, {"students": [part]}, context


def reversed_steps(steps):
    return dict(zip(steps, np.flip(list(steps.values())), strict=True))
