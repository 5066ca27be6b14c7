"""The time left of a training, whose first checkpoints are dense and take longer than steps."""

from types import SimpleNamespace

import pytest
from test_training import run

from manybody.training import loop

STEP, CHECKPOINT = 1.0, 20.0  # seconds


def test_time_left_counts_steps_and_checkpoints(tmp_path, monkeypatch):
    clock, said = [0.0], []
    monkeypatch.setattr(loop, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    step, validate = loop.TrainingRun._step, loop.TrainingRun._validate

    def slow_step(training):
        clock[0] += STEP
        step(training)

    def slow_validation(training):
        clock[0] += CHECKPOINT
        return validate(training)

    class Told(loop.Progress):
        def update(self, done, left=None, **figures):
            said.append((clock[0], left))

    monkeypatch.setattr(loop.TrainingRun, "_step", slow_step)
    monkeypatch.setattr(loop.TrainingRun, "_validate", slow_validation)
    monkeypatch.setattr(loop, "Progress", Told)
    run(tmp_path / "run", {"checkpoints": {"logarithmic": 8, "listed": []}, "steps": 120})
    assert len(said) >= 8
    for now, left in said:
        assert now + left == pytest.approx(clock[0])
