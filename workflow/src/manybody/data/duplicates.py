"""Text that a corpus says more than once: kept once, or kept together when it is split.

Three rules, each on the whole corpus before any split is known:
1. A line found in more than `COMMON` documents stays in the first of them only.
2. Of prose with known origins: a run of `PASSAGE` words that an earlier document has, or of
   `PHRASE` words that more than `COMMON` documents have, stays in the first of them only. What is
   left between two cuts stays if it has `LEAST` words (Lee et al. 2022, arXiv 2107.06499, cut
   passages of 50 tokens).
3. Near-duplicates, documents whose sets of `SHINGLE`-word shingles have a Jaccard index of at least
   `SIMILAR`, are one group, and so are documents of one origin. A group goes into one split.

Candidates of rule 3 share a band of a MinHash signature (datasketch; Broder 1997). A pair with the
Jaccard index 0.5 is a candidate with probability 1 - (1 - 0.5^3)^42 = 0.996. Each candidate is then
verified by its whole sets of shingles, as 64-bit hashes.

On disk lie text, signatures, shingles and the hashes of lines, 512 bytes a document and 24 a word.
In memory are `BATCH` hashes, those of common lines, 50 bytes a document, and the shingles of two
documents; for rule 2, which is for corpora that fit there, a hash of about 70 bytes for each word.
"""

import hashlib
import re
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, groupby, islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
from datasketch import MinHash

from manybody.data import documents
from manybody.data.documents import PIECE, Cutter, Documents, Piece, by_document
from manybody.data.sequence_weights_loops import join, root

COMMON = 5  # documents that may share a line
PASSAGE = 5  # words
PHRASE = 4  # words
LEAST = 3  # words
SHINGLE = 5  # words
SIMILAR = 0.5  # Jaccard index of near-duplicates
BANDS, ROWS = 42, 3
BATCH = 2**20  # hashes in memory at once
# Marks that go on with a word, as vowel signs do, and joiners. Scripts that write no spaces (Thai,
# Lao, Burmese, Khmer, kana, ideographs): each letter is a word, with its marks.
ABOVE = "\u200c\u200d" + "".join(
    sign for sign in map(chr, range(0x300, 0xFE30)) if unicodedata.category(sign)[0] == "M"
)
DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
# A name such as max_length is two words.
WORD = re.compile(rf"(?![\W_])(?:[{DENSE}][{ABOVE}]*|[^{DENSE}](?:[^\W_{DENSE}]|[{ABOVE}])*)")
SENTENCE = re.compile(r'(?<=[.!?:]) +(?=[A-Z`(\[*"])')


def deduplicated(
    stream: Iterable[Piece], folder: Path, origins: Sequence[str] | None = None
) -> tuple[Iterator[tuple[bytes, Iterable[Piece]]], dict[str, int]]:
    """A corpus after the rules, (key of the group, pieces of one document) each, and how much each
    rule did.

    `stream`: the pieces of the corpus. `folder`: an empty folder for what does not stay in memory.
    `origins`: the work that each document, of prose without line ends, is a part of: those of one
    origin are one group, and count as one in rules 1 and 2, and the lines of rule 1 are sentences.
    The key, 8 bytes, is a hash of the text of a group's documents that does not depend on their
    order.
    """
    cleaned, raw = folder / "cleaned.parquet", folder / "raw.parquet"
    works: Sequence[int] = range(2**63)
    separate = lines if origins is None else sentences
    if origins is not None:
        works = np.unique(origins, return_inverse=True)[1].tolist()
    with documents.writer(raw, {}) as given:
        hashes = (
            (_hash(line.strip()) for line in separate(document) if line.strip())
            for document in by_document(_copied(stream, given))
        )
        frequent = common(hashes, works, folder / "lines")
    phrases = None if origins is None else common_phrases(raw, folder, works)
    lines_from: dict[int, int] = {}
    runs_from: dict[int, int] = {}
    joined: list[tuple[int, int]] = []
    firsts: dict[int, int] = {}
    with (
        documents.writer(cleaned, {}) as writer,
        (folder / "shingles").open("wb") as sets,
        (folder / "signatures").open("wb") as signatures,
    ):
        shingles = Shingles(sets, signatures)
        for document, work in zip(by_document(Documents(raw)), works, strict=False):
            text = once(separate(document), work, frequent, lines_from)
            if phrases is not None:
                text = [without_passages(" ".join(text), work, phrases, runs_from)]
            kept = writer.documents
            if shingles.add(_copied(_pieces(text), writer)) and origins is not None:
                joined.append((firsts.setdefault(work, kept), kept))
    keys = shingles.groups(joined)
    sizes = np.unique(keys, return_counts=True)[1]
    counts = dict(
        documents=given.documents,
        characters=given.characters,
        kept_documents=writer.documents,
        kept_characters=writer.characters,
        common_lines=len(frequent),
        groups=len(sizes),
        largest_group=int(sizes.max(initial=0)),
    )
    named = (int(key).to_bytes(8, "little") for key in keys)
    return zip(named, by_document(Documents(cleaned)), strict=True), counts


def _copied(pieces: Iterable[Piece], writer: documents.DocumentsWriter) -> Iterator[Piece]:
    for piece in pieces:
        writer.add(piece)
        yield piece


def _pieces(texts: Iterable[str]) -> Iterator[Piece]:
    """One document made of `texts`, or nothing if they are blank."""
    cutter = Cutter()
    for text in texts:
        yield from cutter.add(text)
    yield from cutter.end()


def lines(pieces: Iterable[Piece]) -> Iterator[str]:
    """The lines of a document with their ends; a line longer than a piece comes in parts."""
    rest = ""
    for piece in pieces:
        *whole, rest = (rest + piece.text).splitlines(keepends=True) or [""]
        yield from whole
        if rest.endswith("\n") or len(rest) >= PIECE:
            yield rest
            rest = ""
    if rest:
        yield rest


def sentences(pieces: Iterable[Piece]) -> Iterator[str]:
    """The sentences of a document that has no line ends."""
    yield from SENTENCE.split("".join(piece.text for piece in pieces))


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def common(documents: Iterable[Iterable[int]], works: Sequence[int], path: Path) -> set[int]:
    """The hashes that more than `COMMON` works have, of the hashes of each document.

    They lie in the file `path`, each with its work; a part of all values is compared at a time.
    """
    rows = zip(documents, works, strict=False)
    numbers = chain.from_iterable((one, work) for hashes, work in rows for one in hashes)
    with path.open("wb") as opened:
        while len(block := np.fromiter(islice(numbers, BATCH), np.uint64)):
            block.tofile(opened)
    shares = np.uint64(-(-path.stat().st_size // (16 * BATCH)) or 1)
    found: set[int] = set()
    for share in range(int(shares)):
        mine = [pairs[pairs[:, 0] % shares == share] for pairs in _batches(path)]
        pairs = np.unique(np.concatenate([np.empty((0, 2), np.uint64), *mine]), axis=0)
        hashes, counts = np.unique(pairs[:, 0], return_counts=True)
        found.update(hashes[counts > COMMON].tolist())
    return found


def _batches(path: Path) -> Iterator[np.ndarray]:
    with path.open("rb") as opened:
        while len(block := np.fromfile(opened, np.uint64, 2 * BATCH)):
            yield block.reshape(-1, 2)


def once(
    separated: Iterable[str], work: int, common: set[int], first: dict[int, int]
) -> Iterator[str]:
    """Rule 1: drops each line in `common`, except from the first work that has it, of which `first`
    takes note. The lines that stay of a document of the work."""
    for line in separated:
        hashed = _hash(line.strip())
        if hashed not in common or first.setdefault(hashed, work) == work:
            yield line


def common_phrases(path: Path, folder: Path, works: Sequence[int]) -> set[int]:
    """The hashes of runs of `PHRASE` words that are `common` in the documents of a file."""
    hashes = (
        _runs(WORD.findall("".join(piece.text for piece in document)), PHRASE)
        for document in by_document(Documents(path))
    )
    return common(hashes, works, folder / "phrases")


def without_passages(text: str, work: int, phrases: set[int], first: dict[int, int]) -> str:
    """Rule 2: what stays of a document of the work. `first` takes note of the first work that has
    a run of words; documents come in their order."""
    found = list(WORD.finditer(text))
    words = [match[0] for match in found]
    known = np.zeros(len(words), bool)
    for length in (PASSAGE, PHRASE):
        for start, hashed in enumerate(_runs(words, length)):
            counts = length == PASSAGE or hashed in phrases
            if counts and first.setdefault(hashed, work) != work:
                known[start : start + length] = True
    if not known.any():
        return text
    left, edges = [], [0, *(match.start() for match in found[1:]), len(text)]
    for repeated, run in groupby(range(len(words)), known.__getitem__):
        start, *more = run
        if not repeated and len(more) + 1 >= LEAST:
            left.append(text[edges[start] : edges[start + len(more) + 1]].strip())
    return " ".join(left)


def _runs(words: list[str], length: int) -> Iterator[int]:
    for start in range(len(words) - length + 1):
        yield _hash(" ".join(words[start : start + length]))


class Shingles:
    """The sets of shingles and the signatures of documents, in two files that are open for writing;
    `groups` compares the documents when these are closed."""

    def __init__(self, sets: BinaryIO, signatures: BinaryIO):
        self._sets, self._signatures = sets, signatures
        self._ends, self._keys = array("q", [0]), array("Q")
        self._empty = MinHash(BANDS * ROWS, seed=1, hashfunc=int)

    def add(self, pieces: Iterable[Piece]) -> bool:
        """Takes one document; False if it has no piece."""
        key, parts, words, carried, piece = hashlib.blake2b(digest_size=8), [], [], "", None
        for piece in pieces:
            key.update(piece.text.encode())
            # A word may go on in the next piece.
            text = carried + piece.text
            cut = len(text) if piece.last else text.rfind(" ") + 1
            carried = text[cut:]
            words += WORD.findall(text[:cut].lower())
            if len(words) >= SHINGLE:
                parts.append(np.unique(np.fromiter(_runs(words, SHINGLE), np.uint64)))
                words = words[1 - SHINGLE :]
        if piece is None:
            return False
        if not parts:
            # Documents without words, as of brackets or arrows, are alike where they are equal.
            parts = [np.array([_hash(" ".join(words) or key.hexdigest())], np.uint64)]
        shingles = np.unique(np.concatenate(parts))
        shingles.tofile(self._sets)
        self._ends.append(self._ends[-1] + len(shingles))
        signature = self._empty.copy()
        for start in range(0, len(shingles), 4096):
            signature.update_batch((shingles[start : start + 4096] >> np.uint64(32)).tolist())
        signature.hashvalues.tofile(self._signatures)
        self._keys.append(int.from_bytes(key.digest(), "little"))
        return True

    def groups(self, joined: Iterable[tuple[int, int]] = ()) -> np.ndarray:
        """The key of each document's group; `joined` are pairs known to be of one group."""
        count = len(self._keys)
        keys = np.array(self._keys, np.uint64)
        if not count:
            return keys
        forest = np.arange(count)
        for pair in joined:
            join(forest, *pair)
        sets = np.memmap(self._sets.name, np.uint64, "r")
        signatures = np.memmap(self._signatures.name, np.uint32, "r", shape=(count, BANDS, ROWS))
        for band in range(BANDS):
            for bucket in _buckets(signatures[:, band]):
                self._join(bucket, forest, sets)
        roots = np.array([root(forest, number) for number in range(count)])
        least = keys.copy()
        np.minimum.at(least, roots, keys)
        return least[roots]

    def _join(self, bucket: np.ndarray, forest: np.ndarray, sets: np.ndarray) -> None:
        """Joins the near-duplicates in a bucket; documents of one group are not compared again."""
        groups: dict[int, list[int]] = {}
        for number in bucket.tolist():
            mine = [number]
            for other, members in list(groups.items()):
                if root(forest, number) == root(forest, other) or any(
                    self._similar(number, member, sets) for member in members
                ):
                    join(forest, number, other)
                    mine += groups.pop(other)
            groups[root(forest, number)] = mine

    def _similar(self, one: int, other: int, sets: np.ndarray) -> bool:
        first, second = (sets[self._ends[i] : self._ends[i + 1]] for i in (one, other))
        if min(len(first), len(second)) < SIMILAR * max(len(first), len(second)):
            return False
        common = len(np.intersect1d(first, second, assume_unique=True))
        return common >= SIMILAR * (len(first) + len(second) - common)


def _buckets(rows: np.ndarray) -> Iterator[np.ndarray]:
    """The numbers of rows that are equal, for each set of two or more."""
    order = np.lexsort(rows.T)
    changes = np.flatnonzero((np.diff(rows[order], axis=0) != 0).any(axis=1))
    return (equal for equal in np.split(order, changes + 1) if len(equal) > 1)
