"""Parquet files that carry one JSON document and notice every flipped byte.

Pages carry checksums that are verified on reading; the document, under the single metadata key
`manybody`, carries a digest of itself, so that the footer, which has no checksum, is covered too.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from manybody.io.atomic import ArtifactError, atomic

KEY = b"manybody"
# What the reader raises on damaged bytes, which may be sizes, names or offsets that make no sense.
DAMAGE = (pa.ArrowException, OSError, ValueError, LookupError, MemoryError, OverflowError)


class Refused(ArtifactError):
    """A Parquet artifact is damaged, foreign or not what its name says; of the `kind` that was
    expected, where it may be somebody else's."""

    def __init__(self, path: str | Path, reason: str, kind: str | None = None):
        super().__init__(
            f"{path} is refused: {reason}. "
            + (
                f"Give {kind} of this pipeline"
                f"{' or of mb.write_sequences' * (kind == 'sequences')}; where it was such a file, "
                f"remove"
                if kind
                else "Delete"
            )
            + " it and run the same command again to remake it."
        )


@contextmanager
def writing(path: str | Path, schema: pa.Schema, **encoding) -> Iterator[pq.ParquetWriter]:
    """A Parquet writer whose file takes the name `path` only when the block ends well."""
    with (
        atomic(path) as temporary,
        pq.ParquetWriter(
            temporary,
            schema,
            compression="zstd",
            write_page_checksum=True,
            data_page_version="1.0",
            **encoding,
        ) as writer,
    ):
        yield writer


def set_document(writer: pq.ParquetWriter, document: dict) -> None:
    """Gives an open writer its JSON document, before it is closed."""
    text = _text({**document, "digest": _digest(document)})
    writer.add_key_value_metadata({KEY.decode(): text})


def open_document(path: str | Path, kind: str) -> tuple[pq.ParquetFile, dict]:
    """The memory-mapped Parquet file at `path` and its document, which must be of this `kind`."""
    path = Path(path)
    if not path.is_file():
        raise ArtifactError(f"{path} is missing: run snakemake with this file as its target")
    try:
        opened = pq.ParquetFile(path, memory_map=True, page_checksum_verification=True)
        metadata = opened.metadata.metadata or {}
        opened.schema_arrow  # noqa: B018 - decoded on demand
    except DAMAGE as error:
        raise Refused(path, f"not a whole Parquet file ({_line(error)})", kind) from error
    if KEY not in metadata:
        raise Refused(path, f"it has no metadata document under the key {KEY.decode()!r}", kind)
    try:
        document = json.loads(metadata[KEY])
        found = document.pop("digest")
        if found != _digest(document):
            raise ValueError("its digest differs")
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError) as error:
        raise Refused(
            path, f"its metadata document is not one of this pipeline ({_line(error)})", kind
        ) from error
    if document.get("kind") != kind:
        raise Refused(path, f"it holds {document.get('kind')!r}, expected {kind!r}", kind)
    return opened, document


def read_table(path: str | Path, kind: str, schema: pa.Schema) -> tuple[pa.Table, dict]:
    """All rows of a table with these columns, and its document."""
    opened, document = open_document(path, kind)
    table = read_groups(path, opened, list(range(opened.num_row_groups)))
    if table.schema.remove_metadata() != schema:
        raise Refused(path, f"it has the columns {', '.join(table.column_names)}")
    return table, document


def write_table(path: str | Path, table: pa.Table, document: dict) -> None:
    with writing(path, table.schema) as writer:
        writer.write_table(table)
        set_document(writer, document)


def read_groups(path: str | Path, opened: pq.ParquetFile, groups: list[int]) -> pa.Table:
    """Rows of some row groups, every page checked against its checksum."""
    try:
        return opened.read_row_groups(groups)
    except DAMAGE as error:
        raise Refused(path, f"its data is damaged ({_line(error)})") from error


def _text(document: dict) -> str:
    return json.dumps(document, sort_keys=True, allow_nan=False)


def _digest(document: dict) -> str:
    return hashlib.sha256(_text(document).encode()).hexdigest()


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
