"""Figure 2 by the paper's literal recipe for the Hamiltonian, in each of its readings."""

from manybody.claims.simplicity.staircase_runs import read_parts
from manybody.plotting.simplicity import staircase


def draw(files, block: dict, context: dict) -> staircase.Drawing:
    """The figure, what is drawn and the checks, from files; see the package's docstring."""
    return staircase.literal(read_parts(files, block, context))
