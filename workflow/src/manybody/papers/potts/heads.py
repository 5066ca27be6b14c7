"""Do few heads suffice? Contacts and held-out losses against the number of heads.

All couplings are fitted by one objective, with the same penalty on J: where it is least among
J_ij(a, b) = sum_h (A_ij V_ab + A_ji V_ba) / 2 of H heads, and among all J.
"""

import math
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody.io.options import Block as Options, Count, Text, key, refers
from manybody.measure import contacts as measured, intervals
from manybody.papers import claims as records, inputs as needed, readings, style
from manybody.papers.potts import contacts

FEW = 8  # heads at most that count as few
LESS = 0.05  # share of contacts that they may lack
WORSE = 0.01  # nats a site that their held-out loss may be higher
PARTS = {"P(L/5)": 5, "P(L)": 1}  # the best L / n pairs
LOSS, FULL = "loss", ", full couplings"
LOOKS = {"P(L/5)": style.ORDERS[3], "P(L)": style.ORDERS[2], LOSS: style.UNBOUNDED}
PANELS = ("ac", "bd")  # of contacts and losses, on each family
KINDS = ("real", "planted")

Full = refers(
    "models", wanted="of heads full, by optimizer.couplings", fits=lambda model, _: model.about.full
)
FREE = key("Full couplings.")
HEADS = key("The same of so many `heads`, few first.", min_length=1)


class Planted(Options):
    """Models of planted couplings."""

    source: refers("sources", "potts") = key("A Potts source.")
    model: Full = FREE
    heads: list[Full] = HEADS
    separation: Count = key("Least distance j - i of a pair that counts.", 1)


class Block(contacts.Block):
    """Contacts and held-out losses of few heads and of full couplings."""

    source: refers("sources", "alignment") = key("An alignment.")
    model: Full = FREE
    heads: list[Full] = HEADS
    truth: Text = key("Its known contacts, as of `contacts`.")
    planted: Planted = key("The same models of planted couplings.")


class Inputs(needed.Inputs):
    """Runs and their scores, of the alignment first; what is true."""

    models: list[needed.Trained]
    contacts: list[needed.Contacts]
    known: needed.KnownContacts
    hamiltonian: needed.Hamiltonian

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        runs = [
            dict(source=part.source, model=model, seed=block.seed)
            for part in (block, block.planted)
            for model in (part.model, *part.heads)
        ]
        return cls(
            models=[needed.Trained(**run) for run in runs],
            contacts=[needed.Contacts(**run) for run in runs],
            known=needed.KnownContacts(truth=block.truth),
            hamiltonian=needed.Hamiltonian(source=block.planted.source),
        )


class Fit(NamedTuple):
    """The held-out loss of each sequence (N,), in nats a site; the pairs of sites, the best first,
    as numbers, -1 where they are no contacts."""

    losses: np.ndarray
    pairs: np.ndarray

    def hits(self, count: int) -> set[int]:
        """The contacts among the best `count` pairs."""
        return set(self.pairs[:count].tolist()) - {-1}


class Family(NamedTuple):
    """Fits to a source of L sites: that of full couplings, and others by the number of heads."""

    name: str
    length: int
    full: Fit
    by_heads: dict[int, Fit]


def tables(inputs: Inputs, block: Block) -> style.Tables:
    truths = measured.read_known(inputs.known.file()), contacts.planted(inputs.hamiltonian)
    families = []
    for part, truth in zip((block, block.planted), truths, strict=True):
        fits = {}
        for run, scored in zip(inputs.models, inputs.contacts, strict=True):
            if run.source == part.source:
                frame, about = measured.CONTACTS.read(scored.file())
                scores = measured.as_matrix(frame, "apc", about["length"])
                pairs = measured.best_pairs(scores, part.separation, truth.known)
                numbers = np.ravel_multi_index(pairs, scores.shape)
                losses = np.array(readings.read_run(run.file())[0]["held_out"])
                fits[about["heads"]] = Fit(losses, np.where(truth.contacts[pairs], numbers, -1))
        families.append(Family(part.source, len(scores), fits.pop("full"), fits))
    return tables_of(families)


def tables_of(families: list[Family]) -> style.Tables:
    parts = chain.from_iterable(map(_rows, PANELS, families))
    return style.Tables(style.gathered(parts), families)


def _rows(panels: str, family: Family) -> Iterator[pd.DataFrame]:
    for more, fits in (("", family.by_heads), (FULL, {math.nan: family.full})):
        heads = list(fits)
        for name, part in PARTS.items():
            count = max(1, family.length // part)
            shares = [len(fit.hits(count)) / count for fit in fits.values()]
            errors = [measured.binomial_error(share, count) for share in shares]
            yield style.points(panels[0], name + more, family.name, heads, shares, errors)
        means = [intervals.mean(fit.losses) for fit in fits.values()]
        losses, errors, _ = zip(*means, strict=True)
        yield style.points(panels[1], LOSS + more, family.name, heads, losses, errors)


def claims(tables: style.Tables) -> list[records.Claim]:
    rule = (
        f"the share of contacts among the best L pairs is less than {LESS:g} lower, the held-out "
        f"loss less than {WORSE:g} nats a site higher"
    )
    found = []
    for name, family in zip(KINDS, tables.found, strict=True):
        fewest = min(family.by_heads)
        few = max(heads for heads in family.by_heads if heads <= max(FEW, fewest))
        scope = f"{family.name}, L = {family.length}, {len(family.full.losses)} held-out sequences"
        named = f"potts/heads/{name}", f"{few} heads do as well as full couplings on {family.name}"
        found.append(records.judged(*named, _compared(family, few), scope, rule))
    return found


def _compared(family: Family, heads: int) -> list[records.Comparison]:
    """A fit of so many heads less that of full couplings, each pair and each sequence with itself.

    The error of a difference of shares is McNemar's: only contacts that one of them finds count,
    and at least one, as in `binomial_error`: fits that agree in few pairs may differ in the next.
    """
    few, full, length = family.by_heads[heads], family.full, family.length
    ours, theirs = few.hits(length), full.hits(length)
    share = (len(ours) - len(theirs)) / length, math.sqrt(max(1, len(ours ^ theirs))) / length
    loss, error, runs = intervals.mean(few.losses - full.losses)
    words = f"{heads} heads less full couplings"
    return [
        records.above(f"share of contacts, {words}", *share, -LESS),
        records.below(f"held-out loss, {words}", loss, error, WORSE, runs=runs),
    ]


@style.in_house_style
def draw(tables: style.Tables):
    figure = style.new(2, 4.4)
    for column, panels, kind, family in zip(
        figure.subplots(2, 2).T, PANELS, KINDS, tables.found, strict=True
    ):
        for axes, panel, names in zip(column, panels, (PARTS, (LOSS,)), strict=True):
            for name in names:
                found, full = (style.series(tables.drawn, panel, name + end) for end in ("", FULL))
                looks = dict(color=LOOKS[name])
                axes.plot(found["x"], found["y"], marker="o", label=f"{name}, heads", **looks)
                style.band(axes, found, LOOKS[name])
                axes.axhline(full["y"].iloc[0], linestyle="--", label=name + FULL, **looks)
            axes.set(xscale="log", xlabel="heads", title=f"({panel}) {kind}: {family.name}")
            style.plain_ticks(axes.xaxis, list(family.by_heads))
            style.legend_below(axes, 2)
        column[0].set(ylim=(0, 1.03), ylabel="share of contacts")
        column[1].set(ylabel="held-out loss (nats a site)")
        column[1].margins(y=0.08)  # lines across all of the axes set no limits
    return figure


def caption(inputs: Inputs, block: Block) -> str:
    return (
        "Few heads and full couplings, of a real family and of couplings planted as one head.\n\n"
        "**(a), (b)** Share of contacts among the best L / 5 and L pairs, at least "
        f"{block.separation} and {block.planted.separation} sites apart, with one binomial "
        "standard error. **(c), (d)** Mean loss of held-out sequences with one standard error.\n\n"
        "Both are fitted by one objective, with the same L2 on J. Scores are of fits to all "
        "sequences, held-out losses of fits to the training split.\n"
    )
