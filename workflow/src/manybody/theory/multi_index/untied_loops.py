"""The compiled loops of `untied`: posterior averages over the first layer, one sample at a time.

A node is a point of the first layer's distribution: `inverse` (n, 4), the rows of B^-1 / kappa;
`weight` (n,), its share of the distribution over |det(kappa B)|; `moments` (n, 6), see
`untied.Nodes`. What is seen is x = kappa B q k, with q (2,) and k of the second layer: at a node
q k = w = inverse x.
"""

import math

import numpy as np

from manybody.io.compiled import njit

REACH = 5.5  # of an integral over a normal number, its sd
DROP = 25.0  # a node whose weight is exp(-DROP) of the largest is left out


@njit(nogil=True, cache=True)
def average_at_zero(x, inverse, weight, totals, last):
    """Second layer unknown: its q k = rho n has density exp(-rho) d rho, n uniform on the circle.

    Fills totals (n,), the density of x times |x|^2, and the posterior averages last (n, 6):
    moments of the second layer given x (n, 2).
    """
    sums = np.empty(7)
    for n in range(len(x)):
        x1, x2 = x[n, 0], x[n, 1]
        scale = (x1 * x1 + x2 * x2) / (2 * math.pi)
        sums[:] = 0
        for i in range(len(weight)):
            w1 = inverse[i, 0] * x1 + inverse[i, 1] * x2
            w2 = inverse[i, 2] * x1 + inverse[i, 3] * x2
            square = w1 * w1 + w2 * w2
            rho = math.sqrt(square)
            if rho > 60.0 or rho == 0.0:
                continue
            share = weight[i] * math.exp(-rho) / rho * scale
            outer = share * (1 + rho) / square
            sums[0] += share
            sums[1] += share * rho
            sums[2] += share * w1
            sums[3] += share * w2
            sums[4] += outer * w1 * w1
            sums[5] += outer * w1 * w2
            sums[6] += outer * w2 * w2
        totals[n] = sums[0]
        if sums[0] > 0:
            for m in range(6):
                last[n, m] = sums[1 + m] / sums[0]


@njit(nogil=True, cache=True)
def average_samples(x, omega, variance, reference, step, inverse, logs, moments, second, first):
    """Second layer with q_t ~ N(omega_t, V_q), t = 1, 2, and k ~ N(omega_3, V_k).

    At a node q = r w / |w| and k = |w| / r: what is left is r > 0 and r < 0, on the scale of its
    logarithm, which suits a small r as well as a small k. x (n, 2); omega (n, 3); variance
    (V_q, V_k); reference (n,): a log weight that occurs; step: in the narrower of q and k, sd; logs
    (nodes,): of the weights. Fills second (n, 5): E q - omega (2), trace of Cov q, E k - omega,
    Var k; first (n, 6).
    """
    sq, sk = math.sqrt(variance[0]), math.sqrt(variance[1])
    sums = np.empty(12)
    for n in range(len(x)):
        x1, x2 = x[n, 0], x[n, 1]
        o1, o2, o3 = omega[n, 0], omega[n, 1], omega[n, 2]
        size = o1 * o1 + o2 * o2
        top = reference[n]
        sums[:] = 0
        for i in range(len(logs)):
            w1 = inverse[i, 0] * x1 + inverse[i, 1] * x2
            w2 = inverse[i, 2] * x1 + inverse[i, 3] * x2
            length = math.sqrt(w1 * w1 + w2 * w2)
            if length == 0.0:
                continue
            w1, w2 = w1 / length, w2 / length
            along = w1 * o1 + w2 * o2
            best = logs[i] - 0.5 * (size - along * along) / variance[0] - math.log(length)
            if best + 3 < top - DROP:  # r is seldom above e^3
                continue
            for sign in (1.0, -1.0):
                ro, ko = sign * along, sign * o3
                r_high, k_high = ro + REACH * sq, ko + REACH * sk
                if r_high <= 0 or k_high <= 0:
                    continue
                r_low = max(ro - REACH * sq, length / k_high)
                r_high = min(r_high, length / max(ko - REACH * sk, length / r_high))
                if r_low >= r_high:
                    continue
                widest = min(r_high, abs(ro) + 2.5 * sq) / sq
                widest = max(widest, min(length / r_low, abs(ko) + 2.5 * sk) / sk)
                low = math.log(r_low)
                span = math.log(r_high) - low
                count = int(span * max(widest, 1.0) / step) + 3
                delta = span / count
                factor = math.exp(delta)
                r = r_low * math.exp(0.5 * delta)
                one, r1, r2, k1, k2 = 0.0, 0.0, 0.0, 0.0, 0.0
                for _ in range(count):
                    k = length / r
                    a, b = (r - ro) / sq, (k - ko) / sk
                    exponent = best - 0.5 * (a * a + b * b) - top
                    if exponent > -DROP:
                        own = math.exp(exponent) * r * delta
                        one += own
                        r1 += own * r
                        r2 += own * r * r
                        k1 += own * (k - ko)
                        k2 += own * (k - ko) * (k - ko)
                    r *= factor
                if one == 0.0:
                    continue
                r1 *= sign
                sums[0] += one
                sums[1] += w1 * r1 - o1 * one
                sums[2] += w2 * r1 - o2 * one
                sums[3] += r2 - 2 * along * r1 + size * one
                sums[4] += sign * k1
                sums[5] += k2
                for m in range(6):
                    sums[6 + m] += one * moments[i, m]
                if one > 1e100:
                    top += math.log(one)
                    sums /= one
        for m in range(5):
            second[n, m] = sums[1 + m] / sums[0]
        second[n, 2] -= second[n, 0] ** 2 + second[n, 1] ** 2
        second[n, 4] -= second[n, 3] ** 2
        for m in range(6):
            first[n, m] = sums[6 + m] / sums[0]
