"""Multiple alignments of proteins, RNA or DNA in FASTA, A3M or Stockholm format.

The gap is a colour, number 0. Letters that stand for several residues become gaps and are counted;
any other letter is refused. Sequences are weighted by how many are similar (`reweighting`) and cut
into three splits: by clusters of similar sequences, so that what is held out has no near copy among
the training sequences, or at random.
"""

import gzip
import io
import logging
import math
import re
import zlib
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path

import numpy as np
from Bio import AlignIO
from Bio.SeqIO.FastaIO import SimpleFastaParser

from manybody.data import (
    PACKED,
    SMALL,
    SPLITS,
    SourceError,
    Unchanged,
    refuse_bomb,
    sequence_weights,
)
from manybody.io import sequences
from manybody.io.atomic import sha256

log = logging.getLogger(__name__)

GAP = 0
GAPS = "-.~"
# Residues in the order of their colours, from 1, and the other letters that are understood.
ALPHABETS = {
    "protein": dict(residues="ACDEFGHIKLMNPQRSTVWY", ambiguous="BJOUXZ", read_as={}),
    "rna": dict(residues="ACGU", ambiguous="BDHKMNRSVWXY", read_as={"T": "U"}),
    "dna": dict(residues="ACGT", ambiguous="BDHKMNRSVWXY", read_as={"U": "T"}),
}
AMBIGUOUS, UNKNOWN = 254, 255
ANNOTATION = ("ss_pred", "ss_conf", "ss_dssp", "sa_dssp")  # rows of an A3M, not sequences
INSERTIONS = dict.fromkeys(map(ord, "abcdefghijklmnopqrstuvwxyz."))
ENOUGH = 0.5  # least part of its share that clusters must give a held-out split


def make(
    source: dict, name: str, out: dict[str, str | Path], weights_file: str | Path, threads: int = 1
) -> None:
    """Writes the splits of the source (its entry in the config) called `name`, and the weights of
    the training sequences. `SourceError` names what cannot be read; nothing is written then."""
    path = Path(source["file"]).expanduser()
    stays = Unchanged([path])
    names, rows = read(path, source["format"])
    digest = sha256(path)
    stays.check()
    tokens, ambiguous = encode(path, names, rows, source["alphabet"])
    _refuse_empty_columns(path, tokens)
    named, aligned, numbers = reference(path, source["format"], source.get("reference"))
    parts, clusters = split(tokens, source, threads)
    train = tokens[parts["train"]]
    found = sequence_weights.neighbours(train, source["identity"], threads)
    each = 1.0 / found.counts
    about = dict(
        source=name, seed=source["seed"], identity=source["identity"],
        split_by=source["split"].get("by", "clusters"),
        alphabet="-" + ALPHABETS[source["alphabet"]]["residues"], gap=GAP,
        kind=source["alphabet"], format=source["format"], file=str(path), file_sha256=digest,
        ambiguous=ambiguous, records=len(tokens),
        sequences={key: len(part) for key, part in parts.items()},
        effective=float(each.sum()), clusters=clusters,
        reference=named, aligned=aligned, numbers=numbers,
    )  # fmt: skip
    log.info(
        "%s: %d sequences of %d columns; %s; %d of training count as %.1f at identity %g; "
        "%d ambiguous letters were read as gaps",
        *(path, *tokens.shape, about["sequences"], len(train), each.sum(), source["identity"]),
        ambiguous,
    )
    vocabulary = len(about["alphabet"])
    for key in SPLITS:
        document = {**about, "split": key}
        sequences.write(out[key], tokens[parts[key]], vocabulary, document)
    sequence_weights.write(weights_file, each, out["train"], about)


# --- Reading -------------------------------------------------------------------------------------


def read(path: Path, form: str) -> tuple[list[str], list[str]]:
    """Names and aligned letters of the records of a file, gzipped or not.

    `SourceError` if it has fewer than two, or their lengths differ.
    """
    text = _text(path)
    if not text.strip():
        raise SourceError(f"{path} is empty: expected an alignment in {form} format")
    try:
        records = list(_records(text, form, path))
    except SourceError:
        raise
    except ValueError as error:
        # The library does not say which row of a Stockholm file is too short.
        ragged = _ragged_blocks(text) if form == "stockholm" else None
        if ragged:
            raise SourceError(_ragged(path, form, *ragged)) from error
        reason = " ".join(str(error).split())[:120]
        raise SourceError(f"{path} is not an alignment in {form} format: {reason}") from error
    if len(records) < 2:
        raise SourceError(
            f"{path} holds {len(records)} sequences in {form} format, expected at least two "
            "(is `format` right?)"
        )
    names, rows = map(list, zip(*records, strict=True))
    if form == "a3m":
        rows = [letters.translate(INSERTIONS) for letters in rows]
    length = len(rows[0])
    if not length:
        raise SourceError(f"{path}: record {names[0]} has no letters, expected aligned ones")
    for name, letters in zip(names, rows, strict=True):
        if len(letters) != length:
            raise SourceError(_ragged(path, form, name, len(letters), length))
    return names, rows


def reference(path: Path, form: str, name: str | None) -> tuple[str, str, list[int | None]]:
    """Name and aligned letters (L) of one record, the first by default, and the number of its
    residue in each column, None at gaps.

    Residues count from 1, or as the end of the name says (`X/24-140`) where it has that many, and
    in A3M with the insertions, which are no columns. `SourceError` for a name that is not there.
    """
    records = list(_records(_text(path), form, path))
    names = [found for found, _ in records]
    name = names[0] if name is None else name
    if name not in names:
        near = get_close_matches(name, names, 1)
        raise SourceError(
            f"reference: found {name}, but {path} has no record of that name; expected one of its "
            f"{len(names)} names, the first words of their titles; "
            + (f"did you mean {near[0]}?" if near else f"the first is {names[0]}")
        )
    letters = records[names.index(name)][1]
    residues = [place for place, letter in enumerate(letters) if letter not in GAPS]
    first, step = _counts_from(name, len(residues))
    number = {place: first + step * count for count, place in enumerate(residues)}
    columns = range(len(letters))
    if form == "a3m":
        columns = [place for place in columns if letters[place].translate(INSERTIONS)]
    aligned = "".join(letters[place] for place in columns)
    return name, aligned, [number.get(place) for place in columns]


def _counts_from(name: str, residues: int) -> tuple[int, int]:
    """The number of the first residue, and 1 or -1, as names of Pfam and Rfam end."""
    ends = re.search(r"/(\d+)-(\d+)$", name)
    if ends:
        first, last = map(int, ends.groups())
        if abs(last - first) + 1 == residues:
            return first, 1 if last >= first else -1
    return 1, 1


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            with gzip.GzipFile(fileobj=io.BytesIO(raw)) as packed:
                most = max(SMALL, PACKED * len(raw))
                unpacked = packed.read(most + 1)
            refuse_bomb(path, len(raw), len(unpacked))
            raw = unpacked
    except FileNotFoundError as error:
        raise SourceError(
            f"no such file: {path} (relative paths start at {Path.cwd()})", "file"
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise SourceError(f"{path} cannot be read: {error}") from error
    return raw.decode("utf-8", errors="replace")  # names may hold any bytes


def _records(text: str, form: str, path: Path) -> Iterator[tuple[str, str]]:
    """Names and letters, those of an A3M with the insertions."""
    if form == "stockholm":
        alignments = list(AlignIO.parse(io.StringIO(text), "stockholm"))
        if len(alignments) > 1:
            raise SourceError(
                f"{path} holds {len(alignments)} alignments; give a file with the one you mean"
            )
        yield from ((record.id, str(record.seq)) for found in alignments for record in found)
        return
    lines = (line for line in text.splitlines() if line.strip() and line[0] != "#")
    first = next(lines, "")
    if not first.startswith(">"):
        raise ValueError(f"expected a line that starts with '>', found {first[:40]!r}")
    # Names are the first words of titles. The library's other parsers of FASTA accept less before
    # the first record, or lose names.
    for title, letters in SimpleFastaParser(io.StringIO(text, newline=None)):
        name = next(iter(title.split()), "without a name")
        if form == "fasta" or not name.startswith(ANNOTATION):
            yield name, letters


def _ragged_blocks(text: str) -> tuple[str, int, int] | None:
    """Name, length and expected length of the first row of a Stockholm file that differs."""
    lengths: dict[str, int] = {}
    for line in text.splitlines():
        if not line.startswith(("#", "//")) and len(line.split()) == 2:
            name, letters = line.split()
            lengths[name] = lengths.get(name, 0) + len(letters)
    expected = next(iter(lengths.values()), 0)
    return next(((n, found, expected) for n, found in lengths.items() if found != expected), None)


def _ragged(path: Path, form: str, name: str, found: int, expected: int) -> str:
    hint = {
        "a3m": "in A3M, upper-case letters and '-' are the columns",
        "fasta": "rows with lower-case insertions are A3M: give `format: a3m`",
    }.get(form, "every row must have all columns")
    where = f"column {min(found, expected) + 1}"
    return (
        f"{path}: record {name} has {found} columns, the first record has {expected}; they part at "
        f"{where}. Align it to the others or leave it out ({hint})"
    )


def encode(path: Path, names: list[str], rows: list[str], kind: str) -> tuple[np.ndarray, int]:
    """Tokens (N, L) uint8, and how many letters were ambiguous and became gaps.

    `SourceError` names record and column of a letter that the alphabet does not know.
    """
    length = len(rows[0])
    raw = "".join(rows).encode("ascii", errors="replace")
    tokens = _colours(kind)[np.frombuffer(raw, np.uint8)].reshape(-1, length)
    unknown = np.argwhere(tokens == UNKNOWN)
    if len(unknown):
        row, column = unknown[0]
        others = f" ({len(unknown)} letters like this)" if len(unknown) > 1 else ""
        raise SourceError(
            f"{path}: record {names[row]}, column {column + 1}: {rows[row][column]!r} is no letter "
            f"of the alphabet {kind}{others}. Expected {ALPHABETS[kind]['residues']}, "
            f"{ALPHABETS[kind]['ambiguous']} (read as gaps) or a gap ({' '.join(GAPS)}); is "
            "`alphabet` right?"
        )
    doubtful = tokens == AMBIGUOUS
    tokens[doubtful] = GAP
    return tokens, int(doubtful.sum())


def _colours(kind: str) -> np.ndarray:
    """The colour of each byte, upper case or lower."""
    alphabet, colours = ALPHABETS[kind], np.full(256, UNKNOWN, np.uint8)
    numbers = {letter: number for number, letter in enumerate(alphabet["residues"], 1)}
    numbers |= dict.fromkeys(alphabet["ambiguous"], AMBIGUOUS)
    numbers |= {letter: numbers[same] for letter, same in alphabet["read_as"].items()}
    for letter, number in numbers.items():
        colours[[ord(letter), ord(letter.lower())]] = number
    colours[[ord(letter) for letter in GAPS]] = GAP
    return colours


def _refuse_empty_columns(path: Path, tokens: np.ndarray) -> None:
    empty = np.flatnonzero((tokens == GAP).all(axis=0)) + 1
    if len(empty):
        shown = ", ".join(map(str, empty[:5])) + (", ..." if len(empty) > 5 else "")
        raise SourceError(
            f"{path}: {len(empty)} of {tokens.shape[1]} columns hold gaps only, and nothing can be "
            f"learnt there: column {shown}. Delete them from the alignment (for example with "
            "esl-alimask --gapthresh 0.99, or trimal -noallgaps)"
        )


# --- Splits --------------------------------------------------------------------------------------


def split(tokens: np.ndarray, source: dict, threads: int) -> tuple[dict, int | None]:
    """The rows of each split, ascending, and the number of clusters (None for a random split).

    By clusters, whole clusters in random order fill the test split and then the validation split
    as long as they fit. All others, large ones among them, are for training.
    """
    wanted = {
        key: max(2, round(source["split"][key] * len(tokens))) for key in ("test", "validation")
    }
    if len(tokens) - sum(wanted.values()) < 2:
        raise SourceError(
            f"split: {len(tokens)} sequences are too few for {wanted}; two must be left to train on"
        )
    generator = np.random.default_rng(source["seed"])
    if source["split"].get("by") == "random":
        order = generator.permutation(len(tokens))
        groups, clusters = order[:, None], None
    else:
        labels = sequence_weights.neighbours(tokens, source["identity"], threads).clusters
        _, members = np.unique(labels, return_inverse=True)
        rows = np.argsort(members, kind="stable")
        groups = np.split(rows, np.cumsum(np.bincount(members))[:-1])
        clusters = len(groups)
        groups = [groups[number] for number in generator.permutation(clusters)]
    parts = {key: [] for key in SPLITS}
    sizes = dict.fromkeys(SPLITS, 0)
    for group in groups:
        fits = (key for key, most in wanted.items() if sizes[key] + len(group) <= most)
        key = next(fits, "train")
        parts[key].append(group)
        sizes[key] += len(group)
    for key in SPLITS:
        least = max(2, math.ceil(ENOUGH * wanted.get(key, 2)))
        if sizes[key] < least:
            raise SourceError(
                f"split: at identity {source['identity']} the {len(tokens)} sequences make "
                f"{clusters} clusters, the largest of {max(map(len, groups))}; the {key} split "
                f"comes out with {sizes[key]} sequences, expected at least {least}. Raise "
                "`identity`, or give `split` the key `by: random` (held-out sequences then have "
                "near copies among the training ones)"
            )
    return {key: np.sort(np.concatenate(part)) for key, part in parts.items()}, clusters
