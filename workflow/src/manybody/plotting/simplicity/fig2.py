"""Figure 2: networks of one, two and three layers climb down the orders of interaction."""

from manybody import tables
from manybody.plotting.simplicity import staircase
from manybody.plotting.simplicity.staircase_runs import read_parts


def draw(files, block: dict, context: dict) -> staircase.Drawing:
    """The figure, what is drawn and the checks, from files; see the package's docstring."""
    (part,) = read_parts(files, block, context)
    theory = None
    if "exact" in block:
        paths = dict(zip(context["theory"], files["theory"], strict=True))
        theory, _ = tables.read_theory(paths[block["exact"]])
    return staircase.fig2(part, theory)
