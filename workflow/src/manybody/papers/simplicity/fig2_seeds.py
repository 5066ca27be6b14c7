"""Figure 2, seed by seed: how often the deepest network gets there, by each training recipe."""

from dataclasses import dataclass

import pandas as pd

from manybody.papers import claims as records
from manybody.papers import style
from manybody.papers.simplicity import fig2, staircase
from manybody.papers.simplicity.fig2 import Statement
from manybody.papers.simplicity.staircase import Staircase

COLUMNS = 3  # of panels
ARRIVALS = Statement(
    "The deepest network comes to the true conditionals (figure 2b)", fig2.arrivals, fig2.SEEDS
)


class Block(staircase.StaircaseBlock):
    """As fig2, with more seeds."""


class Inputs(staircase.Inputs):
    """The same as fig2, and the figure that has the claims about the runs by the first recipe."""

    claims_reported_by: str | None = None

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        deepest = block.networks[-1].model_dump() if block.networks else None
        others = [
            name
            for name, other in config["figures"]["simplicity"].items()
            if other and "networks" in other and "protocols" not in other
            if (other["source"], other["networks"][-1]) == (block.source, deepest)
        ]
        found = super().of(block, config)
        reported = others[0] if block.protocols and others else None
        return found.model_copy(update={"claims_reported_by": reported})


@dataclass(frozen=True)
class Tables:
    """What is drawn; runs and lines; whether claims about the first recipe stand elsewhere."""

    drawn: pd.DataFrame
    found: Staircase
    reported: bool


def tables(inputs: Inputs, block: Block) -> Tables:
    """The deepest network's runs by each recipe, their lines and classes."""
    found = staircase.read(inputs)
    groups = [found.deepest, *found.protocols]
    parts = [*fig2.losses(groups), *fig2.ends(found, groups), *fig2.numbers(found)]
    return Tables(style.gathered(parts), found, inputs.claims_reported_by is not None)


def claims(tables: Tables) -> list[records.Claim]:
    """Which recipes reach the data's order; of the first recipe what no other figure has."""
    names = ["recipes"] if tables.reported else ["three-layers", "layer-order", "recipes"]
    known = fig2.STATEMENTS | {"three-layers": ARRIVALS}
    return fig2.claims_of("fig2_seeds", {name: known[name] for name in names}, tables.found)


@style.in_house_style
def draw(tables: Tables):
    """A panel of losses for the deepest network by each recipe, each seed coloured by its end."""
    found, lines = tables.found, tables.found.lines
    groups = [found.deepest, *found.protocols]
    columns = min(len(groups), COLUMNS)
    rows = -(-len(groups) // columns)
    figure = style.new(2, 2.3 * rows + 1.0)
    places = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for axes, group in zip(places, groups, strict=False):
        fig2.draw_losses(axes, [group], lines, by_end=True)
        reached = f"{group.count('reached')} of {len(group.runs)} seeds"
        title = f"{group.label}: {reached} reach order {lines.truth.order}"
        axes.set(title=title, xlabel="training epoch")
    for axes in places[len(groups) :]:
        axes.axis("off")
    for axes in places[::columns]:
        axes.set_ylabel("held-out loss (nats per token)")
    fig2.label_lines(places[len(groups) - 1], lines)
    fig2.legend_of_ends(figure, lines, groups, loc="outside lower center", ncols=3)
    return figure


def caption(inputs: Inputs, block: Block) -> str:
    """Says what is shown, what the eye sees, how it was made."""
    source, runs = inputs.source, [inputs.networks[-1], *inputs.protocols]
    recipes = "; ".join(f"*{one.runs[0].model}*, {one.recipe}" for one in runs)
    return (
        "Figure 2, seed by seed: how often the deepest network reaches the order of its data.\n\n"
        "Held-out loss of every seed, a panel for each recipe; lines as in figure 2. A curve has "
        "the colour of the line on which its run ended, grey between lines or above them, orange "
        "where it diverged.\n\n"
        f"Trained on {source['sequences']['train']} sequences of a Hamiltonian with interactions "
        f"of order {source['order']}, L = {source['length']}, \\|V\\| = {source['vocabulary']}: "
        f"{recipes}.\n"
    )
