"""Figure 5: a causal student learns low orders first, by its next-token loss. As figure 4."""

from manybody.papers import claims as records
from manybody.papers.simplicity import fig4
from manybody.papers.simplicity.fig4 import Inputs, Tables, draw, tables

__all__ = ["Block", "Inputs", "Tables", "caption", "claims", "draw", "tables"]


class Block(fig4.Block):
    """As fig4, for a causal student."""


def claims(tables: Tables) -> list[records.Claim]:
    return fig4.claims(tables, "fig5")


def caption(inputs: Inputs, block: Block) -> str:
    return (
        "Figure 5: next-token losses of a causal student on the same clones, at "
        f"positions 2 to L.\n\n{fig4.panels(block)}{inputs.made()}\n"
    )
