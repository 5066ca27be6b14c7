"""Table 1: one test passage, and what each generator's chain has made of it."""

import textwrap
from collections.abc import Callable, Sequence

import pandas as pd

from manybody.claims import labels
from manybody.claims.simplicity.evaluated import read_clones
from manybody.files.manifest import Manifest
from manybody.files.sequences import Sequences, Symbols
from manybody.plotting import style
from manybody.plotting.points import Drawing

WIDTH, NAME = 92, 22  # characters in a line of text, of a label


def draw(files, block: dict, context: dict) -> Drawing:
    """The table and its texts, from files; see the package's docstring."""
    clones = read_clones(files, block["clones"], context)
    if files["tokenizer"]:
        from manybody.sources.tokenizer import load

        words = load(files["tokenizer"])
    else:  # sequences that are no text
        words = Symbols(clones[0].about["alphabet"])
    sweep = block["sweep"]
    return table_of(read_passages(clones, sweep, block["passages"], words.decode), sweep)


def read_passages(
    clones: Sequence[Manifest], sweep: int, chains: Sequence[int], decode: Callable
) -> list[tuple[str, str]]:
    """(label, text) of the starts of some chains, then of each clone's after `sweep` sweeps."""
    starts = Sequences.open(clones[0].file("starts.parquet")).tokens
    beyond = [chain for chain in chains if chain >= len(starts)]
    if beyond:
        raise ValueError(f"passages {beyond} are asked for, {clones[0].path} has {len(starts)}")
    found = [("test text", starts)]
    for clone in clones:
        label = labels.generator(clone.about["generator"]["description"])
        found.append((label, Sequences.open(clone.file(f"sweep-{sweep}.parquet")).tokens))
    return [(label, decode(tokens[chain].tolist())) for label, tokens in found for chain in chains]


@style.styled(style.RC)
def table_of(passages: list[tuple[str, str]], sweep: int) -> Drawing:
    """The passages as a table to read, from the start down to the highest order."""
    cells: dict[str, list[str]] = {}
    for label, text in passages:
        cells.setdefault(label, []).extend(textwrap.wrap(_visible(text), WIDTH) or [""])
    names = {label: textwrap.wrap(label, NAME) for label in cells}
    heights = [max(len(cells[label]), len(names[label])) + 0.8 for label in cells]
    figure = style.new(9.2, 0.35 + 0.2 * sum(heights))
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set(
        xlim=(0, 1),
        ylim=(sum(heights), 0),
        title=f"the same passages after {sweep} sweeps of each generator",
    )
    top = 0.0
    looks = dict(va="top", parse_math=False, linespacing=1.3)
    for (label, lines), height in zip(cells.items(), heights, strict=True):
        axes.axhline(top, color="0.8", linewidth=0.8)
        axes.text(0.0, top + 0.3, "\n".join(names[label]), weight="bold", **looks)
        axes.text(0.2, top + 0.3, "\n".join(lines), family="DejaVu Sans Mono", size=8, **looks)
        top += height
    return figure, pd.DataFrame(passages, columns=style.TEXT_COLUMNS)


def _visible(text: str) -> str:
    return text.replace("\n", " ⏎ ").replace("\t", " ")
