"""Results of a pair model of a family: its page, one HTML file, and the tables and pictures of
energies, mutations and new sequences."""

import traceback
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from manybody.data import family as families
from manybody.data.pair_model import PairModel
from manybody.io.atomic import write_text
from manybody.io.refusal import Refusal
from manybody.io.tables import write_csv
from manybody.measure import family as measured, family_statistics, mutations
from manybody.measure.contacts import site_names
from manybody.measure.family import ALL_COLUMNS, MODEL, Found, answers
from manybody.papers import style
from manybody.papers.potts import contacts
from manybody.report import provenance
from manybody.report.document import CHECKOUT, MOST, inline, templates

PAGE, MAP, SCAN, EFFECTS = "index.html", "contacts", "mutations", "mutations-effects.csv"
MAPPED = "Corrected scores of all pairs of columns, with known contacts, or in falling order."
SCANNED = (
    "What each mutation of the reference record adds to log p; dots are its own residues, grey "
    "columns its gaps."
)
FILES = [
    ("contacts.csv", "the scores of all pairs with the names of the sites, the best first"),
    ("precision.csv", "how many of the best pairs are contacts; no line where none is known"),
    ("contacts.rr", "the scores in CASP's format RR"),
    ("mutations.csv", "the change of log p by each mutation of the reference record, in nats"),
    (EFFECTS, "the same of the measured mutants, with their effects"),
    ("family.fasta", "the sequences and columns that were fitted"),
    ("model.safetensors", "fields and couplings of the pair model, in nats"),
    (ALL_COLUMNS, "the same of all columns, of which the scores are"),
    ("adabmdca.dat", "fields and couplings as adabmDCA reads them, sites from 0"),
    ("ccmpred.mat", "the corrected scores as a matrix, of all columns, as CCMpred writes it"),
    ("evcouplings.csv", "the scores in EVcouplings' form, by residues of the reference record"),
]
STRIP = 60  # sites in a row of the map of mutations
TITLES = {"f": "one site", "c_2": "two sites, connected", "c_3": "three sites, connected"}
COLOURS = {"natural": style.ORIGINAL, "generated": style.ORDERS[2]}
CHAINS = {
    "own": ("themselves before", style.ORDERS[2]),
    "other": ("another chain before", style.ORIGINAL),
}


def refuse_overwriting(given: Sequence[str | Path | None], made: Sequence[Path]) -> None:
    """`Refusal` where a given file is one of those to be made, or a folder of these is a file."""
    for folder in {folder for one in made for folder in one.parents}:
        if folder.is_file():
            raise Refusal(
                f"--out: found {folder}, which is a file; expected a folder, there or to be made; "
                "give another --out"
            )
    for path in filter(None, given):
        if Path(path).resolve() in [one.resolve() for one in made]:
            raise Refusal(
                f"{path} would be overwritten by a result of that name; give another --out"
            )


def draw(found: Found, folder: str | Path) -> None:
    """Writes the map of the scores of a family to its folder, as PDF and PNG."""
    known = found.truth and found.truth._replace(
        known=found.truth.known & np.isfinite(found.scores)
    )
    about = found.family.about | dict(heads="full", weighted=True, seed=0)
    scores = {"corrected": found.scores, "as it is": found.raw}
    tables = contacts.tables_of(scores, about, known, found.separation)
    style.save(contacts.draw(tables, upright=True), Path(folder, MAP))


def write(folder: str | Path, record: dict, command: str, parts: Sequence[tuple] = ()) -> Path:
    """Writes the page of a family to its folder, and returns its path; record: as of
    `measure.family.record`. Each of `parts` is a section behind the contacts: a title, sentences,
    and the stem of a PNG file in the folder, None without one."""
    pictures = {
        stem: inline(Path(folder, f"{stem}.png"), MOST // (1 + len(parts)))
        for stem in (MAP, *(stem for *_, stem in parts if stem))
    }
    sections = [(title, said, stem, pictures.get(stem)) for title, said, stem in parts]
    now = {
        **dict.fromkeys(measured.FORMATS, record.get("formats")),
        EFFECTS: record.get("effects"),
        ALL_COLUMNS: record["left_out"]["columns"],
    }
    files = [
        (name, said + ", of an earlier run" * (not now.get(name, True)))
        for name, said in FILES
        if Path(folder, name).is_file()
    ]
    return _write(
        Path(folder, PAGE),
        "family.html",
        command,
        sections=sections,
        files=files,
        family=record,
        answers=answers(record),
        map=pictures[MAP],
        mapped=MAPPED,
    )


def write_many(
    path: str | Path, name: str, records: Sequence[dict], command: str, used: Sequence[tuple] = ()
) -> Path:
    """Writes the page of many families, each in a folder of its name beside the page; used: names
    and what `use_many` says of each."""
    failed = [record for record in records if "failed" in record]
    fitted = [record for record in records if "failed" not in record]
    return _write(
        Path(path), "families.html", command, name=name, fitted=fitted, failed=failed, used=used
    )


def _write(path: Path, template: str, command: str, **named) -> Path:
    facts = {"Command": command} | provenance.facts(CHECKOUT)
    write_text(path, templates().get_template(template).render(facts=facts, **named))
    return path


# --- Energies, mutations, new sequences ----------------------------------------------------------


def use_many(
    use: str, entries: Sequence[dict], folder: str | Path, reading: dict, count: int | None
) -> dict[str, list[str]]:
    """Makes `energies`, `mutations` or `generated` (`use`) of families fitted in `folder` by
    `measure.family.fit_many`; returns sentences on each by name, or why it cannot be done. entries:
    as there; reading: options of `data.family.read`; count: new sequences of each."""
    found = {}
    for entry in entries:
        name = entry["name"]
        own = Path(folder, name)
        if not (own / MODEL).is_file():
            continue
        try:
            if use == "generated":
                given = families.read(entry["file"], **reading)
                learned = measured.learned(given, PairModel.load(own / MODEL), own, threads=1)
                found[name] = [learned, *write_generated(own, count, own / use)]
            elif use == "mutations" and entry["effects"]:
                found[name] = write_mutations(own, entry["effects"], own / use)
            elif use == "energies" and entry["sequences"]:
                found[name] = write_energies(own, entry["sequences"], own / use)
        except Exception as error:  # whatever is wrong with one, the others are made
            if not isinstance(error, Refusal | OSError):
                traceback.print_exc()
            found[name] = [f"No {use}: {error or type(error).__name__}"]
    return found


def write_energies(
    model: str | Path, fasta: str | Path, out: Path, alignment: Path | None = None
) -> list[str]:
    """Writes the energies of the sequences in a file as `out`.csv, and returns sentences on them;
    model and alignment: as of `mutations.opened`. `Refusal` says what cannot be used."""
    refuse_overwriting([fasta, alignment], [out.with_name(f"{out.name}.csv")])
    found, family, _ = mutations.opened(model, alignment)
    table, passed = mutations.energies(found, fasta, family)
    write_csv(table, f"{out}.csv")
    lacking = (table["placed"] == mutations.BY_PROFILE).sum()
    return [
        f"{len(table)} sequences, {lacking} of them aligned to the family: {out}.csv",
        *passed,
    ] + [
        "none has a gap, and all have as many letters as there are columns, so they were taken as "
        "aligned"
        + "; if they are not, add a record of another length: then all are aligned"
        * (family is not None)
    ] * bool(not lacking and (table["residues"] + table["unknown"] == found.length).all())


def write_mutations(
    model: str | Path, effects: str | Path | None, out: Path, offset: int = 0,
    alignment: Path | None = None,
) -> list[str]:  # fmt: skip
    """Writes the changes of log p by all mutations as `out`.csv, .pdf and .png, and with a table of
    effects `out`-effects.csv; returns sentences on them. The others are as of `write_energies`."""
    refuse_overwriting(
        [effects, alignment], [out.with_name(out.name + end) for end in (".csv", "-effects.csv")]
    )
    said = write_scan(*mutations.opened(model, alignment), effects, offset, out)
    return [f"{out}.csv, {out}.pdf, {out}.png" + f", {out}-effects.csv" * bool(said), *said]


def write_scan(
    model: PairModel, tokens: np.ndarray | None, weights: np.ndarray | None,
    effects: str | Path | None, offset: int, out: Path,
) -> list[str]:  # fmt: skip
    """Writes what `write_mutations` does of a pair model, tokens (N, L) of its family and their
    weights, None where there are none; returns sentences on the effects."""
    logs = None if tokens is None else mutations.site_logs(tokens, weights, model.vocabulary)
    table = effects and mutations.effects(model, effects, offset, logs)
    changes, own = mutations.scan(model), mutations.reference(model)
    write_csv(mutations.listed(model, changes), f"{out}.csv")
    sites = site_names(model.about, model.length)
    style.save(draw_mutations(changes, own, sites, model.about["alphabet"]), out)
    if table is None:
        return []
    # What was measured keeps its digits: rounded, distinct effects would share a rank.
    write_csv(table.astype({"DMS_score": object}), f"{out}-effects.csv")
    return mutations.answers(table)


def write_generated(
    model: str | Path, count: int, out: Path, sweeps: int | None = None, seed: int = 0,
    alignment: Path | None = None,
) -> list[str]:  # fmt: skip
    """Writes so many new sequences as `out`.fasta, and what they are beside those of the family:
    `out`-statistics.csv, and `out`.csv, .pdf and .png; returns sentences on them. The others are as
    of `write_energies`, sweeps and seed as of `family_statistics.generate`."""
    refuse_overwriting([alignment], [out.with_name(f"{out.name}.fasta")])
    found, family, weights = mutations.opened(model, alignment, learned=True)
    tokens, mixing = family_statistics.generate(found, count, sweeps, seed)
    rows = enumerate(mutations.letters_of(tokens, found.about), start=1)
    write_text(f"{out}.fasta", "".join(f">generated-{n}\n{row}\n" for n, row in rows))
    if family is None:
        return [f"{out}.fasta; give --alignment to compare them with sequences of the family"]
    table, points = family_statistics.compared(family, tokens, found.vocabulary, weights, seed)
    points = pd.concat([points, mixing], ignore_index=True)
    write_csv(table, f"{out}-statistics.csv")
    write_csv(points, f"{out}.csv")
    style.save(draw_generated(table, points), out)
    return [
        f"{out}.fasta, {out}-statistics.csv, {out}.csv, {out}.pdf, {out}.png",
        *(
            f"{row.statistic}: correlation {row.correlation:.3f}, slope {row.slope:.2f}; halves of "
            f"the natural ones: {row.halves:.3f}"
            for row in table.itertuples()
        ),
    ]


@style.in_house_style
def draw_mutations(changes: np.ndarray, own: np.ndarray, sites: list[str], letters: str):
    """Changes of log p (L, q) of `mutations.scan`, with a dot at the residue that the sequence
    `own` (L,) has, grey where that is a gap; sites: their names; letters: the alphabet."""
    from matplotlib import colormaps

    rows = -(-len(sites) // STRIP)
    figure = style.new(2, 0.6 + 0.11 * len(letters) * rows)
    most = np.nanpercentile(abs(changes), 99)  # colours are full from there on
    colours = colormaps["RdBu"].with_extremes(bad="0.85")
    looks = dict(cmap=colours, vmin=-most, vmax=most, aspect="auto", interpolation="none")
    for row, axes in enumerate(figure.subplots(rows, 1, squeeze=False).flat):
        first, last = STRIP * row, min(STRIP * (row + 1), len(sites))
        drawn = axes.imshow(changes[first:last, 1:].T, **looks)
        with_residue = np.flatnonzero(own[first:last])
        axes.plot(with_residue, own[first:last][with_residue] - 1, "k.", markersize=2)
        axes.set_xlim(-0.5, STRIP - 0.5)
        axes.set_xticks(range(0, last - first, 5), sites[first:last:5])
        axes.set_yticks(range(len(letters) - 1), letters[1:])
        axes.tick_params(labelsize=6, length=0)
        axes.spines["bottom"].set_bounds(-0.5, last - first - 0.5)
    figure.colorbar(drawn, ax=figure.axes, label="change of log p (nats)", aspect=40)
    return figure


@style.in_house_style
def draw_generated(table: pd.DataFrame, points: pd.DataFrame):
    """Six panels of the tables of `family_statistics`: three statistics, projections, distances to
    the nearest natural sequence, and how the chains mix."""
    figure = style.new(2, 4.8)
    *statistics, components, distances, chains = figure.subplots(2, 3).flat
    drawn = dict(iter(points.groupby(["panel", "series"])))
    for letter, axes, row in zip("abc", statistics, table.itertuples(), strict=True):
        values = drawn[row.statistic, "values"]
        ends = values[["x", "y"]].to_numpy()
        axes.plot([ends.min(), ends.max()], [ends.min(), ends.max()], color=style.ORIGINAL)
        axes.plot(values["x"], values["y"], ".", color=COLOURS["generated"], markersize=1.5)
        axes.set(xlabel="natural", ylabel="generated", title=f"({letter}) {TITLES[row.statistic]}")
        said = f"r = {row.correlation:.3f}\nslope {row.slope:.2f}\nhalves: r = {row.halves:.3f}"
        axes.text(0.05, 0.95, said, transform=axes.transAxes, va="top", fontsize=style.SMALL)
    for series, colour in COLOURS.items():
        along, near = drawn["components", series], drawn["distances", series]
        components.plot(along["x"], along["y"], ".", color=colour, markersize=2, label=series)
        distances.plot(near["x"], near["y"], color=colour, label=series)
    components.set(xlabel="first component", ylabel="second", title="(d) principal components")
    distances.set(
        xlabel="sites that differ (share)",
        ylabel="share of sequences",
        title="(e) nearest natural sequence",
    )
    style.legend_below(distances, 2)
    for name, (label, colour) in CHAINS.items():
        later = drawn["mixing", name]
        chains.plot(later["x"], later["y"], ".-", color=colour, label=label)
    chains.set(
        xscale="log",
        xlabel="sweeps later",
        ylabel="share of sites",
        title="(f) chains have the colour of",
    )
    style.plain_ticks(chains.xaxis)
    style.legend_below(chains)
    return figure
