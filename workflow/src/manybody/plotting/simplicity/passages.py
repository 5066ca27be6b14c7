"""Table 1 of generated text."""

import textwrap
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from manybody.claims import labels, verdicts
from manybody.files.manifest import Manifest
from manybody.files.sequences import Sequences
from manybody.plotting import style

WIDTH, NAME = 92, 22  # characters in a line of text, of a label


def read_passages(
    clones: Sequence[Manifest], sweep: int, chains: Sequence[int], decode: Callable
) -> tuple[list[tuple[str, str]], int]:
    """(label, text) of the starts of some chains, then of each clone's after `sweep` sweeps.

    Also how many start tokens, over all chains, differ between the clones (0 if all started alike).
    """
    starts = [Sequences.open(clone.file("starts.parquet")).tokens for clone in clones]
    beyond = [chain for chain in chains if chain >= len(starts[0])]
    if beyond:
        raise ValueError(f"passages {beyond} are asked for, {clones[0].path} has {len(starts[0])}")
    differing = sum(_differing(starts[0], other) for other in starts[1:])
    found = [("test text", starts[0])]
    for clone in clones:
        label = labels.generator(clone.about["generator"]["description"])
        found.append((label, Sequences.open(clone.file(f"sweep-{sweep}.parquet")).tokens))
    passages = [
        (label, decode(tokens[chain].tolist())) for label, tokens in found for chain in chains
    ]
    return passages, differing


def _differing(tokens: np.ndarray, other: np.ndarray) -> int:
    return tokens.size if tokens.shape != other.shape else int((tokens != other).sum())


@style.styled(style.RC)
def table1(passages: list[tuple[str, str]], differing: int, block: dict) -> tuple:
    """The passages as a table to read, from the start down to the highest order."""
    cells: dict[str, list[str]] = {}
    for label, text in passages:
        cells.setdefault(label, []).extend(textwrap.wrap(_visible(text), WIDTH) or [""])
    names = {label: textwrap.wrap(label, NAME) for label in cells}
    heights = [max(len(cells[label]), len(names[label])) + 0.8 for label in cells]
    figure = style.new(9.2, 0.35 + 0.2 * sum(heights))
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set(xlim=(0, 1), ylim=(sum(heights), 0))
    axes.set_title(f"the same passages after {block['sweep']} sweeps of each generator")
    top = 0.0
    looks = dict(va="top", parse_math=False, linespacing=1.3)
    for (label, lines), height in zip(cells.items(), heights, strict=True):
        axes.axhline(top, color="0.8", linewidth=0.8)
        axes.text(0.0, top + 0.3, "\n".join(names[label]), weight="bold", **looks)
        axes.text(0.2, top + 0.3, "\n".join(lines), family="DejaVu Sans Mono", size=8, **looks)
        top += height
    drawn = pd.DataFrame(passages, columns=style.TEXT_COLUMNS)
    rows = [
        verdicts.identity("table 1: all chains start from the same passages", differing, 0, 0),
        verdicts.not_run(
            "table 1: fluency rises from low to high order", "it is for the reader to judge"
        ),
    ]
    return figure, drawn, verdicts.table(rows)


def _visible(text: str) -> str:
    return text.replace("\n", " ⏎ ").replace("\t", " ")
