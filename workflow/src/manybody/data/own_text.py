"""A text of the user's own as sequences of a model's own tokens, without a config.

Sequences of proteins, RNA or DNA may be in FASTA, in an alignment, or one a line or a row of a
table where the tokenizer has a token a letter. They are read without gaps and in upper case,
inserts too, and no block has letters of two of them. Other text is cut into consecutive blocks.
"""

import re
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from statistics import median_low

import numpy as np
from tokenizers import Tokenizer, models

from manybody.data import SourceError, alignment, documents, given, own_tokenizer, text, tokenizer
from manybody.io import sequences
from manybody.io.atomic import read_json, sha256
from manybody.io.progress import Progress

CHARACTERS = 8  # of a token, at most on average: more of a text is not read
LOST = 0.05  # share of characters that may have no token
LENGTH, LONGEST = 64, 512  # tokens of a block if none are asked: of text, of sequences at most
FORMATS = ("fasta", "stockholm", "clustal", "lines")
SPACES = {*" \nĠĊ▁"}  # as vocabularies spell them
READ = 2**24  # bytes of a file of sequences: what lies behind them is not read
ROWS = 2**17  # of a table of them, the same
SPACED = re.compile(r"(\s*[A-Za-z*.~-](?!\S))+\s*")  # letters with spaces between
LETTERS = re.compile(r"[A-Za-z*.~-]*")
# Inside a sequence: a special token, a modification.
REMARK = re.compile(r"[<[({][\w.:+-]*\w[\w.:+-]*[])}>]")
# How a vocabulary may spell letters: as they are, in lower case, RNA as DNA, DNA as RNA.
SPELT = (str.upper, str.lower, lambda row: row.replace("U", "T"), lambda row: row.replace("T", "U"))


def encode(
    path: str | Path, folder: str | Path, length: int, most: int, out: str | Path, key: str = "path"
) -> None:
    """Writes the first `most` blocks of L = `length` tokens of a text, as `Sequences`.

    path: a UTF-8 file or a folder of them; text stays as it is, blank lines too, unless it is of
    sequences. folder: that of the tokenizer. Files that lead to `out` are left beside it.
    `SourceError`, with `key` where the text is meant, for what cannot be read or fills no block.
    """
    out = Path(out)
    made = {name: out.with_name(f"{out.stem}.{name}") for name in ("json", "special", "documents")}
    passed: list[str] = []
    read = list(given.text_files([str(path)], key, passed))
    own_tokenizer.take(folder, str(folder), made["json"], made["special"])
    special, bpe = read_json(made["special"]), tokenizer.load(made["json"])
    rows, skipped = records(read, bpe)
    if rows:
        blocks, said = _blocks([row for _, row in rows], bpe, special, length)
        if not blocks:
            raise SourceError(
                f"found {length}: {said[0]}; expected a block at least; take "
                f"{usual_length(path, folder)}",
                "length",
            )
        about = {
            "special": special,
            "made": {"by": "own tokenizer, blocks of sequences", "tokenizer": sha256(made["json"])},
            "said": said + skipped,
        }
        sequences.write(out, np.array(blocks[:most]), special["vocabulary"], about)
        return
    with documents.writer(made["documents"], {"text": str(path)}) as writer:
        pieces = text.read_files(read, "file", "", None, {}, passed)
        for piece in _first(pieces, most * length * CHARACTERS):
            writer.add(piece)
    counts = Counter("".join(piece.text for piece in documents.Documents(made["documents"])))
    lost = {  # of which a BPE without an unknown token makes nothing
        one: n
        for one, n in counts.items()
        if isinstance(bpe.model, models.BPE)
        and not (bpe.model.unk_token or one.isspace() or tokenizer.encoded(bpe, [one])[0].ids)
    }
    share = sum(lost.values()) / max(counts.total(), 1)
    said = f"characters without a token left out ({share:.1%}): {alignment.listed(lost)}"
    if share > LOST:
        raise SourceError(
            f"found a text that the tokenizer does not know: {said}; expected at most {LOST:.0%}; "
            "give a text in the letters and the case that the model was trained on",
            key,
        )
    about = {"said": [said] if lost else []}
    tokenizer.encode_split(made["documents"], made["json"], length, out, about, special=special)


def usual_length(path: str | Path, folder: str | Path) -> int:
    """L, special tokens included, at which half of the sequences in a file make a block, at most
    512; 64 for any other text. `folder` is that of the tokenizer."""
    bpe, special = own_tokenizer.read(folder, str(folder)), own_tokenizer.described(folder)
    rows, _ = records(list(given.text_files([str(path)], "--text")), bpe)
    if not rows:
        return LENGTH
    tokens, _ = numbered([row for _, row in rows], bpe)
    half = median_low(map(len, tokens))
    return min(half + len(special["before"]) + len(special["after"]), LONGEST)


def records(files: list[Path], bpe: Tokenizer) -> tuple[list[tuple[str, str]], list[str]]:
    """Names and letters, without gaps and in upper case, of files of sequences, aligned or not, and
    sentences on what is passed over; no names if one of the files is any other text."""
    found, others, passed = [], [], Counter()
    of_letters = not _joins(bpe) and _kind(bpe) is not None
    # Of a model that knows letters alone, a file of another format is no text either.
    alone = of_letters and not bpe.get_vocab().keys() & SPACES
    forms = alignment.BEGINS if alone else FORMATS
    for path in files:
        with path.open("rb") as opened:
            read = alignment.decoded(opened.read(READ)).replace("\0", "")
        if of_letters and given.table(path):
            read = "\n".join(islice(text.read_rows(path, None, Progress(0, "", "")), ROWS))
        if of_letters and SPACED.fullmatch(read):
            read = re.sub(r"[ \t]", "", read)
        form = alignment.looks_like(read)
        if form not in forms or (form == "lines" and not of_letters):
            others.append(path)
            continue
        rows = alignment.parsed(read, form if form in FORMATS else "fasta", path)
        for name, row in rows if of_letters else ():
            if remark := REMARK.search(row):
                raise SourceError(
                    f"{path}: record {name} holds {remark[0]}, which is no residue; expected "
                    "letters alone, as each letter would be read as one; write X there, or take it "
                    "out"
                )
        if _joins(bpe) and not all(LETTERS.fullmatch(row) for _, row in rows):
            return [], []
        found += rows
        passed.update(alignment.remarks(read, form))
    if others and found and alone:
        raise SourceError(
            f"found {others[0]}, which holds no sequences, beside {len(files) - len(others)} files "
            "of sequences; expected one or the other; move it elsewhere"
        )
    if others:
        return [], []
    letters = [(name, re.sub("[.~-]", "", row).rstrip("*").upper()) for name, row in found]
    kept = [part for part in letters if part[1] and not part[0].startswith(alignment.ANNOTATION)]
    passed["records without letters or of annotation passed over"] = len(found) - len(kept)
    return kept, [f"{what}: {count}" for what, count in passed.items() if count]


def numbered(rows: list[str], bpe: Tokenizer) -> tuple[list[list[int]], list[str]]:
    """The tokens of each of the rows of letters, upper case, and a sentence on unknown ones.

    A vocabulary of letters gives one token a letter; where it has lower case, T or U alone, letters
    are read so. `SourceError` for a vocabulary without single residues.
    """
    kind_of(bpe)
    known, counts = {one.removeprefix("▁") for one in bpe.get_vocab()}, Counter("".join(rows))
    way = max(SPELT, key=lambda way: sum(n for one, n in counts.items() if way(one) in known))
    unknown = alignment.listed({one: n for one, n in counts.items() if way(one) not in known})
    said = [f"letters that the tokenizer does not know: {unknown}"] if unknown else []
    if _joins(bpe):
        return [tokenizer.encoded(bpe, [way(row)])[0].ids for row in rows], said
    letters = tokenizer.encoded(bpe, [way(one) for one in counts])
    # SentencePiece may put a space before a letter.
    numbers = {one: found.ids[-1:] for one, found in zip(counts, letters, strict=True)}
    return [[token for one in row for token in numbers[one]] for row in rows], said


def kind_of(bpe: Tokenizer) -> str:
    """First of `alignment.ALPHABETS` of which a tokenizer has a token for each residue."""
    kind = _kind(bpe)
    if kind is None:
        raise SourceError(
            f"found sequences of letters, but a tokenizer of {bpe.get_vocab_size()} tokens without "
            f"one for each residue; expected them; write the sequences as the authors of the model "
            f"do, with spaces between tokens, in a text without lines of '>'",
            "tokenizer",
        )
    return kind


def doubtful(rows: list[str], bpe: Tokenizer) -> list[str]:
    """A sentence on rows of nucleic acids that a tokenizer of proteins reads."""
    kind = kind_of(bpe)
    likely = alignment.likely(rows, kind)
    said = (
        f"the letters are those of {likely} and are read as {kind}, of which the tokenizer has all "
        "residues; if the model is of proteins, translate them"
    )
    return [] if likely == kind else [said]


def _kind(bpe: Tokenizer) -> str | None:
    known = {one.removeprefix("▁") for one in bpe.get_vocab()}  # as SentencePiece spells A
    for kind, letters in alignment.ALPHABETS.items():
        if any(known >= set(way(letters["residues"])) for way in SPELT[:2]):
            return kind
    return None


def _joins(bpe: Tokenizer) -> bool:
    """True if a token may be several letters."""
    return any(len(token) > 1 and token.isalpha() for token in bpe.get_vocab())


def _blocks(
    rows: list[str], bpe: Tokenizer, special: dict, length: int
) -> tuple[list[list[int]], list[str]]:
    """Blocks of L tokens of each of the rows, special ones included, and what is left out."""
    before, after = special["before"], special["after"]
    inner = max(length - len(before) - len(after), 1)
    tokens, unknown = numbered(rows, bpe)
    counts = np.array([len(row) for row in tokens])
    starts = ((row, first) for row in tokens for first in range(0, len(row) - inner + 1, inner))
    blocks = [[*before, *row[first : first + inner], *after] for row, first in starts]
    return blocks, [
        f"of {len(rows)} sequences {(counts < inner).sum()} are shorter than {inner} tokens and "
        f"left out, and {(counts > inner).sum()} longer ones are cut",
        *unknown,
        *doubtful(rows, bpe),
    ]


def _first(pieces: Iterator[documents.Piece], characters: int) -> Iterator[documents.Piece]:
    for piece in pieces:
        characters -= len(piece.text)
        yield piece if characters > 0 else documents.Piece(piece.text, True)
        if characters <= 0:
            return
