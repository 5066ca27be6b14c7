"""Every kind of Parquet with a document: what is damaged, foreign or missing is refused by name."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from manybody.data import documents
from manybody.data.documents import Documents, Piece
from manybody.io import sequences, tables
from manybody.io.atomic import ArtifactError
from manybody.io.parquet import Refused
from manybody.io.sequences import Sequences

ABOUT = {"source": "docs", "rates": [0.5]}


def write_sequences(path):
    sequences.write(path, np.random.default_rng(0).integers(0, 300, (12, 4)), 300, ABOUT)


def read_sequences(path):
    """A slice, all tokens, and the document."""
    found = Sequences.open(path)
    return found[2:5].tolist(), found.tokens.tolist(), found.vocabulary, found.about


def write_theory(path):
    y = [0.1, -2.0, -3.0]
    table = dict(quantity="norm", series=["a", "", "b"], seed=[0, 0, 7], x=[1, 2, 3], y=y, y_err=1)
    tables.write_theory(path, pd.DataFrame(table), ABOUT)


def read_theory(path):
    frame, about = tables.THEORY.read(path)
    return frame.to_dict("list"), about


def write_documents(path):
    with documents.writer(path, ABOUT) as writer:
        for number in range(20):
            writer.add(Piece(f"document {number}", True))


def read_documents(path):
    found = Documents(path)
    return list(found), found.about


# How each is written and read.
KINDS = {
    "sequences": (write_sequences, read_sequences),
    "theory": (write_theory, read_theory),
    "documents": (write_documents, read_documents),
}


@pytest.mark.parametrize(
    ("kind", "step", "least"), [("sequences", 1, 0.8), ("theory", 3, 0.6), ("documents", 3, 0.6)]
)
def test_a_flipped_byte_is_refused_or_changes_nothing(tmp_path, kind, step, least):
    write, read = KINDS[kind]
    path = tmp_path / "table.parquet"
    write(path)
    expected, whole, refused = read(path), path.read_bytes(), 0
    for place in range(0, len(whole), step):
        spoiled = bytearray(whole)
        spoiled[place] ^= 0xFF
        path.write_bytes(spoiled)
        try:
            assert read(path) == expected
        except Refused:
            refused += 1
    # What may change unnoticed is what nobody reads: statistics, the writer's name, offsets.
    assert refused > least * len(whole) / step


def truncate(path, size):
    path.write_bytes(path.read_bytes()[:size])


def foreign(path, metadata):
    pq.write_table(pa.table({"tokens": [[1, 2]]}).replace_schema_metadata(metadata), path)


SPOILT = {
    "missing": (Path.unlink, "is missing"),
    "empty": (lambda path: truncate(path, 0), "is refused: not a whole Parquet file"),
    "a mark": (lambda path: truncate(path, 3), "is refused: not a whole Parquet file"),
    "half": (lambda path: truncate(path, 500), "is refused: not a whole Parquet file"),
    "its end": (lambda path: truncate(path, -1), "is refused: not a whole Parquet file"),
    "foreign": (
        lambda path: foreign(path, {}),
        "is refused: it has no metadata document under .*Give .* of this pipeline.*; where it was",
    ),
    "another": (
        lambda path: tables.MAPS.write(path, pd.DataFrame(columns=tables.MAPS.schema.names), {}),
        "is refused: it holds 'maps', expected",
    ),
} | {
    text[:30]: (
        lambda path, text=text: foreign(path, {"manybody": text}),
        ".*not one of this pipeline",
    )
    for text in ("no JSON", "[1]", '{"kind": "sequences"}', '{"digest": "0"}', "[" * 10**6)
}


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_damaged_foreign_or_missing_is_refused_by_name(tmp_path, kind, how):
    write, read = KINDS[kind]
    spoil, said = SPOILT[how]
    path = tmp_path / "table.parquet"
    write(path)
    spoil(path)
    with pytest.raises(ArtifactError, match=rf"table\.parquet {said}"):
        read(path)
