"""Do few heads suffice? Contacts and held-out losses against the number of heads.

All couplings are fitted by one objective, with the same penalty on J: where it is least among
J_ij(a, b) = sum_h (A_ij V_ab + A_ji V_ba) / 2 of H heads, and among all J.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from manybody.io.options import Block as Options, Count, Text, key, refers
from manybody.measure import contacts as measured
from manybody.papers import claims as records, inputs as needed, style
from manybody.papers.inputs import Contacts, Hamiltonian, KnownContacts, Trained
from manybody.papers.potts import contacts
from manybody.papers.potts.contacts import Truth
from manybody.papers.readings import mean, read_run
from manybody.papers.style import points

FEW = 8  # heads at most that count as few
LESS = 0.05  # share of contacts that they may lack
WORSE = 0.01  # nats a site that their held-out loss may be higher
PARTS = {"P(L/5)": 5, "P(L)": 1}  # the best L / n pairs
LOOKS = {"P(L/5)": style.ORDERS[3], "P(L)": style.ORDERS[2], "loss": style.UNBOUNDED}
FULL = ", full couplings"

Full = refers(
    "models", wanted="of heads full, by optimizer.couplings", fits=lambda model, _: model.about.full
)
FREE = key("Full couplings.")
HEADS = key("The same with `training.optimizer.heads`.", min_length=1)


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
    """Runs and scores of the alignment and of the planted couplings, full ones first; the truth."""

    models: list[Trained]
    contacts: list[Contacts]
    known: KnownContacts
    hamiltonian: Hamiltonian

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        runs = [
            dict(source=part.source, model=model, seed=block.seed)
            for part in (block, block.planted)
            for model in (part.model, *part.heads)
        ]
        return cls(
            models=[Trained(**run) for run in runs],
            contacts=[Contacts(**run) for run in runs],
            known=KnownContacts(truth=block.truth),
            hamiltonian=Hamiltonian(source=block.planted.source),
        )


@dataclass(frozen=True)
class Fit:
    """The held-out loss of each sequence (N,), in nats a site, and the places in the list of best
    pairs, from 0, of those that are contacts; a pair is the number i L + j."""

    losses: np.ndarray
    best: np.ndarray
    right: np.ndarray

    def hits(self, count: int) -> set[int]:
        """The contacts among the best `count` pairs."""
        return set(self.best[:count][self.right[:count]].tolist())


@dataclass(frozen=True)
class Family:
    """Fits to a source of L sites by the number of heads, and that of full couplings."""

    name: str
    length: int
    full: Fit
    by_heads: dict[int, Fit]


@dataclass(frozen=True)
class Tables:
    """What is drawn, and the fits to the alignment and to the planted sequences."""

    drawn: pd.DataFrame
    families: list[Family]


def fit_of(losses, scores: np.ndarray, truth: Truth, separation: int) -> Fit:
    """A fit by its losses and its scores (L, L)."""
    first, second = measured.best_pairs(scores, separation, truth.known)
    pairs, right = first * len(scores) + second, truth.contacts[first, second]
    return Fit(np.asarray(losses), pairs, right)


def tables(inputs: Inputs, block: Block) -> Tables:
    """Held-out losses of the runs, and contacts among the best pairs of their scores."""
    from manybody.data.hamiltonian import Hamiltonian as Stored

    couplings = Stored.load(inputs.hamiltonian.file()).couplings
    planted = Truth(couplings != 0, ~np.eye(len(couplings), dtype=bool))
    real = Truth(*measured.read_known(inputs.known.file()))
    families = []
    for part, truth in ((block, real), (block.planted, planted)):
        fits = {}
        for run, scored in zip(inputs.models, inputs.contacts, strict=True):
            if run.source == part.source:
                frame, about = measured.read_scores(scored.file())
                scores = measured.as_matrix(frame, "apc", about["length"])
                losses = read_run(run.file())[0]["held_out"]
                fits[about["heads"]] = fit_of(losses, scores, truth, part.separation)
        full = fits.pop("full")
        families.append(Family(part.source, about["length"], full, dict(sorted(fits.items()))))
    return tables_of(families)


def tables_of(families: list[Family]) -> Tables:
    """The tables of these fits; a panel of contacts and one of losses for each family."""
    parts = []
    for place, family in enumerate(families):
        fits = {"": family.by_heads, FULL: {math.nan: family.full}}
        for more, found in fits.items():
            for name, part in PARTS.items():
                count = max(1, family.length // part)
                shares = [len(fit.hits(count)) / count for fit in found.values()]
                errors = [measured.binomial_error(share, count) for share in shares]
                given = name + more, family.name, list(found), shares, errors
                parts.append(points("ab"[place], *given))
            means = [mean(fit.losses) for fit in found.values()]
            values, errors = [one.value for one in means], [one.error for one in means]
            parts.append(
                points("cd"[place], f"loss{more}", family.name, list(found), values, errors)
            )
    return Tables(style.gathered(parts), families)


def claims(tables: Tables) -> list[records.Claim]:
    """Whether few heads do as well as full couplings, on each family."""
    kinds = {"real": "of a real family", "planted": "planted as one head"}
    found = []
    for (name, words), family in zip(kinds.items(), tables.families, strict=True):
        claim = f"potts/heads/{name}", f"At most {FEW} heads do as well as full couplings, {words}"
        few = max((heads for heads in family.by_heads if heads <= FEW), default=None)
        if few is None:
            found.append(records.not_run(*claim, f"no model has {FEW} heads or fewer"))
            continue
        rule = (
            f"the share of contacts among the best L pairs is lower by less than {LESS:g}, the "
            f"held-out loss higher by less than {WORSE:g} nats a site"
        )
        scope = f"{family.name}, L = {family.length}, {len(family.full.losses)} held-out sequences"
        found.append(records.judged(*claim, _compared(family, few), scope, rule))
    return found


def _compared(family: Family, heads: int) -> list[records.Comparison]:
    """A fit of so many heads less that of full couplings, each pair and each sequence with itself.

    The error of a difference of shares is McNemar's: only contacts that one of them finds count.
    """
    few, full, length = family.by_heads[heads], family.full, family.length
    ours, theirs = few.hits(length), full.hits(length)
    share = (len(ours) - len(theirs)) / length
    error = math.sqrt(len(ours ^ theirs)) / length
    loss = mean(few.losses - full.losses)
    words = f"{heads} heads less full couplings"
    return [
        records.above(f"share of contacts, {words}", share, error, -LESS),
        records.below(f"held-out loss, {words}", loss.value, loss.error, WORSE, runs=loss.runs),
    ]


@style.in_house_style
def draw(tables: Tables):
    """Contacts above, held-out losses below; the alignment left, planted couplings right."""
    figure = style.new(2, 4.4)
    axes = figure.subplots(2, 2, sharex="col")
    for place, family in enumerate(tables.families):
        upper, lower = axes[:, place]
        for name in PARTS:
            _draw(upper, tables, "ab"[place], name)
        _draw(lower, tables, "cd"[place], "loss")
        upper.set(ylim=(0, 1.03), ylabel="share of contacts")
        upper.set_title(f"({'ab'[place]}) {family.name}, L = {family.length}")
        lower.set(xscale="log", xlabel="heads", ylabel="held-out loss (nats a site)")
        lower.set_title(f"({'cd'[place]}) {family.name}, {len(family.full.losses)} held out")
        style.plain_ticks(lower.xaxis, list(family.by_heads))
    style.legend_below(axes[1, 0], 2)
    style.legend_below(axes[1, 1])
    return figure


def _draw(axes, tables: Tables, panel: str, name: str) -> None:
    """A curve with its errors, and the line of full couplings."""
    found, full = (style.series(tables.drawn, panel, one) for one in (name, name + FULL))
    axes.plot(found["x"], found["y"], color=LOOKS[name], marker="o", label=f"{name}, heads")
    style.band(axes, found, LOOKS[name])
    axes.axhline(full["y"].iloc[0], color=LOOKS[name], linestyle="--", label=name + FULL)


def caption(inputs: Inputs, block: Block) -> str:
    return (
        "Contacts and held-out losses of few heads and of full couplings, on a real family and on "
        "couplings planted as one head.\n\n"
        "**(a), (b)** Share of contacts among the best L / 5 and L pairs, at least "
        f"{block.separation} and {block.planted.separation} sites apart, with one binomial "
        "standard error; dashed: full couplings. **(c), (d)** Mean loss of held-out sequences with "
        "one standard error.\n\n"
        "Symmetrised heads and full couplings are fitted by one objective, with the same L2 on J. "
        "Scores are of fits to all sequences, held-out losses of fits to the training split.\n"
    )
