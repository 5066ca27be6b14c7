"""Gradient flow of two layers: equations against definitions, closed forms and simulations.

Exact expectations come from Gauss-Hermite nodes: three in each direction integrate polynomials of
degree five in every variable, and the loss is of degree four.
"""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from manybody.theory import gradient_flow as gf

LENGTH = 3
TIMES = np.linspace(0.0, 20.0, 41)


def joint(seed=0, length=LENGTH):
    """A covariance with components of a* of both signs."""
    W = np.random.default_rng(seed).normal(size=(length + 1, 2 * length + 2))
    return W @ W.T / (2 * length + 2)


def skewness(seed=1, length=LENGTH):
    Q = np.random.default_rng(seed).normal(size=(length, length))
    return 0.2 * (Q + Q.T)


def weights(seed=2, length=LENGTH, scale=0.5):
    generator = np.random.default_rng(seed)
    a, B = generator.normal(size=length), generator.normal(size=(length, length))
    return a, scale * B


def nodes(covariance, Q):
    """Nodes (N, L+1) of (x_0, x) and weights (N,): expectations of degree four are exact."""
    at, weight = np.polynomial.hermite_e.hermegauss(3)
    corners = np.array(list(product(range(3), repeat=len(covariance))))
    tokens = at[corners] @ np.linalg.cholesky(covariance).T
    x = tokens[:, 1:]
    tokens[:, 0] += np.sum((x @ Q) * x, axis=1) - np.trace(Q @ covariance[1:, 1:])
    weight = weight / weight.sum()
    return tokens, weight[corners].prod(axis=1)


def expected(tokens, weight, a, B):
    """Loss (8) and flow (9) by their definitions."""
    x = tokens[:, 1:]
    lam = x @ B.T
    phi = x + lam**2
    r = tokens[:, 0] - phi @ a
    mean = weight * r
    return 0.5 * mean @ r, mean @ phi, 2 * a[:, None] * ((lam.T * mean) @ x)


@pytest.mark.parametrize("Q", [np.zeros((LENGTH, LENGTH)), skewness()], ids=["gaussian", "skewed"])
def test_loss_and_flow_are_those_of_the_definition(Q):
    data = gf.gaussian(joint(), Q)
    tokens, weight = nodes(joint(), Q)
    for seed in range(4):
        a, B = weights(seed)
        loss, da, dB = expected(tokens, weight, a, B)
        assert gf.loss(data, a, B) == pytest.approx(loss, rel=1e-12)
        for found, exact in zip(gf.velocity(data, a, B), (da, dB), strict=True):
            np.testing.assert_allclose(found, exact, rtol=0, atol=1e-11)


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_the_flow_is_minus_the_slope_of_the_loss(decay):
    data = gf.gaussian(joint(), skewness())
    a, B = weights()

    def penalised(state):
        a, B = state[:LENGTH], state[LENGTH:].reshape(LENGTH, LENGTH)
        return gf.loss(data, a, B) + decay / 2 * (state @ state)

    state = np.concatenate([a, B.ravel()])
    assert gf.loss(data, a, B, decay) == pytest.approx(penalised(state), rel=1e-14)
    da, dB = gf.velocity(data, a, B, decay)
    slopes = approx_fprime(state, penalised, 1e-7)
    np.testing.assert_allclose([*da, *dB.ravel()], -slopes, rtol=0, atol=1e-5)


def test_sampled_moments_give_the_average_over_the_samples():
    """Expectations over the samples themselves are exact, whatever their distribution."""
    tokens = np.random.default_rng(5).exponential(size=(gf.CHUNK + 500, LENGTH + 1))
    tokens[:, 1:] += tokens[:, :1] ** 2
    tokens /= tokens.std(axis=0)
    data = gf.sampled(tokens)
    a, B = weights()
    centred = tokens - tokens.mean(axis=0)
    loss, da, dB = expected(centred, np.full(len(tokens), 1 / len(tokens)), a, B)
    assert gf.loss(data, a, B) == pytest.approx(loss, rel=1e-11)
    found = gf.velocity(data, a, B)
    np.testing.assert_allclose(found[0], da, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found[1], dB, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_without_b_the_flow_follows_the_closed_form(decay):
    data = gf.gaussian(joint())
    start = np.array([1.0, -2.0, 0.5])
    path = gf.flow(data, start, np.zeros((LENGTH, LENGTH)), TIMES, decay)
    assert not path.B.any()
    exact = gf.closed_form(data, start, TIMES, decay)
    np.testing.assert_allclose(exact[0], start, atol=1e-14)
    np.testing.assert_allclose(path.a, exact, rtol=0, atol=1e-9)
    # Mode by mode, as (13) is written.
    D, U = np.linalg.eigh(data.covariance)
    D = D + decay
    limit = data.correlation @ U / D
    modes = limit + (start @ U - limit) * np.exp(-np.outer(TIMES, D))
    np.testing.assert_allclose(path.a @ U, modes, rtol=0, atol=1e-9)
    assert (gf.modes(data, gf.linear_optimum(data)) > 0).all()


def test_gaussian_data_never_let_b_grow():
    data = gf.gaussian(joint())
    a, B = weights(scale=0.8)
    path = gf.flow(data, a, B, TIMES)
    assert (np.diff(path.norms) < 0).all()
    assert path.norms[-1] > 0.2 * path.norms[0]  # and it does not vanish without a decay
    assert (np.diff(path.losses(data)) < 1e-12).all()
    slow = np.linspace(0.0, 200.0, 41)
    decaying = gf.flow(data, a, B, slow, 0.1)
    rates = np.diff(np.log(decaying.norms)) / np.diff(slow)
    assert (rates < -0.1 + 1e-6).all()
    assert rates[-1] == pytest.approx(-0.1, rel=1e-4)
    C = data.covariance + 0.1 * np.eye(LENGTH)
    np.testing.assert_allclose(C @ decaying.a[-1], data.correlation, atol=1e-7)


@pytest.mark.parametrize("decay", [0.0, 0.05])
def test_growth_rates_are_those_of_the_linearised_flow(decay):
    """Against a numerical Jacobian of the flow at a*, B = 0."""
    data = gf.gaussian(joint(), skewness())
    a, step = gf.linear_optimum(data, decay), 1e-6
    columns = []
    for k, m in product(range(LENGTH), repeat=2):
        B = np.zeros((LENGTH, LENGTH))
        B[k, m] = step
        columns.append(gf.velocity(data, a, B, decay)[1].ravel() / step)
    jacobian = np.sort(np.linalg.eigvals(np.array(columns).T).real)
    rates, _ = gf.growth_rates(data, decay)
    np.testing.assert_allclose(np.sort(rates.ravel()), jacobian, atol=1e-8)


@pytest.mark.parametrize("skew", [0.6, -0.5])
def test_the_table_obeys_the_equations(skew):
    """The rows that the figure reads: small B(0), and the cases in which B grows."""
    entry = dict(
        length=3, time=40.0, scales=[1e-3, 2e-3], decay=0.2, skewness=skew, samples=5000, seed=3
    )
    frame, _ = gf.compute(entry)
    found = dict(tuple(frame.groupby("quantity")))
    # The deviation from (13) is of fourth order in a small B(0).
    logs = np.log(found["deviation"][["x", "y"]].to_numpy())
    assert np.polyfit(*logs.T, 1)[0] == pytest.approx(4.0, abs=0.2)
    rates = {case: part["y"].max() for case, part in found["rate"].groupby("series")}
    assert abs(rates["Gaussian"]) < 1e-6
    for case, part in found["growth"].groupby("series"):
        grown = part["y"].max() / part.sort_values("x")["y"].iloc[0]
        seen = found["linear law"].query("series == @case").sort_values("x")["y"].iloc[-1] > 0.1
        assert grown > 10 or not seen or rates[case] < 1e-6
        assert grown == pytest.approx(1.0, abs=1e-8) or rates[case] > 1e-6, case


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_sign_of_the_top_rate_decides_whether_b_grows(sign):
    data = gf.gaussian(gf.example(4, np.random.default_rng(0)), sign * 0.2 * np.eye(4))
    a, B = gf.linear_optimum(data), 1e-5 * weights(length=4)[1]
    rates, _ = gf.growth_rates(data)
    assert (a > 0).all()
    assert np.sign(rates.max()) == sign
    times = np.linspace(0.0, 60.0, 121)
    path = gf.flow(data, a, B, times)
    law = gf.linear_growth(data, B, times)
    small = law < 1e-3
    np.testing.assert_allclose(path.norms[small], law[small], rtol=1e-3)
    fall = gf.loss(data, a, 0 * B) - path.losses(data)[-1]
    if sign > 0:
        assert path.norms[-1] > 0.1
        assert fall > 1e-3
    else:
        assert (np.diff(path.norms) < 0).all()
        assert abs(fall) < 1e-9


def test_the_spectrum_of_the_papers_test_has_no_factor_two():
    covariance = joint(length=1)
    data = gf.gaussian(covariance, np.array([[0.3]]))
    rates, _ = gf.growth_rates(data)
    assert rates[0, 0] == pytest.approx(2 * gf.symmetric_spectrum(data)[0])
    T = 2 * 0.3 * covariance[1, 1] ** 2
    assert rates[0, 0] == pytest.approx(2 * T * covariance[0, 1] / covariance[1, 1])
