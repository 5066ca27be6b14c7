"""The compiled loops of `channel_three`: weighted draws of the first two layers, sample by sample.

With A(p, q) = c I + ((1 - p, p), (q, 1 - q)) the mixing matrices are B_1 = A_1 and B_2 = A_2 B_1,
where A_1 has p = s(-u(u - v)), q = s(-v(v - u)) of z_1 = (u, v), s the logistic function, and A_2
those of h = B_1 z_2. Given the output, z_3 = +-B_2^-1 x. Points are drawn in two ways, half each:

- z_1 and z_2 from their Gaussians: good where the last layer is hardly known;
- z_1 and z_3 from theirs, and z_2 such that A_2 B_1 z_3 = +-x, which gives p and q, if there are
  such, and then h up to its sign: good where the last layer is nearly known.

A point has the weight (target density) / (sum of the densities of both ways), wherever it came
from (the balance heuristic). As functions of (z_1, z_2, sign), with N_l the Gaussians,

    target N_1 N_2 N_3 / |det A_2 det B_1|;  ways N_1 N_2 and N_1 N_3 J,  J = |d z_3 / d z_2|
    = 2 (h_1 - h_2)^2 p (1 - p) q (1 - q) (w_1 - w_2)^2 / |det A_2|,  w = B_1 z_3.
"""

import math

import numpy as np
from numba import njit

MOMENTS = 17  # sums of a half-sample, in the order of `add`
TINY = 1e-12  # least det of a mixing matrix; smaller at c = 0 alone, on a set of no weight


@njit(nogil=True, cache=True, error_model="numpy")
def integrate_samples(x, omega, variance, skip, nodes, sums):
    """Fills sums (n, 2, 17): weights, their squares, first and second moments of Z - omega.

    x (n, 2), omega (n, 3, 2), variance (3,), nodes (n, 2, points, 4): standard normal numbers of
    each half-sample, two for z_1 and two for z_2 or z_3.
    """
    for n in range(len(x)):
        for half in range(2):
            draw_points(x[n], omega[n], variance, skip, nodes[n, half], sums[n, half])


@njit(nogil=True, cache=True, error_model="numpy")
def draw_points(x, omega, variance, skip, nodes, sums):
    sd1, sd2, sd3 = math.sqrt(variance[0]), math.sqrt(variance[1]), math.sqrt(variance[2])
    top2 = 2 * math.pi * variance[1]
    top3 = 2 * math.pi * variance[2]
    for k in range(len(nodes)):
        a, b = sd1 * nodes[k, 0], sd1 * nodes[k, 1]
        p, q = switches(omega[0, 0] + a, omega[0, 1] + b)
        det1 = (1 + skip) * max(1 + skip - p - q, TINY)
        size = 0.5 * (nodes[k, 2] * nodes[k, 2] + nodes[k, 3] * nodes[k, 3])

        d2, e2 = sd2 * nodes[k, 2], sd2 * nodes[k, 3]
        y2, z2 = omega[1, 0] + d2, omega[1, 1] + e2
        h1 = (1 + skip - p) * y2 + p * z2
        h2 = q * y2 + (1 + skip - q) * z2
        r, s = switches(h1, h2)
        det2 = (1 + skip) * max(1 + skip - r - s, TINY)
        w1 = ((1 + skip - s) * x[0] - r * x[1]) / det2
        w2 = ((1 + skip - r) * x[1] - s * x[0]) / det2
        y3 = ((1 + skip - q) * w1 - p * w2) / det1
        z3 = ((1 + skip - p) * w2 - q * w1) / det1
        jacobian = stretch(h1 - h2, r, s, w1 - w2, det2)
        mine = jacobian * top2 * math.exp(size)  # J / N_2
        for sign in (1.0, -1.0):
            d3, e3 = sign * y3 - omega[2, 0], sign * z3 - omega[2, 1]
            other = top3 * math.exp(0.5 * (d3 * d3 + e3 * e3) / variance[2])  # 1 / N_3
            add(sums, 1 / (det1 * det2 * (other + mine)), a, b, d2, e2, d3, e3)

        d3, e3 = sd3 * nodes[k, 2], sd3 * nodes[k, 3]
        y3, z3 = omega[2, 0] + d3, omega[2, 1] + e3
        w1 = (1 + skip - p) * y3 + p * z3
        w2 = q * y3 + (1 + skip - q) * z3
        other = top3 * math.exp(size)
        for sign in (1.0, -1.0):
            r = (sign * x[0] - (1 + skip) * w1) / (w2 - w1)
            s = (sign * x[1] - (1 + skip) * w2) / (w1 - w2)
            if not (r > 0 and s > 0 and r + s < 1):
                continue
            g1, g2 = math.log((1 - r) / r), math.log((1 - s) / s)
            gap = math.sqrt(max(g1 + g2, 1e-300))
            h1, h2 = g1 / gap, -g2 / gap
            det2 = (1 + skip) * max(1 + skip - r - s, TINY)
            y2 = ((1 + skip - q) * h1 - p * h2) / det1
            z2 = ((1 + skip - p) * h2 - q * h1) / det1
            jacobian = stretch(gap, r, s, w1 - w2, det2)
            for turn in (1.0, -1.0):
                d2, e2 = turn * y2 - omega[1, 0], turn * z2 - omega[1, 1]
                mine = jacobian * top2 * math.exp(0.5 * (d2 * d2 + e2 * e2) / variance[1])
                add(sums, 1 / (det1 * det2 * (other + mine)), a, b, d2, e2, d3, e3)


@njit(nogil=True, cache=True, error_model="numpy")
def switches(u, v):
    """p = s(-u(u - v)) and q = s(-v(v - u)), the attention that the tokens pay to each other."""
    gap = u - v
    return 1 / (1 + math.exp(u * gap)), 1 / (1 + math.exp(-v * gap))


@njit(nogil=True, cache=True, error_model="numpy")
def stretch(gap, r, s, spread, det2):
    """J = |d z_3 / d z_2|."""
    return 2 * gap * gap * r * (1 - r) * s * (1 - s) * spread * spread / det2


@njit(nogil=True, cache=True, error_model="numpy")
def add(sums, weight, a, b, d2, e2, d3, e3):
    sums[0] += weight
    sums[1] += weight * weight
    sums[2] += weight * a
    sums[3] += weight * b
    sums[4] += weight * d2
    sums[5] += weight * e2
    sums[6] += weight * d3
    sums[7] += weight * e3
    sums[8] += weight * a * a
    sums[9] += weight * b * b
    sums[10] += weight * a * b
    sums[11] += weight * d2 * d2
    sums[12] += weight * e2 * e2
    sums[13] += weight * d2 * e2
    sums[14] += weight * d3 * d3
    sums[15] += weight * e3 * e3
    sums[16] += weight * d3 * e3
