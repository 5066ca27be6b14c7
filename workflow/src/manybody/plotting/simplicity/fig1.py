"""Figure 1, right: losses on the clones against the training epoch."""

from manybody.plotting.simplicity import learning


def draw(files, block: dict, context: dict) -> learning.Drawing:
    """The figure, what is drawn and the checks, from files; see the package's docstring."""
    return learning.fig1(*learning.read(files, block, context), block, context.get("elsewhere"))
