"""Figure 2: networks of one, two and three layers climb down the orders of interaction."""

from manybody.claims.simplicity.staircase_runs import read_exact, read_parts
from manybody.plotting.simplicity import staircase


def draw(files, block: dict, context: dict) -> staircase.Drawing:
    """The figure, what is drawn and the checks, from files; see the package's docstring."""
    (part,) = read_parts(files, block, context)
    return staircase.fig2(part, read_exact(files, block, context))
