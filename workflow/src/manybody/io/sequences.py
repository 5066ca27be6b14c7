"""The `Sequences` artifact: N sequences of L tokens over a vocabulary of |V|, in Parquet.

One column `tokens`: fixed-size lists of L of the smallest unsigned integer that holds |V| (so that
|V| itself, the mask symbol, has a number too), no nulls. The file's JSON document says |V|, L, N,
the sha256 of the tokens and, under `about`, where they come from (source, split, seed).
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from manybody.io.parquet import Refused, open_document, read_groups, set_document, writing
from manybody.io.quick_start import number_column
from manybody.io.refusal import Refusal

KIND = "sequences"
LARGEST = 2**31 - 1  # |V| and L: what fits the columns
GROUP = 2**20  # tokens in a row group: what reading one sequence costs at most


def token_type(vocabulary: int) -> np.dtype:
    """The smallest unsigned integer type that holds |V|."""
    return np.min_scalar_type(int(vocabulary))


def write(path: str | Path, tokens: np.ndarray, vocabulary: int, about: dict) -> None:
    """Writes `tokens` (N, L), integers in [0, |V|), and the JSON document `about`, atomically; same
    bytes for the same arguments. `ValueError` names a wrong shape, type or token."""
    tokens = rows_of(tokens)
    with writer(path, vocabulary, tokens.shape[1], about) as batches:
        batches.add(tokens)


@contextmanager
def writer(
    path: str | Path, vocabulary: int, length: int, about: dict
) -> Iterator["SequencesWriter"]:
    """Writes batch by batch: `with writer(...) as w: w.add(tokens)`; `about` may grow meanwhile.

    The file appears when the block ends well; its bytes do not depend on how rows were batched.
    """
    if vocabulary < 1 or length < 1:
        raise ValueError(
            f"sequences need |V| >= 1 and L >= 1, got |V| = {vocabulary}, L = {length}"
        )
    schema = _schema(vocabulary, length)
    encoding = {"tokens.list.element": "BYTE_STREAM_SPLIT"}
    with writing(path, schema, use_dictionary=False, column_encoding=encoding) as opened:
        batches = SequencesWriter(opened, schema, vocabulary, length)
        yield batches
        batches.finish(about)


class SequencesWriter:
    """Takes batches of sequences of one length; made by `writer`."""

    def __init__(self, opened: pq.ParquetWriter, schema: pa.Schema, vocabulary: int, length: int):
        self._opened, self._schema = opened, schema
        self.vocabulary, self.length = vocabulary, length
        self.added = 0  # sequences so far
        self._rows = group_rows(length)
        self._pending: list[np.ndarray] = []
        self._waiting = 0
        self._digest = hashlib.sha256()

    def add(self, tokens: np.ndarray) -> None:
        """Appends `tokens` (n, L); `ValueError` if they are not integers in [0, |V|)."""
        tokens = rows_of(tokens, self.vocabulary)
        if tokens.shape[1] != self.length:
            raise ValueError(f"expected sequences of length {self.length}, got {tokens.shape[1]}")
        # A copy: the caller may reuse the batch before its row group is full.
        self._pending.append(np.array(tokens, token_type(self.vocabulary), order="C"))
        self._waiting += len(tokens)
        self.added += len(tokens)
        while self._waiting >= self._rows:
            self._write_group(self._rows)

    def finish(self, about: dict) -> None:
        if self._waiting:
            self._write_group(self._waiting)
        document = dict(
            kind=KIND,
            vocabulary=int(self.vocabulary),
            length=int(self.length),
            sequences=self.added,
            sha256=self._digest.hexdigest(),
            about=about,
        )
        set_document(self._opened, document)

    def _write_group(self, rows: int) -> None:
        waiting = self._pending[0] if len(self._pending) == 1 else np.concatenate(self._pending)
        group, rest = waiting[:rows], waiting[rows:]
        self._pending, self._waiting = ([rest], len(rest)) if len(rest) else ([], 0)
        self._digest.update(_little_endian(group))
        lists = pa.FixedSizeListArray.from_arrays(
            number_column(group.reshape(-1)), type=self._schema.field("tokens").type
        )
        self._opened.write_table(pa.table([lists], schema=self._schema), row_group_size=rows)


class Sequences:
    """N sequences on disk; `sequences[10:20]` reads the row groups it needs, `.tokens` all."""

    def __init__(self, path: Path, opened: pq.ParquetFile, document: dict):
        self.path, self._opened = path, opened
        self.vocabulary: int = document["vocabulary"]
        self.length: int = document["length"]
        self.about: dict = document["about"]
        self.sha256: str = document["sha256"]
        self._count: int = document["sequences"]
        self._rows = group_rows(self.length)

    @classmethod
    def open(cls, path: str | Path) -> "Sequences":
        """The artifact at `path`, memory-mapped; `Refused` says what is wrong with a bad file, when
        data is read if it cannot be known before (damage, tokens out of range)."""
        path = Path(path)
        opened, document = open_document(path, KIND)
        sizes = [document.get(key) for key in ("vocabulary", "length", "sequences")]
        if not all(isinstance(size, int) for size in sizes) or min(sizes[:2]) < 1:
            raise Refused(path, f"its document says |V|, L, N = {sizes}, expected whole numbers")
        vocabulary, length, count = sizes
        # Nothing is made in a size that a document only claims.
        if max(vocabulary, length) > LARGEST:
            raise Refused(path, f"its document says |V|, L, N = {sizes}, above {LARGEST}")
        if not isinstance(document.get("about"), dict) or not isinstance(
            document.get("sha256"), str
        ):
            raise Refused(path, "its document lacks `about` or `sha256`")
        expected = _schema(vocabulary, length)
        if opened.schema_arrow != expected:
            columns, wanted = (
                " ".join(str(one).split()) for one in (opened.schema_arrow, expected)
            )
            raise Refused(path, f"its columns are {columns}, its document asks {wanted}")
        rows = [opened.metadata.row_group(i).num_rows for i in range(opened.num_row_groups)]
        starts = range(0, count, group_rows(length))
        if sum(rows) != count or rows != [
            min(group_rows(length), count - start) for start in starts
        ]:
            raise Refused(path, f"its row groups of {rows} rows do not make {count} sequences")
        return cls(path, opened, document)

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, rows: int | slice) -> np.ndarray:
        """Tokens (n, L) of a slice of sequences, or (L,) of one, in the stored integer type."""
        if not isinstance(rows, slice):
            index = range(len(self))[rows]
            return self[index : index + 1][0]
        wanted = range(len(self))[rows]
        if not len(wanted):
            return np.empty((0, self.length), token_type(self.vocabulary))
        low, high = sorted((wanted[0], wanted[-1]))
        first = low // self._rows
        tokens = self._read(list(range(first, high // self._rows + 1)))
        start = first * self._rows
        return tokens[low - start : high - start + 1][:: wanted.step]

    def first(self, count: int | None, key: str) -> np.ndarray:
        """Tokens of the first `count` sequences, None for all; `Refusal` if there are fewer."""
        if count is not None and count > len(self):
            raise Refusal(
                f"found {count}; expected at most {len(self)}, as {self.path} holds no more; lower "
                "it, or give that split more data",
                key,
            )
        return self[:count]

    @cached_property
    def tokens(self) -> np.ndarray:
        """All tokens (N, L), checked against the digest they were written with."""
        tokens = self._read(list(range(self._opened.num_row_groups)))
        if hashlib.sha256(_little_endian(tokens)).hexdigest() != self.sha256:
            raise Refused(self.path, "its tokens are not the ones that were written")
        return tokens

    def _read(self, groups: list[int]) -> np.ndarray:
        """Tokens (n, L) of row groups, below |V|."""
        column = read_groups(self.path, self._opened, groups)["tokens"].combine_chunks()
        values = column.flatten()
        rows = sum(min(self._rows, self._count - i * self._rows) for i in groups)
        if len(column) != rows or len(values) != rows * self.length:
            raise Refused(
                self.path,
                f"row groups {groups} hold {len(column)} lists and {len(values)} tokens, "
                f"expected {rows} lists of length {self.length}",
            )
        # Not `to_numpy`, which imports pandas, a third of a second of each job.
        tokens = np.from_dlpack(values).reshape(-1, self.length)
        if tokens.size and tokens.max() >= self.vocabulary:
            raise Refused(
                self.path, f"it holds token {tokens.max()}, expected 0 to {self.vocabulary - 1}"
            )
        return tokens


class Symbols:
    """Tokens that are no text, shown as letters of an alphabet or as numbers."""

    def __init__(self, alphabet: str | None = None):
        self.alphabet = alphabet

    def decode(self, tokens: list[int]) -> str:
        """One letter a token where there is an alphabet, numbers with spaces otherwise."""
        if self.alphabet is None:
            return " ".join(map(str, tokens))
        return "".join(self.alphabet[token] for token in tokens)


def group_rows(length: int) -> int:
    """Sequences of length L in one row group."""
    return max(1, GROUP // length)


def _schema(vocabulary: int, length: int) -> pa.Schema:
    element = pa.field("element", pa.from_numpy_dtype(token_type(vocabulary)), nullable=False)
    return pa.schema([pa.field("tokens", pa.list_(element, length), nullable=False)])


def rows_of(tokens, vocabulary: int | None = None) -> np.ndarray:
    """Tokens as an array (N, L); `ValueError` if they are not whole numbers in [0, |V|)."""
    if np.ma.is_masked(tokens):
        raise ValueError(
            "found places that are masked; expected a token in each; leave these rows out, or give "
            "tokens.filled(k), where k is the token that stands for nothing, such as a gap"
        )
    try:
        rows = np.asarray(tokens)
    except ValueError as error:
        raise ValueError(
            "found rows of different lengths; expected shape (N, L); cut them to one length"
        ) from error
    except (TypeError, RuntimeError) as error:  # of tensors on a GPU, or of which numpy has no type
        raise ValueError(
            f"found what numpy cannot read: {error}; expected an array; give "
            "tokens.detach().cpu().long().numpy()"
        ) from error
    if rows.ndim != 2 or not rows.shape[1]:
        raise ValueError(
            f"found shape {rows.shape}; expected (N, L), a row a sequence; reshape them"
        )
    if rows.dtype.kind not in "iu":
        raise ValueError(
            f"found {rows.dtype}; expected integers; give tokens.astype(int) where they are whole"
        )
    most = np.inf if vocabulary is None else vocabulary - 1
    if rows.size and not 0 <= rows.min() <= rows.max() <= most:
        expected = "0 and above" if vocabulary is None else f"0 to {most}"
        raise ValueError(
            f"found tokens from {rows.min()} to {rows.max()}; expected {expected}; give a larger "
            f"|V|, or the tokens of this vocabulary"
        )
    return rows


def _little_endian(tokens: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(tokens, dtype=tokens.dtype.newbyteorder("<"))
