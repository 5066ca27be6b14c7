"""Replica theory: equations against identities, closed forms, the specification and simulation."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr, stdtrit

from manybody.theory import replica as rp

GAMMA, RIDGE = 2.5, 1e-3
ALPHAS = np.array([0.1, 0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0])
ENTRY = {
    "kind": "replica",
    "gamma": GAMMA,
    "ridge": 1e-2,
    "length": 60,
    "alphas": [0.1, 0.5, 1.0, 2.0, 4.0],
    "realisations": 24,
    "seed": 4,
    "threads": 1,
}


def precision(length, seed=0, gamma=GAMMA):
    return gamma * np.eye(length) - rp.goe(length, np.random.default_rng(seed))


def problem(covariance, teacher, noise, length=None):
    """Regression with inputs of `covariance` (n, n) and teacher w* (n,), in Sigma's eigenbasis."""
    eigenvalues, U = np.linalg.eigh(covariance)
    return rp.Problem(eigenvalues, teacher @ U, noise, length or len(teacher))


# --- Any covariance and teacher ------------------------------------------------------------------


@pytest.mark.parametrize("length", [9, 12, 30])
@pytest.mark.parametrize(("alpha", "ridge"), [(0.3, 1e-2), (1.0, 0.1), (2.0, 0.1), (1.0, 10.0)])
def test_the_six_equations_of_the_specification_have_the_fixed_point_of_one_unknown(
    length, alpha, ridge
):
    """(7) with matrices and traces, from its text, iterated."""
    generator, n, noise = np.random.default_rng(3), 12, 0.2
    W = generator.normal(size=(n, 2 * n))
    sigma, w = W @ W.T / (2 * n), generator.normal(size=n) / math.sqrt(n)
    theta = math.sqrt(length) * w
    rho = theta @ sigma @ theta / length
    V, q, m = 1.0, 0.0, 0.0
    for _ in range(3000):
        Vh = mh = alpha / (1 + V)
        qh = alpha * (rho + noise - 2 * m + q) / (1 + V) ** 2
        inverse = np.linalg.inv(ridge * np.eye(n) + Vh * sigma)
        rank = mh**2 * sigma @ np.outer(theta, theta) @ sigma
        now = np.array([
            np.trace(sigma @ inverse) / length,
            np.trace((qh * sigma + rank) @ sigma @ inverse @ inverse) / length,
            mh / length * theta @ sigma @ inverse @ sigma @ theta,
        ])  # fmt: skip
        V, q, m = (now + np.array([V, q, m])) / 2
    given = problem(sigma, w, noise, length)
    assert rp.loss(given, alpha, ridge) == pytest.approx(rho + noise - 2 * m + q, rel=1e-10)
    assert rp.kappa(given, alpha, ridge) == pytest.approx(ridge / Vh, rel=1e-10)


@pytest.mark.parametrize("alpha", [0.4, 1.0, 3.0])
def test_uncorrelated_inputs_follow_the_known_ridge_formula(alpha):
    """Sigma = 1: kappa solves a quadratic, and without a ridge eps is the textbook's."""
    n, ridge, noise, signal = 50, 0.2, 0.3, 0.7
    teacher = np.zeros(n)
    teacher[3] = math.sqrt(signal)
    given = problem(np.eye(n), teacher, noise)
    b = alpha - 1 - ridge
    kappa = (-b + math.sqrt(b * b + 4 * alpha * ridge)) / (2 * alpha)
    assert rp.kappa(given, alpha, ridge) == pytest.approx(kappa, rel=1e-12)
    df = 1 / (1 + kappa)
    expected = (noise + signal * kappa**2 * df**2) / (1 - df**2 / alpha)
    assert rp.loss(given, alpha, ridge) == pytest.approx(expected, rel=1e-12)
    without = {0.4: (noise + 0.6**2 * signal) / 0.6, 1.0: math.inf, 3.0: noise * 3 / 2}[alpha]
    assert rp.loss(given, alpha, 0) == pytest.approx(without, rel=1e-12)


def test_theory_of_correlated_inputs_against_simulation():
    """A covariance that is not that of the model, through its joint precision."""
    length, alphas, ridge, runs = 80, np.array([0.5, 1.0, 2.0]), 0.05, 60
    generator = np.random.default_rng(6)
    W = generator.normal(size=(length, 3 * length))
    joint = W @ W.T / length
    K = np.linalg.inv(joint)
    K = (K + K.T) / 2
    given = rp.conditional(K)
    # The same problem from its parts: Sigma, w* and Delta by regression on the joint covariance.
    w = np.linalg.solve(joint[1:, 1:], joint[0, 1:])
    same = problem(joint[1:, 1:], w, joint[0, 0] - w @ joint[0, 1:], length)
    counts = [round(alpha * length) for alpha in alphas]
    found = np.array([rp.simulate(K, ridge, counts, generator) for _ in range(runs)])
    for alpha, losses in zip(alphas, found.T, strict=True):
        expected = rp.loss(given, alpha, ridge)
        assert rp.loss(same, alpha, ridge) == pytest.approx(expected, rel=1e-9)
        error = np.std(losses, ddof=1) / math.sqrt(runs)
        # Deterministic equivalents leave a difference of order 1 / L.
        assert abs(np.mean(losses) - expected) < 4 * error + expected / length


# --- The GOE precision model ---------------------------------------------------------------------


def test_the_conditional_is_that_of_the_joint_distribution():
    K = precision(9)
    joint = np.linalg.inv(K)
    given = rp.conditional(K)
    sigma = joint[1:, 1:]
    w = np.linalg.solve(sigma, joint[0, 1:])
    np.testing.assert_allclose(np.sort(given.eigenvalues), np.linalg.eigvalsh(sigma), rtol=1e-12)
    assert given.noise == pytest.approx(joint[0, 0] - w @ joint[0, 1:], rel=1e-12)
    assert given.signal == pytest.approx(w @ sigma @ w, rel=1e-12)
    assert given.signal + given.noise == pytest.approx(joint[0, 0], rel=1e-12)
    # (15), and the components of w* on the eigenvectors, by a function of Sigma and w*.
    G = GAMMA * np.eye(9) - K
    np.testing.assert_allclose(w, G[0, 1:] / (GAMMA - G[0, 0]), rtol=1e-10)
    moment = given.teacher**2 @ given.eigenvalues**3
    assert moment == pytest.approx(w @ sigma @ sigma @ sigma @ w, rel=1e-11)


def test_goe_has_its_variances_and_spectrum():
    length, draws = 40, [rp.goe(40, np.random.default_rng(seed)) for seed in range(300)]
    G = np.array(draws)
    np.testing.assert_array_equal(G, G.transpose(0, 2, 1))
    off = G[:, *np.triu_indices(length, 1)]
    assert off.var() * length == pytest.approx(1.0, abs=4 * math.sqrt(2 / off.size))
    diagonal = np.diagonal(G, axis1=1, axis2=2)
    assert diagonal.var() * length == pytest.approx(2.0, abs=8 * math.sqrt(2 / diagonal.size))
    edges = np.abs(np.linalg.eigvalsh(rp.goe(400, np.random.default_rng(1)))[[0, -1]])
    np.testing.assert_allclose(edges, 2.0, atol=0.1)


def test_simulated_fits_are_ridge_regressions():
    """Dual and primal against plain normal equations on the same samples, one count at a time."""
    length, ridge, counts = 12, 0.05, [3, 8, 10, 11, 12, 40]
    K = precision(length, 2)
    found = rp.simulate(K, ridge, counts, np.random.default_rng(9))
    noise = np.random.default_rng(9).standard_normal((counts[-1], length))
    x = np.linalg.solve(np.linalg.cholesky(K).T, noise.T).T
    covariance = np.linalg.inv(K)
    for place, count in enumerate(counts):
        inputs, y = x[:count, 1:], x[:count, 0]
        system = inputs.T @ inputs + length * ridge * np.eye(length - 1)
        direction = np.append(1.0, -np.linalg.solve(system, inputs.T @ y))
        assert found[place] == pytest.approx(direction @ covariance @ direction, rel=1e-9)


# --- The limit -----------------------------------------------------------------------------------

CORRELATED = [
    *(0.5381, 0.6186, 0.8691, 1.5826, 2.987, 4.236),
    *(3.1405, 1.8591, 1.1769, 0.7960, 0.5993, 0.4998),
]
INDEPENDENT = [
    *(0.5258, 0.6137, 0.8698, 1.5842, 2.988, 4.237),
    *(3.1405, 1.8591, 1.1769, 0.7960, 0.5993, 0.4998),
]


@pytest.mark.parametrize(("independent", "table"), [(False, CORRELATED), (True, INDEPENDENT)])
def test_the_table_of_the_specification(independent, table):
    found = rp.closed_form(GAMMA, RIDGE, ALPHAS, independent)
    digits = [3 if alpha in (0.9, 1.0) else 4 for alpha in ALPHAS]
    for value, printed, places in zip(found, table, digits, strict=True):
        assert round(value, places) == pytest.approx(printed, abs=1e-9)


@pytest.mark.parametrize("gamma", [2.05, 2.5, 4.0])
@pytest.mark.parametrize("ridge", [0.0, 1e-4, 0.1])
def test_the_rational_forms_are_those_of_the_specification(gamma, ridge):
    """alpha(s) and eps(s) as the specification writes them, with g, g', h and h'."""
    for s in (0.01, 0.3, 2.0, 20.0):
        z = gamma + s
        root = math.sqrt(z * z - 4)
        g, slope = (z - root) / 2, (1 - z / root) / 2
        h, h_slope = gamma * g / (gamma - g), gamma**2 * slope / (gamma - g) ** 2
        alpha = ridge * s + s * g
        left = 1 + s**2 * slope / alpha
        expected = (1 / gamma + (h + s * h_slope) / gamma**2) / left
        other = (1 / gamma + (g + s * slope) / gamma**2) / left
        assert rp.closed_form(gamma, ridge, alpha) == pytest.approx(expected, rel=1e-9)
        assert rp.closed_form(gamma, ridge, alpha, True) == pytest.approx(other, rel=1e-9)


def test_the_limit_is_reached_by_the_semicircle_of_a_large_matrix():
    """Quadrature instead of a random G: what is left is the discretisation."""
    length, alpha, ridge = 20_000, 0.7, 1e-2
    edges = 2 * np.cos((np.arange(length) + 0.5) * math.pi / length)
    weights = 2 / length * np.sin((np.arange(length) + 0.5) * math.pi / length) ** 2
    given = rp.Problem(1 / (GAMMA - edges), np.sqrt(weights) / GAMMA, 1 / GAMMA, length)

    def excess(kappa):  # df1 with the semicircle's weights
        return ridge / kappa + weights @ (1 / (1 + kappa * (GAMMA - edges))) - alpha

    low = brentq(excess, 1e-6, 1e3, xtol=1e-15)
    r = 1 / (1 + low * (GAMMA - edges))
    bias = weights @ ((GAMMA - edges) * low**2 * r**2) / GAMMA**2
    expected = (given.noise + bias) / (1 - weights @ r**2 / alpha)
    assert rp.closed_form(GAMMA, ridge, alpha, True) == pytest.approx(expected, rel=1e-8)


def test_peaks_are_those_of_the_specification():
    for ridge, place, height in ((1e-2, 1.012, 1.51), (1e-3, 1.00, 4.24), (1e-4, 1.0001, 12.9)):
        alphas = np.linspace(0.98, 1.03, 251)
        losses = rp.closed_form(GAMMA, ridge, alphas)
        assert alphas[losses.argmax()] == pytest.approx(place, abs=2e-3)
        assert losses.max() == pytest.approx(height, rel=5e-3)
    assert (np.diff(rp.closed_form(GAMMA, 10.0, alphas)) < 0).all()


def test_without_a_ridge_the_loss_diverges_at_one_and_decays_to_the_noise():
    found = rp.closed_form(GAMMA, 0.0, np.array([0.5, 1.0, 1.5, 100.0]))
    assert found[1] == math.inf
    assert found[2] == pytest.approx(3 / GAMMA, rel=1e-12)
    assert rp.closed_form(GAMMA, 1e-9, 0.5) == pytest.approx(found[0], rel=1e-7)
    assert rp.closed_form(GAMMA, 1e-9, 1.5) == pytest.approx(found[2], rel=1e-7)
    for (first, last), printed in {
        (10, 20): 1.08,
        (20, 50): 1.03,
        (50, 100): 1.015,
        (100, 1000): 1.004,
    }.items():
        near, far = rp.closed_form(GAMMA, RIDGE, np.array([first, last])) - 1 / GAMMA
        assert math.log(near / far) / math.log(last / first) == pytest.approx(printed, abs=6e-3)


# --- The table of the figure ---------------------------------------------------------------------


def runs_of(frame, quantity, series):
    """Realisations x alphas."""
    mine = frame[(frame["quantity"] == quantity) & (frame["series"] == series)]
    return mine.pivot(index="seed", columns="x", values="y")


def largest(differences):
    """The largest mean over realisations of any alpha, in standard errors; Bonferroni's bound."""
    count = len(differences)
    errors = differences.std(ddof=1) / math.sqrt(count)
    bound = -stdtrit(count - 1, ndtr(-3.0) / differences.shape[1])
    return float((differences.mean() / errors).abs().max()), bound


@pytest.mark.parametrize(
    ("gamma", "ridge", "seed"), [(GAMMA, 1e-2, 4), (3.1, 0.02, 0), (4.0, 0.1, 1), (2.7, 0.3, 4)]
)
def test_the_table_agrees_with_simulation(gamma, ridge, seed):
    frame, _ = rp.compute(ENTRY | dict(gamma=gamma, ridge=ridge, seed=seed))
    apart, bound = largest(
        runs_of(frame, "loss", "simulation") - runs_of(frame, "loss", "finite L")
    )
    assert apart < bound


@pytest.mark.parametrize(("gamma", "ridge"), [(GAMMA, 1e-2), (3.1, 0.02)])
def test_finite_sizes_approach_the_limit(gamma, ridge):
    """No bias at the largest L, and an rms difference that falls like L^-1/2.

    With L - 1 inputs the limit is that at M / (L - 1) and the ridge per input, without which the
    peak is shifted by 1 / L."""
    alphas, scatter = np.array([0.1, 0.5, 1.0, 2.0, 4.0]), {}
    for size in (20, 40, 80):
        problems = [rp.conditional(precision(size, seed, gamma)) for seed in range(300)]
        losses = [[rp.loss(each, alpha, ridge) for alpha in alphas] for each in problems]
        per_input = size / (size - 1)
        limit = rp.closed_form(gamma, ridge * per_input, alphas * per_input)
        found = pd.DataFrame(losses / limit - 1)
        scatter[size] = math.sqrt((found**2).to_numpy().mean())
    apart, bound = largest(found)
    assert apart < bound
    slope = np.polyfit(np.log(list(scatter)), np.log(list(scatter.values())), 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.1)


# --- Bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "given", "message"),
    [
        (rp.conditional, [precision(9, gamma=0.5)], "precision: .*not positive definite at L = 9"),
        (
            rp.simulate,
            [precision(9, gamma=0.5), 0.1, [3], np.random.default_rng(0)],
            "precision: .*not positive definite at L = 9",
        ),
        (
            rp.compute,
            [ENTRY | {"alphas": [0.001, 1.0]}],
            r"alphas: .* at L = 60 are \[0, 60\] samples",
        ),
        (
            rp.compute,
            [ENTRY | {"alphas": [1.0, 1.001]}],
            r"alphas: .* at L = 60 are \[60, 60\] samples",
        ),
    ],
)
def test_bad_input_is_named(call, given, message):
    with pytest.raises(ValueError, match=message):
        call(*given)
