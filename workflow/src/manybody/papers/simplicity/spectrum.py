"""Order spectra: orders of interaction that generators and students use along training.

In the table, x of panels c, e, f is k; y_err of c is log(y)'s standard error by choice of contexts.
"""

import itertools
from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from manybody.io.options import key, refers
from manybody.measure.half_times import Spectra
from manybody.papers import claims as records, inputs as needed, style
from manybody.papers.figure import Figure
from manybody.papers.simplicity import answers, spectra

SAME = 0.05  # nats per token: a loss this near to that of all orders counts as the same
DRAWS = answers.CONTEXTS | {"text": "tokens of other test sequences"}


class Block(Figure):
    """Orders of interaction that generators and students use along training."""

    generators: list[refers("spectra", "draws", same=("orders",), like="students")] = key(
        "Spectra of generators, from low to high order.", []
    )
    students: list[refers("spectra", "draws", same=("orders",), like="students")] = key(
        "Spectra of students.", min_length=1
    )
    laws: list[refers("spectra", "draws", same=("orders", "source", "model"), like="students")] = (
        key("Spectra of the first student by other reference distributions.", [])
    )


class Inputs(needed.Inputs):
    generators: list[needed.Spectrum]
    students: list[needed.Spectrum]
    laws: list[needed.Spectrum]
    entry: dict
    source: dict

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        entry = config["spectra"][block.students[0]]
        return cls(
            generators=needed.spectra_of(block.generators, config),
            students=needed.spectra_of(block.students, config),
            laws=needed.spectra_of(block.laws, config),
            entry=entry,
            source=config["sources"][entry["source"]],
        )


class Tables(NamedTuple):
    """The rows that are drawn, the students, and names of models by panel: `growing` of those whose
    M_k are drawn along training, `rows` of the rows of panel c, and of e and f."""

    drawn: pd.DataFrame
    students: list[Spectra]
    growing: dict[str, list[str]]
    rows: dict[str, list[str]]


def tables(inputs: Inputs, block: Block) -> Tables:
    return tables_of(*map(spectra.read, (inputs.generators, inputs.students, inputs.laws)))


def tables_of(generators: list[Spectra], students: list[Spectra], laws: list[Spectra]) -> Tables:
    """The tables of these models; of equal names that of a generator says so."""
    taught, others = (spectra.named(group) for group in (students, laws))
    made = {
        f"{name}, generator" if name in taught else name: one
        for name, one in spectra.named(generators).items()
    }
    followed = {name: one for name, one in made.items() if one.followed}
    growing = dict(zip("ab", ([name] for name in taught), strict=False)) | {"d": [*followed]}
    models, timed = made | taught, taught | others | followed
    parts = []
    for panel, names in growing.items():
        for name in names:
            parts += spectra.growth(panel, name, models[name])
    parts += [*spectra.half_times("c", timed), *spectra.shares("e", models)]
    drawn = style.gathered([*parts, *spectra.excesses("f", models)])
    return Tables(drawn, students, growing, {"c": [*timed], "e": [*models]})


def claims(tables: Tables) -> list[records.Claim]:
    students = tables.students
    pairs, triples = (
        answers.cut(students, 1, "pairs alone"),
        answers.cut(students, 2, "orders up to 3"),
    )
    given = {
        "half-times": (
            "M_k comes to half of its end in the order of k",
            [
                spectra.half_time_ratio(one, *orders, f"{one.short}: ")
                for one in students
                for orders in itertools.pairwise(one.orders)
            ],
            "the half-time of the next order is later",
        ),
        "pairs": (
            "Pairs of tokens alone miss some of the loss of all orders",
            [replace(part, deviations=records.STRICT) for _, part in pairs],
            "their loss is above that of all orders by three standard errors",
        ),
        "triples": (
            "Orders up to 3 have the loss of all orders",
            [replace(part, region=(-SAME, SAME)) for _, part in triples],
            f"their losses differ by less than {SAME} nats per token",
        ),
    }
    return answers.claims("simplicity/spectrum", students, given)


@style.in_house_style
def draw(tables: Tables):
    figure, drawn = style.new(2, 5.6), tables.drawn
    (first, second, halves), (third, shares, losses) = figure.subplots(2, 3)
    for axes, letter in ((first, "a"), (second, "b"), (third, "d")):
        names = tables.growing.get(letter, [])
        for name, line in zip(names, itertools.cycle(spectra.LINES), strict=False):
            spectra.draw_growth(axes, drawn, letter, name, line)
        if not names:
            axes.axis("off")
            continue
        runs = drawn.loc[drawn["panel"] == letter, "seed"].nunique()
        said = names[0] if len(names) == 1 else "generators"
        axes.set_title(f"({letter}) {said}, {records.counted(runs, 'run')}")
    spectra.draw_rows(halves, drawn, "c", tables.rows["c"], logs=True)
    halves.set(xscale="log", xlabel="half-time of $M_k$ (steps)", title="(c) half-times")
    style.plain_ticks(halves.xaxis, spectra.STEPS)
    spectra.draw_shares(shares, drawn, "e", tables.rows["e"])
    spectra.draw_excesses(losses, drawn, "f", tables.rows["e"])
    losses.axvline(SAME, linestyle="--", **style.GUIDE)
    style.name_rows(losses, [""] * len(tables.rows["e"]))
    lines = tables.growing["d"]
    spectra.legend(figure, tables.students[0].orders, "f", lines if len(lines) > 1 else [])
    return figure


def caption(inputs: Inputs, block: Block) -> str:
    entry, source = inputs.entry, inputs.source
    size = entry["anchored"]["size"] if entry.get("anchored") else "a few"
    return (
        "Order spectra: orders of interaction that a model uses along training.\n\n"
        r"M\ :sub:`k` is the mean squared change of a token's logits that needs k other tokens to "
        "be exchanged together; it vanishes for a model of order k or less.\n\n"
        r"**(a), (b), (d)** M\ :sub:`k` of students and generators, a curve a run; dots: "
        "half-times. **(c)** Half-times of each run; bars: standard errors. "
        r"**(e)** M\ :sub:`k` over the variance; hollow: upper bounds. **(f)** Loss of logits cut "
        f"at an order, less that of all orders; {size} tokens are exchanged; dashed: {SAME} nats. "
        "In (e), (f) generators come first.\n\n"
        f"Contexts: {entry['sequences']} test sequences of "
        f"{needed.sized(entry['source'], source)}, tokens exchanged for {DRAWS[entry['law']]}.\n"
    )
