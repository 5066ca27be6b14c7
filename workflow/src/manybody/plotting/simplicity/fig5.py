"""Figure 5: a causal student learns low orders first, by its next-token loss. As figure 4."""

from manybody.plotting.simplicity.fig4 import draw

__all__ = ["draw"]
