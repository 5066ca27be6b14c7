"""Thresholds of two layers of attention against their exact values and bounds."""

import numpy as np
import pytest

from manybody.theory.multi_index import thresholds
from manybody.theory.multi_index.samples import Setting, averages, draws, mean_error
from manybody.theory.multi_index.table import weak_recovery

ENTRY = dict(
    activation="softmax",
    skips=[1.0],
    regulariser=0.0,
    tolerance_1=0.05,
    points=256,
    scrambles=4,
    seed=1,
    threads=1,
)


@pytest.mark.parametrize(
    ("skip", "alpha_2", "lambda_1"),
    [
        (0.1, 0.24356, 0.695),
        (0.25, 0.22194, 0.509),
        (0.5, 0.20271, 0.327),
        (0.75, 0.19207, 0.225),
        (1.0, 0.18548, 0.162),
        (1.5, 0.17808, 0.094),
        (2.0, 0.17427, 0.061),
        (3.0, 0.17069, 0.031),
        (4.0, 0.16914, 0.019),
    ],
)
def test_layer_2_is_learned_from_the_exact_threshold(skip, alpha_2, lambda_1):
    weak = weak_recovery(Setting(skip))
    assert 1 / weak.eigenvalue[1] == pytest.approx(alpha_2, abs=1e-5)
    assert weak.eigenvalue[0] == pytest.approx(lambda_1, abs=6e-4)


def test_no_threshold_is_below_a_sixth():
    alphas = [1 / weak_recovery(Setting(skip)).eigenvalue[1] for skip in (1.0, 10.0, 50.0)]
    assert all(alpha > 1 / 6 for alpha in alphas)
    assert alphas[-1] == pytest.approx(1 / 6, abs=1e-4)


def test_the_growths_of_samples_are_those_of_the_sum():
    normals = [draws(1024, seed) for seed in np.random.SeedSequence(2).spawn(8)]
    values = np.array([averages((0, 0), Setting(1.0), normal).eigenvalue for normal in normals])
    error = values.std(axis=0, ddof=1) / np.sqrt(8)
    assert (np.abs(values.mean(axis=0) - weak_recovery(Setting(1.0)).eigenvalue) < 4 * error).all()


@pytest.mark.parametrize(
    ("skip", "regulariser", "alpha_1", "tail"),
    [
        (0.5, 0.0, 0.7189, 0.0550),
        (1.0, 0.0, 0.7194, 0.0263),
        (2.0, 0.0, 0.7201, 0.0102),
        (3.0, 0.0, 0.7213, 0.0053),
        (1.0, 1e-3, 0.7396, None),  # of which no V22 is given
    ],
)
def test_layer_1_starts_where_the_specification_says(skip, regulariser, alpha_1, tail):
    setting = Setting(skip, regulariser=regulariser)
    given = setting, 512, np.random.SeedSequence(4).spawn(6), weak_recovery(setting)
    (q, alpha), (q_error, error) = mean_error(thresholds.second_layer(*given))
    assert abs(alpha - alpha_1) < 3 * error + 0.003
    assert error < 0.02
    if tail is not None:
        assert abs(1 - q - tail) < 3 * q_error + 0.05 * tail
        assert q_error < 0.05 * tail


@pytest.mark.long
@pytest.mark.parametrize(
    ("skip", "variance", "alpha"),
    [(1.0, 1e-3, 0.277), (1.0, 1e-4, 0.213), (4.0, 1e-3, 0.44), (4.0, 1e-4, 0.264)],
)
def test_layer_1_would_start_near_a_sixth_where_layer_2_is_almost_known(skip, variance, alpha):
    """1 / lambda_1 near V22 = 0, on its slow way to 1/6."""
    normals = [draws(256, seed) for seed in np.random.SeedSequence(2).spawn(8)]
    given = (0, 1 - variance), Setting(skip)
    value, error = mean_error([averages(*given, normal).eigenvalue[0] for normal in normals])
    assert abs(1 / value - alpha) < 3 * error / value**2 + 0.02
    assert error / value**2 < 0.02


@pytest.mark.parametrize(
    ("skip", "first", "exact", "second", "error"),
    [
        # second: plain Monte Carlo of 20000 samples where the layers are far apart; at c = 1.05
        # their thresholds at Q = 0 are .4054 and .4064, and they help each other little.
        pytest.param(0.5, 1, 0.31951, 0.590, 0.004, marks=pytest.mark.long),
        pytest.param(1.05, 1, 0.40539, 0.4065, 0.0005, marks=pytest.mark.long),
        (2.0, 2, 0.29595, 0.507, 0.003),
    ],
)
def test_either_layer_of_linear_attention_can_be_first(skip, first, exact, second, error):
    setting = Setting(skip, "linear")
    weak = weak_recovery(setting)
    assert weak.first == first - 1
    assert weak.alpha == pytest.approx(exact, abs=2e-5)
    found = thresholds.second_layer(setting, 512, np.random.SeedSequence(4).spawn(8), weak)
    (_, alpha), (_, own) = mean_error(found)
    assert abs(alpha - second) < 3.5 * np.hypot(own, error)
    assert own < 0.02


@pytest.mark.long
def test_thresholds_are_named_after_the_layer_that_they_are_of(monkeypatch):
    frame, _ = thresholds.compute({**ENTRY, "activation": "linear", "skips": [0.5, 0.8, 2.0]})
    rows = frame.set_index(["quantity", "series", "x"])["y"]
    assert rows["alpha_1", "exact", 0.5] < rows["alpha_2", "self-consistent", 0.5]
    assert rows["alpha_2", "exact", 2.0] < rows["alpha_1", "self-consistent", 2.0]
    assert rows["alpha_2 difference", "c = 0.8", 0.8] == 0
    assert rows["alpha_1 difference", "c = 2", 2.0] == 0
    assert rows["converged", "alpha_1", 2.0] == 1


@pytest.mark.long
def test_differences_of_alpha_1_are_paired_over_scramblings():
    """The samples of a scrambling are the same at every c: what they share is no noise of the
    difference. Errors of two independent thresholds would be several times as large."""
    entry = dict(activation="softmax", skips=[0.9, 1.0, 1.1], regulariser=0.0, tolerance_1=1e-6)
    frame, _ = thresholds.compute(entry | dict(points=64, scrambles=6, seed=3, threads=1))
    frame = frame.set_index(["quantity", "series", "x"]).sort_index()
    assert not frame.loc["converged", "y"].any()  # to a millionth
    for c in (0.9, 1.1):
        apart = frame.loc[("alpha_1 difference", "c = 1", c)]
        own, middle = (frame.loc[("alpha_1", "self-consistent", x)] for x in (c, 1.0))
        assert apart["y"] == pytest.approx(own["y"] - middle["y"], abs=1e-12)
        assert 0 < apart["y_err"] < np.hypot(own["y_err"], middle["y_err"]) / 3
