"""Figure 2 by the paper's literal recipe for the Hamiltonian, in each of its readings."""

from collections.abc import Iterator
from dataclasses import replace
from string import ascii_lowercase

from manybody.io.options import key
from manybody.papers import claims as records, inputs as needed, style
from manybody.papers.figure import Figure
from manybody.papers.simplicity import fig2, staircase


class Block(Figure):
    """As fig2, for the paper's literal recipe in each of its readings."""

    parts: list[staircase.StaircaseBlock] = key("One staircase each.", min_length=1)


class Inputs(needed.Inputs):
    parts: list[staircase.Inputs]

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        return cls(parts=[staircase.Inputs.of(part, config) for part in block.parts])


def tables(inputs: Inputs, block: Block) -> style.Tables:
    """The tables of figure 2 for each part; numbers of no panel are named by their part."""
    parts = [fig2.tables(part, block) for part in inputs.parts]
    named = []
    for number, part in enumerate(parts):
        letters = dict(zip("abc", letters_of(number), strict=True))
        panels = part.drawn["panel"]
        panels = panels.map(letters).fillna(f"{part.found.name}: " + panels)
        named.append(part.drawn.assign(panel=panels))
    return style.Tables(style.gathered(named), parts)


def letters_of(number: int) -> str:
    return ascii_lowercase[3 * number : 3 * number + 3]


def claims(tables: style.Tables) -> list[records.Claim]:
    """One record: all that figure 2 shows, in each reading."""
    _, *rules = (rule for _, _, rule, _ in fig2.STATEMENTS.values())
    rule = "; ".join(["lines in the order of interaction", *rules])
    text = "The paper's literal recipe for J and U gives the staircase of figure 2"
    statement = text, _compare, rule, "figure 2b"
    sources = [part.found for part in tables.found]
    return staircase.claims_of("fig2_literal", {"staircase": statement}, sources)


def _compare(found: staircase.Staircase) -> Iterator[records.Comparison]:
    for _, compare, _, _ in fig2.STATEMENTS.values():
        for part in compare(found):
            yield replace(part, label=f"{found.name}, {part.label}")


@style.in_house_style
def draw(tables: style.Tables):
    figure = style.new(2, 3.0 * len(tables.found))
    places = figure.subfigures(len(tables.found), 1, squeeze=False).flat
    for number, (place, part) in enumerate(zip(places, tables.found, strict=True)):
        fig2.draw_in(place, part, letters_of(number), f"{part.found.name}: ")
    return figure


def caption(inputs: Inputs, block: Block) -> str:
    sizes = "L = {length}, \\|V\\| = {vocabulary}, {sequences[train]} sequences"
    readings = "; ".join(
        f"*{part.truth.source}*, {sizes.format(**part.source)}, the deepest network by "
        f"{part.networks[-1].recipe}"
        for part in inputs.parts
    )
    return (
        "Figure 2 by the paper's literal recipe for the interactions J and U, in each of its "
        "readings.\n\n"
        "J and U are means of products of random vectors whose variables take two values with "
        "probability 0.8; the paper does not say which two, ±1 or 0 and 1. Panels as in figure 2: "
        "held-out losses with reference lines, where every run ended, displacements of the "
        "layers of the thick run. Titles give the shares of the orders.\n\n"
        f"{readings}.\n"
    )
