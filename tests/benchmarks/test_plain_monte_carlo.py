"""Plain Monte Carlo of two-layer attention against exact thresholds and repeated runs."""

import numpy as np
import pytest

from benchmarks import plain_monte_carlo as plain
from manybody.theory.multi_index.samples import Setting
from manybody.theory.multi_index.table import weak_recovery

SOFTMAX, LINEAR = Setting(1.0), Setting(0.5, "linear")


@pytest.mark.long
@pytest.mark.parametrize("setting", [SOFTMAX, LINEAR])
def test_plain_thresholds_at_zero_overlap_are_the_exact_ones(setting):
    exact = 1 / weak_recovery(setting).eigenvalue
    for found, expected in zip(plain.weak_recovery(setting, 6000, 5), exact, strict=True):
        assert abs(found.value - expected) < 4 * found.error
        assert found.error < 0.1 * expected


def test_a_fixed_point_of_layer_2_alone_is_that_of_the_table():
    found = plain.single_layer(0.6, SOFTMAX, 3000, 3)
    assert abs(found.value - 0.4369) < 3 * found.error < 0.04


@pytest.mark.long
def test_errors_of_roots_are_those_of_repeated_runs():
    runs = [plain.onset(SOFTMAX, 250, seed, 0.97) for seed in range(10)]
    spread = np.std([run.value for run in runs], ddof=1)
    assert 0.5 < spread / np.mean([run.error for run in runs]) < 2


def test_a_root_of_linear_equations_and_its_error_are_those_of_a_mean():
    """F = 3 w + mean(a), log alpha = 2 w + mean(b): at the root log alpha is mean(b - 2 a / 3)."""
    normal = np.random.default_rng(4).standard_normal((400, 2))

    def ask(w, normal):
        a, b = normal.T
        return 3 * w + a.mean(), a, 2 * w + b.mean(), b

    found = plain._at_root(ask, 0.6, normal)
    logs = normal[:, 1] - 2 * normal[:, 0] / 3
    value = np.exp(logs.mean())
    expected = [value, value * np.std(logs, ddof=1) / 20]
    np.testing.assert_allclose([found.value, found.error], expected, rtol=1e-9)
