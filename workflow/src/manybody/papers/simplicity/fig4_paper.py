"""Figure 4 with clones of the paper's own generators, whose LayerNorm makes their order nominal."""

from manybody.papers import claims as records
from manybody.papers.simplicity import learning
from manybody.papers.simplicity.fig4 import Block as Figure4, Inputs, Tables, draw, tables

__all__ = ["Block", "Inputs", "Tables", "caption", "claims", "draw", "tables"]


class Block(Figure4):
    """As fig4, for clones of generators of variant paper."""


def claims(tables: Tables) -> list[records.Claim]:
    """Those about the ladder; the others, on original text and controls, are those of figure 4."""
    ladder = {name: parts for name, parts in tables.paper.items() if name != "original-text"}
    scope = f"{tables.student.scope}, generators with LayerNorm"
    return learning.claims("fig4_paper", ladder, scope, "figure 4")


def caption(inputs: Inputs, block: Block) -> str:
    return (
        "Figure 4 with clones of the paper's own generators: factored attention with LayerNorm "
        "between layers.\n\n"
        "A LayerNorm divides by a standard deviation, which is no polynomial of the tokens: the "
        "orders in the legend are nominal. Panels are those of figure 4, as are the clone of BERT "
        "and the original text: compare the order in which the losses stop falling.\n\n"
        f"{inputs.made()}\n"
    )
