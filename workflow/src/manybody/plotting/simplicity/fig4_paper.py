"""Figure 4 with clones of the paper's own generators, whose LayerNorm makes their order nominal."""

from manybody.plotting.simplicity.fig4 import draw

__all__ = ["draw"]
