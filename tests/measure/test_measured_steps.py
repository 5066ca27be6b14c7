"""Which checkpoints of a run have their spectrum measured."""

from types import SimpleNamespace

import numpy as np
import pytest

from manybody.io import checkpoints
from manybody.measure import spectra

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
