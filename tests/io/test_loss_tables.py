"""Tables of losses: ratios, pairs, and the choice of a checkpoint."""

import math

import numpy as np
import pandas as pd
import pytest

from manybody.io import tables


def losses(shift=0.0, noise=0.0, target="a", step=0, seed=0, sequences=200):
    """Sequences of 4 predictions whose difficulty differs much more than `noise`."""
    difficulty = np.random.default_rng(7).normal(2.0, 0.5, sequences)
    own = np.random.default_rng(100 + step + seed).normal(shift, noise, sequences)
    return pd.DataFrame(
        {
            "target": target,
            "step": step,
            "sequence": np.arange(sequences),
            "loss_sum": 4 * (difficulty + own),
            "correct": 1,
            "predictions": 4,
            "seed": seed,
        }
    )


def test_pairing_removes_what_sequences_share():
    table = pd.concat([losses(step=0), losses(0.1, 0.01, step=5)])
    first, second = (tables.select(table, "a", step) for step in (0, 5))
    value, error = tables.paired_difference(first, second)
    assert value == pytest.approx(0.1, abs=4 * error)
    assert error == pytest.approx(0.01 / math.sqrt(200), rel=0.3)
    curve = tables.learning_curves(table)
    sums = first["loss_sum"].to_numpy(), first["predictions"].to_numpy()
    assert curve[["loss", "loss_se"]].iloc[0].tolist() == pytest.approx(tables.ratio(*sums))
    assert curve["loss_se"].tolist() == pytest.approx([0.5 / math.sqrt(200)] * 2, rel=0.2)
    assert curve["accuracy"].tolist() == [0.25, 0.25]


def test_errors_of_ratios_cover_their_truth():
    rng = np.random.default_rng(5)
    found = []
    for _ in range(300):
        counts = rng.integers(1, 6, 60)
        value, error = tables.ratio(rng.normal(2.0 * counts, counts), counts.astype(float))
        found.append((value - 2.0) / error)
    assert np.std(found) == pytest.approx(1.0, abs=0.15)
    assert abs(np.mean(found)) < 0.2


def test_losses_are_averaged_over_seeds_within_a_sequence():
    table = pd.concat([losses(seed=0), losses(1.0, seed=1)])
    both, one = tables.select(table, "a", 0), tables.select(table[table["seed"] == 0], "a", 0)
    value, error = tables.paired_difference(one, both)
    assert (value, error) == pytest.approx((0.5, 0.0), abs=1e-9)


def test_different_sequences_are_not_paired():
    table = pd.concat([losses(), losses(target="b", sequences=150)])
    with pytest.raises(ValueError, match="200 and 150"):
        tables.paired_difference(tables.select(table, "a", 0), tables.select(table, "b", 0))


def test_a_step_that_was_not_evaluated_is_named():
    with pytest.raises(KeyError, match="at step 3"):
        tables.select(losses(), "a", 3)
