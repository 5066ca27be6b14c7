"""Errors of prediction of two layers of attention (docs/science/multi-index.md, section 2).

At overlaps near 1 nearly all of an error comes from the few samples whose last index changes its
sign, so that it takes many of them: 2^19 are needed for 1 %, and cost a few hundredths of a second.
"""

from collections.abc import Sequence

import numpy as np
from numba import njit

from manybody.theory.multi_index.samples import Setting, normals, overlap_matrix, root
from manybody.theory.multi_index.sgd_loops import last_index, logistic

NUMBERS = 12  # of a sample: omega and two independent Z - omega, each two layers by two tokens


def draws(points: int, seed: np.random.SeedSequence) -> np.ndarray:
    """Normal numbers (points, 3, 2, 2) of one scrambling of the Sobol sequence: of omega and of two
    Z - omega, by layer and token. points: a power of 2."""
    return normals(points, NUMBERS, seed).reshape(points, 3, 2, 2)


def errors(overlap: Sequence, setting: Setting, normal: np.ndarray) -> tuple[float, float]:
    """Plug-in and posterior-mean error at Q, squares summed over the four entries of y.

    Plug-in: E |g(Z) - g(omega)|^2, of a student that takes its mean omega ~ N(0, Q) for
    Z ~ N(omega, I - Q). Posterior mean: E |y - E[y | omega]|^2, the least error there is, by half
    the squared difference of two y of the same omega. y is without noise: the setting's regulariser
    does not enter. `normal` is of `draws`. Raises `ValueError` for a Q not between 0 and I.
    """
    Q = overlap_matrix(overlap)
    roots = root(Q), root(np.eye(2) - Q)
    linear = setting.activation == "linear"
    plug_in, pairs = _sums(normal, *roots, float(setting.skip), linear)
    return plug_in / (2 * len(normal)), pairs / (2 * len(normal))


@njit(nogil=True, cache=True)
def _sums(normal, root_omega, root_noise, skip, linear):
    """Sums over samples of |y - g(omega)|^2 for both y, and of their difference squared."""
    plug_in, pairs = 0.0, 0.0
    for n in range(len(normal)):
        omega = _turned(root_omega, normal, n, 0)
        first, second = _turned(root_noise, normal, n, 1), _turned(root_noise, normal, n, 2)
        mine = _outputs(omega, skip, linear)
        first = _outputs(_sum(omega, first), skip, linear)
        second = _outputs(_sum(omega, second), skip, linear)
        plug_in += _distance(first, mine, linear) + _distance(second, mine, linear)
        pairs += _distance(first, second, linear)
    return plug_in, pairs


@njit(nogil=True, cache=True)
def _turned(root, normal, n, part):
    """root @ normal[n, part], as z_1 and z_2 of both tokens: four numbers, for no array is made."""
    u, v = normal[n, part, 0, 0], normal[n, part, 0, 1]
    a, b = normal[n, part, 1, 0], normal[n, part, 1, 1]
    return (
        root[0, 0] * u + root[0, 1] * a,
        root[0, 0] * v + root[0, 1] * b,
        root[1, 0] * u + root[1, 1] * a,
        root[1, 0] * v + root[1, 1] * b,
    )


@njit(nogil=True, cache=True)
def _sum(one, other):
    return one[0] + other[0], one[1] + other[1], one[2] + other[2], one[3] + other[3]


@njit(nogil=True, cache=True)
def _outputs(z, skip, linear):
    """Distinct entries of y: y_12, y_21 and 0 (softmax), or y_11, y_22 and y_12 (linear)."""
    u, v, a, b = z
    if linear:
        inner = u * a + v * b
        h1, h2 = skip * a + u * inner, skip * b + v * inner
        return h1 * h1, h2 * h2, h1 * h2
    _, _, h1, h2 = last_index(u, v, a, b, skip)
    return logistic(-h1 * (h1 - h2)), logistic(-h2 * (h2 - h1)), 0.0


@njit(nogil=True, cache=True)
def _distance(first, second, linear):
    """Sum over the four entries of y: a row of softmax is off by as much in both of its own, and
    y_21 = y_12 of linear attention."""
    one, two, three = first[0] - second[0], first[1] - second[1], first[2] - second[2]
    if linear:
        return one * one + two * two + 2 * three * three
    return 2 * (one * one + two * two)
