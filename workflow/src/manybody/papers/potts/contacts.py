"""Contact maps: scores of all pairs of sites, and how many of the best ones are true contacts."""

import math
import re
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from manybody.io.options import Count, Seed, Text, key, refers
from manybody.measure import contacts
from manybody.papers import claims as records, inputs as needed, style
from manybody.papers.figure import Figure

STRUCTURE = re.compile(r"\.(pdb|ent|cif|mmcif)(\.gz)?$")
RIGHT, WRONG = "#0072B2", "#D55E00"
CONTACT, UNKNOWN = "0.6", "0.91"  # greys
BEST = {"contact": RIGHT, "no contact": WRONG}  # pairs of highest score, and their colours
LOOKS = {
    "corrected": ("corrected score", "-", RIGHT),
    "as it is": ("score as it is", "--", "#444444"),
}
DARKEST = 0.99  # quantile of the scores at which the colours end: no single pair sets them
NARROW, WIDE = 48, 110  # signs in a line of the title
SITES = 60  # up to which a site's square is large enough for a dot of full size


class Block(Figure):
    """Scores of pairs of sites, and how many of the best are contacts."""

    source: refers("sources") = key("An alignment, or a Potts source.")
    model: refers(
        "models",
        wanted="whose weights score pairs (factored attention of one layer)",
        fits=lambda model, _: model.about.pairwise,
    ) = key("A one-layer factored model.")
    seed: Seed = key("Its run.")
    truth: Text = key(
        "A file of known contacts: a list of pairs, a table of distances, or a structure (PDB or "
        "mmCIF, by its ending). Without one, the couplings of a Potts source; of an alignment the "
        "scores alone are drawn.",
        None,
    )
    chain: Text = key(
        "Chain of the structure; the one that agrees best with the alignment's reference record by "
        "default.",
        None,
    )
    separation: Count = key("Least distance j - i of a pair that counts.", 1)

    def misfits(self, config):
        structure = self.truth is not None and STRUCTURE.search(self.truth.lower())
        if self.chain is not None and not structure:
            yield self.refused(
                "chain",
                "a structure, PDB or mmCIF, that has chains",
                "give one, or leave `chain` out",
                f" with truth {self.truth or 'left out'}",
            )
        kind = config.sources[self.source].kind
        if structure and kind != "alignment":
            yield self.refused(
                "truth",
                "a list of pairs or a table of distances, as the chain of a structure is aligned "
                "with a record, which an alignment alone has",
                "take another, or an alignment",
                f", a structure, for {self.source}, of kind {kind}",
            )


class Inputs(needed.Inputs):
    contacts: needed.Contacts
    known: needed.KnownContacts | None
    planted: needed.Hamiltonian | None
    source: dict
    model: dict

    @classmethod
    def of(cls, block: Block, config: dict) -> "Inputs":
        source = config["sources"][block.source]
        planted = block.truth is None and source.get("kind") == "potts"
        return cls(
            contacts=needed.Contacts(source=block.source, model=block.model, seed=block.seed),
            known=needed.KnownContacts(truth=block.truth) if block.truth else None,
            planted=needed.Hamiltonian(source=block.source) if planted else None,
            source=source,
            model=config["models"][block.model],
        )


class Tables(NamedTuple):
    """What is drawn; scores (L, L) of all pairs, `corrected` and `as it is`, and what they are of;
    what is true; the least j - i of the pairs that count.

    asked: as many pairs as contacts, at least one. chance: the share of contacts among known pairs.
    """

    drawn: pd.DataFrame
    scores: dict[str, np.ndarray]
    about: dict
    truth: contacts.Truth | None
    separation: int
    asked: int
    chance: float

    @property
    def apart(self) -> str:
        return f", |i − j| ≥ {self.separation}" if self.separation > 1 else ""


def tables(inputs: Inputs, block: Block) -> Tables:
    frame, about = contacts.CONTACTS.read(inputs.contacts.file())
    truth = planted(inputs.planted) if inputs.planted else None
    if inputs.known:
        truth = contacts.read_known(inputs.known.file())
    scores = {
        name: contacts.as_matrix(frame, column, about["length"])
        for name, column in (("corrected", "apc"), ("as it is", "score"))
    }
    return tables_of(scores, about, truth, block.separation)


def planted(source: needed.Hamiltonian) -> contacts.Truth:
    """The couplings of a source, all of them known."""
    from manybody.data.hamiltonian import Hamiltonian

    couplings = Hamiltonian.load(source.file()).couplings
    return contacts.Truth(couplings != 0, ~np.eye(len(couplings), dtype=bool))


def tables_of(
    scores: dict[str, np.ndarray], about: dict, truth: contacts.Truth | None, separation: int
) -> Tables:
    """The tables of these scores, nan of pairs that no model has."""
    corrected, seed = scores["corrected"], about["seed"]
    i, j = np.triu_indices(len(corrected), 1)
    rows = [f"score of site {site}" for site in i + 1]
    parts = [style.points("a", rows, seed, j + 1, corrected[i, j])]
    asked, chance = 0, math.nan
    if truth is None:
        values = corrected[contacts.best_pairs(corrected, separation, np.isfinite(corrected))]
        ranks = range(1, len(values) + 1)
        parts.append(style.points("b", "corrected score by rank", seed, ranks, values))
    else:
        counted = np.triu_indices(len(corrected), max(1, separation))
        known = truth.contacts[counted][truth.known[counted]]
        asked = max(1, int(known.sum()))
        chance = float(known.mean()) if len(known) else math.nan
        marks = _marks(truth)
        i, j = np.nonzero(np.isfinite(marks))
        names = [f"contact of site {site}" for site in i + 1]
        parts.append(style.points("a", names, seed, j + 1, marks[i, j]))
        best = np.array(contacts.best_pairs(corrected, separation, truth.known))[:, :asked]
        hits = truth.contacts[tuple(best)]
        for name, of in zip(BEST, (hits, ~hits), strict=True):
            parts.append(style.points("a", f"best pairs: {name}", seed, *best[:, of] + 1))
        for name, (label, *_) in LOOKS.items():
            shares = contacts.precision(scores[name], truth.contacts, separation, truth.known)
            counts = range(1, len(shares) + 1)
            errors = list(map(contacts.binomial_error, shares, counts))
            parts.append(style.points("b", label, seed, counts, shares, errors))
    return Tables(style.gathered(parts), scores, about, truth, separation, asked, chance)


def _marks(truth: contacts.Truth) -> np.ndarray:
    """1 where a pair below the diagonal is a contact, 0 where it is unknown, else NaN: (L, L)."""
    marks = np.where(truth.contacts, 1.0, np.where(truth.known, math.nan, 0.0))
    marks[np.triu_indices_from(marks)] = math.nan
    return marks


def claims(tables: Tables) -> list[records.Claim]:
    if tables.truth is None:
        return []
    statement = "The pairs of highest score are contacts"
    scope = title(tables.about, ", {model} (seed {seed})".format(**tables.about))
    rule = "the share is above that of all known pairs by three binomial standard errors"
    found = f"none of the known pairs{tables.apart} is a contact"
    if tables.chance > 0:
        found = _above_chance(tables)
    return [records.judged("potts/contacts/best-pairs", statement, found, scope, rule)]


def _above_chance(tables: Tables) -> Iterator[records.Comparison]:
    for name, (series, *_) in LOOKS.items():
        row = style.series(tables.drawn, "b", series).iloc[tables.asked - 1]
        label = (
            f"share of contacts among the best {tables.asked} pairs{tables.apart} ({name}), "
            f"{row['y']:.3g}, above that of all known pairs, {tables.chance:.3g}"
        )
        above = row["y"] - tables.chance
        yield records.above(label, above, row["y_err"], deviations=records.STRICT)


def title(about: dict, model: str = "") -> str:
    weighed = f", which count as {about['effective']:.0f}" if about["weighted"] else ""
    count = f"{about['sequences']} sequences{weighed}"
    return f"{about['source']}{model}: {_couplings(about['heads'])}, {count}"


def _couplings(heads: int | str) -> str:
    """The couplings of a model of so many heads, or `full` ones, in words."""
    return "full couplings" if heads == "full" else records.counted(heads, "head")


@style.in_house_style
def draw(tables: Tables, upright: bool = False):
    """(a) the scores; (b) precision, or the scores in order, below (a) if `upright`."""
    if upright:
        figure = style.new(1, 6.6)
        left, right = figure.subplots(2, height_ratios=(1.2, 1))
    else:
        figure = style.new(2, 3.7)
        left, right = figure.subplots(1, 2, width_ratios=(1.15, 1))
    draw_map(figure, left, tables)
    (_draw_ranks if tables.truth is None else _draw_precision)(right, tables)
    right.set(xscale="log", xlim=(1, None))
    said = textwrap.fill(title(tables.about), NARROW if upright else WIDE)
    figure.suptitle(said, x=0.01, ha="left")
    return figure


def draw_map(figure, axes, tables: Tables) -> None:
    """Scores above the diagonal; below it contacts and the best pairs, or the scores again."""
    scores, truth = tables.scores["corrected"], tables.truth
    edges = np.array((0.5, len(scores) + 0.5))
    upper = np.triu(np.ones(scores.shape, bool), 1)
    shown = upper | upper.T if truth is None else upper
    most = np.nanquantile(scores[upper], DARKEST, method="lower")
    most = most if most > 0 else max(np.nanmax(scores[upper]), 1e-9)
    looks = dict(extent=(*edges, *edges[::-1]), interpolation="nearest")
    image = axes.imshow(np.where(shown, scores, np.nan), cmap="Blues", vmin=0, vmax=most, **looks)
    # no higher than the map
    bar = dict(shrink=0.6 if figure.bbox.height > figure.bbox.width else 0.85, pad=0.02)
    figure.colorbar(image, ax=axes, extend="both", label="corrected score (nats)", **bar)
    axes.set(xlabel="site j", ylabel="site i", xlim=edges, ylim=edges[::-1])
    axes.spines[["top", "right"]].set_visible(True)
    axes.locator_params(integer=True)
    for shift in (tables.separation - 0.5, 0.5 - tables.separation):
        axes.plot(edges + shift, edges, color="0.6", linewidth=0.6, linestyle=":", gid="guide")
    axes.set_title("(a) scores")
    if truth is not None:
        axes.set_title("(a) scores above, contacts below the diagonal")
        _draw_contacts(axes, tables, looks)
        style.legend_below(axes, 2)


def _draw_contacts(axes, tables: Tables, looks: dict) -> None:
    from matplotlib.colors import ListedColormap

    marks = _marks(tables.truth)
    axes.imshow(marks, cmap=ListedColormap([UNKNOWN, CONTACT]), vmin=0, vmax=1, **looks)
    for label, grey, value in ("contact", CONTACT, 1), ("unknown", UNKNOWN, 0):
        if (marks == value).any():
            axes.plot([], [], "s", color=grey, label=label)
    dots = dict(s=9 * min(1.0, SITES / len(marks)), linewidths=0)
    for name, colour in BEST.items():
        found = style.series(tables.drawn, "a", f"best pairs: {name}")
        label = f"best {tables.asked}: {name}"
        axes.scatter(found["x"], found["y"], color=colour, label=label, **dots)


def _draw_precision(axes, tables: Tables) -> None:
    for name, (label, line, colour) in LOOKS.items():
        found = style.line(axes, tables.drawn, "b", label, line, color=colour, label=label)
        if name == "corrected":
            style.band(axes, found, colour)
    chance, count = tables.chance, tables.asked
    axes.axhline(chance, color="0.5", linestyle=":", label=f"chance: {chance:.2g}")
    axes.axvline(count, color="0.7", linewidth=0.8, label=f"number of contacts: {count}")
    axes.set(xlabel=f"best n pairs{tables.apart}", ylabel="share of contacts among them")
    axes.set(ylim=(0, 1.03), title="(b) precision")
    style.legend_below(axes, 2)


def _draw_ranks(axes, tables: Tables) -> None:
    """The scores in falling order: contacts, if any, stand out from the bulk."""
    style.line(axes, tables.drawn, "b", "corrected score by rank", color=RIGHT)
    axes.axhline(0, **style.GUIDE)
    length = len(tables.scores["corrected"])
    axes.axvline(length, color="0.7", linewidth=0.8, label=f"L = {length}", gid="guide")
    axes.set(xlabel=f"rank of the pair{tables.apart}", ylabel="corrected score (nats)")
    axes.set_title("(b) scores in order")
    axes.legend(loc="upper right")


def caption(inputs: Inputs, block: Block) -> str:
    source, model = inputs.source, inputs.model
    recipe = model["training"]["optimizer"]
    heads = recipe.get("heads") or model.get("heads") or 1
    origin = f"the alignment *{source['file']}*" if "file" in source else block.source
    given = "planted pairs" if inputs.planted else ""
    if inputs.known:
        given = f"contacts of *{block.truth}* (nearer than 8 Å where distances are given)"
    shown = (
        f"**(a)** Above the diagonal corrected scores, below it {given} and as many of the best "
        "pairs. **(b)** Share of contacts among the best n pairs, with one binomial standard error."
        if given
        else "**(a)** Corrected scores. **(b)** Scores in falling order: contacts stand out."
    )
    ridge = f", ridge {recipe['ridge']:g}" if recipe.get("ridge") else ""
    return (
        "Contact map: couplings between sites that factored attention infers from sequences.\n\n"
        f"{shown}\n\n"
        f"One layer of {_couplings(heads)} on {origin}, run {block.seed}, "
        f"{recipe['name'].upper()}{ridge}. The score of a pair is the Frobenius norm of its "
        "couplings in the zero-sum gauge, without the gap; the average product correction "
        "subtracts the product of the two sites' mean scores over the mean of all scores.\n"
    )
