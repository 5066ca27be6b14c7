"""The compiled loop of `sgd`: updates on one batch, one sample after another.

A sample's gradient needs only its own indices, so its two tokens are read once an update, while
they are in the nearest cache, for both the indices and the gradient.
"""

import math

import numpy as np

from manybody.io.compiled import njit

# Sums over D may be taken in any order (that of the machine's vectors), a product and a sum may
# become one instruction.
_FLAGS = {"reassoc", "contract", "nsz"}


@njit(nogil=True, cache=True)
def visit(weights, tokens, targets, rows, repeats, rate, decay, skip):
    """`repeats` updates of `weights` on the samples `rows`; the loss before each sample's first.

    weights (2, D), moved: one row a layer; tokens (n, 2, D); targets (n, 2), y12 and y21; rows,
    numbers of samples. An update is w -= rate (gradient + decay w), with the gradient of
    sum |y - yhat|_F^2 / D over the samples. Returns the sum of |y - yhat|_F^2 over them.
    """
    size = weights.shape[1]
    gradient = np.empty_like(weights)
    first = 0.0
    for repeat in range(repeats):
        gradient[:] = 0.0
        total = 0.0
        for n in rows:
            total += add_sample(weights, tokens[n], targets[n], skip, gradient)
        if repeat == 0:
            first = total
        scale = rate / (size * math.sqrt(size))
        for k in range(2):
            for i in range(size):
                weights[k, i] -= scale * gradient[k, i] + rate * decay * weights[k, i]
    return first


@njit(nogil=True, cache=True, fastmath=_FLAGS, forceinline=True)
def add_sample(weights, x, y, skip, gradient):
    """Adds sqrt(D) d|y - yhat|_F^2 / dw of one sample to `gradient` (2, D); its |y - yhat|_F^2."""
    size = weights.shape[1]
    u = v = a = b = 0.0
    for i in range(size):
        u += weights[0, i] * x[0, i]
        v += weights[0, i] * x[1, i]
        a += weights[1, i] * x[0, i]
        b += weights[1, i] * x[1, i]
    root = 1 / math.sqrt(size)
    error, du, dv, da, db = derivatives(u * root, v * root, a * root, b * root, y[0], y[1], skip)
    for i in range(size):
        gradient[0, i] += du * x[0, i] + dv * x[1, i]
        gradient[1, i] += da * x[0, i] + db * x[1, i]
    return error


@njit(nogil=True, cache=True)
def derivatives(u, v, a, b, y12, y21, skip):
    """|y - yhat|_F^2 of indices z_1 = (u, v), z_2 = (a, b), and its derivatives by the four."""
    p, q, h1, h2 = last_index(u, v, a, b, skip)
    found12, found21 = logistic(-h1 * (h1 - h2)), logistic(-h2 * (h2 - h1))
    e12, e21 = found12 - y12, found21 - y21
    # Rows of y sum to one, so each error stands twice in the norm.
    t1 = 4 * e12 * found12 * (1 - found12)
    t2 = 4 * e21 * found21 * (1 - found21)
    d1 = -t1 * (2 * h1 - h2) + t2 * h2
    d2 = -t2 * (2 * h2 - h1) + t1 * h1
    da = d1 * (1 - p + skip) + d2 * q
    db = d1 * p + d2 * (1 - q + skip)
    s1 = d1 * (b - a) * p * (1 - p)
    s2 = d2 * (a - b) * q * (1 - q)
    du = -s1 * (2 * u - v) + s2 * v
    dv = -s2 * (2 * v - u) + s1 * u
    return 2 * (e12 * e12 + e21 * e21), du, dv, da, db


@njit(nogil=True, cache=True)
def outputs(z, skip, y):
    """Fills y (n, 2), y12 and y21, of indices z (n, 2, 2): layer, token."""
    for n in range(len(z)):
        _, _, h1, h2 = last_index(z[n, 0, 0], z[n, 0, 1], z[n, 1, 0], z[n, 1, 1], skip)
        y[n, 0], y[n, 1] = logistic(-h1 * (h1 - h2)), logistic(-h2 * (h2 - h1))


@njit(nogil=True, cache=True)
def last_index(u, v, a, b, skip):
    """Attention p = sigma_12, q = sigma_21 of the first layer, and h = B z_2."""
    p, q = logistic(-u * (u - v)), logistic(-v * (v - u))
    return p, q, (1 - p + skip) * a + p * b, q * a + (1 - q + skip) * b


@njit(nogil=True, cache=True)
def logistic(t):
    if t >= 0:
        return 1 / (1 + math.exp(-t))
    e = math.exp(t)
    return e / (1 + e)
