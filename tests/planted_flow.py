"""A short gradient flow of two layers, computed once."""

from functools import cache

from manybody.papers.readings import Table
from manybody.papers.simplicity import gradient_flow
from manybody.theory import gradient_flow as theory

ENTRY = {
    "kind": "gradient-flow",
    "length": 3,
    "time": 40.0,
    "scales": [0.1, 0.2],
    "decay": 0.2,
    "skewness": 0.6,
    "samples": 5000,
    "seed": 3,
}


@cache
def computed():
    """The rows of the flow, and what is said of them; not to be changed."""
    return theory.compute(ENTRY)


def tables():
    return gradient_flow.tables_of(Table(*computed()))
