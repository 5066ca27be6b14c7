"""Planted times of terms, by the log-linear form."""

import numpy as np
import pandas as pd

from manybody.measure.clone_times import Saturation
from manybody.papers.simplicity import order


def simulated(
    random, cells, students, *, order=1.1, information=-0.6, nested=0.0, sigma=0.4, tau=0.3,
    slopes=0.0, curvature=0.0, last=1e9, alpha=4.5,
):  # fmt: skip
    """Times of terms (order, c, nested) of each cell. slopes: sd over students of what an order
    costs; curvature: of log t in log c."""
    rows = []
    for cell, terms in cells.items():
        for student in range(students):
            start, cost = alpha + tau * random.normal(), order + slopes * random.normal()
            for term, (size, c, inside) in enumerate(terms):
                x = np.log(c / 0.2)
                log = start + cost * (size - 2) + information * x + curvature * x**2
                log += nested * inside + sigma * random.normal()
                rows.append((cell, student, str(term), size, c, inside, np.exp(log)))
    names = ["cell", "student", "term", "order", "information", "nested", "time"]
    found = pd.DataFrame(rows, columns=names)
    return found.assign(time=found["time"].clip(upper=last), reached=found["time"] <= last)


PAIRS, TRIPLES = [(2, 0.2, False)] * 3, [(3, 0.2, False)] * 2
CELLS = {  # by group
    "ladder": {
        "L = 12": PAIRS + TRIPLES,
        **{f"c = {c:g}": [(2, c, False)] * 3 + TRIPLES for c in (0.05, 0.0125, 0.0031)},
    },
    "lengths": {"L = 24": 2 * (PAIRS + TRIPLES)},
    "nested": {"nested": PAIRS[:2] + TRIPLES + [(3, 0.2, True)] * 2},
    "alone": {"quads": [(4, 0.2, False)] * 3, "a quad, pairs": [*PAIRS, (4, 0.2, False)]},
    "controls": {"SGD": PAIRS + TRIPLES, "masks of 15 %": PAIRS + TRIPLES},
}


def times(students=6, groups=tuple(CELLS), **planted):
    """Times of cells of each group, at both shares that are left, which are not reached if late."""
    random, parts = np.random.default_rng(0), []
    for group in groups:
        given = dict(nested=-0.5, last=9000 if group == "alone" else 2500) | planted
        half = simulated(random, CELLS[group], students, **given)
        late = half.assign(time=1.5 * half["time"])
        parts += [part.assign(group=group, left=left) for part, left in ((half, 0.5), (late, 0.05))]
    return pd.concat(parts, ignore_index=True)


def of_figure(bootstraps=20, **planted):
    """Tables of the whole figure: clones that are as predicted, one of them not, and one of which
    no gain is predicted; and one of a trained generator."""
    given = {f"pairs x {s}": (4 + s, 0.3, 4 + s + 0.1, False, 2.0) for s in (0.25, 0.5, 1.0)}
    given |= {"triples": (6.0, 0.3, 6.5, False, 3.0), "none": (*[np.nan] * 3, False, np.nan)}
    given["two layers"] = (5.0, 0.3, 5.2, True, 2.4)
    clones = {name: Saturation(*one) for name, one in given.items()}
    return order.tables_of(times(**planted), clones, bootstraps=bootstraps)
