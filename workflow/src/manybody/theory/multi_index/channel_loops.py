"""The compiled loops of `channel`: integrals over the first layer's index, one sample at a time.

In the coordinates s = (u + v) / sqrt 2, d = (u - v) / sqrt 2 of z_1 = (u, v) the softmax layer is

    e1 = exp(d^2 + s d),  e2 = exp(d^2 - s d),  p = 1 / (1 + e1),  q = 1 / (1 + e2),
    f = (1 + e1)(1 + e2),  r = 1 / (c f + exp(2 d^2) - 1),  det B = (1 + c) / (f r),
    z_2 = B^-1 x = (x_1 + X (1 + e2) r, x_2 - X (1 + e1) r) / (1 + c),  X = x_1 - x_2:

nothing cancels where det B is small (d = 0), and one division is enough.
"""

import math

import numpy as np
from numba import njit

REACH = 6.5  # of the grid, standard deviations of z_1
DROP = 34.0  # a point whose weight is exp(-DROP) of the largest is left out
HALF = math.sqrt(0.5)


@njit(nogil=True, cache=True)
def integrate_samples(x, omega, variance, skip, softmax, steps, log_z, mean, second):
    """Fills log_z (n,), mean (n, 4) and second (n, 4, 4): moments of Z - omega given x (n, 2), in
    the order (z_1 of token 0, 1, z_2 of token 0, 1). steps (n,): of the grid, units of z_1."""
    for n in range(len(x)):
        log_z[n] = integrate_sample(
            x[n], omega[n], variance, skip, softmax, steps[n], mean[n], second[n]
        )


@njit(nogil=True, cache=True)
def integrate_sample(x, omega, variance, skip, softmax, step, mean, second):
    v11, v12 = variance[0, 0], variance[0, 1]
    slope = v12 / v11
    rest = variance[1, 1] - slope * v12  # variance of z_2 given z_1
    reach = int(math.ceil(REACH * math.sqrt(v11) / step))
    sums = np.zeros(15)
    top = -np.inf
    z = np.empty(4)
    for i in range(-reach, reach + 1):
        for j in range(-reach, reach + 1):
            s, d = i * step, j * step
            a, b = HALF * (s + d), HALF * (s - d)  # z_1 - omega_1
            u, v = omega[0, 0] + a, omega[0, 1] + b
            w1, w2, inverse = invert(x, u, v, skip, softmax)
            m1, m2 = omega[1, 0] + slope * a, omega[1, 1] + slope * b
            cross = (w1 * m1 + w2 * m2) / rest
            exponent = -0.5 * (a * a + b * b) / v11 + abs(cross)
            exponent += math.log(inverse) - 0.5 * (w1 * w1 + w2 * w2 + m1 * m1 + m2 * m2) / rest
            if exponent < top - DROP:
                continue
            if exponent > top:
                sums *= math.exp(top - exponent)
                top = exponent
            other = math.exp(-2 * abs(cross))
            if cross < 0:
                w1, w2 = -w1, -w2
            weight = math.exp(exponent - top)
            for sign in (1.0, -1.0):
                part = weight if sign > 0 else weight * other
                z[0], z[1] = a, b
                z[2], z[3] = sign * w1 - omega[1, 0], sign * w2 - omega[1, 1]
                sums[0] += part
                place = 5
                for k in range(4):
                    sums[1 + k] += part * z[k]
                    for m in range(k, 4):
                        sums[place] += part * z[k] * z[m]
                        place += 1
    place = 5
    for k in range(4):
        mean[k] = sums[1 + k] / sums[0]
        for m in range(k, 4):
            second[k, m] = second[m, k] = sums[place] / sums[0]
            place += 1
    return top + math.log(sums[0] * step * step) - math.log(4 * math.pi**2 * v11 * rest)


@njit(nogil=True, cache=True)
def invert(x, u, v, skip, softmax):
    """z_2 = B(u, v)^-1 x and 1 / det B."""
    if softmax:
        d, s = HALF * (u - v), HALF * (u + v)
        e1 = math.exp(min(d * d + s * d, 300.0))
        e2 = math.exp(min(d * d - s * d, 300.0))
        f = (1 + e1) * (1 + e2)
        r = 1 / max(skip * f + (e1 * e2 - 1), 1e-12 * f)
        X = x[0] - x[1]
        w1 = (x[0] + X * (1 + e2) * r) / (1 + skip)
        w2 = (x[1] - X * (1 + e1) * r) / (1 + skip)
        return w1, w2, f * r / (1 + skip)
    # B = c I + z z^T, by Sherman and Morrison
    overlap = (u * x[0] + v * x[1]) / (skip + u * u + v * v)
    return (
        (x[0] - u * overlap) / skip,
        (x[1] - v * overlap) / skip,
        1 / (skip * (skip + u * u + v * v)),
    )
