"""Diagnostics of chains whose answer is known."""

import numpy as np
import pytest

from manybody.sampling.diagnostics import settled, trace
from manybody.sampling.draws import Draws


def autoregressive(memory, sweeps=400, chains=60, seed=0):
    """Chains x_t = memory x_{t-1} + noise, stationary from the start; tau = (1+m) / (1-m)."""
    draw = np.random.default_rng(seed)
    x = draw.normal(size=chains) / np.sqrt(1 - memory**2)
    rows = []
    for _ in range(sweeps):
        rows.append(x)
        x = memory * x + draw.normal(size=chains)
    return np.array(rows)


@pytest.mark.parametrize("memory", [0.0, 0.5, 0.8])
def test_autocorrelation_time_of_an_autoregressive_process(memory):
    found = settled(autoregressive(memory, sweeps=4000, chains=20))
    expected = (1 + memory) / (1 - memory)
    assert found["autocorrelation"] == pytest.approx(expected, rel=0.15)
    assert found["effective_samples"] == pytest.approx(2000 * 20 / expected, rel=0.15)
    assert found["rhat"] == pytest.approx(1, abs=0.02)


def test_split_rhat_sees_chains_that_differ_and_chains_that_drift():
    noise = autoregressive(0.0, sweeps=40)
    apart = settled(noise + np.arange(60))
    assert apart["rhat"] > 5
    assert apart["effective_samples"] < 0.1 * noise.size / 2
    # Halves of 10 sweeps, one unit a sweep: W = 1 + 55/6 within, B = 10^2 / 4 x 120/119 between.
    drift = settled(noise + np.arange(40)[:, None])["rhat"]
    assert drift == pytest.approx(np.sqrt(0.9 + 25.2 / (1 + 55 / 6)), rel=0.03)


def test_only_the_second_half_counts():
    scores = autoregressive(0.0, sweeps=41)
    moved = scores.copy()
    moved[:20] += 1000
    assert settled(moved) == settled(scores)


@pytest.mark.parametrize("scores", [np.ones((40, 5)), np.random.default_rng(0).random((7, 5))])
def test_nothing_is_said_of_frozen_or_short_chains(scores):
    assert all(np.isnan(value) for value in settled(scores).values())


def test_trace_counts_shares_per_sweep():
    energies = -np.array([[4.0, 8.0], [8.0, 8.0], [8.0, 12.0]])
    same = np.array([[1, 3], [4, 4]])
    accepted = np.array([[3, 0], [0, 0]])
    columns = trace(energies, same, accepted, np.array([[0, 0], [3, 0], [2, 0]]), length=4)
    assert columns["sweep"].tolist() == [0, 1, 2]
    assert columns["score"].tolist() == [1.5, 2.0, 2.5]
    assert columns["score_se"].tolist() == [0.5, 0.0, 0.5]
    np.testing.assert_array_equal(columns["same"], [np.nan, 0.5, 1.0])
    np.testing.assert_array_equal(columns["accepted"], [np.nan, 0.75, np.nan])
    np.testing.assert_allclose(columns["changed"], [0, 3 / 8, 2 / 8])


def test_random_numbers_belong_to_the_chain():
    few, many = Draws(3, 4, 7, "permuted"), Draws(3, 9, 7, "permuted")
    for first, second in zip(few.sweep(2), many.sweep(2), strict=True):
        assert np.array_equal(first, second[:4])
    assert not np.array_equal(many.sweep(2)[1], many.sweep(3)[1])
    assert np.array_equal(np.sort(many.sweep(5)[0]), np.tile(np.arange(7), (9, 1)))
