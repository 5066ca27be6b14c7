"""Influences of the tokens of a passage on each other.

The table has M_1 (a) and the share of it that pairs alone make (b): a series a target, by source.
"""

import itertools
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody.io.options import key, refers
from manybody.measure.half_times import Spectra
from manybody.papers import claims as records, inputs as needed, style
from manybody.papers.figure import Figure
from manybody.papers.simplicity import spectra

LINE = 134  # characters of a line of the passage
SHOWN = 3  # targets whose sources are drawn on the passage
WEAK = 0.01  # share of a target's influence below which nothing is said of a pair
NAMED = 32  # tokens that an axis can name
KINDS = {  # the least share of pairs, colour, and in words
    "pairs": (2 / 3, style.ORDERS[2], "pairs make 2/3 of it and more"),
    "both": (1 / 3, "0.45", "1/3 to 2/3"),
    "more": (-np.inf, "#D55E00", "three tokens and more make most"),
}


class Block(Figure):
    """Influences of the tokens of a passage on each other."""

    spectrum: refers(
        "spectra",
        wanted="of kind draws that has a passage (0 is the first test sequence)",
        fits=lambda spectrum, _: getattr(spectrum, "passage", None) is not None,
    ) = key("Spectrum that has a `passage`.")


class Inputs(needed.Inputs):
    spectrum: needed.Spectrum
    entry: dict

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        first, *_ = needed.spectra_of([block.spectrum], config)
        return cls(spectrum=first, entry=config["spectra"][block.spectrum])


class Tables(NamedTuple):
    """The rows that are drawn; the words of the passage; M_1, and the share of it that pairs make
    where a source acts enough, (L, L), by target and source; the targets that are shown."""

    drawn: pd.DataFrame
    words: list[str]
    every: np.ndarray
    share: np.ndarray
    shown: list[int]


def tables(inputs: Inputs, block: Block) -> Tables:
    return tables_of(*spectra.read([inputs.spectrum]))


def tables_of(one: Spectra) -> Tables:
    words = [word.replace("\n", "⏎").replace("\t", " ") or "·" for word in one.about["passage"]]
    every, pairs = (one.influence(quantity) for quantity in ("influence", "pairs"))
    # Nothing acts on a target that no exchange of tokens changes.
    strong = (every > 0) & (every >= WEAK * np.nansum(every, axis=1, keepdims=True))
    share = np.divide(pairs, every, out=np.full_like(every, np.nan), where=strong).clip(0, 1)
    asked = _asked(every)
    drawn = []
    for (panel, values), target in itertools.product((("a", every), ("b", share)), asked):
        sources = np.flatnonzero(np.isfinite(values[target]))
        given = f"on token {target}", 0, sources, values[target, sources]
        drawn.append(style.points(panel, *given))
    # The targets on which the others act most, in the order of the text.
    order = np.argsort(-np.nansum(every[asked], axis=1), kind="stable")
    return Tables(style.gathered(drawn), words, every, share, sorted(asked[order[:SHOWN]]))


def _asked(values: np.ndarray) -> np.ndarray:
    """The targets on which others were measured."""
    return np.flatnonzero(np.isfinite(values).any(axis=1))


def claims(tables: Tables) -> list[records.Claim]:
    return []


@style.in_house_style
def draw(tables: Tables):
    from matplotlib.colors import LogNorm

    height = 0.5 + 0.16 * len(tables.shown) * (1 + len(_lines(tables.words)))
    figure = style.new(2, 3.2 + height)
    maps, text = figure.subfigures(2, 1, height_ratios=[3.2, height])
    left, right = maps.subplots(1, 2)
    largest = float(np.nanmax(tables.every)) or 1.0  # 0 where nothing acts
    norm = LogNorm(largest / 1000, largest, clip=True)
    _draw_map(left, tables.every, tables, norm=norm, cmap="viridis_r")
    left.set_title("(a) $M_1$ (logits$^2$)")
    _draw_map(right, tables.share, tables, vmin=0, vmax=1, cmap="cividis")
    right.set_title("(b) share of $M_1$ that pairs alone make")
    _draw_passage(text.subplots(), tables)
    return figure


def _draw_map(axes, values: np.ndarray, tables: Tables, **looks) -> None:
    """A row a target that was asked, a column a source."""
    rows, words = _asked(tables.every), tables.words
    drawn = axes.imshow(values[rows], aspect="auto", interpolation="none", **looks)
    axes.figure.colorbar(drawn, ax=axes).outline.set_linewidth(0)
    few = len(words) <= NAMED
    names = np.array(words if few else range(len(words)), object)
    columns = np.arange(0, len(words), 1 if few else -(-len(words) // 8))
    ticks = np.arange(0, len(rows), 1 if len(rows) <= NAMED else -(-len(rows) // 8))
    axes.set_xticks(columns, names[columns])
    axes.set_yticks(ticks, names[rows[ticks]])
    axes.tick_params(labelsize=6, length=2)
    axes.tick_params(axis="x", labelrotation=90 if few else 0)
    axes.spines[:].set_visible(False)
    axes.set(xlabel="source", ylabel="target")


def _lines(words: list[str]) -> list[list[int]]:
    """The numbers of the tokens in each line."""
    lines = [[]]
    for number, word in enumerate(words):
        if lines[-1] and sum(len(words[one]) for one in lines[-1]) + len(word) > LINE:
            lines.append([])
        lines[-1].append(number)
    return lines


def _draw_passage(axes, tables: Tables) -> None:
    """The passage once for each target shown, its tokens shaded by how much they act on it."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Patch, Rectangle

    words, shown, every = tables.words, tables.shown, tables.every
    lines = _lines(words)
    axes.set_axis_off()
    axes.set(xlim=(0, LINE), ylim=((1 + len(lines)) * len(shown), -0.2))
    axes.set_title("(c) what acts on the token in the frame")
    looks = dict(family="DejaVu Sans Mono", size=6, va="center", parse_math=False, in_layout=False)
    for place, target in enumerate(shown):
        influence = np.nan_to_num(every[target])
        strength = np.sqrt(influence / (influence.max() or 1))
        for row, line in enumerate(lines):
            left, height = 0.0, place * (1 + len(lines)) + row + 0.5
            for number in line:
                width = len(words[number])
                box = (left, height - 0.45), width, 0.9
                if number == target:
                    axes.add_patch(Rectangle(*box, facecolor="white", edgecolor="black"))
                elif np.isfinite(share := tables.share[target, number]):
                    colour = next(colour for least, colour, _ in KINDS.values() if share >= least)
                    shade = (*to_rgb(colour), strength[number])
                    axes.add_patch(Rectangle(*box, facecolor=shade, linewidth=0))
                dark = number != target and strength[number] > 0.7
                axes.text(left, height, words[number], color="white" if dark else "black", **looks)
                left += width
    handles = [Patch(color=colour, label=label) for _, colour, label in KINDS.values()]
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(0, 0), ncols=3, borderpad=0)


def caption(inputs: Inputs, block: Block) -> str:
    entry = inputs.entry
    return (
        f"Which token of a passage acts on which, in {block.spectrum} at its last step.\n\n"
        r"**(a)** M\ :sub:`1` by target and source: the mean squared change of the target's "
        "centred logits when the source alone is exchanged. **(b)** The share that "
        "pairs make: changes that are equal in every context; the rest is due to three tokens and "
        "more. **(c)** The passage, for each of the three targets (framed) on which the others "
        "(shaded) act most.\n\n"
        f"Test sequence {entry['passage']} of {entry['source']}, its tokens exchanged for those of "
        f"the distribution *{entry['law']}*. A token that only equal ones replaced shows no "
        "influence.\n"
    )
