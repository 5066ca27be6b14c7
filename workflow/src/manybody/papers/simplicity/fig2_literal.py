"""Figure 2 by the paper's literal recipe for the Hamiltonian, in each of its readings."""

from dataclasses import dataclass, replace

import pandas as pd

from manybody.io.options import key
from manybody.papers import claims as records
from manybody.papers import inputs as needed
from manybody.papers import style
from manybody.papers.figure import Figure
from manybody.papers.simplicity import staircase, staircase_claims, staircase_panels
from manybody.papers.simplicity.staircase import Staircase


class Block(Figure):
    """As fig2, for the paper's literal recipe in each of its readings."""

    parts: list[staircase.StaircaseBlock] = key("One staircase each.", min_length=1)


class Inputs(needed.Inputs):
    """A staircase each."""

    parts: list[staircase.Inputs]

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        return cls(parts=[staircase.Inputs.of(part, config) for part in block.parts])


@dataclass(frozen=True)
class Tables:
    """What is drawn, its panels named by their part; runs and lines of each part."""

    drawn: pd.DataFrame
    parts: list[Staircase]


def tables(inputs: Inputs, block: Block) -> Tables:
    """The tables of figure 2 for each part."""
    parts = [staircase.read(part) for part in inputs.parts]
    drawn = [staircase_panels.panels(found) for found in parts]
    named = [
        table.assign(panel=f"{found.name}: " + table["panel"])
        for found, table in zip(parts, drawn, strict=True)
    ]
    return Tables(style.gathered(named), parts)


def claims(tables: Tables) -> list[records.Claim]:
    """One record: all that figure 2 shows, in each reading."""
    judged = staircase_claims
    kinds = judged.lines, judged.shallow, judged.plateaus, judged.arrivals, judged.layer_order
    parts = [
        replace(part, label=f"{found.name}, {part.label}")
        for found in tables.parts
        for kind in kinds
        for part in kind(found)
    ]
    return [
        judged.claim(
            tables.parts,
            "fig2_literal/staircase",
            "The paper's literal recipe for J and U gives the staircase of figure 2",
            parts,
            f"lines in the order of interaction; {judged.NEAR_LINES}; {judged.SEEDS}; "
            f"{judged.MOVES}",
        )
    ]


@style.in_house_style
def draw(tables: Tables):
    """A row of panels (b), (d), (c) for each part."""
    panels = staircase_panels
    figure = style.new(2, 2.45 * len(tables.parts))
    rows = figure.subplots(len(tables.parts), 3, width_ratios=(2.0, 1.0, 1.5), squeeze=False)
    for found, (losses, ends, moves) in zip(tables.parts, rows, strict=True):
        ends.sharey(losses)
        mine = tables.drawn[tables.drawn["panel"].str.startswith(f"{found.name}: ")]
        mine = mine.assign(panel=mine["panel"].str.removeprefix(f"{found.name}: "))
        panels.draw_losses(losses, mine, found.networks, found.lines)
        panels.draw_ends(ends, found.groups, found.lines)
        panels.draw_displacements(moves, mine)
        losses.set_title(f"(b) {found.name}: {panels.title(found)}", fontsize=8)
        losses.set(xlabel="training epoch", ylabel="held-out loss\n(nats per token)")
        panels.depth_legend(losses, found.networks, columns=1)
        ends.tick_params(labelleft=False)
        ends.set_xlabel("(d) layers n")
        deepest = found.deepest
        moves.set_title(f"(c) n = {deepest.layers}, seed {deepest.chosen}", fontsize=8)
        moves.set_xlabel("training epoch")
    return figure


def caption(inputs: Inputs, block: Block) -> str:
    """What is shown, what the eye sees, how it was made."""
    readings = "; ".join(
        f"*{part.truth.source}*, L = {part.source['length']}, \\|V\\| = "
        f"{part.source['vocabulary']}, {part.source['sequences']['train']} sequences, the deepest "
        f"network by {part.networks[-1].recipe}"
        for part in inputs.parts
    )
    return (
        "Figure 2 by the paper's literal recipe for the interactions J and U, a row for each of "
        "its readings.\n\n"
        "J and U are means of products of random vectors whose variables take two values with "
        "probability 0.8; which two, ±1 or 0 and 1, is left to the reader. Panels as in figure 2: "
        "held-out losses with the reference lines, where every run ended, displacements of the "
        "layers of the thick run. The shares of orders 1, 2 ... stand in the title.\n\n"
        f"{readings}.\n"
    )
