"""Energies of sequences under a family's pair model, and what mutations of its reference change.

    E(s) = -sum_i h_i(s_i) - sum_{i < j} J_ij(s_i, s_j),   p(s) = exp(-E(s)) / Z

Energies and changes of log p are in nats. Sites are columns of the family; the reference record
says which of its residues stands in which (`numbers` and `aligned` of the model's document).
"""

import csv
import io
import math
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from Bio.Data.IUPACData import protein_letters_3to1

from manybody.data import SourceError, alignment, pair_formats, profile, sequence_weights
from manybody.data.pair_model import PairModel
from manybody.io.refusal import Refusal
from manybody.measure.contacts import site_names

MUTATION = r"^([A-Za-z])(-?\d+)([A-Za-z*-])$"
HGVS = protein_letters_3to1 | {"Ter": "*", "del": "-"}
FITS = 0.9  # share of the positions whose residues must agree for an offset to be named
DEVIATIONS = 1.96  # of a 95 % interval
IDENTITY = 0.8  # share of equal columns from which sequences share their weight
NUCLEIC = {*"ACGTUN", *alignment.GAPS}
BY_PROFILE = "by the profile"
SAME_FAMILY = ("file_sha256", "columns", "reference", "coverage", "identity")
# The columns of `effects` that are computed, in words.
COMPUTED = {"change": "the model", "single_site": "frequencies of single sites"}


def opened(
    path: str | Path, aligned: str | Path | None = None, learned: bool = False
) -> tuple[PairModel, np.ndarray | None, np.ndarray | None]:
    """The model in a folder of `manybody family`, or in a file of a format of `pair_formats`, and
    the tokens (N, L) and weights (N,) of its family, None where there is no alignment.

    aligned: a FASTA file with a column a site, the folder's own by default, whose first record is
    the reference of a model that has none. learned: the folder's model of Boltzmann learning, where
    it has one. `Refusal` says what does not fit.
    """
    folder = Path(path)
    if folder.is_dir():
        path, aligned = folder / "model.safetensors", aligned or folder / "family.fasta"
    model = pair_formats.read_model(path)
    if learned and folder.is_dir() and (other := folder / "boltzmann" / path.name).is_file():
        found = pair_formats.read_model(other)
        # The learning may have been of another family in the same folder.
        same = all(found.about.get(key) == model.about.get(key) for key in SAME_FAMILY)
        model = found if same else model
    if aligned is None:
        return model, None, None
    names, rows = alignment.read(Path(aligned), alignment.format_of(Path(aligned)))
    kind, about = model.about["kind"], model.about
    tokens, _ = alignment.encode(Path(aligned), names, rows, kind, confirmed=True)
    if tokens.shape[1] != model.length:
        raise Refusal(
            f"{aligned} has {tokens.shape[1]} columns and the model {model.length} sites; expected "
            "the sequences that the model is of, without the columns that it leaves out"
        )
    if "aligned" not in about:
        found = alignment.reference(Path(aligned), names, rows, "fasta", None)
        about = about | dict(zip(("reference", "aligned", "numbers"), found, strict=False))
    similar = sequence_weights.neighbours(tokens, about.get("identity", IDENTITY))
    return PairModel(model.fields, model.couplings, about), tokens, 1 / similar.counts


# --- Energies ------------------------------------------------------------------------------------


def energies(
    model: PairModel, path: str | Path, family: np.ndarray | None = None
) -> tuple[pd.DataFrame, list[str]]:
    """Energies of the sequences of a file, as FASTA, under a model: a row each; and sentences on
    what of the file is passed over.

    Columns: `name`; `energy`; `residues`, how many of the model's columns have one (gaps that were
    left out of a fit have no couplings: compare sequences with about as many); `dropped`, letters
    in no column of the model; `unknown`, stops and letters of several residues, which count as
    gaps; `placed`, `as given` or `by the profile`.

    A record is taken as given if it has as many columns as the model or its alignment, without the
    lower-case letters and dots of A3M. Others, and beside such also records without gaps, are
    aligned to the profile of tokens `family` (N, L).
    """
    path = Path(path)
    form, text = alignment.format_of(path), alignment.read_text(path).replace("\0", "")
    read = alignment.parsed(text, form, path)
    kept = [record for record in read if not record[0].startswith(alignment.ANNOTATION)]
    bare = [name for name, row in kept if not row.strip(alignment.GAPS + "*")]
    if bare or not kept:
        raise SourceError(
            f"{path}: without residues are {', '.join(bare[:3]) or 'all'}, {len(bare)} of "
            f"{len(kept)} sequences; expected one or more, with residues in each; leave such out"
        )
    names, letters = zip(*kept, strict=True)
    kind = model.about["kind"]
    # Only such letters may be proteins if those of the model are such, too.
    plain = [
        set(row.upper()) <= NUCLEIC for row in ("".join(letters), model.about.get("aligned", "X"))
    ]
    if (other := alignment.likely(letters, kind, plain != [True, False])) != kind:
        raise SourceError(
            f"{path}: its letters are those of {other} and the model is of {kind}; give sequences "
            f"of {kind}, or a model of such as these"
        )
    given = [_in_columns(row.rstrip("*"), model) for row in letters]
    other = []
    if None in given:
        other = [n for n, row in enumerate(given) if "-" not in (row or "")]
        if family is None:
            odd = given.index(None)
            raise Refusal(
                f"{path}: record {names[odd]} has {len(letters[odd])} letters and the "
                f"model {model.length} columns, and there is no alignment of the family to align "
                "it to; give the folder that `manybody family` made, or --alignment"
            )
        rows, width = letters_of(family, model.about), max(map(len, letters))
        parts = [[one[n] for n in other] for one in (names, letters)]
        padded = [row.ljust(width, "-") for row in parts[1]]
        alignment.encode(path, parts[0], padded, kind, confirmed=True)
        for n, row in zip(other, profile.align(*parts, rows, kind), strict=True):
            given[n] = row
    tokens, _ = alignment.encode(path, names, given, kind, confirmed=True)
    residues = (tokens != alignment.GAP).sum(axis=1)
    placed, had = (
        pd.Series(part).str.rstrip("*").str.count(f"[^{alignment.GAPS}]")
        for part in (given, letters)
    )
    table = pd.DataFrame(
        dict(
            name=names,
            energy=-model.scores(tokens),
            residues=residues,
            dropped=had - placed,
            unknown=placed - residues,
            placed=np.where(np.isin(np.arange(len(names)), other), BY_PROFILE, "as given"),
        )
    )
    passed = {
        "residues in no column of the model, which do not count": table["dropped"].sum(),
        "letters of several residues or stops, which count as gaps": table["unknown"].sum(),
        "sequences with a residue in less than half of the columns, whose energies say little (of "
        "several domains give one a record)": (2 * residues < model.length).sum(),
        "records of annotation passed over": len(read) - len(kept),
        **alignment.remarks(text, form),
    }
    return table, [f"{what}: {count}" for what, count in passed.items() if count]


def _in_columns(row: str, model: PairModel) -> str | None:
    """The letters in the columns of the model; None of a record that is not aligned to them."""
    columns = model.about.get("columns", range(1, model.length + 1))
    width = model.about.get("width", model.length)
    for letters in (row.translate(alignment.INSERTIONS), row):
        if len(letters) == model.length:
            return letters
        if len(letters) == width:
            return "".join(letters[column - 1] for column in columns)
    return None


def letters_of(tokens: np.ndarray, about: dict) -> list[str]:
    """Tokens (N, L) in the letters of the alphabet of a document."""
    return ["".join(row) for row in np.array(list(about["alphabet"]))[tokens]]


# --- The reference -------------------------------------------------------------------------------


def reference(model: PairModel) -> np.ndarray:
    """Tokens (L,) of the reference record; `Refusal` if the model's document does not have it."""
    if "aligned" not in model.about:
        raise Refusal(
            "the model does not say which sequence is its reference; give the alignment of the "
            "family, --alignment, or the folder that `manybody family` made"
        )
    record, kind = model.about["aligned"], model.about["kind"]
    name = model.about.get("reference", "reference")
    return alignment.encode(Path(name), [name], [record], kind, confirmed=True)[0][0]


def scan(model: PairModel, tokens: np.ndarray | None = None) -> np.ndarray:
    """Changes of log p (L, q) when one site of tokens (L,), the reference by default, becomes each
    colour, nan in rows where it has a gap and in the column of the gap:

        log p(s with s_i = a) - log p(s) = h_i(a) - h_i(s_i) + sum_j J_ij(a, s_j) - J_ij(s_i, s_j)
    """
    tokens = reference(model) if tokens is None else np.asarray(tokens)
    logits = model.logits(tokens[None])[0]
    found = logits - np.take_along_axis(logits, tokens[:, None], axis=1)
    found[tokens == alignment.GAP] = np.nan
    found[:, alignment.GAP] = np.nan
    return found


def listed(model: PairModel, changes: np.ndarray) -> pd.DataFrame:
    """The changes of `scan` as a table: `mutant`, such as A24G, `column` of the file, from
    1, `change`."""
    sites, letters = site_names(model.about, model.length), model.about["alphabet"]
    own, columns = reference(model), model.about.get("columns", range(1, model.length + 1))
    rows = [
        (f"{sites[i]}{letters[a]}", columns[i], changes[i, a])
        for i, a in np.argwhere(np.isfinite(changes))
        if a != own[i]
    ]
    return pd.DataFrame(rows, columns=["mutant", "column", "change"])


# --- Measured effects ----------------------------------------------------------------------------


class Correlation(NamedTuple):
    """Spearman's correlation of n pairs of values, and the ends of its 95 % interval."""

    value: float
    low: float
    high: float
    count: int


def spearman(first: np.ndarray, second: np.ndarray) -> Correlation:
    """Rank correlation, with the interval of Bonett and Wright (2000): atanh of it is about normal
    with variance (1 + r^2 / 2) / (n - 3). Pairs with nan do not count, ties share a rank."""
    from scipy.stats import spearmanr

    both = ~np.isnan(first) & ~np.isnan(second)
    count = int(both.sum())
    varied = count > 3 and min(len({*one[both]}) for one in (first, second)) > 1
    value = float(spearmanr(first[both], second[both]).statistic) if varied else math.nan
    if not abs(value) < 1:
        return Correlation(value, value, value, count)
    wide = DEVIATIONS * math.sqrt((1 + value**2 / 2) / (count - 3))
    low, high = (math.tanh(math.atanh(value) + side * wide) for side in (-1, 1))
    return Correlation(value, low, high, count)


def effects(
    model: PairModel, path: str | Path, offset: int = 0, logs: np.ndarray | None = None
) -> pd.DataFrame:
    """A table of measured effects in ProteinGym's form, with what the model says of each mutant.

    The file has columns `mutant`, such as A24G, several joined by `:`, and `DMS_score`, below lines
    of `#`, if any; positions plus `offset` are residue numbers of the reference. The result has
    these two columns and `change`, of log p; with `logs` (L, q) of `site_logs`, also `single_site`,
    the change of their sum. Both are nan for a mutant with a stop, a deletion, or a position that
    is not in the model. `SourceError` for a table that is not of this form, or whose residues are
    not those of the reference, with the offset that fits.
    """
    own, about = reference(model), model.about
    remarks, text = re.fullmatch(
        r"((?:#.*\n)*)([\s\S]*)", alignment.read_text(Path(path)).translate(alignment.DASHES)
    ).groups()
    head = text.partition("\n")[0]
    try:
        separator = "\t" if "\t" in head else max(",;", key=head.count)
        rows = list(csv.reader(io.StringIO(text), delimiter=separator))
        for number, values in enumerate(rows, start=1 + remarks.count("\n")):
            if any(values[len(rows[0]) :]):
                raise ValueError(
                    f"line {number} has {len(values)} values, the first line {len(rows[0])} names; "
                    "are there decimal commas, or commas in names that are not in quotes?"
                )
        kinds = {"mutant": str, "DMS_score": float}
        found = pd.read_csv(
            io.StringIO(text), sep=separator, usecols=[*kinds], dtype=kinds,
            skip_blank_lines=False, skipinitialspace=True,
        )  # fmt: skip
        if max(map(rows[0].count, kinds)) > 1:
            raise ValueError("a column comes more than once")
        found = found[[*kinds]].dropna(how="all").fillna({"mutant": ""})
        found.index += remarks.count("\n")  # rows are named by their lines
        if found["DMS_score"].isna().all():
            raise ValueError("it has no row with a number as DMS_score")
    except (ValueError, csv.Error) as error:
        raise SourceError(
            f"{path}: {str(error).removeprefix('Usecols do not match columns, ')}; found the first "
            f"line {head[:60]!r}, expected a table with columns mutant and DMS_score, as of "
            "ProteinGym, separated by commas, semicolons or tabs, and numbers with a decimal "
            "point; name the columns so in its first line, and write a row for each mutant"
        ) from error
    row, wild, position, new = _mutations(path, found["mutant"], about["kind"])
    site_of = {number: site for site, number in enumerate(about["numbers"]) if number is not None}
    sites = (position + offset).map(site_of)
    at = sites.dropna().astype(int)
    if not len(at) or (wild[at.index] != np.array(list(about["aligned"].upper()))[at]).any():
        raise SourceError(f"{path}: {_misplaced(wild, position, about, offset)}")
    colours = new.map({letter: n for n, letter in enumerate(about["alphabet"]) if letter != "-"})
    scored = (sites.notna() & colours.notna()).groupby(row).transform("all")
    rows, place = np.unique(row[scored], return_inverse=True)
    tokens = np.tile(own, (len(rows), 1))
    tokens[place, sites[scored].astype(int)] = colours[scored]
    found.loc[rows, "change"] = model.scores(tokens) - model.scores(own[None])
    if logs is not None:
        every = np.arange(len(own))
        found.loc[rows, "single_site"] = (logs[every, tokens] - logs[every, own]).sum(axis=1)
    return found


def _mutations(path: str | Path, mutants: pd.Series, kind: str) -> tuple[pd.Series, ...]:
    """Each single mutation: the row of its mutant, residue, position, and new residue, of names as
    A24G, ALA24GLY or, as HGVS has them, p.Ala24Gly and p.Ala24= for none, joined by colons,
    semicolons or commas."""
    single = (
        mutants.str.replace(r"(\w+\.\d+:)?\bp\.|[()[\]]", "", regex=True)
        .str.replace(
            "[A-Z][a-z]{2}|[A-Z]{3}|del",
            lambda found: HGVS.get(found[0], HGVS.get(found[0].title(), found[0])),
            regex=True,
        )
        .str.replace(r"([A-Za-z])(-?\d+)=", r"\1\2\1", regex=True)
        .str.split("[:;,]", regex=True)
        .explode()
    )
    parts = single.str.strip().str.extract(MUTATION).reset_index(names="row")
    wrong = parts.isna().any(axis=1) | parts.duplicated(["row", 1])
    if wrong.any():
        first = parts["row"][wrong].iloc[0]
        raise SourceError(
            f"{path}, line {first + 2}: found mutant {mutants[first]!r}, expected one like A24G or "
            "p.Ala24Gly, or several of different sites joined by ':'; write it so, and leave out "
            "rows of the wild type and of what is no exchange"
        )
    wild, new = (parts[n].str.upper().replace(alignment.ALPHABETS[kind]["read_as"]) for n in (0, 2))
    return parts["row"], wild, parts[1].astype(int), new


def _misplaced(wild: pd.Series, position: pd.Series, about: dict, offset: int) -> str:
    """Sentence on residues that are not those of the reference, and the offset that fits."""
    letter = dict(zip(about["numbers"], about["aligned"].upper(), strict=True))
    letter.pop(None, None)  # columns where it has a gap
    asked = sorted({*zip(position, wild, strict=True)})
    other = [(place, one) for place, one in asked if letter.get(place + offset, one) != one]
    if other:
        place, one = other[0]
        said = (
            f"{len(other)} of {len(asked)} residues are not those of the reference, the first of "
            f"them {one} at {place} + {offset}, where it has {letter[place + offset]};"
        )
    else:
        said = (
            f"none of its positions, {asked[0][0]} to {asked[-1][0]} with offset {offset}, is one "
            f"of the model's, {min(letter)} to {max(letter)};"
        )
    agree = Counter(
        number - place for place, one in asked for number in letter if letter[number] == one
    )
    best, count = agree.most_common(1)[0] if agree else (offset, 0)
    inside = sum(place + best in letter for place, _ in asked)
    if best != offset and count >= FITS * inside:
        return f"{said} with --offset {best}, {count} of {inside} agree"
    if other and len(asked) - len(other) >= FITS * len(asked):
        return f"{said} correct the rows of such mutants, or leave them out"
    return (
        f"{said} no offset makes them agree (best {best}: {count} of {inside}); take the sequence "
        "that was mutated as the reference record of the alignment, or keep the columns of these "
        "positions (--occupancy of `manybody family`)"
    )


def site_logs(tokens: np.ndarray, weights: np.ndarray, vocabulary: int) -> np.ndarray:
    """Logarithms (L, q), up to a constant, of the weighted frequencies of single sites of tokens
    (N, L), each colour counted once more than it comes."""
    return np.log(np.stack([weights @ (tokens == q) for q in range(vocabulary)], axis=1) + 1)


def agreement(found: pd.DataFrame) -> tuple[dict[str, Correlation], float]:
    """Correlations of the measured effects of `effects` with what is computed, by column, and the
    share of the measured mutants that could be scored."""
    correlations = {
        name: spearman(*found[[name, "DMS_score"]].to_numpy().T)
        for name in COMPUTED
        if name in found
    }
    return correlations, float(found["change"][found["DMS_score"].notna()].notna().mean())


def answers(found: pd.DataFrame) -> list[str]:
    """Sentences on how the measured effects of `effects` agree with what is computed."""
    correlations, share = agreement(found)
    twice, lacking = found["mutant"].duplicated().sum(), found["DMS_score"].isna().sum()
    return [
        f"{share:.0%} of the measured mutants could be scored"
        + f"; rows that repeat a mutant, which count too: {twice}" * bool(twice)
        + f"; rows without a measured effect, which do not count: {lacking}" * bool(lacking)
    ] + [
        f"Spearman's correlation with {COMPUTED[name]}: {one.value:.3f} ({one.low:.3f} to "
        f"{one.high:.3f}, 95 %; {one.count} mutants)"
        if math.isfinite(one.value)
        else f"There is no correlation with {COMPUTED[name]}: {one.count} mutants were scored; "
        "expected 4 or more, with different values"
        for name, one in correlations.items()
    ]
