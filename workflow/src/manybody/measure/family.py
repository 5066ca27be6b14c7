"""A family by its pair model: scores of its pairs, contacts, held-out sequences.

The model is fitted to all sequences by pseudo-likelihood (docs/science/potts.md, section 5), and to
four fifths of them, whole clusters of similar ones, for what the couplings are worth for the
others. Scores and contacts are of columns of the file: where the model lacks some, of too many
gaps, another fit that has all scores the pairs.
"""

import hashlib
import math
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from manybody.data import SourceError, alignment
from manybody.data.family import Family, depth, read
from manybody.data.pair_formats import write_adabmdca, write_casp, write_evcouplings, write_matrix
from manybody.data.pair_model import PairModel
from manybody.io.atomic import ArtifactError, read_json, sha256, to_json, write_json, write_text
from manybody.io.code_digest import code_digest
from manybody.io.logs import tell
from manybody.io.progress import Progress
from manybody.io.refusal import Refusal
from manybody.io.tables import write_csv
from manybody.measure import contacts, known_contacts, mutations
from manybody.training import pair_fit

HELD_OUT = 0.1  # share of each of the two splits that are held out
SEED = 0
PROGRAM = 0.3 * 2**30  # bytes that the program takes without a fit
LONG = 2**26  # couplings whose fit takes minutes, and tells its progress in a list of families
CHUNK = 512  # sequences whose logits are worked out at once
FAR = (12, 24)  # separations of pairs beside the least one
NEAREST = {"protein": 6, "rna": 4, "dna": 4}
PARTS = (5, 2, 1)  # the best L / n pairs count
BRACKETS = ("()", "[]", "{}", "<>", "Aa", "Bb", "Cc", "Dd")
MODEL, RECORD = "model.safetensors", "family.json"
ALL_COLUMNS = "all-columns.safetensors"  # the fit that scores pairs, where `MODEL` lacks columns
LEARNED = "boltzmann"  # the folder in that of a family that has the model of Boltzmann learning
TABLES = ("contacts.csv", "precision.csv", "contacts.rr", "family.fasta")
FORMATS = ("adabmdca.dat", "ccmpred.mat", "evcouplings.csv")  # of other programs
SHOWN = 5  # best pairs that are named


@dataclass(frozen=True)
class Found:
    """A family, its model, and scores (L, L) of all columns of the file before and after the
    average product correction, nan of columns without residues.

    precision: how many of the best pairs are contacts, a row each of `separation`, `part` (L/5),
    `pairs`, `share`, `error` (binomial) and `chance`, the share of all; empty if none is known.
    """

    family: Family
    model: PairModel
    raw: np.ndarray
    scores: np.ndarray
    separation: int
    truth: contacts.Truth | None
    precision: pd.DataFrame

    @property
    def scored(self) -> int:
        """Number of columns of the file that have scores, the L of precision."""
        return int(np.isfinite(self.scores).any(axis=0).sum())

    @property
    def best(self) -> list[tuple[int, int]]:
        """The best L / 2 pairs (from 0) of columns at least `separation` apart."""
        pairs = contacts.best_pairs(self.scores, self.separation, np.isfinite(self.scores))
        return list(map(tuple, np.transpose(pairs)[: self.scored // 2].tolist()))


def opened(
    path: str | Path, structure: str | Path | None, chain: str | None = None, **reading
) -> tuple[Family, contacts.Truth | None]:
    """A family, read with options of `data.family.read`, and its `Truth`. If none is named and the
    structure is not the first record's, the reference is the record most like the structure."""
    family = read(path, **reading)
    try:
        return family, truth_of(family, structure, chain)
    except known_contacts.OtherRecord:
        if reading.get("reference") is not None:
            raise
    about = family.about
    records = alignment.read(Path(about["file"]), about["format"])
    reading["reference"] = known_contacts.record_like(structure, *records, about["kind"])
    family = read(path, **reading)
    return family, truth_of(family, structure, chain)


def truth_of(
    family: Family, path: str | Path | None, chain: str | None = None
) -> contacts.Truth | None:
    """Known contacts and pairs of a family: from a file, else the alignment's own consensus
    structure, if it has one of RNA or DNA. `SourceError` says what does not fit."""
    length = len(family.whole["numbers"])
    if path is not None:
        near, known, _, more = known_contacts.read(path, family.whole, length, chain)
        return contacts.Truth(near, known, more["said"])
    if family.structure is None or family.about["kind"] == "protein":
        return None
    near = known_contacts.of_brackets(family.about["file"], family.structure, length)
    said = [f"{near.sum() // 2} pairs of the alignment's own SS_cons, no others in contact"]
    return contacts.Truth(near, ~np.eye(length, dtype=bool), said) if near.any() else None


# --- Fit -----------------------------------------------------------------------------------------


def memory(family: Family) -> str:
    """A sentence on the memory of the fit; `Refusal` where the machine has less."""
    import psutil

    # The model of all sequences stays while the other fits run, of which one has all columns.
    model = blank(family).couplings.size * 4
    needed = PROGRAM + model + pair_fit.memory(family.about["width"], family.vocabulary)
    there = psutil.virtual_memory().total
    said = f"the fit needs about {needed / 2**30:.2f} GB of memory"
    if needed > there:
        raise Refusal(
            f"{family.about['file']}: {said}, this machine has {there / 2**30:.1f} GB; give "
            "a file of fewer columns, or take a larger machine"
        )
    return said


def fitted(
    family: Family, path: Path | None, threads: int = 1, label: str = "", apart: bool = True
) -> PairModel:
    """The model of all sequences, kept in the file `path` if one is given: the same family is not
    fitted again. If `apart`, its document has `held_out`: the mean loss of sequences that another
    fit did not see, in nats a residue, its standard error, that of single-site frequencies, and the
    number of sequences; or, under `why`, why there is none."""
    about = family.about | {"fit": dict(of="all sequences", code=code_digest(pair_fit.__file__))}
    model = _kept(path, about) if path else None
    if model is None:
        model = replace(_fit(family, slice(None), threads, label), about=about)
        if path:
            model.save(path)
    if apart and "held_out" not in model.about:
        found = held_out(family, threads, f"{label}, four fifths" if label else "")
        model = replace(model, about=about | {"held_out": found})
        if path:
            model.save(path)
    return model


def of_all_columns(
    family: Family, model: PairModel, path: Path | None, threads: int = 1, label: str = ""
) -> PairModel:
    """The model that scores pairs, of all columns in which any sequence has a residue: `model` if
    it lacks none, else another fit, kept in the file `path` as `fitted` does. Contacts of columns
    with many gaps are found as well as others, since gaps are no input."""
    about = family.about
    if not about["left_out"]["columns"]:
        return model
    every = read(
        about["file"],
        about["format"],
        about["kind"],
        about["reference"],
        occupancy=0.0,
        coverage=about["coverage"],
        identity=about["identity"],
        threads=threads,
    )
    return fitted(every, path, threads, f"{label}, all columns" if label else "", apart=False)


def blank(family: Family) -> PairModel:
    """A model of the sites of a family without fields or couplings, which takes no memory."""
    length, vocabulary = family.tokens.shape[1], family.vocabulary
    couplings = np.broadcast_to(np.float32(0), (length, length, vocabulary, vocabulary))
    return PairModel(np.zeros((length, vocabulary)), couplings, family.about)


def _kept(path: Path, about: dict) -> PairModel | None:
    """The model in a file if it was fitted to the same family by the same code."""
    try:
        model = PairModel.load(path)
    except (ArtifactError, OSError):
        return None
    return model if model.about | about == model.about else None


def _fit(family: Family, rows, threads: int, label: str) -> PairModel:
    return pair_fit.fit(
        family.tokens[rows], family.vocabulary, family.weights[rows], threads=threads, label=label
    )


def held_out(family: Family, threads: int, label: str) -> dict:
    """Held-out losses of `fitted`, of sequences that were not fitted."""
    try:
        seen, rows = split(family, threads)
    except SourceError as error:
        return {"why": str(error).partition(" Raise `identity`")[0].rstrip(".")}
    model = _fit(family, seen, threads, label)
    logs = mutations.site_logs(family.tokens[seen], family.weights[seen], family.vocabulary)
    tokens, weights, found = family.tokens[rows], family.weights[rows], []
    for start in range(0, len(tokens), CHUNK):
        part = tokens[start : start + CHUNK]
        alone = np.tile(logs, (len(part), 1, 1))
        found.append([residue_losses(one, part) for one in (model.logits(part), alone)])
    losses, single = np.concatenate(found, axis=1)
    mean, of_sites = (np.average(one, weights=weights) for one in (losses, single))
    error = math.sqrt(((weights * (losses - mean)) ** 2).sum()) / weights.sum()
    return dict(loss=float(mean), error=float(error), single=float(of_sites), sequences=len(rows))


def split(family: Family, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows of four fifths of the sequences and of the others, by whole clusters of similar ones;
    `SourceError` where there are too few."""
    source = dict(
        split=dict(validation=HELD_OUT, test=HELD_OUT), seed=SEED,
        identity=family.about["identity"],
    )  # fmt: skip
    parts, _ = alignment.split(family.tokens, source, threads, family.clusters)
    return parts["train"], np.concatenate([parts["validation"], parts["test"]])


def residue_losses(logits: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Mean of -log P(s_i) over the residues of each of tokens (N, L), in nats: (N,), from the
    logits (N, L, q) of each site. A gap is no target, and P is that of residues."""
    logits = np.where(np.arange(logits.shape[2]) == alignment.GAP, -np.inf, logits)
    logits -= logits.max(axis=2, keepdims=True)
    own = np.take_along_axis(logits, tokens[..., None], axis=2)[..., 0]
    residues = tokens != alignment.GAP
    losses = np.where(residues, np.log(np.exp(logits).sum(axis=2)) - own, 0.0)
    return losses.sum(axis=1) / np.maximum(residues.sum(axis=1), 1)


def learned(family: Family, model: PairModel, folder: Path, threads: int) -> str:
    """Sentences on Boltzmann learning from `model`, and, if it reaches its target, on the
    log-likelihood of sequences that another one, of four fifths, did not see. Both are kept in
    `folder`, and not learned again of the same family."""
    from manybody.measure.family_statistics import log_likelihood

    out = folder / LEARNED
    try:
        ended = _learned(family, slice(None), model.about, out, threads, model).about["boltzmann"]
    except Refusal as error:
        return f"There is no Boltzmann learning: {error}."
    said = (
        f"Boltzmann learning has {'' if ended['reached'] else 'not '}reached its target, a "
        f"correlation of {ended['target']:g} with the connected pair correlations of the family: "
        f"{ended['reason']}."
    )
    if not ended["reached"] or "loss" not in model.about.get("held_out", {}):
        return said
    seen, rows = split(family, threads)
    other = _learned(
        family, seen, model.about | {"of": "four fifths"}, out / "four-fifths", threads
    )
    data = ((family.tokens[part], family.weights[part]) for part in (rows, seen))
    return f"{said} {log_likelihood(other, *data, threads=threads)}"


def _learned(
    family: Family, rows, about: dict, out: Path, threads: int, start: PairModel | None = None
) -> PairModel:
    """The model of some rows that is kept in a folder, or else learned, from a fit by default."""
    from manybody.training import boltzmann

    about = about | {"learned": code_digest(boltzmann.__file__)}
    found = _kept(out / boltzmann.FILE, about)
    if found is None:
        label = f"Learning {about['source']} until its target"
        start = replace(start or _fit(family, rows, threads, label), about=about)
        found = boltzmann.learn(
            start, family.tokens[rows], family.weights[rows], out, threads=threads, label=label
        )
    return found


def three_body(family: Family, threads: int) -> str:
    """A sentence on what three-body terms add to the pairs on held-out sequences."""
    from manybody.training.three_body import compare

    try:
        found = compare(
            family.tokens,
            family.vocabulary,
            family.weights,
            family.clusters,
            threads=threads,
            label=f"Three-body terms of {family.about['source']}",
        )
    except ValueError as error:
        return f"Whether three-body terms matter cannot be said: {error}."
    return (
        f"Three-body terms add {found.gain:.4f} ({found.low:.4f} to {found.high:.4f}, 95 %) nats a "
        f"site on {found.held_out} held-out sequences; do they matter (at least .01)? "
        f"{found.verdict.capitalize()}."
    )


# --- Scores --------------------------------------------------------------------------------------


def found_in(
    family: Family,
    model: PairModel,
    truth: contacts.Truth | None,
    separation: int | None = None,
    scored: PairModel | None = None,
) -> Found:
    """Contacts of a family by its model, scores of pairs by `scored`, by default the same. Pairs
    nearer than `separation` columns do not count, by default 6 of proteins, 4 of RNA and DNA."""
    separation = NEAREST[family.about["kind"]] if separation is None else separation
    scored = scored or model
    norms, sites = scored.norms(alignment.GAP), np.array(scored.about["columns"]) - 1
    raw, scores = np.full((2, *2 * [len(family.whole["numbers"])]), np.nan)
    raw[np.ix_(sites, sites)] = norms
    scores[np.ix_(sites, sites)] = contacts.apc(norms)
    rows = []
    if truth is not None:
        known = truth.known & np.isfinite(scores)
        for apart in (separation, *(far for far in FAR if far > separation)):
            shares = contacts.precision(scores, truth.contacts, apart, known)
            for part in PARTS if len(shares) else ():
                count = min(max(1, scored.length // part), len(shares))
                share, chance = shares[[count - 1, -1]].tolist()
                error = contacts.binomial_error(share, count)
                rows.append((apart, f"L/{part}".removesuffix("/1"), count, share, error, chance))
    columns = ["separation", "part", "pairs", "share", "error", "chance"]
    precision = pd.DataFrame(rows, columns=columns)
    return Found(family, model, raw, scores, separation, truth, precision)


def dot_bracket(pairs: Iterable[tuple[int, int]], length: int) -> str:
    """Pairs of sites, from 0 and the best first, as brackets: a site is in one pair at most, pairs
    that cross stand in other brackets. What fits none is left out."""
    signs, layers = ["."] * length, {brackets: [] for brackets in BRACKETS}
    for i, j in pairs:
        free = [
            brackets
            for brackets, held in layers.items()
            if not any(i < a < j < b or a < i < b < j for a, b in held)
        ]
        if free and signs[i] == signs[j] == ".":
            signs[i], signs[j] = free[0]
            layers[free[0]].append((i, j))
    return "".join(signs)


# --- Files ---------------------------------------------------------------------------------------


def write_tables(found: Found, folder: str | Path, formats: bool = False) -> None:
    """Writes `TABLES` to a folder: the scores of all pairs with the names of the sites, how many
    of the best are contacts, the scores as CASP's RR, and the sequences that were fitted. With
    `formats` also `FORMATS`: parameters for adabmDCA, sites from 0, and scores for CCMpred
    (corrected, 0 for columns without residues) and EVcouplings (of the reference's sites)."""
    folder, family = Path(folder), found.family
    i, j = np.nonzero(np.triu(np.isfinite(found.scores), 1))  # columns of the file, from 0
    frame = pd.DataFrame(dict(i=i + 1, j=j + 1, score=found.raw[i, j], apc=found.scores[i, j]))
    names = contacts.site_names(family.whole, len(found.scores))
    contacts.write_list(folder / "contacts.csv", frame, names)
    write_csv(found.precision, folder / "precision.csv", digits=None)
    write_casp(folder / "contacts.rr", found.scores, family.whole, found.separation)
    rows = zip(family.names, mutations.letters_of(family.tokens, family.about), strict=True)
    write_text(folder / "family.fasta", "".join(f">{name}\n{row}\n" for name, row in rows))
    if formats:
        write_adabmdca(folder / "adabmdca.dat", found.model)
        write_matrix(folder / "ccmpred.mat", np.nan_to_num(found.scores))
        write_evcouplings(folder / "evcouplings.csv", frame, family.whole)


def record(found: Found) -> dict:
    """Numbers of a family's page, as JSON has them."""
    about, names = found.family.about, contacts.site_names(found.family.whole, len(found.scores))
    ratio, warning = depth(about)
    keys = (
        "kind", "records", "sequences", "effective", "identity", "left_out", "file", "reference",
    )  # fmt: skip
    known = () if about["kind"] == "protein" else found.best
    return {key: about[key] for key in keys} | dict(
        name=about["source"], length=found.model.length, scored=found.scored,
        ratio=ratio, warning=warning,
        held_out=found.model.about.get("held_out", {}), separation=found.separation,
        precision=found.precision.to_dict("records"),
        best=[f"{names[i]} and {names[j]}" for i, j in found.best[:SHOWN]],
        brackets=dot_bracket(known, len(names)) if known else "",
        record=found.family.whole["aligned"],
        said=about["said"], known=found.truth.said if found.truth else [],
    )  # fmt: skip


def answers(record: dict) -> list[str]:
    """Three sentences: what the best pairs are, what they are worth, and on how much they rest;
    first one on measured effects, where there are any."""
    apart = f"at least {record['separation']} apart"
    half = next((row for row in record["precision"] if row["part"] == "L/2"), None)
    best = f"The best pairs {apart} are {', '.join(record['best']) or 'none'}."
    if half:
        best = (
            f"Of the best {half['pairs']} pairs {apart} (L/2), {100 * half['share']:.0f} ± "
            f"{100 * half['error']:.0f} % are in contact, against {100 * half['chance']:.1f} % of "
            "all."
        )
    held = record["held_out"]
    worth = f"No sequences could be held out ({held.get('why')})."
    if "loss" in held:
        worth = (
            f"The couplings predict a residue of {held['sequences']} held-out sequences at "
            f"{held['loss']:.3f} ± {held['error']:.3f} nats, frequencies of single sites at "
            f"{held['single']:.3f}."
        )
    counted = record["warning"] or (
        f"{record['effective']:.0f} effective sequences are {record['ratio']:.1f} a site"
    )
    effects = "; ".join(record.get("effects", ())[1:])
    return [
        *[f"{effects}."] * bool(effects),
        best,
        worth,
        f"{record['sequences']} sequences of {record['length']} sites: {counted}.",
    ]


# --- Many families -------------------------------------------------------------------------------


def fit_many(entries: list[dict], folder: str | Path, options: dict, code: str) -> list[dict]:
    """Fits families one after the other; returns the record of each.

    entries: `name`, `file`, and files or None under `structure`, `effects` and `sequences`. Each
    family gets `folder`/name with `TABLES` and its record, `FORMATS` if options["formats"], and the
    model if options["models"] or for the last two. What has a record of the same files, options and
    code is not fitted again. Where a family cannot be fitted, its record says why under `failed`.
    """
    records = []
    with Progress(len(entries), "families", "Fitting families") as progress:
        for entry in entries:
            out = Path(folder) / entry["name"]
            try:
                records.append(_one(entry, out, options, code))
            except Exception as error:  # whatever is wrong with one, the others are fitted
                if not isinstance(error, Refusal | OSError):
                    traceback.print_exc()
                for name in (RECORD, MODEL, *TABLES, *FORMATS):
                    (out / name).unlink(missing_ok=True)
                failed = str(error) or type(error).__name__
                records.append(dict(name=entry["name"], file=entry["file"], failed=failed))
            progress.update(1)
    return records


def _one(entry: dict, out: Path, options: dict, code: str) -> dict:
    given = [Path(entry[key]) for key in ("file", "structure") if entry[key]]
    digests = [sha256(path) if path.is_file() else "" for path in given]
    made = hashlib.sha256(to_json([digests, options, code]).encode()).hexdigest()
    keeps_model = options["models"] or entry["effects"] or entry["sequences"]
    names = TABLES + (MODEL,) * bool(keeps_model) + FORMATS * options["formats"]
    if (kept := _recorded(out, made, names)) is not None:
        return kept
    family, truth = opened(entry["file"], entry["structure"], **options["reading"])
    said, label = memory(family), ""
    if blank(family).couplings.size > LONG:
        label = f"Fitting {entry['name']}"
        tell(entry["name"], [said])
    model = fitted(family, out / MODEL if keeps_model else None, 1, label, options["held_out"])
    scored = of_all_columns(family, model, None, label=label)
    found = found_in(family, model, truth, options["separation"], scored)
    write_tables(found, out, options["formats"])
    files = {name: sha256(out / name) for name in names}
    document = record(found) | dict(name=entry["name"], made=made, files=files)
    write_json(out / RECORD, document)
    return document


def _recorded(out: Path, made: str, names: tuple[str, ...]) -> dict | None:
    """The record in a folder in which files of these names are whole and made of the same."""
    try:
        kept = read_json(out / RECORD)
        whole = all(sha256(out / name) == kept["files"][name] for name in names)
        return kept if whole and kept["made"] == made else None
    except (ArtifactError, OSError, LookupError, TypeError, AttributeError):
        return None
