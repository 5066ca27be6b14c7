"""The compiled loops of `channel`: integrals over the first layer's index, one sample at a time.

Tokens are rotated: for z_1 = (u, v), s = (u + v) / sqrt 2 and d = (u - v) / sqrt 2, and so for x,
z_2 and omega. Then, with t = exp(-|s d|), b = exp(-d^2), a = b^2, the softmax layer is

    f = t (1 + a) + b (1 + t^2),   J = f / (c f + t (1 - a)) = 1 / (1 + c - p - q),
    (z_2)_d = x_d J,   (z_2)_s = (x_s - sign(s d) x_d b (1 - t^2) J / f) / (1 + c),

with p, q the weights that tokens give to each other and det B = (1 + c) / J: one exponential and
one division, and nothing cancels where det B is small (d = 0). Linear attention, B = c I + z z^T,
is z_2 = (x - z (z.x) J) / c with J = 1 / (c + |z|^2) and det B = c / J. The two branches of z_2,
of weights exp(+-cross), are summed in closed form.

Lattices have rows of constant d, and grow in stages: points at the centres of a square lattice's
cells, then those between neighbours, so each stage doubles the points and uses all before. Two
stages at least square the error of the trapezoid rule. A sample has converged where its last
difference and the square of the one before are below the tolerance: one small difference can be
chance, and two allow a coarse first lattice. Points, blocks and rows that provably weigh less than
exp(-DROP) of the largest are left out: on a row (z_2)_d alone bounds |s| from above and below.
"""

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from manybody.data.vector_loops import LANES, broadcast, get, put, spread, where_greater
from manybody.io.compiled import njit

DROP = 23.0
TOLERANCE = 3e-6  # of two stages; the error of the later one is about its square
STAGES = 18
PROBE = 60.0  # exponent of the prior down to which the largest weight is looked for
OVERFLOW = 300.0  # exponent beyond the expected largest at which a sample is begun again
HALF = math.sqrt(0.5)
WIDTH, LINEAR = 4.4, 2.8  # of the first step in standard deviations: softmax, linear attention
ROUND = 1.5 * 2.0**52  # adding it rounds to a whole number, in the low bits
LN2_HIGH = 0.693359375  # ln 2 in two parts, the first short enough for exact products
LN2_LOW = math.log(2) - 0.693359375
LEAST = -690.0
_SERIES = tuple(1 / math.factorial(n) for n in range(9, -1, -1))
_FLAGS = {"contract", "nsz"}


@intrinsic
def turn(typing, number, turns):
    """number * 2^n for lanes `turns` that hold ROUND + n."""

    def generate(context, builder, signature, arguments):
        whole = ir.VectorType(ir.IntType(64), LANES)
        bits, n = (builder.bitcast(value, whole) for value in arguments)
        shifted = builder.shl(n, ir.Constant(whole, [52] * LANES))
        return builder.bitcast(builder.add(bits, shifted), arguments[0].type)

    return number(number, turns), generate


@intrinsic
def any_greater(typing, lanes, number):
    """True if a lane is greater than a number."""

    def generate(context, builder, signature, arguments):
        value, number = arguments
        greater = builder.fcmp_ordered(">", value, broadcast(builder, number))
        mask = builder.bitcast(greater, ir.IntType(LANES))
        return builder.icmp_unsigned("!=", mask, ir.IntType(LANES)(0))

    return types.boolean(lanes, types.float64), generate


@njit(inline="always")
def exp_lanes(array, lanes):
    """exp of lanes below 700 to 1e-11 of itself; what is below LEAST counts as LEAST."""
    least = spread(array, LEAST)
    lanes = where_greater(least, lanes, least, lanes)
    turns = lanes * (1 / math.log(2)) + ROUND
    whole = turns - ROUND
    rest = (lanes - whole * LN2_HIGH) - whole * LN2_LOW
    total = spread(array, _SERIES[0])
    for coefficient in _SERIES[1:]:
        total = total * rest + coefficient
    return turn(total, turns)


@njit(nogil=True, cache=True)
def integrate_samples(x, omega, variance, skip, softmax, extra, log_z, mean, covariance):
    """Fills log_z (n,), mean (n, 4) and covariance (n, 4, 4) of Z - omega given x (n, 2), rotated:
    (z_1 s, z_1 d, z_2 s, z_2 d).

    There are `extra` stages after the convergence of the text, and at most STAGES + `extra`.
    """
    work = np.zeros((16, 1, LANES))  # one to look into lanes, and the totals by lane
    ramp = np.arange(LANES, dtype=np.float64).reshape(1, 1, LANES)
    slope = variance[0, 1] / variance[0, 0]
    rest = variance[1, 1] - slope * variance[0, 1]  # variance of z_2 given z_1
    totals, before = np.zeros(15), np.zeros(15)
    state = np.zeros(2)
    norm = math.log(4 * math.pi**2 * variance[0, 0] * rest * (1 + skip if softmax else skip))
    root = math.sqrt(TOLERANCE)
    for n in range(len(x)):
        o = omega[n]
        sample = rotated(x[n]) + rotated(o[0]) + rotated(o[1]) + (variance[0, 0], slope, rest, skip)
        even = slope == 0 and o[0, 0] == 0 and o[0, 1] == 0
        first = first_step(sample, softmax)
        state[0], cap = -np.inf, PROBE
        while state[0] == -np.inf:
            add_points(sample, softmax, even, 2 * first, 0.0, 0.0, cap, ramp, work, state)
            cap *= 4
        while True:
            state[1] = state[0]
            work[:] = 0
            h, area = first, first * first
            add_points(sample, softmax, even, h, 0.0, 0.0, 0.0, ramp, work, state)
            sum_lanes(work, even, totals)
            more, last = -1, np.inf
            for stage in range(STAGES + extra):
                # Not by a slice: what numpy says of shapes takes seconds to compile.
                for number in range(len(totals)):
                    before[number] = totals[number]
                if stage % 2 == 0:
                    add_points(sample, softmax, even, h, 0.5, 0.5, 0.0, ramp, work, state)
                else:
                    add_points(sample, softmax, even, h, 0.5, 0.0, 0.0, ramp, work, state)
                    add_points(sample, softmax, even, h, 0.0, 0.5, 0.0, ramp, work, state)
                    h *= 0.5
                area *= 0.5
                sum_lanes(work, even, totals)
                earlier, last = last, difference(before, totals, variance)
                converged = last < TOLERANCE and earlier < root
                if more < 0 and (converged or stage == STAGES - 1):
                    more = extra
                if more == 0:
                    break
                more -= more > 0
            if state[0] < state[1] + OVERFLOW:
                break
        finish(sample, totals, mean[n], covariance[n])
        log_z[n] = state[1] + math.log(totals[0] * area * (2 if even else 1)) - norm


@njit(nogil=True, cache=True)
def rotated(pair):
    return HALF * (pair[0] + pair[1]), HALF * (pair[0] - pair[1])


@njit(nogil=True, cache=True)
def first_step(sample, softmax):
    """Some standard deviations of the narrower index. Less where det B is small at points of
    weight: it changes where d^2 is like 1 + c - p - q, which is |x_d / (z_2)_d| or more."""
    narrow = min(sample[6], sample[8])
    if not softmax:
        return LINEAR * math.sqrt(narrow)
    largest = abs(sample[5]) + 4 * math.sqrt(sample[8]) + 1  # of (z_2)_d
    share = max(sample[9], 0.5 * abs(sample[1]) / largest, 1e-5)
    return WIDTH * math.sqrt(narrow * min(1.0, share))


@njit(nogil=True, cache=True)
def sum_lanes(work, even, totals):
    """totals (15,): sums over the lanes of `work`; `even` says that odd moments of z_1 are 0."""
    for place in range(15):
        totals[place] = 0
        for lane in range(LANES):
            totals[place] += work[1 + place, 0, lane]
    if even:  # odd moments of z_1, to which the other half contributes the opposite
        for place in (1, 2, 7, 8, 10, 11):
            totals[place] = 0


@njit(nogil=True, cache=True)
def difference(before, totals, variance):
    """Largest difference of log Z, means and variances between a stage, which has half the
    points, and the next, in standard deviations of the indices."""
    if not before[0] > 0:
        return np.inf
    found = abs(math.log(2 * before[0] / totals[0]))
    for k in range(4):
        v = variance[k // 2, k // 2]
        first = before[1 + k] / before[0] - totals[1 + k] / totals[0]
        square = 5 + (0, 4, 7, 9)[k]
        second = before[square] / before[0] - totals[square] / totals[0]
        found = max(found, abs(first) / math.sqrt(v), abs(second) / v)
    return found


@njit(nogil=True, cache=True)
def finish(sample, totals, mean, covariance):
    """mean (4,) and covariance (4, 4), rotated as `integrate_samples` has them, from totals (15,):
    the sum of the weights, 4 first and 10 second moments."""
    place = 5
    for k in range(4):
        mean[k] = totals[1 + k] / totals[0]
    for k in range(4):
        for m in range(k, 4):
            covariance[k, m] = totals[place] / totals[0] - mean[k] * mean[m]
            covariance[m, k] = covariance[k, m]
            place += 1
    mean[2] -= sample[4]
    mean[3] -= sample[5]


@njit(nogil=True, cache=True)
def bounds(sample, softmax, d, a, b, rise, budget):
    """Least and largest |s| on the row d of points whose exponent is above -budget, from the prior
    of d and (z_2)_d alone; (1, 0) where there is none."""
    x_d, o_d, m_d = sample[1], sample[3], sample[5]
    v11, slope, rest, c = sample[6], sample[7], sample[8], sample[9]
    if not softmax or d == 0 or x_d == 0:
        return 0.0, np.inf
    budget -= 0.5 * (d - o_d) ** 2 / v11
    if b < 1e-100 or budget <= 0:
        return 0.0, np.inf
    m, width, x = abs(m_d + slope * (d - o_d)), math.sqrt(2 * rest * budget), abs(x_d)
    least, largest = 0.0, np.inf
    gap = x / (m + width) - c  # least of 1 / J - c
    if gap > 0:
        cosh = (rise / gap - 1 - a) / (2 * b)
        if cosh < 1:
            return 1.0, 0.0
        largest = math.log(cosh + math.sqrt(cosh * cosh - 1)) / abs(d)
    if m > width:
        gap = x / (m - width) - c
        if gap <= 0:
            return 1.0, 0.0
        cosh = (rise / gap - 1 - a) / (2 * b)
        if cosh > 1:
            least = math.log(cosh + math.sqrt(cosh * cosh - 1)) / abs(d)
    return least, largest


@njit(nogil=True, cache=True)
def add_points(sample, softmax, even, h, down, right, cap, ramp, work, state):
    """Adds the lattice of points s = (j + right) h, d = (k + down) h to the totals in `work`.

    state: largest exponent so far, exponent of weight 1. With `cap` above 0 this only looks for the
    former, where the prior's is above -cap. `even`: an integrand even in z_1, by its d >= 0 alone.
    """
    o_d, v11 = sample[3], sample[6]
    probe = cap > 0
    if not probe:
        cap = np.inf
    centre = 0 if even else round(o_d / h - down)
    for direction in (1, -1):
        if even and direction < 0:
            break
        k = centre if direction > 0 else centre - 1
        while True:
            d = (k + down) * h
            budget = min(DROP - state[0], cap)
            left = 2 * v11 * budget - (d - o_d) ** 2
            if left <= 0:
                break
            b = math.exp(-d * d)
            a = b * b
            rise = 1 - a if d * d > 0.1 else -math.expm1(-2 * d * d)  # 1 - a without cancellation
            least, largest = bounds(sample, softmax, d, a, b, rise, budget)
            if least <= largest:
                reach = math.sqrt(left)
                low, high = sample[2] - reach, sample[2] + reach
                share = 0.5 if even and d == 0 else 1.0
                end = -(2**60)
                intervals = ((-largest, -least), (least, largest))
                if least == 0:  # they are one, and the other is empty
                    intervals = ((-largest, largest), (1.0, 0.0))
                for begin, stop in intervals:
                    first, last = max(low, begin), min(high, stop)
                    if first <= last:
                        j = max(math.ceil(first / h - right), end)
                        last = math.floor(last / h - right)
                        if j <= last:
                            end = add_row(
                                sample, softmax, d, a, b, rise, h, right, j, last, share, probe,
                                ramp, work, state,
                            )  # fmt: skip
            k += direction


@njit(nogil=True, cache=True, fastmath=_FLAGS, forceinline=True)
def add_row(sample, softmax, d, a, b, rise, h, right, begin, last, share, probe, ramp, work, state):
    """Adds points j = begin .. last of a row, in blocks; returns the j after the last block."""
    x_s, x_d, o_s, o_d, m_s, m_d, v11, slope, rest, c = sample
    d_off = d - o_d
    row_m = m_d + slope * d_off
    row = -0.5 * d_off * d_off / v11 - 0.5 * row_m * row_m / rest
    half_v, half_rest = -0.5 / v11, -0.5 / rest
    best, top = state[0], state[1]
    lane = get(ramp, 0, 0)
    zero = spread(ramp, 0.0)
    one = spread(ramp, 1.0)
    s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = s8 = s9 = zero
    j = begin
    while j <= last:
        s = (lane + (j + right)) * h
        j += LANES
        if softmax:
            turn = s * d
            back = turn * -1.0
            t = exp_lanes(ramp, where_greater(turn, back, back, turn))
            tt = t * t * b
            f = t * (1 + a) + (tt + b)
            below = f * c + t * rise
            least = f * 1e-12  # c = 0 at d = 0, where nothing weighs
            below = where_greater(least, below, least, below)
            inverse = one / below
            J = f * inverse
            w_d = J * x_d
            tilt = (tt - b) * inverse
            tilt = where_greater(turn, zero, tilt, tilt * -1.0)
            w_s = tilt * (x_d / (1 + c)) + x_s / (1 + c)
        else:
            J = one / (s * s + (d * d + c))
            along = (s * x_s + d * x_d) * J
            w_s = (s * along * -1.0 + x_s) * (1 / c)
            w_d = (along * -d + x_d) * (1 / c)
        off = s - o_s
        m = off * slope + m_s
        cross = (w_s * m + w_d * row_m) * (1 / rest)
        back = cross * -1.0
        size = where_greater(cross, back, cross, back)
        squares = w_s * w_s + w_d * w_d + m * m
        exponent = squares * half_rest + size + off * off * half_v + row
        if not any_greater(exponent, best - DROP):
            continue
        if any_greater(exponent, best):
            put(work, 0, 0, exponent)
            for lane_number in range(LANES):
                best = max(best, work[0, 0, lane_number])
        if probe:
            continue
        weight = exp_lanes(ramp, exponent - top) * J
        other = exp_lanes(ramp, size * -2.0) * weight
        plus = weight + other
        minus = weight - other
        minus = where_greater(cross, zero, minus, minus * -1.0)
        minus_s, minus_d = minus * w_s, minus * w_d
        plus_off, plus_s = plus * off, plus * w_s
        s0 = s0 + plus
        s1 = s1 + plus_off
        s2 = s2 + minus_s
        s3 = s3 + minus_d
        s4 = s4 + plus_off * off
        s5 = s5 + minus_s * off
        s6 = s6 + minus_d * off
        s7 = s7 + plus_s * w_s
        s8 = s8 + plus_s * w_d
        s9 = s9 + plus * w_d * w_d
    state[0] = best
    if probe:
        return j
    s0, s1, s2, s3 = s0 * share, s1 * share, s2 * share, s3 * share
    s0_d = s0 * d_off
    increase(work, 1, s0)
    increase(work, 2, s1)
    increase(work, 3, s0_d)
    increase(work, 4, s2)
    increase(work, 5, s3)
    increase(work, 6, s4 * share)
    increase(work, 7, s1 * d_off)
    increase(work, 8, s5 * share)
    increase(work, 9, s6 * share)
    increase(work, 10, s0_d * d_off)
    increase(work, 11, s2 * d_off)
    increase(work, 12, s3 * d_off)
    increase(work, 13, s7 * share)
    increase(work, 14, s8 * share)
    increase(work, 15, s9 * share)
    return j


@njit(inline="always")  # compiled by itself it would be anew for each number
def increase(work, number, lanes):
    put(work, number, 0, get(work, number, 0) + lanes)


# --- The map of single numbers --------------------------------------------------------------------


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
