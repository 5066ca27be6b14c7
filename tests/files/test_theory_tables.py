"""Tables of theory: what is written comes back; what is not such a table is refused by name."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from manybody.files import parquet, tables
from manybody.files.atomic import ArtifactError


@pytest.fixture
def numbers() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "y": [0.1, math.nan, -3.0],
            "quantity": "norm",
            "series": ["decay ε = 0.05", "", "b"],
            "seed": np.array([0, 0, 7], dtype=np.int32),
            "x": [1, 2, 3],
            "y_err": math.nan,
        }
    )


def test_a_table_comes_back_as_it_was_written(tmp_path, numbers):
    about = {"kind": "gradient-flow", "rates": [0.5, -1.0]}
    paths = [tmp_path / f"{name}.parquet" for name in "ab"]
    tables.write_theory(paths[0], numbers, about)
    tables.write_theory(paths[1], numbers[numbers.columns[::-1]].copy(), dict(about))
    back, document = tables.read_theory(paths[0])
    assert document == about
    assert list(back.columns) == tables.THEORY_SCHEMA.names
    pd.testing.assert_frame_equal(
        back, numbers[back.columns].astype({"seed": "int64", "x": "float64"}), check_dtype=False
    )
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "b.parquet"]


def test_other_columns_are_refused_before_anything_is_written(tmp_path, numbers):
    path = tmp_path / "a.parquet"
    with pytest.raises(ValueError, match=r"a\.parquet: found the columns .*z.*quantity, series"):
        tables.write_theory(path, numbers.assign(z=1), {})
    with pytest.raises(ValueError, match=r"a\.parquet"):
        tables.write_theory(path, numbers.drop(columns="seed"), {})
    assert not list(tmp_path.iterdir())


LOSSES = pd.DataFrame({name: [1] for name in tables.LOSS_SCHEMA.names}).astype({"target": str})


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (Path.unlink, "is missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:500]), "is refused"),
        (
            lambda path: pq.write_table(pa.table({"x": [1.0]}), path),
            "is refused: it has no metadata",
        ),
        (lambda path: tables.write_losses(path, LOSSES, {}), "is refused: it holds 'losses'"),
    ],
    ids=["missing", "half", "foreign", "losses"],
)
def test_damaged_and_foreign_files_are_refused_by_name(tmp_path, numbers, spoil, said):
    path = tmp_path / "a.parquet"
    tables.write_theory(path, numbers, {})
    spoil(path)
    with pytest.raises(ArtifactError, match=rf"a\.parquet {said}"):
        tables.read_theory(path)


def test_a_flipped_byte_is_refused_or_changes_nothing(tmp_path, numbers):
    path = tmp_path / "a.parquet"
    tables.write_theory(path, numbers, {"rates": [0.5]})
    expected, _ = tables.read_theory(path)
    whole, refused = path.read_bytes(), 0
    places = range(0, len(whole), 3)
    for place in places:
        spoiled = bytearray(whole)
        spoiled[place] ^= 0xFF
        path.write_bytes(spoiled)
        try:
            found, about = tables.read_theory(path)
            pd.testing.assert_frame_equal(found, expected)
            assert about == {"rates": [0.5]}
        except parquet.Refused:
            refused += 1
    # What may change unnoticed is what nobody reads: statistics, the writer's name, offsets.
    assert refused > 0.6 * len(places)
