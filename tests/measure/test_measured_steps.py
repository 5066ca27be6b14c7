"""The checkpoints of a run whose spectrum is measured, and what is measured of each."""

from types import SimpleNamespace

import numpy as np
import planted_runs
import pytest
import torch

from manybody import models
from manybody.io import checkpoints, sequences
from manybody.measure import spectra, spectrum
from manybody.models import stored

KEPT = [0, 1, 5, 20, 100, 110, 200, 300, 400, 500, 600, 700, 800, 900, 1000]


@pytest.fixture
def run(monkeypatch):
    about = {"suspects": {"5": ["why"], "110": ["why"]}}
    monkeypatch.setattr(checkpoints, "as_manifest", lambda run: run)
    monkeypatch.setattr(checkpoints, "checkpoint_steps", lambda run: KEPT)
    return SimpleNamespace(about=about)


def test_all_come_with_suspects_others_without(run):
    assert spectra.measured(run, "all") == (KEPT, [5, 110])
    assert spectra.measured(run, "last") == ([1000], [])
    assert spectra.measured(run, [300, 20]) == ([20, 300], [])


@pytest.mark.parametrize("asked", [1, 2, 5, 8, 100])
def test_a_number_of_checkpoints_is_spread_over_the_later_training(run, asked):
    found, suspects = spectra.measured(run, asked)
    assert len(found) <= asked
    assert found == sorted(set(found))
    assert (found[-1], suspects) == (1000, [])
    assert found[0] >= 20  # the one nearest to a 15th of the last
    if asked == 5:
        wanted = np.geomspace(1000 / 15, 1000, 5)
        assert found == [100, 110, 300, 500, 1000]
        assert all(abs(np.log(step / at)) < 0.45 for step, at in zip(found, wanted, strict=True))


@pytest.mark.parametrize("architecture", ["gpt", "bert"])
def test_every_checkpoint_is_enumerated(architecture, tmp_path):
    sizes = dict(vocabulary=3, length=5, layers=2, heads=2, width=8, mlp=16)
    description, named = {"architecture": architecture, **sizes}, {}
    for step in (0, 10):
        torch.manual_seed(step)
        named[step] = checkpoints.tensors(models.build(description))
    about = dict(description=description, source="toy", model="one")
    manifest = planted_runs.of_checkpoints(tmp_path / "run", named, **about)
    tokens = np.random.default_rng(3).integers(0, 3, (20, 5))
    sequences.write(tmp_path / "test.parquet", tokens, 3, {})
    entry = dict(kind="enumeration", steps="all", sequences=16)
    found, said = spectra.measure(
        manifest, tmp_path / "test.parquet", entry, tmp_path / "parts", "a"
    )
    for step in (0, 10):
        model = stored.load_model(manifest, step, "cpu").double()
        expected = spectrum.enumerated(model, tokens[:16]).table
        mine = found[found["step"] == step]
        assert mine["quantity"].tolist() == expected["quantity"].tolist()
        np.testing.assert_allclose(mine["value"], expected["value"], rtol=1e-10)
        assert mine["state"].tolist() == expected["state"].tolist()
        assert mine["reached"].tolist() == expected["reached"].tolist()
    assert len(found) == 2 * len(expected)
    assert said == about | {"seed": 0}
