"""Table 1: passages of test text, and what each generator's chain has made of them."""

import textwrap

import pandas as pd

from manybody import models
from manybody.io.manifest import Manifest
from manybody.io.options import Seed, key, numbered, refers
from manybody.io.sequences import Sequences, Symbols
from manybody.papers import claims as records, inputs as needed, style
from manybody.papers.figure import Figure

START = "start: test text"
LINE = 116  # characters in a line of all columns
HEIGHT = 0.135  # inches of a line


class Block(Figure):
    """One passage, and what each generator makes of it."""

    clones: list[
        refers("clones", same=("source", "chains", "chain_init", "chain_seed"), like="clones")
    ] = key("Clones from low to high order, whose chains start from the same sequences.")
    sweep: numbered("sweeps", "clones", 1) = key("A saved sweep of all of them.")
    passages: list[Seed] = key("Chains that are shown.", min_length=1)


class Inputs(needed.Inputs):
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


def tables(inputs: Inputs, block: Block) -> style.Tables:
    """The start of each chain, then each clone's state after `sweep` sweeps. Raises `ValueError`
    where the clones do not have the passages."""
    clones = [Manifest.read(one.file(), "clones") for one in inputs.clones]
    if inputs.tokenizer:
        from manybody.data.tokenizer import load

        words = load(inputs.tokenizer.file())
    else:  # sequences that are no text
        words = Symbols(clones[0].about["alphabet"])
    starts = Sequences.open(clones[0].file("starts.parquet")).tokens
    beyond = [chain for chain in block.passages if chain >= len(starts)]
    if beyond:
        raise ValueError(f"passages {beyond} are asked for, {clones[0].path} has {len(starts)}")
    names = [models.about(clone.about["generator"]["description"]).generator for clone in clones]
    ends = [Sequences.open(clone.file(f"sweep-{block.sweep}.parquet")).tokens for clone in clones]
    passages = [
        (label, words.decode(tokens[chain].tolist()))
        for chain in block.passages
        for label, tokens in zip([START, *names], [starts, *ends], strict=True)
    ]
    return style.Tables(pd.DataFrame(passages, columns=["series", "text"]), block.sweep)


def claims(tables: style.Tables) -> list[records.Claim]:
    statement = "Passages become more fluent from low to high order"
    given = {"fluency": (statement, "a reader has to judge it", "", "table 1")}
    return records.all_judged("simplicity/table1", given, "")


@style.in_house_style
def draw(tables: style.Tables):
    count = len(tables.drawn) // int((tables.drawn["series"] == START).sum())
    texts = tables.drawn["text"].str.replace("\n", " ⏎ ").to_numpy().reshape(-1, count)
    width = LINE // count
    wrap = textwrap.TextWrapper(width - 2).wrap
    rows = [
        [wrap(text.strip()) for text in row] for row in [tables.drawn["series"][:count], *texts]
    ]
    heights = [0.6 + max(map(len, row)) for row in rows]
    figure = style.new(2, 0.3 + HEIGHT * sum(heights))
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set(xlim=(0, count), ylim=(sum(heights), 0))
    axes.set_title(f"the same passages after {tables.found} sweeps of each generator")
    top, font = 0.0, {"weight": "bold"}
    looks = dict(va="top", parse_math=False, linespacing=1.25, in_layout=False, size=style.SMALL)
    for row, height in zip(rows, heights, strict=True):
        for column, lines in enumerate(row):
            axes.text(column, top + 0.3, "\n".join(lines), **looks, **font)
        axes.axhline(top, **style.GUIDE)
        top, font = top + height, {"family": "DejaVu Sans Mono"}
    return figure


def caption(inputs: Inputs, block: Block) -> str:
    entry, source = inputs.entry, inputs.source
    name = needed.sized(source.get("corpus", entry["source"]), source)
    return (
        f"Table 1: passages of test text, and their state after {block.sweep} sweeps of each "
        "generator, from low to high order.\n\n"
        "Read along each row whether the text becomes more fluent. All chains start from the same "
        "sequences: blocks of a stream of tokens, whose ends may cut a word. A line break is "
        f"⏎.\n\n{name}, {entry['energy']} score.\n"
    )
