"""Displacements of layers: equation 6 on checkpoints made by hand."""

import math

import pandas as pd
import planted_runs
import pytest
import torch

from manybody.io import tables
from manybody.measure.displacements import measure


def displacement_of(folder, start, later, seed=0, **description):
    """Displacements of a run of two checkpoints, by step."""
    checkpoints = {0: start, 200: later}
    factored = dict(architecture="factored", layers=1, rank=None)
    about = dict(description=factored | description, seed=seed)
    return measure([planted_runs.of_checkpoints(folder, checkpoints, **about)])


def test_displacements_are_those_of_equation_6(tmp_path):
    # |A(t) - A(0)|^2 / L^2 = 1 and |V(t) - V(0)|^2 / |V|^2 = 4 are added, whatever L and |V|.
    start = {"attention.0": torch.zeros(2, 2), "left.0": torch.zeros(3, 3), "bias": torch.zeros(3)}
    later = {
        "attention.0": torch.ones(2, 2), "left.0": torch.full((3, 3), 2.0),
        "bias": torch.full((3,), 9.0),
    }  # fmt: skip
    found = displacement_of(tmp_path / "run", start, later)
    assert found["step"].tolist() == [0, 200]
    assert found["value"].tolist() == pytest.approx([0.0, 5.0])


def test_displacements_are_those_of_the_values_and_maps_that_the_layer_uses(tmp_path):
    # V = P Q goes from [[1], [0]] [[1, 1]] to [[1], [2]] [[1, 1]]; the mean of its change is 2.
    left, right = torch.tensor([[1.0], [0.0]]), torch.ones(1, 2)
    moved = torch.tensor([[1.0], [2.0]])
    still = {"attention.0": torch.zeros(2, 2), "left.0": left, "right.0": right}
    found = displacement_of(tmp_path / "low rank", still, still | {"left.0": moved}, rank=1)
    assert found["value"][1] == pytest.approx(2.0)
    # A = softmax(W) goes from 1/2, 1/2 to 1/4, 3/4 in one row of two.
    turned = {"attention.0": torch.tensor([[0.0, 0.0], [0.0, math.log(3)]])}
    found = displacement_of(
        tmp_path / "softmax", still, still | turned, rank=1, attention="softmax"
    )
    assert found["value"][1] == pytest.approx(2 * 0.25**2 / 4)
    # Two heads, of which one moves as above, have half its displacement.
    heads = {name: torch.stack([value, value]) for name, value in still.items()}
    one = heads | {"left.0": torch.stack([left, moved])}
    found = displacement_of(tmp_path / "heads", heads, one, rank=1)
    assert found["value"][1] == pytest.approx(1.0)


def test_all_seeds_of_a_model_make_one_table(tmp_path):
    start = {
        f"{part}.{layer}": torch.zeros(2, 2) for part in ("attention", "left") for layer in (0, 1)
    }
    later = start | {"attention.1": torch.ones(2, 2)}
    for seed in (3, 5):
        displacement_of(tmp_path / f"seed-{seed}", start, later, seed, layers=2)
    found = measure([tmp_path / f"seed-{seed}" / "manifest.json" for seed in (3, 5)])
    assert found["seed"].tolist() == [3] * 4 + [5] * 4
    assert found["layer"].tolist() == [1, 2] * 4
    assert found["value"].tolist() == [0, 0, 0, 1] * 2
    tables.DISPLACEMENTS.write(tmp_path / "table.parquet", found, {"model": "n2"})
    pd.testing.assert_frame_equal(tables.DISPLACEMENTS.read(tmp_path / "table.parquet")[0], found)
