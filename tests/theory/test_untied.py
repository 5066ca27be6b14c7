"""Weak recovery of untied weights: closed forms against sampling, limits, bounds, a spectrum."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logit, softmax

from manybody.theory.multi_index import untied

ENTRY = {"kind": "multi-index-untied", "skips": [4.0, 1e4], "threads": 1}
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
    rho, n = np.tile(rho, 2), np.concatenate([n, -n])  # which are as frequent
    found = operator(blocks(moments_of(rho, n)))
    np.testing.assert_allclose(found, [[3, 0, 2], [0, 1.5, 0], [2, 0, 1]], atol=0.12)
    ours = untied.operator(moments_of(rho, n), np.ones(len(rho)))
    np.testing.assert_allclose(ours, found, rtol=1e-10, atol=1e-12)
    assert untied.eigenvalue(np.array([[3, 0, 2], [0, 1.5, 0], [2, 0, 1]])) == pytest.approx(
        1 / untied.SINGLE_LAYER, rel=1e-14
    )


# --- Two layers around Q = 0 ---------------------------------------------------------------------


@pytest.mark.parametrize("skip", [0.0, 0.3, 1.0, 2.5])
def test_averages_over_the_first_layer_are_those_of_its_distribution(skip):
    """The rule's total mass and moments of rho; kappa B against the attention of its definition."""
    rows, weight = untied.first_layer(skip)
    inverse = rows.reshape(-1, 2, 2)
    share = weight / np.abs(np.linalg.det(inverse))
    assert share.sum() == pytest.approx(1, abs=2e-4)
    mixed = np.linalg.inv(inverse)  # kappa B, whose rows add up to kappa (1 + c)
    kappa = mixed.sum(axis=2)[:, 0] / (1 + skip)
    regular = np.abs(kappa) > 1e-5
    share, B = share[regular], mixed[regular] / kappa[regular, None, None]
    np.testing.assert_allclose(B[:, 0, 0] + B[:, 1, 1] - 1 - skip, kappa[regular], atol=1e-8)
    own = np.diagonal(B, axis1=1, axis2=2) - skip  # weights that tokens give to themselves
    a = logit(np.clip(own, 1e-15, 1 - 1e-15)) * [1, -1]
    expected = mixing(a, np.tile([1.0, 0.0], (len(a), 1)), skip)  # k_1 - k_2 = 1
    np.testing.assert_allclose(B, expected, atol=1e-8)
    rho = np.hypot(*a.T) / np.sqrt(2)
    means = [share @ rho, share @ rho**2, *(share @ a)]
    np.testing.assert_allclose(means, [1, 2, 0, 0], atol=2e-3)


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
    total, found = np.zeros(1), np.zeros((1, 6))
    untied.average(x[None], *untied.first_layer(skip), total, found)
    expected = [
        weight @ last**2, *(weight * last) @ query,
        *((weight[:, None] * query).T @ query)[[0, 0, 1], [0, 1, 1]],
    ]  # fmt: skip
    np.testing.assert_allclose(found[0], expected, atol=error)


@pytest.mark.parametrize("skip", [0.25, 1.0, 2.0])
def test_thresholds_at_zero_do_not_hang_on_the_rule(skip):
    coarse = untied.last_layer(skip, 0.45, 0.5)[1]
    mass, fine = untied.last_layer(skip)
    assert mass == pytest.approx(1, abs=2e-4)
    assert untied.eigenvalue(coarse) == pytest.approx(untied.eigenvalue(fine), rel=2e-3)
    np.testing.assert_allclose(fine, fine.T, atol=1e-12)
    # Jensen bounds that of p indices and T tokens by p T^2 + T.
    assert untied.eigenvalue(fine) <= 10


# --- The table -----------------------------------------------------------------------------------


def test_the_table():
    frame = untied.compute(ENTRY)[0].set_index(["series", "x"])
    values, errors = frame["y"], frame["y_err"]
    assert values["L = 2 last", 4.0] == pytest.approx(0.24021, abs=2e-5)
    coarse = 1 / untied.eigenvalue(untied.last_layer(4.0)[1])
    assert errors["L = 2 last", 4.0] == pytest.approx(abs(values["L = 2 last", 4.0] - coarse))
    assert values["L = 1"].tolist() == [5**0.5 - 2] * 2
    # A strong skip leaves one layer.
    assert values["L = 2 last", 1e4] == pytest.approx(values["L = 1", 1e4], abs=2e-6)
