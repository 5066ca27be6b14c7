"""Figure 2: networks of one, two and three layers climb down the orders of interaction."""

from dataclasses import dataclass

import pandas as pd

from manybody.papers import claims as records
from manybody.papers import style
from manybody.papers.simplicity import staircase, staircase_claims, staircase_panels
from manybody.papers.simplicity.staircase import Inputs, Staircase


class Block(staircase.StaircaseBlock):
    """Networks of growing depth on samples of a known Hamiltonian."""


@dataclass(frozen=True)
class Tables:
    """What is drawn, and the runs and lines that are judged."""

    drawn: pd.DataFrame
    found: Staircase


def tables(inputs: Inputs, block: Block) -> Tables:
    """All runs, their lines, classes and plateaus."""
    found = staircase.read(inputs)
    return Tables(staircase_panels.panels(found), found)


def claims(tables: Tables) -> list[records.Claim]:
    """What the paper says of the plateaus, the ends and the order of the layers."""
    found, judged = tables.found, staircase_claims
    claims = [
        judged.claim(
            found,
            "fig2/lines",
            "Conditionals of each order of interaction have a lower loss than those of the order "
            "below (figure 2b)",
            judged.lines(found),
            "a line lies above the next by three standard errors, or on the training set",
        ),
        judged.claim(
            found,
            "fig2/shallow-networks",
            "One layer ends at the 2-body line; two layers rest there and end at the 3-body line "
            "(figure 2b)",
            judged.shallow(found),
            judged.NEAR_LINES,
        ),
        judged.claim(
            found,
            "fig2/three-layers",
            "The deepest network rests at each line below the order of the data, then comes to the "
            "true conditionals (figure 2b)",
            [*judged.plateaus(found), *judged.arrivals(found)],
            judged.SEEDS,
        ),
        judged.layers_claim(found, "fig2"),
    ]
    return claims + judged.recipes_claim(found, "fig2")


@style.in_house_style
def draw(tables: Tables):
    """(b) losses, (c) displacements below, (d) all ends beside, on the same axis of losses."""
    from matplotlib.lines import Line2D

    found, panels = tables.found, staircase_panels
    figure = style.new(2, 4.9)
    mosaic = [["b", "d"], ["c", "words"]]
    axes = figure.subplot_mosaic(mosaic, width_ratios=(2.1, 1), height_ratios=(1.4, 1))
    axes["c"].sharex(axes["b"])
    axes["d"].sharey(axes["b"])
    panels.draw_losses(axes["b"], tables.drawn, found.networks, found.lines)
    panels.draw_ends(axes["d"], found.groups, found.lines)
    panels.draw_displacements(axes["c"], tables.drawn)
    axes["b"].set(title=f"(b) {panels.title(found)}", ylabel="held-out loss (nats per token)")
    axes["b"].tick_params(labelbottom=False)
    panels.depth_legend(axes["b"], found.networks, columns=3)
    deepest = found.deepest
    axes["c"].set(title=f"(c) n = {deepest.layers}, seed {deepest.chosen}", xlabel="training epoch")
    axes["d"].set(title="(d) every run at the end")
    axes["d"].tick_params(labelleft=False)
    axes["words"].axis("off")
    shown = [deepest, *found.protocols]
    ring = Line2D([], [], linestyle="", label="the run drawn thick", **panels.RING)
    axes["words"].legend(
        handles=[*panels.class_handles(shown, found.lines), ring],
        title=panels.class_title(shown),
        alignment="left",
        loc="center left",
        bbox_to_anchor=(-0.1, 0.5),
        handletextpad=0.2,
        borderpad=0,
    )
    return figure


def caption(inputs: Inputs, block: Block) -> str:
    """What is shown, what the eye sees, how it was made."""
    source = inputs.source
    deepest = inputs.networks[-1]
    return (
        "Stacked layers of factored attention climb down the orders of interaction, one plateau "
        "after the other.\n\n"
        "**(b)** Held-out loss of every seed; thick: the lower median of the final losses. Dashed: "
        "single sites, and the best conditionals of each order; dotted: the true conditionals. "
        "**(c)** Mean square displacement of the layers of the thick run; above the grey line a "
        "layer has moved. **(d)** Where every run ended.\n\n"
        f"{source['sequences']['train']} sequences of a Hamiltonian with interactions of order "
        f"{source['order']}, L = {source['length']}, \\|V\\| = {source['vocabulary']}; the deepest "
        f"network by {deepest.recipe}. The shares are those of the logits' variance that orders 1, "
        "2 ... have at high temperature.\n"
    )
