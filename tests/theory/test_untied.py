"""Weak recovery of untied weights: closed forms against sampling, limits, bounds, a spectrum."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import softmax

from manybody.theory.multi_index import untied

ENTRY = {
    "kind": "multi-index-untied", "layers": [1, 2], "skips": [4.0], "points": 64,
    "scrambles": 2, "seed": 1, "threads": 1,
}  # fmt: skip
E = np.array([1, -1]) / np.sqrt(2)


def blocks(moments):
    """G (n, 4, 4) of z = (q_1, q_2, k_1, k_2) from (n, 6) posterior averages."""
    rho, g1, g2, a, b, d = moments.T
    G = np.zeros((len(moments), 4, 4))
    G[:, :2, :2] = np.moveaxis(np.array([[a - 1, b], [b, d - 1]]), -1, 0)
    G[:, :2, 2:] = np.stack([g1, g2], axis=1)[:, :, None] * E
    G[:, 2:, :2] = np.swapaxes(G[:, :2, 2:], 1, 2)
    G[:, 2:, 2:] = (rho - 1)[:, None, None] * np.outer(E, E)
    return G


def operator(G):
    """F on (M_qq, sqrt 2 M_qk, M_kk) by its definition, sum over tokens of G_ts M G_ts^T."""
    G = G.reshape(len(G), 2, 2, 2, 2)  # n, index, token, index, token
    root = np.sqrt(0.5)
    basis = np.array([[[1, 0], [0, 0]], [[0, root], [root, 0]], [[0, 0], [0, 1]]])
    images = np.einsum("niajb,mjk,nlakb->mil", G, basis, G, optimize=True) / len(G)
    return np.einsum("mil,oil->om", images, basis)


def draw(count, seed):
    """rho, n of the first layer's a from its weights' indices."""
    q, k = np.random.default_rng(seed).standard_normal((2, count, 2))
    a = q * (k[:, :1] - k[:, 1:])
    rho = np.hypot(*a.T) / np.sqrt(2)
    return q, k, rho, a / (np.sqrt(2) * rho[:, None])


def mixing(q, k, skip):
    """B (n, 2, 2) of a layer of queries and keys (n, 2)."""
    return skip * np.eye(2) + softmax(q[:, :, None] * k[:, None, :], axis=2)


def moments_of(rho, n):
    outer = (1 + rho)[:, None] * np.stack([n[:, 0] ** 2, n[:, 0] * n[:, 1], n[:, 1] ** 2], axis=1)
    return np.concatenate([rho[:, None], rho[:, None] * n, outer], axis=1)


# --- One layer -----------------------------------------------------------------------------------


def test_one_layers_posterior_averages_are_its_closed_forms():
    """Against integrals over k_1 - k_2, and rho's distribution against samples of the indices."""
    for a in (np.array([0.3, -1.2]), np.array([2.0, 0.1])):
        # q_t = a_t / d with d = k_1 - k_2 ~ N(0, 2)

        def weight(d, power, a=a):
            return d**power * np.exp(-(d**2) / 4 - a @ a / (2 * d**2)) / d**2

        mass, inverse, square = (quad(weight, 0, np.inf, args=(p,))[0] for p in (0, -2, 2))
        rho = np.sqrt(a @ a / 2)
        n = a / (np.sqrt(2) * rho)
        np.testing.assert_allclose(
            np.outer(a, a) * inverse / mass, (1 + rho) * np.outer(n, n), rtol=1e-7
        )
        assert square / mass / 2 == pytest.approx(rho, rel=1e-7)
    rho = draw(200_000, 1)[2]
    for power, expected in ((1, 1), (2, 2), (3, 6)):
        spread = rho**power
        assert abs(spread.mean() - expected) < 4 * spread.std() / np.sqrt(len(rho))


def test_one_layers_threshold():
    rho, n = draw(100_000, 2)[2:]
    found = operator(blocks(moments_of(rho, n)))
    np.testing.assert_allclose(found, [[3, 0, 2], [0, 1.5, 0], [2, 0, 1]], atol=0.12)
    np.testing.assert_allclose(untied.operator(moments_of(rho, n)), found, rtol=1e-10, atol=1e-12)
    assert untied.eigenvalue(np.array([[3, 0, 2], [0, 1.5, 0], [2, 0, 1]])) == pytest.approx(
        1 / untied.SINGLE_LAYER, rel=1e-14
    )


# --- Two layers around Q = 0 ---------------------------------------------------------------------


@pytest.mark.parametrize("skip", [0.0, 0.3, 1.0, 2.5])
def test_averages_over_the_first_layer_are_those_of_its_distribution(skip):
    """The rule's total mass and moments; kappa B against the attention of its definition."""
    nodes = untied.first_layer(skip)
    inverse = nodes.inverse.reshape(-1, 2, 2)
    share = nodes.weight / np.abs(np.linalg.det(inverse))
    expected = [1, 0, 0, 1, 0, 1]  # means of the moments
    assert share.sum() == pytest.approx(1, abs=2e-4)
    np.testing.assert_allclose(share @ nodes.moments, expected, atol=1e-3)
    some = np.linspace(0, len(share) - 1, 50).astype(int)
    rho, g = nodes.moments[some, 0], nodes.moments[some, 1:3]
    a = np.sqrt(2) * g
    B = mixing(a, np.tile([1.0, 0.0], (len(some), 1)), skip)  # k_1 - k_2 = 1
    kappa = B[:, 0, 0] + B[:, 1, 1] - 1 - skip
    regular = np.abs(kappa) > 1e-3
    np.testing.assert_allclose(
        (inverse[some] @ B * kappa[:, None, None])[regular],
        np.broadcast_to(np.eye(2), (regular.sum(), 2, 2)),
        atol=1e-8,
    )
    np.testing.assert_allclose(np.hypot(*g.T), rho, rtol=1e-12)


@pytest.mark.parametrize("skip", [0.4, 1.5])
def test_posterior_averages_around_zero_are_those_of_importance_sampling(skip):
    """The last layer's averages given one x, from samples of all indices but the last query."""
    count = 300_000
    q, k = draw(count, 3)[:2]
    B = mixing(q, k, skip)
    kappa = B[:, 0, 0] + B[:, 1, 1] - 1 - skip
    last = np.abs(np.random.default_rng(4).standard_normal(count))  # k' = e.k; its sign is free
    x = np.array([0.9, -0.4])
    query = np.linalg.solve(B, np.broadcast_to(x, (count, 2))[..., None])[..., 0]
    query /= (kappa * last)[:, None]
    weight = np.exp(-(query**2).sum(axis=1) / 2) / (np.abs((1 + skip) * kappa**3) * last**2)
    weight /= weight.sum()
    error = 6 * np.sqrt((weight**2).sum())
    nodes = untied.first_layer(skip)
    total, found = np.zeros(1), np.zeros((1, 6))
    untied.average_at_zero(x[None], nodes.inverse, nodes.weight, total, found)
    expected = [
        weight @ last**2, *(weight * last) @ query,
        *((weight[:, None] * query).T @ query)[[0, 0, 1], [0, 1, 1]],
    ]  # fmt: skip
    np.testing.assert_allclose(found[0], expected, atol=error)


def test_a_strong_skip_leaves_one_layer():
    found = untied.at_zero(1e4)[1]
    assert 1 / untied.eigenvalue(found) == pytest.approx(untied.SINGLE_LAYER, abs=2e-6)


@pytest.mark.parametrize("skip", [0.25, 1.0, 2.0])
def test_thresholds_at_zero_do_not_hang_on_the_rule(skip):
    coarse = untied.at_zero(skip, 0.45, 0.5)[1]
    mass, fine = untied.at_zero(skip)
    assert mass == pytest.approx(1, abs=2e-4)
    assert untied.eigenvalue(coarse) == pytest.approx(untied.eigenvalue(fine), rel=2e-3)
    np.testing.assert_allclose(fine, fine.T, atol=1e-12)
    # Jensen bounds that of p indices and T tokens by p T^2 + T.
    assert untied.eigenvalue(fine) <= 10


# --- The last layer learnt -----------------------------------------------------------------------


def stream(*numbers):
    return np.random.SeedSequence(list(numbers))


@pytest.mark.slow
@pytest.mark.parametrize("skip", [0.4, 2.0])
def test_small_overlaps_grow_as_the_operator_says(skip):
    nodes = untied.first_layer(skip, untied.STEP, 1e-10)
    expected = untied.at_zero(skip)[1]
    small = 1e-3 * np.array([1.0, 0.5])
    found = np.array(
        [untied.learnt(skip, small, untied.uniforms(512, stream(6, s)), nodes).squares
         for s in range(4)]
    )  # fmt: skip
    error = found.std(axis=0, ddof=1) / 2
    gained = expected[np.ix_([0, 2], [0, 2])] @ small
    assert (np.abs(found.mean(axis=0) - gained) < 5 * error + 0.01 * gained).all()
    assert (error < 0.15 * gained).all()


@pytest.mark.parametrize("skip", [0.4, 1.0, 2.0])
def test_both_estimators_of_the_gain_agree(skip):
    """G = E g g^T = T / V - E Cov / V^2: only averages of the true posterior do that."""
    nodes = untied.first_layer(skip, untied.STEP, 1e-10)
    parts = [
        untied.learnt(skip, [0.8, 0.6], untied.uniforms(256, stream(7, s)), nodes) for s in range(4)
    ]
    gaps = np.array([part.squares / part.nishimori - 1 for part in parts])
    assert (np.abs(gaps.mean(axis=0)) < 5 * gaps.std(axis=0, ddof=1) / 2).all()
    assert (gaps.std(axis=0, ddof=1) / 2 < 0.06).all()


def test_posterior_averages_of_a_learnt_layer_are_those_of_quadrature():
    """One sample, by another rule in other coordinates."""
    skip, variance = 1.5, (0.3, 0.2)
    omega = np.array([[0.9, -0.8, 1.1]])
    a = np.array([0.7, -0.5])
    B = mixing(a[None], np.array([[1.0, 0.0]]), skip)[0]
    kappa = B[0, 0] + B[1, 1] - 1 - skip
    x = kappa * 1.0 * (B @ [1.0, -0.7])
    nodes = untied.first_layer(skip, 0.15)
    second, first = np.empty((1, 5)), np.empty((1, 6))
    untied.average_samples(
        x[None], omega, variance, np.array([-30.0]), 0.5,
        nodes.inverse, np.log(nodes.weight), nodes.moments, second, first,
    )  # fmt: skip

    # The first layer's a in polar coordinates, k' on a plain grid of its own.
    rho, angle = (np.arange(400) + 0.5) * 0.05, (np.arange(160) + 0.5) * np.pi / 80
    rho, angle = (part.ravel() for part in np.meshgrid(rho, angle, indexing="ij"))
    l1, l2 = np.sqrt(2) * rho * np.cos(angle), -np.sqrt(2) * rho * np.sin(angle)
    o1, o2 = 1 / (1 + np.exp(-l1)), 1 / (1 + np.exp(-l2))
    kappa = skip - 1 + o1 + o2
    B = np.moveaxis(np.array([[skip + o1, 1 - o1], [1 - o2, skip + o2]]), -1, 0)
    w = np.linalg.solve(B, np.broadcast_to(x, (len(rho), 2))[..., None])[..., 0] / kappa[:, None]
    share = np.exp(-rho) / np.abs(kappa) ** 3
    sums = np.zeros(4)
    for k in np.linspace(omega[0, 2] - 6 * 0.2**0.5, omega[0, 2] + 6 * 0.2**0.5, 240):
        off = w / k - omega[0, :2]
        log = -(off**2).sum(axis=1) / (2 * variance[0]) - 2 * np.log(np.abs(k))
        weight = share * np.exp(log - (k - omega[0, 2]) ** 2 / (2 * variance[1]))
        sums += [weight.sum(), weight @ off[:, 0], weight.sum() * (k - omega[0, 2]), weight @ rho]
    expected = sums[1:] / sums[0]
    np.testing.assert_allclose([second[0, 0], second[0, 3], first[0, 0]], expected, atol=3e-4)


# --- The table -----------------------------------------------------------------------------------


@pytest.mark.long
def test_the_table(monkeypatch):
    monkeypatch.setattr(untied, "COARSE", 64)
    frame, _ = untied.compute(ENTRY)
    values = frame.set_index(["quantity", "series"])["y"]
    assert values["threshold", "L = 2 last"] == pytest.approx(0.24021, abs=2e-5)
    assert values["threshold", "L = 2 first"] == pytest.approx(1.34, abs=0.06)
    assert values["converged", "L = 2 first"] == 1
