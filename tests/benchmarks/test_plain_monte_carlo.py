"""Plain Monte Carlo of two-layer attention against the channel's lattice and exact thresholds."""

import numpy as np
import pytest

from benchmarks import plain_monte_carlo as plain
from manybody.theory.multi_index import channel
from manybody.theory.multi_index.samples import Setting
from manybody.theory.multi_index.table import weak_recovery

SOFTMAX, LINEAR = Setting(1.0), Setting(0.5, "linear")


@pytest.mark.long
@pytest.mark.parametrize(
    ("skip", "activation", "overlaps", "regulariser"),
    [
        (1.0, "softmax", (0.0, 0.97), 0.0),
        (1.0, "softmax", (0.6, 0.99), 1e-3),
        (4.0, "softmax", (0.0, 0.995), 0.0),
        (0.25, "softmax", (0.0, 0.9), 0.0),
        (0.5, "linear", (0.5, 0.0), 0.0),
        (2.0, "linear", (0.0, 0.6), 0.0),
    ],
)
def test_two_integrals_of_one_channel_agree(skip, activation, overlaps, regulariser):
    setting = Setting(skip, activation, regulariser)
    normal = plain.normals(12, 3)
    found = plain.evaluate(overlaps, setting, normal)
    q = np.array(overlaps)
    variance = np.diag(1 - q + regulariser)
    omega = np.sqrt(q)[:, None] * normal[:, 0]
    x = channel.index(omega + np.sqrt(variance) @ normal[:, 1], skip, activation)
    posterior = channel.posterior(x, omega, variance, skip, activation)
    squares = (channel.denoiser(posterior, variance) ** 2).sum(axis=2)
    assert np.allclose(found.squares, squares, rtol=1e-4, atol=1e-4 * squares.max())
    for k in np.flatnonzero(q == 0):
        v = variance[k, k]
        guess = posterior.covariance[:, k, :, k] + np.einsum(
            "nt,ns->nts", posterior.mean[:, k], posterior.mean[:, k]
        )
        growth = ((guess / v - np.eye(2)) ** 2).sum(axis=(1, 2)) / v**2
        assert np.allclose(found.growth[:, k], growth, rtol=1e-4, atol=1e-4 * growth.max())
    assert np.isnan(found.growth[:, q > 0]).all()


@pytest.mark.long
@pytest.mark.parametrize("setting", [SOFTMAX, LINEAR])
def test_plain_thresholds_at_zero_overlap_are_the_exact_ones(setting):
    exact = 1 / weak_recovery(setting).eigenvalue
    for found, expected in zip(plain.weak_recovery(setting, 6000, 5), exact, strict=True):
        assert abs(found.value - expected) < 4 * found.error
        assert found.error < 0.1 * expected


@pytest.mark.long
def test_errors_of_roots_are_those_of_repeated_runs():
    runs = [plain.onset(SOFTMAX, 250, seed, 0.97) for seed in range(10)]
    spread = np.std([run.value for run in runs], ddof=1)
    assert 0.5 < spread / np.mean([run.error for run in runs]) < 2
