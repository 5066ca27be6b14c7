"""Table 1: passages of test text, and what each generator's chain has made of them."""

import re
import textwrap
from dataclasses import dataclass

import pandas as pd

from manybody.io.manifest import Manifest
from manybody.io.options import Seed, key, numbered, refers
from manybody.io.sequences import Sequences, Symbols
from manybody.models import labels
from manybody.papers import claims as records
from manybody.papers import inputs as needed
from manybody.papers import style
from manybody.papers.figure import Figure

LINE = 124  # characters in a line of text
TOKENS = 128  # of the sequences of a passage: of text, 60 and more are left in whole words
CUT = " … "  # between the sequences of a passage, whose edges cut words


class Block(Figure):
    """One passage, and what each generator makes of it."""

    clones: list[refers("clones")] = key("Clones from low to high order.")
    sweep: numbered("sweeps", "clones", 1) = key("A saved sweep of all of them.")
    passages: list[Seed] = key(
        "Chains that are shown; so many successive ones as make 128 tokens are one passage.",
        min_length=1,
    )


class Inputs(needed.Inputs):
    """The clones, the tokenizer of a text, and the entries of the first clone and its source."""

    clones: list[needed.Clone]
    tokenizer: needed.Tokenizer | None
    entry: dict
    source: dict

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        entry = config["clones"][block.clones[0]]
        source = config["sources"][entry["source"]]
        text = source["kind"] == "text"
        return cls(
            clones=[needed.Clone(clone=name) for name in block.clones],
            tokenizer=needed.Tokenizer(source=entry["source"]) if text else None,
            entry=entry,
            source=source,
        )


@dataclass(frozen=True)
class Tables:
    """The texts (series: what they are called, text), and the sweeps after which they are."""

    drawn: pd.DataFrame
    sweep: int


def tables(inputs: Inputs, block: Block) -> Tables:
    """The starts of some chains, then each clone's state after `sweep` sweeps, cut at words.

    Where sequences are short, a passage is those of successive chains. Raises `ValueError` where
    the clones do not have the passages, or not the same ones.
    """
    clones = [Manifest.read(one.file(), "clones") for one in inputs.clones]
    if inputs.tokenizer:
        from manybody.data.tokenizer import load

        words = load(inputs.tokenizer.file())
    else:  # sequences that are no text
        words = Symbols(clones[0].about["alphabet"])
    starts, *others = (Sequences.open(clone.file("starts.parquet")).tokens for clone in clones)
    chains = block.passages
    beyond = [chain for chain in chains if chain >= len(starts)]
    if beyond:
        raise ValueError(f"passages {beyond} are asked for, {clones[0].path} has {len(starts)}")
    for clone, tokens in zip(clones[1:], others, strict=True):
        if tokens.shape != starts.shape or (tokens != starts).any():
            raise ValueError(
                f"{clone.path}: its chains start from other sequences than those of "
                f"{clones[0].path}; expected the same passages. Name clones of equal source, "
                f"chains, chain_init and chain_seed"
            )
    names = [labels.generator(clone.about["generator"]["description"]) for clone in clones]
    ends = [Sequences.open(clone.file(f"sweep-{block.sweep}.parquet")).tokens for clone in clones]
    together = -(-TOKENS // starts.shape[1])
    passages = []
    for label, tokens in zip(["test text", *names], [starts, *ends], strict=True):
        texts = [_at_words(words.decode(tokens[chain].tolist())) for chain in chains]
        for first in range(0, len(chains), together):
            passages.append((label, CUT.join(filter(None, texts[first : first + together]))))
    return Tables(pd.DataFrame(passages, columns=style.TEXT_COLUMNS), block.sweep)


def _at_words(text: str) -> str:
    """A sequence without the parts of words at its edges: it was cut out of a stream of tokens.

    What begins with a space, ends with a mark, or has no spaces at all, is whole.
    """
    return re.sub(r"^\S+\s|\s\S*[^\s.,;:!?]$", "", text).strip(" ")


def claims(tables: Tables) -> list[records.Claim]:
    """The claim that only a reader can judge."""
    return [
        records.not_run(
            "simplicity/table1/fluency",
            "Passages become more fluent from low to high order",
            "a reader has to judge it",
            reference="table 1",
        )
    ]


@style.in_house_style
def draw(tables: Tables):
    """The passages as a table to read, from the start down to the highest order."""
    cells: dict[str, list[list[str]]] = {}
    for label, text in tables.drawn.itertuples(index=False):
        shown = text.replace("\n", " ⏎ ").replace("\t", " ")
        cells.setdefault(label, []).append(textwrap.wrap(shown, LINE) or [""])
    heights = [1.7 + sum(len(lines) + 0.3 for lines in cell) for cell in cells.values()]
    figure = style.new(2, 0.25 + 0.135 * sum(heights))
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set(
        xlim=(0, 1),
        ylim=(sum(heights), 0),
        title=f"the same passages after {tables.sweep} sweeps of each generator",
    )
    top = 0.0
    looks = dict(va="top", parse_math=False, linespacing=1.25, in_layout=False)
    for (label, cell), height in zip(cells.items(), heights, strict=True):
        axes.axhline(top, color="0.8", linewidth=0.8)
        axes.text(0.0, top + 0.3, label, weight="bold", **looks)
        line = top + 1.6
        for lines in cell:
            words = "\n".join(lines)
            axes.text(0.0, line, words, family="DejaVu Sans Mono", size=style.SMALL, **looks)
            line += len(lines) + 0.3
        top += height
    return figure


def caption(inputs: Inputs, block: Block) -> str:
    """Says what is shown, what the eye sees, how it was made."""
    entry, source = inputs.entry, inputs.source
    text = (
        f"Table 1: passages of test text, and their state after {block.sweep} sweeps of each "
        "generator, from low to high order.\n\n"
        "Read down the table whether the text becomes more fluent. Sequences are blocks of a "
        "stream of tokens: what is left of a word at either end is not shown. "
    )
    if source.get("length", TOKENS) < TOKENS:
        text += (
            "A passage is the sequences of several chains, … between them, which have nothing to "
            "do with each other. "
        )
    name = needed.sized(source.get("corpus", entry["source"]), source)
    return f"{text}A line break is ⏎.\n\n{name}, {entry['energy']} score.\n"
