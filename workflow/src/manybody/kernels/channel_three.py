"""The compiled loops of `channel_three`: weighted draws of the first two layers, sample by sample.

With A(p, q) = c I + ((1 - p, p), (q, 1 - q)) the mixing matrices are B_1 = A_1 and B_2 = A_2 B_1,
where A_1 has p = s(-u(u - v)), q = s(-v(v - u)) of z_1 = (u, v), s the logistic function, and A_2
those of h = B_1 z_2. Given the output, z_3 = +-B_2^-1 x. Nothing but the Gaussians tells z_l from
-z_l, so the signs of all three are summed over exactly: a layer with omega_l = 0 has a mean of
exactly 0, and one with a small omega_l little noise. What is left is drawn in three ways, a third
of the points each:

- z_1 and z_2 from their Gaussians: good where the last layer is hardly known;
- z_1 and z_3 from theirs, and z_2 such that A_2 B_1 z_3 = +-x, which gives p and q, if there are
  such, and then h up to its sign: good where the last layer is nearly known;
- h from a Gaussian H near its distribution and z_3 from its own, and z_1 such that A_1 z_3 =
  +-A_2^-1 x: good where, besides, h says little, as A_2 is nearly diagonal.

A point has the weight (target density) / (sum of the densities of all ways), wherever it came
from (the balance heuristic). As functions of z_1 and z_2 up to their signs, with N_l and H the
sums of the Gaussians at both signs,

    target N_1 N_2 N_3 / |det A_2 det A_1|;
    ways N_1 N_2, N_1 N_3 J_2 and H |det A_1| N_3 J_1, with J_l = |d z_3 / d z_l| =
    2 (h_1 - h_2)^2 p (1 - p) q (1 - q) (w_1 - w_2)^2 / |det A_l| of h = B_{l-1} z_l, p, q of A_l
    and w with A_l w = +-x (l = 2) or A_l w = +-A_2^-1 x (l = 1).
"""

import math

from numba import njit

MOMENTS = 17  # sums of a half-sample, in the order of `add`
TINY = 1e-12  # least det of a mixing matrix; smaller at c = 0 alone, on a set of no weight


@njit(nogil=True, cache=True, error_model="numpy")
def integrate_samples(x, omega, variance, skip, nodes, sums):
    """Fills sums (n, 2, MOMENTS): weights, their squares, first and second moments of Z - omega.

    x (n, 2), omega (n, 3, 2), variance (3,), nodes (n, 2, points, 4): standard normal numbers of
    each half-sample, two for z_1 and two for z_2 or z_3.
    """
    for n in range(len(x)):
        for half in range(2):
            draw_points(x[n], omega[n], variance, skip, nodes[n, half], sums[n, half])


@njit(nogil=True, cache=True, error_model="numpy")
def draw_points(x, omega, variance, skip, nodes, sums):
    """Adds to `sums` what the points nodes (n, 4), in standard deviations, contribute to one sample
    x (2,), omega (3, 2), variance (3,)."""
    one, two, three = omega[0], omega[1], omega[2]
    v1, v2, v3 = variance[0], variance[1], variance[2]
    sd1, sd2, sd3 = math.sqrt(v1), math.sqrt(v2), math.sqrt(v3)
    guess = guessed_mixing(one, v1, skip)
    centre = apply(guess, skip, two[0], two[1])
    for k in range(len(nodes)):
        z1 = lean((one[0] + sd1 * nodes[k, 0], one[1] + sd1 * nodes[k, 1]), one, v1)
        mix1 = mixing(z1[0], z1[1], skip)

        z2 = lean((two[0] + sd2 * nodes[k, 2], two[1] + sd2 * nodes[k, 3]), two, v2)
        h = apply(mix1, skip, z2[0], z2[1])
        mix2 = mixing(h[0], h[1], skip)
        w = invert(mix2, skip, x[0], x[1])
        z3 = lean(invert(mix1, skip, w[0], w[1]), three, v3)
        add(sums, omega, variance, skip, guess, mix1, mix2, h, w, z1, z2, z3)

        z3 = lean((three[0] + sd3 * nodes[k, 2], three[1] + sd3 * nodes[k, 3]), three, v3)
        w = apply(mix1, skip, z3[0], z3[1])
        for sign in (1.0, -1.0):
            mix2 = mixing_between(w, sign * x[0], sign * x[1], skip)
            if mix2[2] > 0:
                h = index_of(mix2)
                z2 = lean(invert(mix1, skip, h[0], h[1]), two, v2)
                add(sums, omega, variance, skip, guess, mix1, mix2, h, w, z1, z2, z3)

        step = apply(guess, skip, sd2 * nodes[k, 0], sd2 * nodes[k, 1])
        h = (centre[0] + step[0], centre[1] + step[1])
        mix2 = mixing(h[0], h[1], skip)
        w = invert(mix2, skip, x[0], x[1])
        for sign in (1.0, -1.0):
            mix1 = mixing_between((z3[0], z3[1]), sign * w[0], sign * w[1], skip)
            if mix1[2] > 0:
                z1 = lean(index_of(mix1), one, v1)
                z2 = lean(invert(mix1, skip, h[0], h[1]), two, v2)
                add(sums, omega, variance, skip, guess, mix1, mix2, h, w, z1, z2, z3)


# A mixing matrix A(p, q) is a tuple of p, q and its determinant; the latter 0 stands for none.


@njit(nogil=True, cache=True, error_model="numpy")
def mixing(u, v, skip):
    p, q = switches(u, v)
    return p, q, (1 + skip) * max(1 + skip - p - q, TINY)


@njit(nogil=True, cache=True, error_model="numpy")
def guessed_mixing(omega, variance, skip):
    """Near the mixing matrix of layer 1, between that of omega_1 and p = q = 1/4."""
    p, q = switches(omega[0], omega[1])
    share = min(variance, 1.0)
    p, q = p + share * (0.25 - p), q + share * (0.25 - q)
    return p, q, (1 + skip) * max(1 + skip - p - q, TINY)


@njit(nogil=True, cache=True, error_model="numpy")
def mixing_between(w, x1, x2, skip):
    """A with A w = x, of determinant 0 if softmax makes no such."""
    p = (x1 - (1 + skip) * w[0]) / (w[1] - w[0])
    q = (x2 - (1 + skip) * w[1]) / (w[0] - w[1])
    if p > 0 and q > 0 and p + q < 1:
        return p, q, (1 + skip) * max(1 + skip - p - q, TINY)
    return p, q, 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def index_of(mix):
    """h, one of its two signs, of which A is the mixing matrix."""
    a, b = math.log((1 - mix[0]) / mix[0]), math.log((1 - mix[1]) / mix[1])
    gap = math.sqrt(max(a + b, 1e-300))
    return a / gap, -b / gap


@njit(nogil=True, cache=True, error_model="numpy")
def apply(mix, skip, u, v):
    """A (u, v)."""
    return (1 + skip - mix[0]) * u + mix[0] * v, mix[1] * u + (1 + skip - mix[1]) * v


@njit(nogil=True, cache=True, error_model="numpy")
def invert(mix, skip, u, v):
    """A^-1 (u, v)."""
    p, q, det = mix
    return ((1 + skip - q) * u - p * v) / det, ((1 + skip - p) * v - q * u) / det


@njit(nogil=True, cache=True, error_model="numpy")
def switches(u, v):
    """p = s(-u(u - v)) and q = s(-v(v - u)), the attention that the tokens pay to each other."""
    gap = u - v
    return 1 / (1 + math.exp(u * gap)), 1 / (1 + math.exp(-v * gap))


@njit(nogil=True, cache=True, error_model="numpy")
def lean(z, omega, variance):
    """z = (u, v) with tanh(z.omega / V), its mean sign given |z|: three numbers."""
    cross = (z[0] * omega[0] + z[1] * omega[1]) / variance
    other = math.exp(-2 * abs(cross))
    found = (1 - other) / (1 + other)
    return z[0], z[1], found if cross >= 0 else -found


@njit(nogil=True, cache=True, error_model="numpy")
def rarity(z, omega, variance):
    """1 / N_l: one over the sum of the Gaussian's densities at z and -z."""
    sign = 1.0 if z[2] >= 0 else -1.0
    a, b = sign * z[0] - omega[0], sign * z[1] - omega[1]
    share = 0.5 * (1 + abs(z[2]))  # of the larger of the two
    return 2 * math.pi * variance * share * math.exp(0.5 * (a * a + b * b) / variance)


@njit(nogil=True, cache=True, error_model="numpy")
def stretch(mix, h, w):
    """J_l = |d z_3 / d z_l|."""
    p, q, det = mix
    spread = (h[0] - h[1]) * (w[0] - w[1])
    return 2 * spread * spread * p * (1 - p) * q * (1 - q) / det


@njit(nogil=True, cache=True, error_model="numpy")
def add(sums, omega, variance, skip, guess, mix1, mix2, h, w, z1, z2, z3):
    """Adds a point. h = A_1 z_2 and w = A_1 z_3, each up to its sign."""
    rare2, rare3 = rarity(z2, omega[1], variance[1]), rarity(z3, omega[2], variance[2])
    ways = rare3 + stretch(mix2, h, w) * rare2
    # H |det A_1| / (N_1 N_2), with h in units of the guessed matrix
    near = lean(invert(guess, skip, h[0], h[1]), omega[1], variance[1])
    third = mix1[2] / (guess[2] * rarity(near, omega[1], variance[1]))
    third *= rarity(z1, omega[0], variance[0]) * rare2
    ways += stretch(mix1, z1, z3) * third
    if not ways < math.inf:  # so far out that a Gaussian underflows
        return
    weight = 1 / (mix1[2] * mix2[2] * ways)
    sums[0] += weight
    sums[1] += weight * weight
    add_layer(sums, 2, 8, weight, omega[0], z1)
    add_layer(sums, 4, 11, weight, omega[1], z2)
    add_layer(sums, 6, 14, weight, omega[2], z3)


@njit(nogil=True, cache=True, error_model="numpy")
def add_layer(sums, one, two, weight, omega, z):
    """Adds E[z - omega] and E[(z - omega)(z - omega)^T] (tt, ss, ts) over the sign of z."""
    u, v = z[0] * z[2], z[1] * z[2]
    sums[one] += weight * (u - omega[0])
    sums[one + 1] += weight * (v - omega[1])
    sums[two] += weight * (z[0] * z[0] - 2 * u * omega[0] + omega[0] * omega[0])
    sums[two + 1] += weight * (z[1] * z[1] - 2 * v * omega[1] + omega[1] * omega[1])
    cross = z[0] * z[1] - u * omega[1] - v * omega[0] + omega[0] * omega[1]
    sums[two + 2] += weight * cross
