"""Figure 5: a causal student learns low orders first."""

from manybody.claims.simplicity.comparison import read_generators
from manybody.plotting.simplicity import learning


def draw(files, block: dict, context: dict) -> learning.Drawing:
    """The figure, what is drawn and the checks, from files; see the package's docstring."""
    generators = read_generators(files, block.get("generators", []), context)
    return learning.fig5(*learning.read(files, block, context), block, generators)
