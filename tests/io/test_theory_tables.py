"""Tables of theory: what is written comes back, and other columns are not written."""

import math

import numpy as np
import pandas as pd
import pytest

from manybody.io import tables


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
    back, document = tables.THEORY.read(paths[0])
    assert document == about
    assert list(back.columns) == tables.THEORY.schema.names
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
