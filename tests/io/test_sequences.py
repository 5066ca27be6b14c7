"""The Sequences artifact: what is written is read, and nothing else is."""

import json

import child
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings, strategies as st

from manybody.io import parquet, quick_start, sequences
from manybody.io.parquet import Refused
from manybody.io.sequences import Sequences

ABOUT = {"source": "docs", "split": "test", "seed": 3, "made": {"by": "hand"}}


def draw(count=40, length=8, vocabulary=300, seed=0):
    return np.random.default_rng(seed).integers(0, vocabulary, (count, length))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "test.parquet"


@pytest.fixture
def small_groups(monkeypatch):
    """Row groups of 10 sequences of length 8."""
    monkeypatch.setattr(sequences, "GROUP", 80)


@pytest.mark.parametrize(
    ("vocabulary", "expected"),
    [(2, "uint8"), (255, "uint8"), (256, "uint16"), (65535, "uint16"), (65536, "uint32")],
)
def test_what_is_written_is_read_in_the_smallest_type_that_holds_the_vocabulary(
    path, vocabulary, expected
):
    tokens = draw(vocabulary=vocabulary)
    tokens[0, 0] = vocabulary - 1
    sequences.write(path, tokens, vocabulary, ABOUT)
    found = Sequences.open(path)
    assert (found.vocabulary, found.length, len(found)) == (vocabulary, 8, 40)
    assert found.about == ABOUT
    assert found.tokens.dtype == expected
    np.testing.assert_array_equal(found.tokens, tokens)
    assert found.about == ABOUT


@pytest.mark.usefixtures("small_groups")
@pytest.mark.parametrize(
    "rows",
    [
        slice(None),
        slice(3, 7),
        slice(8, 23),
        slice(30, 10, -7),
        slice(None, None, -1),
        slice(-3, None),
        slice(5, 5),
        slice(35, 99),
        *(0, 9, 10, 39, -1),
    ],
)
def test_slices_and_rows_are_those_of_an_array(path, rows):
    tokens = draw()
    sequences.write(path, tokens, 300, ABOUT)
    np.testing.assert_array_equal(Sequences.open(path)[rows], tokens[rows])
    with pytest.raises(IndexError):
        Sequences.open(path)[40]


@pytest.mark.usefixtures("small_groups")
def test_a_slice_reads_only_the_row_groups_it_needs(path):
    tokens = draw()
    sequences.write(path, tokens, 300, ABOUT)
    spoil_column(path, group=3)
    found = Sequences.open(path)
    np.testing.assert_array_equal(found[5:30], tokens[5:30])
    with pytest.raises(Refused, match="damaged"):
        found[29:31]
    with pytest.raises(Refused, match="damaged"):
        found.tokens  # noqa: B018


def spoil_column(path, group):
    """Flips one bit in the data of a row group."""
    column = pq.ParquetFile(path).metadata.row_group(group).column(0)
    middle = column.data_page_offset + column.total_compressed_size // 2
    spoiled = bytearray(path.read_bytes())
    spoiled[middle] ^= 1
    path.write_bytes(spoiled)


def test_no_sequences_are_sequences_too(path):
    sequences.write(path, np.empty((0, 8), int), 300, ABOUT)
    found = Sequences.open(path)
    assert len(found) == 0
    assert found.tokens.shape == found[0:5].shape == (0, 8)
    assert found.about == ABOUT


@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(0, 200), max_size=6), seed=st.integers(0, 99))
def test_bytes_do_not_depend_on_batches(tmp_path_factory, cuts, seed):
    folder = tmp_path_factory.mktemp("batches")
    tokens = draw(count=200, seed=seed)
    rows, sequences.GROUP = sequences.GROUP, 8 * 32
    try:
        sequences.write(folder / "whole.parquet", tokens, 300, ABOUT)
        with sequences.writer(folder / "batches.parquet", 300, 8, ABOUT) as writer:
            for batch in np.split(tokens, sorted(cuts)):
                writer.add(batch)
    finally:
        sequences.GROUP = rows
    assert (folder / "whole.parquet").read_bytes() == (folder / "batches.parquet").read_bytes()


def test_a_batch_may_be_overwritten_after_it_was_added(path):
    batch = draw(count=4)
    kept = batch.copy()
    with sequences.writer(path, 300, 8, ABOUT) as writer:
        writer.add(batch)
        batch[:] = 0
    np.testing.assert_array_equal(Sequences.open(path).tokens, kept)


def test_metadata_is_one_document_under_one_key(path):
    sequences.write(path, draw(), 300, ABOUT)
    metadata = pq.ParquetFile(path).metadata.metadata
    assert set(metadata) == {b"manybody", b"ARROW:schema"}  # the second is Arrow's own
    document = json.loads(metadata[b"manybody"])
    assert document.items() >= dict(vocabulary=300, length=8, sequences=40, about=ABOUT).items()


@pytest.mark.parametrize(
    ("tokens", "reason"),
    [
        ([[1, 2], [3]], "different lengths"),
        (np.ma.masked_equal([[1, 2]], 2), "found places that are masked"),
        (torch.ones((1, 2), requires_grad=True), "numpy cannot read: Can't call numpy"),
        ([1, 2, 3], r"found shape \(3,\); expected \(N, L\)"),
        ([[0.5, 1.0]], "found float64; expected integers"),
        ([[1, None]], "found object; expected integers"),
        ([[0, 300]], "from 0 to 300; expected 0 to 299"),
        ([[-1, 0]], "from -1 to 0"),
        (np.empty((3, 0), int), r"found shape \(3, 0\)"),
    ],
)
def test_what_is_no_sequence_is_not_written(path, tokens, reason):
    with pytest.raises(ValueError, match=reason):
        sequences.write(path, tokens, 300, ABOUT)
    assert not path.exists()


def forge(path, column, name="tokens", **document):
    """A Parquet file with any column and document, sealed as ours are."""
    table = pa.table([column], schema=pa.schema([pa.field(name, column.type, nullable=False)]))
    described = dict(
        kind="sequences", vocabulary=300, length=4, sequences=len(table), sha256="", about=ABOUT
    )
    with parquet.writing(path, table.schema) as writer:
        writer.write_table(table)
        parquet.set_document(writer, {**described, **document})


def lists(rows, length=4, element=None, nullable=False):
    kind = pa.field("element", element or pa.uint16(), nullable=nullable)
    return pa.array(rows, pa.list_(kind, length))


@pytest.mark.parametrize(
    ("column", "document", "reason"),
    [
        (pa.array([1, 2], pa.uint16()), {}, "columns are tokens: uint16 not null, .* asks tokens"),
        (pa.array([[1, 2], [3]], pa.list_(pa.uint16())), {}, "are tokens: list<"),
        (lists([[1, 2, 3, 4]], element=pa.int32()), {}, r"int32 not null>\[4\].* asks .*uint16"),
        (lists([[1, 2, 3, 4]], element=pa.uint8()), {}, r"uint8 not null>\[4\].* asks .*uint16"),
        (lists([[1, 2, None, 4]], nullable=True), {}, r"uint16>\[4\].* asks .*uint16 not null"),
        (lists([[1, 2, 3]], length=3), {}, r"not null>\[3\].* asks .*not null>\[4\]"),
        (lists([[1, 2, 3, 4]]), {"sequences": 2}, r"\[1\] rows do not make 2 sequences"),
        (lists([[1, 2, 3, 4]]), {"length": None}, r"\|V\|, L, N = \[300, None, 1\]"),
        (lists([[1, 2, 3, 4]]), {"vocabulary": "300"}, "expected whole numbers"),
        (lists([[1, 2, 3, 4]]), {"about": 3}, "lacks `about`"),
        (lists([[1, 2, 3, 4]]), {"name": "words"}, "columns are words: .* asks tokens: "),
        (lists([[1, 2, 3, 4]]), {"kind": "documents"}, "holds 'documents', expected 'sequences'"),
    ],
)
def test_a_file_of_the_wrong_form_is_refused_when_it_is_opened(path, column, document, reason):
    forge(path, column, **document)
    with pytest.raises(Refused, match=reason) as refusal:
        Sequences.open(path)
    assert str(path) in str(refusal.value)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([[1, 2, 3, 4], [1, 300, 0, 0]], "token 300, expected 0 to 299"),
        ([[1, 2, 3, 4]], "not the ones that were written"),
    ],
)
def test_bad_tokens_are_refused_when_they_are_read(path, rows, reason):
    forge(path, lists(rows))
    with pytest.raises(Refused, match=reason) as refusal:
        Sequences.open(path).tokens  # noqa: B018
    assert str(path) in str(refusal.value)


@given(
    st.lists(st.tuples(st.text(st.characters(codec="utf-8")), st.booleans())),
    st.lists(st.integers(0, 255)),
)
def test_columns_are_those_of_pyarrow(rows, tokens):
    texts, lasts = [text for text, _ in rows], [last for _, last in rows]
    assert quick_start.text_column(texts).equals(pa.array(texts, pa.string()))
    assert quick_start.boolean_column(lasts).equals(pa.array(lasts, pa.bool_()))
    for made in (quick_start.text_column(texts), quick_start.boolean_column(lasts)):
        made.validate(full=True)
    values = np.array(tokens, np.uint8)
    assert quick_start.number_column(values[::2]).equals(pa.array(values[::2]))


def test_writing_does_not_import_pandas(tmp_path):
    """Half a second of every job that tokenises or samples."""
    lines = (
        "import sys, numpy as np",
        "from manybody.io import sequences",
        "from manybody.data import documents",
        f"sequences.write({str(tmp_path / 's.parquet')!r}, np.zeros((2, 3), int), 4, {{}})",
        f"with documents.writer({str(tmp_path / 'd.parquet')!r}, {{}}) as writer:",
        "    writer.add(documents.Piece('text', True))",
        f"list(documents.Documents({str(tmp_path / 'd.parquet')!r}))",
        f"sequences.Sequences.open({str(tmp_path / 's.parquet')!r}).tokens",
        "assert 'pandas' not in sys.modules",
    )
    child.run("-c", "\n".join(lines))
