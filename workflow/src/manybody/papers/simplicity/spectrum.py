"""Order spectra: orders of interaction that generators and students use along training.

Beside the points of its panels the table has the half-times' errors: y_err of panel c is the
standard error of log(step) by the choice of contexts.
"""

import itertools
import math
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from manybody.io.options import key, refers
from manybody.papers import claims as records
from manybody.papers import inputs as needed
from manybody.papers import style
from manybody.papers.figure import Figure
from manybody.papers.simplicity import answers, spectra

SAME = 0.05  # nats per token: a loss this near to that of all orders counts as the same
TITLE = 42  # letters of a line of a title
DRAWS = {
    "text": "tokens of other test sequences",
    "unigram": "draws of the unigram distribution",
    "model": "the model's own draws",
}


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
    """Spectra by their roles, the first student's entry and its source."""

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


@dataclass(frozen=True)
class Tables:
    """What is drawn; students, and the first one by other distributions.

    growing: models whose M_k are drawn along training, by panel. rows: models of panel c, by the
    name of their row. models: those of panels e and f.
    """

    drawn: pd.DataFrame
    students: list[spectra.Spectra]
    laws: list[spectra.Spectra]
    growing: dict[str, list[spectra.Spectra]]
    rows: dict[str, spectra.Spectra]
    models: list[spectra.Spectra]


def tables(inputs: Inputs, block: Block) -> Tables:
    """M_k along training, half-times, and shares and losses by order at the last step."""
    roles = (inputs.generators, inputs.students, inputs.laws)
    generators, students, laws = map(spectra.read, roles)
    followed, models = [one for one in generators if one.followed], [*generators, *students]
    growing = {"a": students[:1], "b": students[1:2], "d": followed}
    rows = {one.short: one for one in [*students, *laws]}
    rows |= {f"{one.short}, generator": one for one in followed}
    parts = [
        part
        for panel, group in growing.items()
        for one in group
        for part in spectra.growth(panel, one)
    ]
    for row, (name, one) in enumerate(rows.items()):
        for seed, k in itertools.product(one.runs, one.orders):
            half = one.half_time(seed, k)
            parts.append(style.points("c", f"{name}: M_{k}", seed, [half.step], [row], half.error))
    parts += [*spectra.shares("e", models), *spectra.excesses("f", models)]
    return Tables(style.gathered(parts), students, laws, growing, rows, models)


def claims(tables: Tables) -> list[records.Claim]:
    """The sequence of the orders by each reference distribution, and what the loss needs."""
    students = tables.students
    scope = ", ".join(f"{one.label} ({len(one.runs)} runs)" for one in students)
    above_all = "above that of all orders"
    pairs, triples = [], []
    for one in students:
        found = one.at_end(one.first, "anchored excess").set_index("order")[["value", "se"]]
        if {1, 2} <= {*found.index}:
            label = f"{one.short}: loss of pairs alone {above_all}"
            pairs.append(records.above(label, *found.loc[1], deviations=records.STRICT))
            label = f"{one.short}: loss of orders up to 3 {above_all}"
            triples.append(records.near(label, *found.loc[2], 0, SAME))
    given = {
        "half-times": (
            "M_k comes to half of its end in the order of k",
            [part for one in students for part in spectra.later(one)],
            scope,
            "the half-time of the next order is later",
        ),
        "half-times-by-distribution": (
            "The same with tokens exchanged for draws of other distributions",
            [part for one in tables.laws for part in _one_run(one)],
            "one run of the first student",
            "the half-time of the next order is later by three standard errors",
        ),
        "pairs": (
            "Pairs of tokens alone miss some of the loss of all orders",
            pairs,
            scope,
            f"their loss is {above_all} by three standard errors",
        ),
        "triples": (
            "Orders up to 3 have the loss of all orders",
            triples,
            scope,
            f"their losses differ by less than {SAME} nats per token",
        ),
    }
    found = {
        name: records.judged(f"simplicity/spectrum/{name}", *one) for name, one in given.items()
    }
    grown = answers.in_words(answers.growth(students), math.exp)
    found["half-times"] = found["half-times"].says(answers.GROWTH, grown)
    found["pairs"] = found["pairs"].says(answers.PAIRS, answers.in_words(answers.pairs(students)))
    return [answers.additive("simplicity/spectrum/additive", students), *found.values()]


def _one_run(one: spectra.Spectra) -> Iterator[records.Comparison]:
    """Half-times of successive orders of the first run, by the bound on their contexts' error."""
    for low, high in itertools.pairwise(one.orders):
        early, late = (one.half_time(one.first, k) for k in (low, high))
        label = f"{one.short}: log of half-time of M_{high} over that of M_{low}"
        ratio, error = math.log(late.step / early.step), math.hypot(early.error, late.error)
        yield records.above(label, ratio, error, deviations=records.STRICT)


@style.in_house_style
def draw(tables: Tables):
    """M_k along training, their half-times, what each model ends with, and the loss by order."""
    figure = style.new(2, 5.2)
    panels = figure.subplots(2, 3)
    places = {"a": panels[0, 0], "b": panels[0, 1], "d": panels[1, 0]}
    for letter, group in tables.growing.items():
        axes = places[letter]
        for number, one in enumerate(group):
            spectra.draw_growth(axes, tables.drawn, letter, one, number)
        if not group:
            axes.axis("off")
            continue
        name = ", ".join(
            f"{one.short} ({line})" if len(group) > 1 else one.short
            for one, line in zip(group, ("solid", "dashed", "dotted"), strict=False)
        )
        runs = sum(len(one.runs) for one in group)
        title = f"({letter}) {name}, {runs}\N{NO-BREAK SPACE}run{'s' if runs > 1 else ''}"
        axes.set_title(textwrap.fill(title, TITLE))
        style.plain_ticks(axes.xaxis, spectra.STEPS)
    _draw_half_times(panels[0, 2], tables)
    spectra.draw_shares(panels[1, 1], tables.drawn, "e", tables.models)
    spectra.draw_excesses(panels[1, 2], tables.drawn, "f", tables.models)
    spectra.legend(figure, tables.models)
    return figure


def _draw_half_times(axes, tables: Tables) -> None:
    """A row for each entry, a point for each run and order, with its error."""
    models = tables.rows
    for row, (name, one) in enumerate(models.items()):
        count = len(one.runs)
        heights = row + 0.5 * (np.arange(count) - (count - 1) / 2) / max(count, 2)
        for k in one.orders:
            found = style.series(tables.drawn, "c", f"{name}: M_{k}")
            errors = found["x"] * found["y_err"]
            style.dots(axes, found["x"], heights, xerr=errors, color=style.ORDERS[k + 1])
    style.name_rows(axes, [name.replace(", ", ",\n") for name in models])
    axes.set(xscale="log", xlabel="half-time (steps)", title="(c) half of the end is reached")
    style.plain_ticks(axes.xaxis, spectra.STEPS)


def caption(inputs: Inputs, block: Block) -> str:
    """Says what is shown, what the eye sees, how it was made."""
    entry, source = inputs.entry, inputs.source
    size = entry["anchored"]["size"] if entry.get("anchored") else "a few"
    return (
        "Order spectra: orders of interaction that a model uses along training.\n\n"
        r"M\ :sub:`k` is the change of a token's logits that needs k other tokens to be exchanged "
        r"together; it vanishes for a model of order k or less."
        "\n\n"
        r"**(a), (b), (d)** M\ :sub:`k` of students and generators, a curve a run; dots are "
        "half-times. **(c)** Half-times of all runs, errors at most; below "
        r"by other reference distributions. **(e)** M\ :sub:`k` over the variance at the last "
        f"step; hollow: upper bounds. **(f)** Loss of logits cut at an order in {size} positions "
        "above that of all orders.\n\n"
        f"Contexts: {entry['sequences']} test sequences of "
        f"{needed.sized(entry['source'], source)}, tokens exchanged for {DRAWS[entry['law']]}.\n"
    )
