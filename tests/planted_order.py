"""Planted times of terms, by the log-linear form."""

import numpy as np
import pandas as pd


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
