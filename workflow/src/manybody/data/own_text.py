"""A text of the user's own as sequences of a model's own tokens, without a config."""

from collections.abc import Iterator
from pathlib import Path

from manybody.data import documents, given, own_tokenizer, text, tokenizer
from manybody.data.documents import Piece
from manybody.io.atomic import read_json

CHARACTERS = 8  # of a token, at most on average: more of a text is not read


def encode(
    path: str | Path, folder: str | Path, length: int, most: int, out: str | Path, key: str = "path"
) -> None:
    """Writes the first `most` blocks of L = `length` tokens of a text, as `Sequences`.

    path: a UTF-8 file, or a folder of them; what a file holds stays as it is, blank lines too.
    folder: where the tokenizer.json is, with what says which tokens are special. Files that lead to
    `out` are left beside it. `SourceError`, with `key` where the text is meant, for what cannot be
    read or is shorter than one block.
    """
    out = Path(out)
    made = {name: out.with_name(f"{out.stem}.{name}") for name in ("json", "special", "documents")}
    passed: list[str] = []
    read = given.text_files([str(path)], key, passed)
    own_tokenizer.take(folder, str(folder), made["json"], made["special"])
    with documents.writer(made["documents"], {"text": str(path)}) as writer:
        pieces = text.read_files(list(read), "file", "", None, {}, passed)
        for piece in _first(pieces, most * length * CHARACTERS):
            writer.add(piece)
    special = read_json(made["special"])
    tokenizer.encode_split(made["documents"], made["json"], length, out, {}, special=special)


def _first(pieces: Iterator[Piece], characters: int) -> Iterator[Piece]:
    for piece in pieces:
        characters -= len(piece.text)
        yield piece if characters > 0 else Piece(piece.text, True)
        if characters <= 0:
            return
