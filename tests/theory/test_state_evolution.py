"""State evolution of two layers of attention against identities and landmarks."""

from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import pytest
from scipy.special import softmax

from benchmarks import plain_monte_carlo as monte_carlo
from manybody.theory.multi_index import channel, state_evolution as se
from manybody.theory.multi_index.samples import (
    Setting,
    averages,
    controlled,
    draws,
    mean_error,
    prediction_errors,
    root,
)
from manybody.theory.multi_index.table import (
    Curve,
    both,
    onset,
    read,
    single_layer,
    weak_recovery,
)

SETTING = Setting(1.0)
WEAK = weak_recovery(SETTING)
ENTRY = dict(
    skip=1.0,
    activation="softmax",
    regulariser=0.0,
    alphas=[0.1, 0.4],
    points=128,
    scrambles=2,
    side_information=1000.0,
    seed=1,
    threads=1,
)


def seeds(count, seed=7):
    return np.random.SeedSequence(seed).spawn(count)


@pytest.fixture
def small(monkeypatch):
    """Tables of few overlaps."""
    monkeypatch.setattr(se.table, "SINGLE_LAYER", (0.1, 0.4, 0.8))
    monkeypatch.setattr(se.table, "BOTH", (0.1,))
    monkeypatch.setattr(se, "ERROR_POINTS", 512)


def test_gain_is_the_slope_of_the_free_entropy_and_posteriors_are_true():
    normals = [draws(256, seed) for seed in seeds(16)]
    for Q in se.random_overlaps(np.random.SeedSequence(3))[:4]:
        for value, error in se.identities(Q, SETTING, normals):
            assert abs(value) < 4 * error
            assert error < 0.1


@pytest.mark.long
def test_identities_that_fail_are_in_the_document_of_the_table(small, monkeypatch, caplog):
    """The gain of wrong posteriors is no slope of their free entropy."""
    entry = {**ENTRY, "alphas": [0.4], "points": 64}
    assert "broken" not in se.compute(entry)[1]
    identities, posterior = se.identities, channel.posterior

    def wrong(*given, **options):
        found = posterior(*given, **options)
        return replace(found, mean=1.3 * found.mean)

    def of_wrong_posteriors(*given):
        with monkeypatch.context() as changed:
            changed.setattr(channel, "posterior", wrong)
            return identities(*given)

    monkeypatch.setattr(se, "identities", of_wrong_posteriors)
    _, about = se.compute(entry)
    assert [text.split(" fails")[0] for text in about["broken"]] == [
        "2 d(E log Z_out)/dQ = G(Q)",
        "E g g' = T/V - E[sum_t Cov]/V^2",
    ]
    assert "identities do not hold" in caplog.text


@pytest.mark.parametrize(
    ("pairs", "broken"),
    [
        ([(0.0, 0.0), (2.0, 1.0)], 0),  # two estimators that agree to rounding
        ([(3.5, 1.0)] + [(0.1, 1.0)] * 9, 0),  # the largest of ten is above 3 more often than one
        ([(6.0, 1.0)] + [(0.1, 1.0)] * 9, 1),
        ([(np.nan, 1.0)] + [(0.1, 1.0)] * 9, 1),
        ([(0.1, np.nan)] + [(0.1, 1.0)] * 9, 1),
    ],
)
def test_an_identity_fails_where_its_largest_difference_is_no_noise(pairs, broken):
    found = se.broken_identities([((0.0, 1.0), pair) for pair in pairs])
    assert [text[:6] for text in found] == ["E g g'"] * broken


def test_fixed_points_of_layer_2_alone():
    """The specification's table; at .6 and .7 by plain Monte Carlo."""
    known = {
        0.1: 0.248, 0.2: 0.295, 0.3: 0.335, 0.4: 0.371, 0.5: 0.407, 0.6: 0.4369, 0.7: 0.4734,
        0.8: 0.516, 0.9: 0.578, 0.95: 0.649,
    }  # fmt: skip
    curves = [single_layer(known, SETTING, draws(512, s), 0.1855, 0) for s in seeds(8)]
    values, errors = mean_error([curve.alphas[1:] for curve in curves])
    expected = np.array(list(known.values()))
    assert (np.abs(values - expected) < 0.01 * expected + 3 * errors).all()
    assert (errors < 0.02 * expected).all()
    assert (errors[4:] < 0.01 * expected[4:]).all()


@pytest.mark.long
@pytest.mark.parametrize(
    ("regulariser", "expected", "tails"),
    [
        (
            0.0,
            (0.757, 0.826, 0.880, 0.924, 0.948, 0.972, 0.989, 0.999),
            (0.0196, 0.0116, 0.0071, 0.0037, 0.0023, 0.00104, 0.00039),
        ),
        (
            1e-3,
            (0.784, 0.870, 0.946, 1.039, 1.115, 1.277, 1.591),
            (0.0202, 0.0124, 0.0079, 0.0045, 0.0031, 0.0017, 0.00085),
        ),
    ],
)
def test_fixed_points_of_both_layers(regulariser, expected, tails):
    """alpha and 1 - Q22 along Q11, with what the specification allows; without a regulariser alpha
    goes to 1 as Q goes to I."""
    setting, found = Setting(1.0, regulariser=regulariser), []
    weak = weak_recovery(setting)
    places = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.96, 0.99)[: len(expected)]
    for seed in seeds(4):
        normal = draws(1024, seed)
        found.append(both(places, setting, normal, onset(setting, normal, 0.97, weak), 0, weak))
    alphas, errors = mean_error([curve.alphas[1:] for curve in found])
    share = np.array([0.015, *[0.007] * 6, 0.01])[: len(expected)]
    assert (np.abs(alphas - expected) < share * alphas + 3 * errors).all()
    assert (errors < 0.025 * alphas).all()
    rest, errors = mean_error([1 - curve.overlaps[1:8, 1] for curve in found])
    assert (np.abs(rest - tails) < 0.05 * rest + 3 * errors).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("skip", "regulariser"), [(0.6, 0.0), (0.35, 0.0), (1.5, 1e-2), (2.5, 1e-3), (0.8, 3e-3)]
)
def test_tables_at_other_parameters_are_those_of_independent_samples(skip, regulariser):
    """By plain Monte Carlo, with the channel's averages alone in common; the iteration from above
    ends where the table is, and all identities hold."""
    entry = {
        **ENTRY, "skip": skip, "regulariser": regulariser, "points": 256, "scrambles": 4,
        "alphas": [0.15, 0.3, 0.5, 0.8, 1.3], "side_information": 1e5, "threads": 2,
    }  # fmt: skip
    frame, about = se.compute(entry)
    assert "broken" not in about
    rows = frame.set_index(["quantity", "series", "x"]).sort_index()
    assert (rows.loc["converged", "y"] == 1).all()
    setting = Setting(skip, "softmax", regulariser, 2)

    def compare(found, plain):
        spread = np.hypot(np.nan_to_num(found["y_err"]), plain.error)
        assert abs(found["y"] - plain.value) < 4 * spread + 0.005 * plain.value
        assert spread < 0.1 * plain.value

    compare(
        rows.loc[("threshold", "alpha_2", skip)], monte_carlo.weak_recovery(setting, 6000, 5)[1]
    )
    places, threshold = (0.3, 0.6, 0.9), rows.loc[("threshold", "alpha_2", skip), "y"]
    alphas = [
        single_layer(places, setting, draws(256, seed), threshold, 0).alphas[1:]
        for seed in seeds(4)
    ]
    for q, y, error in zip(places, *mean_error(alphas), strict=True):
        compare({"y": y, "y_err": error}, monte_carlo.single_layer(q, setting, 6000, 3))
    found = monte_carlo.onset(setting, 6000, 2, 0.97)
    compare(rows.loc[("threshold", "alpha_1", skip)], found)
    for name in ("Q11", "Q22"):
        above, below = rows.loc[("overlap informed", name)], rows.loc[("overlap", name)]
        assert np.abs(above["y"] - below["y"]).max() < 3e-3


def overlap_map(overlap, alpha, setting, normal):
    """One step of state evolution, Q -> (1 + alpha G)^-1 alpha G: (2, 2)."""
    gain = alpha * averages(overlap, setting, normal).gain
    return np.linalg.solve(np.eye(2) + gain, gain)


def test_a_point_of_the_table_does_not_move_under_state_evolution():
    normal = draws(256, seeds(1)[0])
    curve = single_layer((0.3, 0.7), SETTING, normal, 0.1855, 0)
    for overlaps, alpha in zip(curve.overlaps[1:], curve.alphas[1:], strict=True):
        moved = overlap_map(overlaps, alpha, SETTING, normal)
        assert np.allclose(moved, np.diag(overlaps), atol=1e-10)
    pair = both((0.5,), SETTING, normal, onset(SETTING, normal, 0.97, WEAK), 0, WEAK)
    moved = overlap_map(pair.overlaps[1], pair.alphas[1], SETTING, normal)
    assert np.allclose(np.diag(moved), pair.overlaps[1], atol=1e-3)


def test_the_free_entropy_is_stationary_at_a_fixed_point_and_grows_to_it():
    """phi = (Q + log(1 - Q)) / 2 + alpha E log Z_out of layer 2 alone: 2 dphi / dQ = alpha G -
    Q / V, on the samples of the fixed point; and phi at it is the integral of E log Z_out over
    alpha from the threshold on (the envelope theorem)."""
    normal, step = draws(512, seeds(1)[0]), 1e-3
    curve = single_layer((0.05, 0.1, 0.2, 0.3, 0.4, 0.5), SETTING, normal, WEAK.alpha, 0)
    q, alpha = curve.overlaps[-1, 1], curve.alphas[-1]

    def log_z(q):
        return averages((0, q), SETTING, normal).log_z

    def phi(q):
        return (q + np.log1p(-q)) / 2 + alpha * log_z(q)

    # against Q / V, with which alpha G cancels
    assert abs(phi(q + step) - phi(q - step)) / step < 0.05 * q / (1 - q)
    reached = phi(q) - phi(0.0)
    gained = np.array([log_z(q) for q in curve.overlaps[:, 1]]) - log_z(0.0)
    assert reached == pytest.approx(np.trapezoid(gained, curve.alphas), rel=0.1)
    assert reached > 0


def test_a_fixed_point_that_is_called_converged_stands_still():
    normal = draws(128, seeds(1)[0])
    for alpha, start in ((0.3, 0.9), (0.5, 0.9), (0.7, 0.99)):
        fixed = se.fixed_point(alpha, (start, start), SETTING, normal)
        assert fixed.converged
        gain = np.diag(averages(fixed.overlaps, SETTING, normal).gain)
        for Q, G in zip(fixed.overlaps, gain, strict=True):
            if Q > 0:
                assert abs(np.log(alpha * G) - np.log(Q / (1 - Q))) < 2e-5


@pytest.mark.long
def test_what_did_not_converge_is_said(small, monkeypatch):
    normal = draws(64, seeds(1)[0])
    monkeypatch.setattr(se, "ITERATIONS", 1)
    assert not se.fixed_point(0.5, (0.9, 0.9), SETTING, normal).converged
    frame, _ = se.compute({**ENTRY, "alphas": [0.4, 1.5], "regulariser": 1e-3, "points": 64})
    found = frame[frame["quantity"] == "converged"].set_index(["series", "x"])["y"]
    assert (found["informed"] == 0).all()
    assert (found["from 0"] == 1).all()


def test_an_overlap_beyond_the_end_of_a_curve_is_not_converged():
    normal = draws(64, seeds(1)[0])
    setting = Setting(1.0, regulariser=1e-3)
    weak = weak_recovery(setting)
    first = single_layer((0.1, 0.5, 0.9), setting, normal, weak.alpha, 0)
    pair = both((0.1, 0.3), setting, normal, onset(setting, normal, 0.97, weak), 0, weak)
    alphas = np.array([0.3, pair.alphas[-1] + 0.1])
    *_, found = se.read_curves(first, pair, alphas, weak, regular=True)
    assert found.tolist() == [True, False]


@pytest.mark.long
def test_linear_attention_learns_layer_1_first_where_the_skip_connection_is_weak(
    small, monkeypatch
):
    monkeypatch.setattr(se.table, "SINGLE_LAYER", (0.05, 0.08, 0.1, 0.12, 0.2, 0.4))
    monkeypatch.setattr(se.table, "BOTH", (0.05, 0.2))
    entry = {**ENTRY, "skip": 0.5, "activation": "linear", "alphas": [0.3, 0.4, 0.62]}
    frame, _ = se.compute({**entry, "points": 512})
    rows = frame.set_index(["quantity", "series", "x"])["y"]
    assert rows["threshold", "alpha_1", 0.5] == pytest.approx(0.3195, abs=1e-4)
    # Plain Monte Carlo of 20000 samples has .590 +- .004.
    assert rows["threshold", "alpha_2", 0.5] == pytest.approx(0.590, abs=0.03)
    assert rows["overlap", "Q11", 0.3] == 0 < rows["overlap", "Q11", 0.4]
    assert rows["overlap", "Q22", 0.4] == 0 < rows["overlap", "Q22", 0.62]
    informed = rows["overlap informed", "Q11", 0.4]
    assert informed == pytest.approx(rows["overlap", "Q11", 0.4], abs=5e-3)


def test_the_mean_of_a_fit_is_not_bent_by_the_values_it_is_fitted_to():
    """Slopes of a sample's own values take E x^4 / n = 3 / n off the mean of x^2, x Gaussian."""
    generator, n = np.random.default_rng(0), 64
    samples = generator.standard_normal((4000, n))
    found = np.array([controlled(x**2, x[:, None]) for x in samples])
    assert abs(found.mean() - 1) < 4 * found.std(ddof=1) / len(samples) ** 0.5
    assert 3 / n > 8 * found.std(ddof=1) / len(samples) ** 0.5


def test_a_fit_takes_off_what_is_known():
    x = np.random.default_rng(1).standard_normal((256, 2))
    values = 3 + x @ [2.0, -1.0]
    assert controlled(values, x) == pytest.approx(3, abs=1e-10)
    assert controlled(values, np.column_stack([x, 0 * x, x])) == pytest.approx(3, abs=1e-10)


def test_state_evolution_ends_at_the_same_overlap_from_both_sides():
    normal = draws(256, seeds(1)[0])
    curve = single_layer((0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 0.9), SETTING, normal, 0.1855, 0)
    alphas = curve.alphas[[2, 4, 6]]
    found = se.informed(list(alphas), 1e4, SETTING, normal)
    for fixed, overlaps in zip(found, read(curve, 1, alphas).overlaps, strict=True):
        assert fixed.converged
        assert fixed.overlaps == pytest.approx(overlaps, abs=1e-3)


def test_a_curve_that_folds_back_is_read_from_below():
    q = np.linspace(0, 0.9, 46)
    curve = Curve(np.column_stack([0 * q, q]), 1 + 4 * q * (q - 0.3) * (q - 0.7) + 0.1 * q)
    assert read(curve, 1, [1.03]).overlaps[0, 1] < 0.15
    assert np.isnan(read(curve, 1, [9.0]).overlaps).all()


@pytest.mark.parametrize(
    ("overlaps", "plug_in", "least", "share"),
    [
        ((0, 0), 0.385, 0.301, 0.01),
        ((0, 0.5), 0.291, 0.2505, 0.01),
        ((0, 0.7734), 0.183, 0.164, 0.01),
        ((0, 0.9212), 0.0937, 0.0825, 0.01),
        ((0, 0.985), 0.0469, 0.0343, 0.01),
        ((0, 1), 0.0344, 0.0210, 0.01),
        ((0.614, 0.9947), 0.0227, 0.0196, 0.03),
        ((0.8226, 0.99784), 0.0116, 0.01081, 0.03),
        ((0.91, 0.9994), 0.0061, 0.0056, 0.03),
    ],
)
def test_errors_of_prediction(overlaps, plug_in, least, share):
    """The specification's table; share: what it allows of the plug-in error."""
    each = [prediction_errors(overlaps, SETTING, draws(2**16, s, 3)) for s in seeds(4)]
    expected = np.array([plug_in, least])
    values, errors = mean_error(each)
    assert (np.abs(values - expected) < np.array([share, 0.02]) * expected).all()
    assert (errors < 0.002 * expected + 2e-5).all()


@pytest.mark.parametrize("activation", ["softmax", "linear"])
def test_errors_of_prediction_are_those_of_the_outputs(activation):
    setting = Setting(0.7, activation)
    Q = np.array([[0.4, 0.1], [0.1, 0.8]])
    normal = draws(64, seeds(1)[0], 3)
    omega = root(Q) @ normal[:, 0]
    noisy = [omega + root(np.eye(2) - Q) @ normal[:, k] for k in (1, 2)]

    def y(z):
        h = channel.index(z, 0.7, activation)
        y = h[:, :, None] * h[:, None]
        return softmax(y, axis=2) if activation == "softmax" else y

    mine, first, second = (y(z) for z in (omega, *noisy))
    squares = [((one - mine) ** 2).sum((1, 2)).mean() for one in (first, second)]
    pairs = ((first - second) ** 2).sum((1, 2)).mean()
    found = prediction_errors(Q, setting, normal)
    assert found == pytest.approx((sum(squares) / 2, pairs / 2), rel=1e-12)


@pytest.mark.parametrize("alpha", [0.5, 0.9, 1.2])
def test_a_fixed_point_is_reached_in_few_steps(alpha, monkeypatch):
    """Some twenty evaluations by Broyden's method; the iteration alone does not end within three
    times as many."""
    counted = Mock(wraps=averages)
    monkeypatch.setattr(se, "averages", counted)
    normal = draws(256, np.random.SeedSequence(0))
    assert se.fixed_point(alpha, (0.9, 0.97), SETTING, normal).converged
    assert counted.call_count <= 30


def test_noise_of_the_samples_in_a_slope_does_not_slow_the_iteration(monkeypatch):
    """Layer 1 hardly helps layer 2, and the samples say that it hinders: that is no reason to go
    on without slopes, nor to take them again where they were just taken."""
    asked = []

    def averages(Q, setting, normal):
        asked.append(tuple(Q))
        u = np.log(Q / (1 - Q))
        image = np.array([0.9 * u[0] + 0.3 * u[1] - 1, -0.002 * u[0] + 0.8 * u[1] + 0.5])
        return Mock(gain=np.diag(np.exp(image)))

    monkeypatch.setattr(se, "averages", averages)
    assert se.fixed_point(1.0, (0.5, 0.97), SETTING, None).converged
    assert len(set(asked)) == len(asked) < 15
