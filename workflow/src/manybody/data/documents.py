"""Documents on disk between reading a corpus and tokenising it: Parquet, in pieces, streamed.

A document is stored as pieces of at most 64 Ki characters, cut before a single space or newline
between two other characters. Byte-level BPE joins no token across such a place, so the pieces
together have the tokens of the document.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate, groupby, tee
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from manybody.io.parquet import Refused, open_document, read_groups, set_document, writing
from manybody.io.quick_start import boolean_column, text_column

KIND = "documents"
MARKER = "<|endoftext|>"  # between documents, in files and as a token
PIECE = 2**16  # characters
GROUP = 2**22  # characters in a row group
ROWS = 2**15  # pieces in a row group
SCHEMA = pa.schema(
    [pa.field("text", pa.string(), nullable=False), pa.field("last", pa.bool_(), nullable=False)]
)


class Piece(NamedTuple):
    """Some text of a document, and whether the document ends with it."""

    text: str
    last: bool


class Cutter:
    """Cuts the text of one document after another into pieces.

    `add(text)` and `end()` return the pieces that are ready. Blank lines at a document's start and
    white space at its end are dropped; a blank document gives none.
    """

    def __init__(self):
        self._waiting: list[str] = []
        self._size = 0

    def add(self, text: str) -> list[Piece]:
        if not self._size and (not text or text.isspace()):
            return []
        ready = []
        # In small parts: else each piece of a text of 100 MB would cost a copy of the rest.
        for start in range(0, len(text), PIECE):
            part = text[start : start + PIECE]
            self._waiting.append(part)
            self._size += len(part)
            while self._size > PIECE:
                whole = "".join(self._waiting)
                cut = _joint(whole, PIECE)
                ready.append(Piece(whole[:cut], False))
                self._waiting, self._size = [whole[cut:]], len(whole) - cut
        return ready

    def end(self) -> list[Piece]:
        text = "".join(self._waiting).rstrip()
        begun, self._waiting, self._size = self._size > 0, [], 0
        return [Piece(text, True)] if begun else []


def _joint(text: str, limit: int) -> int:
    """The place to cut `text` at or before `limit`; at `limit` itself if no place is sound."""
    cut = limit
    while (cut := max(text.rfind(" ", 1, cut), text.rfind("\n", 1, cut))) > 0:
        if not text[cut - 1].isspace() and not text[cut + 1].isspace():
            return cut
    return limit


def by_document(pieces: Iterable[Piece]) -> Iterator[Iterator[Piece]]:
    """Pieces, document by document; each has to be read to its end before the next."""
    pieces, same = tee(pieces)
    before = accumulate((piece.last for piece in same), initial=0)  # documents that have ended
    for _, document in groupby(zip(before, pieces, strict=False), itemgetter(0)):
        yield (piece for _, piece in document)


@contextmanager
def writer(path: str | Path, about: dict) -> Iterator["DocumentsWriter"]:
    """Writes pieces one by one; `about` may grow until the end."""
    with writing(path, SCHEMA, use_dictionary=["last"]) as opened:
        documents = DocumentsWriter(opened)
        yield documents
        documents.finish(about)


class DocumentsWriter:
    """Takes the pieces of documents in order; made by `writer`."""

    def __init__(self, opened: pq.ParquetWriter):
        self._opened = opened
        self._pieces: list[Piece] = []
        self._size = 0
        self.documents = self.characters = self.bytes = 0
        self._digest = hashlib.sha256()

    def add(self, piece: Piece) -> None:
        encoded = piece.text.encode()
        self._digest.update(encoded)
        self.bytes += len(encoded)
        self.characters += len(piece.text)
        if piece.last:
            self._digest.update(b"\n")
            self.documents += 1
        self._pieces.append(piece)
        self._size += len(piece.text)
        if self._size >= GROUP or len(self._pieces) >= ROWS:
            self._write_group()

    def finish(self, about: dict) -> None:
        if self._pieces:
            self._write_group()
        counts = dict(documents=self.documents, characters=self.characters, bytes=self.bytes)
        document = dict(kind=KIND, **counts, sha256=self._digest.hexdigest(), about=about)
        set_document(self._opened, document)

    def _write_group(self) -> None:
        texts, lasts = zip(*self._pieces, strict=True)
        table = pa.table([text_column(texts), boolean_column(lasts)], schema=SCHEMA)
        self._opened.write_table(table, row_group_size=ROWS)
        self._pieces, self._size = [], 0


class Documents:
    """The documents of one split on disk; iterating yields their pieces.

    `documents`, `characters`, `bytes` count them; `sha256` is of their UTF-8, a newline after each.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._opened, document = open_document(path, KIND)
        if self._opened.schema_arrow != SCHEMA:
            raise Refused(path, f"its columns are {self._opened.schema_arrow}, expected {SCHEMA}")
        metadata = self._opened.metadata
        self._rows = rows = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
        if not all(0 < count <= ROWS for count in rows) or sum(rows) != metadata.num_rows:
            raise Refused(path, f"its row groups hold {rows} rows, expected at most {ROWS} each")
        self.documents: int = document["documents"]
        self.characters: int = document["characters"]
        self.bytes: int = document["bytes"]
        self.sha256: str = document["sha256"]
        self.about: dict = document["about"]

    def __iter__(self) -> Iterator[Piece]:
        for group, count in enumerate(self._rows):
            table = read_groups(self.path, self._opened, [group])
            if len(table) != count:
                raise Refused(self.path, f"row group {group} holds {len(table)} rows, not {count}")
            yield from map(Piece, table["text"].to_pylist(), table["last"].to_pylist())
