"""The two-layer channel: against adaptive quadrature, finite differences, identities, bounds."""

import numpy as np
import pytest
from scipy.special import softmax

from benchmarks.quadrature import draw, quadrature
from manybody.theory.multi_index import channel

SKIPS = (0.25, 0.5, 1.0, 2.0, 4.0)
FULL = np.array([[0.3, 0.15], [0.15, 0.7]])


def denoise(x, omega, variance, skip, activation="softmax", **options):
    found = channel.posterior(x, omega, variance, skip, activation, **options)
    return channel.denoiser(found, variance)


def compare(overlap, skip, seed, activation="softmax", **options):
    """Gaps of g and log Z to quadrature, and of g to halved steps; scipy's own error."""
    x, omega, variance = draw(1, np.array(overlap), skip, seed, activation)
    given = variance, skip, activation
    g, log_z, error = quadrature(x[0], omega[0], *given, **options)
    found = channel.posterior(x, omega, *given)
    ours = channel.denoiser(found, variance)
    finer = denoise(x, omega, *given, extra=2)
    gaps = np.abs(ours[0] - g).max(), abs(found.log_z[0] - log_z), np.abs(ours - finer).max()
    return np.array(gaps), error


def assert_close(found, bounds):
    """Gaps within their bounds, and g's within what step halving and scipy say.

    1e-6: both leave out what lies beyond the box, or weighs less than exp(-DROP).
    """
    gaps, error = found
    np.testing.assert_array_less(gaps, bounds)
    assert gaps[0] < gaps[2] + error + 1e-6


# --- Against adaptive quadrature ------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("part", range(4))
def test_two_hundred_random_cases_agree_with_adaptive_quadrature(part):
    generator = np.random.default_rng(part)
    for case in range(50):
        last = generator.uniform(0.5, 0.999) if case % 2 else 1 - 10 ** generator.uniform(-3, -0.3)
        overlap = np.diag([(0.0, 0.0, 0.3, 0.8)[case % 4], last])
        found = compare(overlap, SKIPS[case % 5], 50 * part + case, tolerance=1e-12, relative=1e-7)
        assert_close(found, (1e-4, 1e-6, 1e-5))


@pytest.mark.parametrize("activation", ["softmax", "linear"])
@pytest.mark.parametrize("skip", [0.5, 1.0])
@pytest.mark.parametrize("overlap", [FULL, np.array([[0.6, -0.3], [-0.3, 0.5]])])
def test_a_full_variance_and_linear_attention_agree_with_quadrature(activation, skip, overlap):
    for seed in range(3):
        gaps, _ = compare(overlap, skip, seed, activation, tolerance=1e-12, relative=1e-8)
        assert (gaps[:2] < 1e-6).all()


@pytest.mark.filterwarnings("ignore::scipy.integrate.IntegrationWarning")
@pytest.mark.parametrize("skip", [0.01, 0.03, 0.1])
@pytest.mark.parametrize("last", [0.5, 0.9])
def test_a_small_skip_agrees_with_quadrature(skip, last):
    for seed in range(2):
        found = compare(np.diag([0.0, last]), skip, seed, tolerance=1e-13, relative=1e-7)
        assert_close(found, (1e-4, 1e-5, 1e-5))


def test_no_skip_is_integrated_too():
    gaps, _ = compare(np.diag([0.3, 0.6]), 0.0, 1, tolerance=1e-10, relative=1e-6)
    np.testing.assert_array_less(gaps[:2], (1e-4, 1e-5))


# --- Derivatives and identities ------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["softmax", "linear"])
@pytest.mark.parametrize("overlap", [FULL, np.diag([0.4, 0.95]), np.diag([0.0, 0.6])])
def test_jacobian_and_denoiser_are_derivatives(activation, overlap):
    x, omega, variance = draw(20, overlap, 1.0, 5, activation)
    found = channel.posterior(x, omega, variance, 1.0, activation)
    g, jacobian = channel.denoiser(found, variance), channel.jacobian(found, variance)
    step = 1e-4
    for layer in range(2):
        for token in range(2):
            sides = []
            for sign in (1, -1):
                moved = omega.copy()
                moved[:, layer, token] += sign * step
                side = channel.posterior(x, moved, variance, 1.0, activation, extra=1)
                sides.append((side.log_z, channel.denoiser(side, variance)))
            slopes = [(a - b) / (2 * step) for a, b in zip(*sides, strict=True)]
            scale = np.abs(jacobian).max()
            np.testing.assert_allclose(g[:, layer, token], slopes[0], atol=1e-5 * scale)
            np.testing.assert_allclose(jacobian[..., layer, token], slopes[1], atol=1e-5 * scale)


@pytest.mark.parametrize("activation", ["softmax", "linear"])
def test_both_estimators_of_G_agree_on_the_models_data(activation):
    """Nishimori: E g g^T = T V^-1 - V^-1 E sum_t Cov(Z_t | y) V^-1."""
    x, omega, variance = draw(4000, FULL, 1.0, 6, activation)
    found = channel.posterior(x, omega, variance, 1.0, activation)
    g = channel.denoiser(found, variance)
    gap = np.einsum("nktlt->nkl", channel.jacobian(found, variance))
    gap += np.einsum("nkt,nlt->nkl", g, g)
    error = gap.std(axis=0) / np.sqrt(len(x))
    assert (np.abs(gap.mean(axis=0)) < 4 * error).all()
    assert (error < 0.1).all()


@pytest.mark.parametrize("activation", ["softmax", "linear"])
def test_symmetries(activation):
    x, omega, variance = draw(30, FULL, 0.7, 7, activation)
    g = denoise(x, omega, variance, 0.7, activation)
    same = denoise(-x, omega, variance, 0.7, activation)
    swapped = denoise(x[:, ::-1], omega[:, :, ::-1], variance, 0.7, activation)
    np.testing.assert_allclose(g, same, atol=1e-6)
    np.testing.assert_allclose(g, swapped[:, :, ::-1], atol=1e-6)
    flip = np.diag([-1.0, 1.0])  # z_1 -> -z_1
    flipped = denoise(x, flip @ omega, flip @ variance @ flip, 0.7, activation)
    np.testing.assert_allclose(g, flip @ flipped, atol=1e-6)


def test_an_even_integrand_is_the_limit_of_one_that_is_not():
    """omega_1 = 0 takes half of the plane, omega_1 = 1e-12 all of it."""
    x, omega, variance = draw(30, np.diag([0.0, 0.8]), 1.0, 8)
    even = channel.posterior(x, omega, variance, 1.0)
    omega[:, 0] = 1e-12
    full = channel.posterior(x, omega, variance, 1.0)
    assert (even.mean[:, 0] == 0).all()
    np.testing.assert_allclose(even.log_z, full.log_z, atol=1e-7)
    np.testing.assert_allclose(even.mean, full.mean, atol=1e-7)
    np.testing.assert_allclose(even.covariance, full.covariance, atol=1e-7)


@pytest.mark.parametrize(
    ("activation", "skip", "overlap", "bound"),
    [
        ("softmax", 0.25, (0.3, 0.97), 1e-5),
        ("softmax", 0.25, (0.0, 0.3), 1e-4),
        ("softmax", 1.0, (0.8, 0.998), 1e-6),
        ("linear", 0.25, (0.3, 0.97), 1e-6),
    ],
)
def test_no_sample_stops_where_two_lattices_agree_by_chance(activation, skip, overlap, bound):
    given = *draw(256, np.diag(overlap), skip, 11, activation), skip, activation
    found, finer = channel.posterior(*given), channel.posterior(*given, extra=3)
    np.testing.assert_allclose(found.log_z, finer.log_z, rtol=0, atol=bound)
    scale = np.sqrt(np.diag(given[2]))[:, None]
    np.testing.assert_allclose(found.mean / scale, finer.mean / scale, rtol=0, atol=bound)


def test_output_far_from_the_means_is_integrated_where_its_weight_is():
    x, omega, variance = draw(3, np.diag([0.5, 0.9]), 1.0, 9)
    omega += 6.0
    g = denoise(x, omega, variance, 1.0)
    finer = denoise(x, omega, variance, 1.0, extra=2)
    assert np.isfinite(g).all()
    assert np.abs(g).max() > 10
    assert np.abs(g - finer).max() < 1e-4 * np.abs(g).max()


def test_the_first_layer_is_known_up_to_its_sign_where_the_last_is():
    """V22 -> 0: the spread of z_1 is |z_1|^2, and lambda_1 tends to 6 from below."""
    medians = []
    for noise in (1e-1, 1e-3):
        x, omega, variance = draw(40, np.diag([0.0, 1 - noise]), 1.0, 10)
        z = np.random.default_rng(10).normal(size=(2, 40, 2, 2))[1, :, 0]
        found = channel.posterior(x, omega, variance, 1.0)
        spread = np.einsum("ntt->n", found.covariance[:, 0, :, 0])
        medians.append(np.median(np.abs(spread / (z**2).sum(axis=1) - 1)))
    assert medians[1] < 0.5 * medians[0]


# --- The map and its outputs ---------------------------------------------------------------------


def plain_outputs(tokens, weights, skip, kind):
    """y (n, T, T) of tokens (n, D, T) and weights (L, D), in the matrix form without indices."""
    X, features = tokens, tokens.shape[1]
    for layer, w in enumerate(weights):
        scores = np.einsum("ndt,d,e,nes->nts", X, w, w, X) / features
        attention = softmax(scores, axis=2) if kind == "softmax" else scores
        if layer < len(weights) - 1:
            X = skip * X + X @ attention.transpose(0, 2, 1)
    return attention


@pytest.mark.parametrize("skip", [0.0, 0.8, 3.0])
def test_index_and_outputs_are_those_of_the_matrix_form(skip):
    generator = np.random.default_rng(11)
    weights, tokens = generator.normal(size=(2, 50)), generator.normal(size=(5, 50, 2))
    z = np.einsum("ld,ndt->nlt", weights, tokens) / 50**0.5
    h = channel.index(z, skip)
    found = plain_outputs(tokens, weights, skip, "softmax")
    np.testing.assert_allclose(channel.outputs(h), found, atol=1e-12)
    h = channel.index(z, skip, "linear")
    found = plain_outputs(tokens, weights, skip, "linear")
    np.testing.assert_allclose(h[:, :, None] * h[:, None, :], found, rtol=1e-10)


# --- Threads, refusals ---------------------------------------------------------------------------


def test_threads_and_neighbours_change_no_byte():
    x, omega, variance = draw(150, FULL, 1.0, 13)
    one = channel.posterior(x, omega, variance, 1.0)
    two = channel.posterior(x, omega, variance, 1.0, threads=2)
    alone = channel.posterior(x[70:71], omega[70:71], variance, 1.0)
    for name in ("log_z", "mean", "covariance"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes()
        assert getattr(one, name)[70:71].tobytes() == getattr(alone, name).tobytes()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (dict(variance=np.array([[1.0, 1.0], [1.0, 1.0]])), "variance: found .* positive definite"),
        (dict(variance=np.diag([1.0, 0.0])), "variance: found .* positive definite"),
        (dict(x=np.full((4, 2), np.nan)), "x: found a number that is not finite"),
    ],
)
def test_what_is_out_of_range_is_refused(change, match):
    given = dict(x=np.zeros((4, 2)), omega=np.zeros((4, 2, 2)), variance=np.eye(2), skip=1.0)
    with pytest.raises(ValueError, match=match):
        channel.posterior(**given | change)
