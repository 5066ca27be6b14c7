"""Table 1: one test passage, and what each generator's chain has made of it."""

import re
import textwrap
from collections.abc import Callable, Sequence

import pandas as pd

from manybody.claims import labels
from manybody.claims.simplicity.evaluated import read_clones
from manybody.io.manifest import Manifest
from manybody.io.sequences import Sequences, Symbols
from manybody.plotting import style
from manybody.plotting.points import Drawing

LINE = 124  # characters in a line of text
TOKENS = 128  # of the sequences of a passage: of text, 60 and more are left in whole words
CUT = " … "  # between the sequences of a passage, whose edges cut words


def draw(files, block: dict, context: dict) -> Drawing:
    """The table and its texts, from files; see the package's docstring."""
    clones = read_clones(files, block["clones"], context)
    if files["tokenizer"]:
        from manybody.data.tokenizer import load

        words = load(files["tokenizer"])
    else:  # sequences that are no text
        words = Symbols(clones[0].about["alphabet"])
    sweep = block["sweep"]
    return table_of(read_passages(clones, sweep, block["passages"], words.decode), sweep)


def read_passages(
    clones: Sequence[Manifest], sweep: int, chains: Sequence[int], decode: Callable
) -> list[tuple[str, str]]:
    """(label, text) of the starts of some chains, then of each clone's after `sweep` sweeps.

    Sequences are cut at words. Where they are short, a passage is those of successive `chains`.
    """
    starts = Sequences.open(clones[0].file("starts.parquet")).tokens
    beyond = [chain for chain in chains if chain >= len(starts)]
    if beyond:
        raise ValueError(f"passages {beyond} are asked for, {clones[0].path} has {len(starts)}")
    found = [("test text", starts)]
    for clone in clones:
        label = labels.generator(clone.about["generator"]["description"])
        found.append((label, Sequences.open(clone.file(f"sweep-{sweep}.parquet")).tokens))
    together = -(-TOKENS // starts.shape[1])
    parts = [chains[first : first + together] for first in range(0, len(chains), together)]
    return [
        (
            label,
            CUT.join(filter(None, (_at_words(decode(tokens[chain].tolist())) for chain in part))),
        )
        for label, tokens in found
        for part in parts
    ]


@style.styled(style.RC)
def table_of(passages: list[tuple[str, str]], sweep: int) -> Drawing:
    """The passages as a table to read, from the start down to the highest order."""
    cells: dict[str, list[list[str]]] = {}
    for label, text in passages:
        cells.setdefault(label, []).append(textwrap.wrap(_visible(text), LINE) or [""])
    heights = [1.7 + sum(len(lines) + 0.3 for lines in cell) for cell in cells.values()]
    figure = style.new(2, 0.25 + 0.135 * sum(heights))
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set(
        xlim=(0, 1),
        ylim=(sum(heights), 0),
        title=f"the same passages after {sweep} sweeps of each generator",
    )
    top = 0.0
    looks = dict(va="top", parse_math=False, linespacing=1.25, in_layout=False)
    for (label, cell), height in zip(cells.items(), heights, strict=True):
        axes.axhline(top, color="0.8", linewidth=0.8)
        axes.text(0.0, top + 0.3, label, weight="bold", **looks)
        line = top + 1.6
        for lines in cell:
            axes.text(
                *(0.0, line, "\n".join(lines)),
                family="DejaVu Sans Mono",
                size=style.SMALL,
                **looks,
            )
            line += len(lines) + 0.3
        top += height
    return figure, pd.DataFrame(passages, columns=style.TEXT_COLUMNS)


def _at_words(text: str) -> str:
    """A sequence without the parts of words at its edges: it was cut out of a stream of tokens.

    What begins with a space, ends with a mark, or has no spaces at all, is whole.
    """
    return re.sub(r"^\S+\s|\s\S*[^\s.,;:!?]$", "", text).strip(" ")


def _visible(text: str) -> str:
    return text.replace("\n", " ⏎ ").replace("\t", " ")
