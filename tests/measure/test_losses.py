"""Losses of checkpoints against what explicit masking gives."""

from unittest.mock import MagicMock

import explicit
import numpy as np
import pandas as pd
import planted_runs
import pytest
import torch

from manybody import models
from manybody.io import checkpoints, sequences, tables
from manybody.io.manifest import Manifest
from manybody.measure import losses
from manybody.models import stored
from manybody.sampling.metropolis import sample

VOCABULARY, LENGTH = 7, 6
FACTORED = dict(
    architecture="factored", vocabulary=VOCABULARY, length=LENGTH, layers=2, rank=3, bias=True
)
GPT = dict(
    architecture="gpt", vocabulary=VOCABULARY, length=LENGTH, layers=2, heads=2, width=8, mlp=16
)


def finished_run(folder, description, steps=(0, 10)):
    """A run's folder as training leaves it, with random weights that differ between steps."""
    named = {}
    for step in steps:
        torch.manual_seed(step)
        named[step] = checkpoints.tensors(models.build(description))
    return planted_runs.of_checkpoints(folder, named, description=description)


def written(path, count, seed, vocabulary=VOCABULARY, length=LENGTH):
    tokens = np.random.default_rng(seed).integers(0, vocabulary, (count, length))
    sequences.write(path, tokens, vocabulary, {"source": "random"})
    return tokens


@pytest.fixture
def sets(tmp_path):
    tokens = {
        name: written(tmp_path / f"{name}.parquet", 9, seed) for seed, name in enumerate("ab")
    }
    return {name: (tmp_path / f"{name}.parquet", None) for name in tokens}, tokens


def masked_by_hand(model, tokens, positions):
    """Loss sum and hits of one sequence, each position masked in its own copy."""
    positions = torch.as_tensor(positions)
    rows = torch.zeros(len(positions), dtype=torch.int64)
    loss, hits = explicit.masked(model, torch.from_numpy(tokens)[None], rows, positions)
    return loss.sum().item(), hits.sum().item()


def test_every_checkpoint_on_every_set_is_the_loss_of_explicit_masks(tmp_path, sets):
    targets, tokens = sets
    run = finished_run(tmp_path / "run", FACTORED)
    table = losses.evaluate(run, targets)
    assert list(table.columns) == tables.LOSSES.schema.names
    assert len(table) == 2 * 2 * 9
    assert set(table["predictions"]) == {LENGTH}
    for row in table.itertuples():
        model = stored.load_model(run, row.step)
        loss, correct = masked_by_hand(model, tokens[row.target][row.sequence], range(LENGTH))
        assert row.loss_sum == pytest.approx(loss, rel=1e-5)
        assert row.correct == correct


def test_a_share_of_the_positions_is_drawn_once_for_all(tmp_path, sets):
    targets, tokens = sets
    run = finished_run(tmp_path / "run", FACTORED)
    table = losses.evaluate(run, targets, positions=0.5, seed=3)
    assert set(table["predictions"]) == {3}
    masks = losses.masked_positions(9, LENGTH, 0.5, 3)
    for row in table.itertuples():
        model = stored.load_model(run, row.step)
        loss, _ = masked_by_hand(model, tokens[row.target][row.sequence], masks[row.sequence])
        assert row.loss_sum == pytest.approx(loss, rel=1e-5)
    again = losses.evaluate(run, targets, positions=0.5, seed=3)
    pd.testing.assert_frame_equal(table, again, check_exact=True)
    other = losses.evaluate(run, targets, positions=0.5, seed=4)
    assert (table["loss_sum"] != other["loss_sum"]).any()


def test_masks_are_distinct_and_do_not_depend_on_how_many_sequences_follow():
    masks = losses.masked_positions(50, 16, 0.25, 1)
    assert masks.shape == (50, 4)
    assert (masks.diff(dim=1) > 0).all()
    assert torch.equal(losses.masked_positions(20, 16, 0.25, 1), masks[:20])
    assert losses.masked_positions(5, 16, "all", 1) is None


def test_a_causal_model_predicts_the_next_tokens(tmp_path, sets):
    targets, tokens = sets
    run = finished_run(tmp_path / "run", GPT)
    table = losses.evaluate(run, targets, steps="last")
    assert set(table["step"]) == {10}
    assert set(table["predictions"]) == {LENGTH - 1}
    model = stored.load_model(run, "last")
    for row in table.itertuples():
        sequence = torch.from_numpy(tokens[row.target][row.sequence])
        with torch.no_grad():
            logs = torch.log_softmax(model(sequence[None])[0].double(), -1)
        expected = -sum(float(logs[t - 1, sequence[t]]) for t in range(1, LENGTH))
        assert row.loss_sum == pytest.approx(expected, rel=1e-5)


def test_only_the_first_sequences_are_tested_when_a_number_is_given(tmp_path, sets):
    targets, _ = sets
    run = finished_run(tmp_path / "run", FACTORED, steps=(5,))
    few = losses.evaluate(run, {"a": (targets["a"][0], 4)})
    table = losses.evaluate(run, targets)
    assert few["sequence"].tolist() == [0, 1, 2, 3]
    expected = table[(table["target"] == "a") & (table["sequence"] < 4)]["loss_sum"]
    assert few["loss_sum"].tolist() == pytest.approx(expected.tolist(), rel=1e-6)


def test_progress_counts_every_checkpoint_and_target(tmp_path, sets, monkeypatch):
    monkeypatch.setattr(losses, "Progress", progress := MagicMock())
    losses.evaluate(finished_run(tmp_path / "run", FACTORED), sets[0], label="losses")
    calls = progress().__enter__().update.call_args_list
    assert progress.mock_calls[0].args == (sum(call.args[0] for call in calls), "sets", "losses")
    assert all(0 < call.kwargs["loss"] < 10 for call in calls)


@pytest.mark.parametrize(
    ("sizes", "count", "message"),
    [
        ({}, 10, r"targets\.a\.sequences: found 10; expected at most 9"),
        ({"length": 8}, None, "target a: .V. = 7 and L = 8"),
        ({"vocabulary": 9}, None, "target a: .V. = 9 and L = 6"),
    ],
)
def test_a_set_that_does_not_fit_is_named(tmp_path, sizes, count, message):
    run = finished_run(tmp_path / "run", FACTORED)
    written(tmp_path / "a.parquet", 9, 0, **sizes)
    with pytest.raises(ValueError, match=message):
        losses.evaluate(run, {"a": (tmp_path / "a.parquet", count)})


def test_a_table_of_losses_comes_back_as_it_was_written(tmp_path, sets):
    table = losses.evaluate(finished_run(tmp_path / "run", FACTORED), sets[0])
    paths = {seed: tmp_path / f"seed-{seed}.parquet" for seed in (0, 4)}
    for path in paths.values():
        tables.LOSSES.write(path, table, {"evaluation": "test"})
    back = tables.read_losses(paths)
    pd.testing.assert_frame_equal(back[back["seed"] == 0].drop(columns="seed"), table)
    assert set(back["seed"]) == {0, 4}


@pytest.mark.parametrize("layers", [2, pytest.param(3, marks=pytest.mark.long)])
def test_the_energy_of_chains_is_their_generators_loss(tmp_path, layers):
    """By the norm score -E / L is minus the mean loss at all positions: two codes, one number."""
    run = finished_run(tmp_path / "run", FACTORED | {"layers": layers})
    manifest = sample(
        stored.load_model(run),
        written(tmp_path / "a.parquet", 12, 0),
        tmp_path / "clone",
        energy="norm",
        gauge="none",
        sweeps=[3, 7],
        order="left-to-right",
        seed=1,
        about={},
    )
    clone = Manifest.read(manifest, "clones")
    score = tables.read_trace(manifest)[1].set_index("sweep")["score"]
    for sweep in (3, 7):
        path = clone.file(f"sweep-{sweep}.parquet")
        sums = losses.evaluate(run, {"own": (path, None)}, steps="last")
        loss = sums["loss_sum"].sum() / sums["predictions"].sum()
        assert loss == pytest.approx(-score.loc[sweep], abs=1e-5)
