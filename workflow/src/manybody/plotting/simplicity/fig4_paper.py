"""Figure 4 with clones of the paper's own generators, whose LayerNorm makes their order nominal."""

from manybody.plotting.simplicity import fig4, learning

NOMINAL = "fig. 4, variant paper"


def draw(files, block: dict, context: dict) -> learning.Drawing:
    """As `fig4.draw`; of the checks, those that read a clone of nominal order.

    The others, on original text and on controls, are those of figure 4: one row each is enough.
    """
    figure, drawn, found = fig4.draw(files, block, context)
    found = found[found["claim"].str.contains("nominal order", regex=False)]
    claims = found["claim"].str.replace("fig. 4", NOMINAL, regex=False)
    return figure, drawn, found.assign(claim=claims).reset_index(drop=True)
