"""Channel of three-layer attention, two tokens, rank 1 (docs/science/multi-index.md, section 3).

The indices Z = (z_1, z_2, z_3) of a sample have z_lt ~ N(omega_lt, V_l) for each token t, layers
independent: the map is even in each z_l, so overlaps of different layers vanish. What is seen is
h_3 = B_2(z_1, z_2) z_3 up to its sign, as the output softmax(h_3 h_3^T) does not depend on more.
Posterior averages are integrals over four numbers, z_1 and z_2, where z_3 = +-B_2^-1 h_3. They are
sums over weighted quasi-random points: two half-samples of their own, so that products of two
averages have no bias from the noise of one.

With A(p, q) = c I + ((1 - p, p), (q, 1 - q)) the mixing matrices are B_1 = A_1 and B_2 = A_2 B_1,
where A_1 has p = s(-u(u - v)), q = s(-v(v - u)) of z_1 = (u, v), s the logistic function, and A_2
those of h = B_1 z_2. Given the output, z_3 = +-B_2^-1 x. Nothing but the Gaussians tells z_l from
-z_l, so all three signs are summed over exactly: a layer with omega_l = 0 has a mean of exactly 0,
one with a small omega_l little noise. The rest is drawn in three ways, a third of the points each:

- z_1 and z_2 from their Gaussians: good where the last layer is hardly known;
- z_1 and z_3 from theirs, and z_2 such that A_2 B_1 z_3 = +-x, which gives p and q, if there are
  such, and then h up to its sign: good where the last layer is nearly known;
- h from a Gaussian H near its distribution and z_3 from its own, and z_1 such that A_1 z_3 =
  +-A_2^-1 x: good where, besides, h says little, as A_2 is nearly diagonal.

A point's weight is (target density) / (sum of all ways' densities), wherever it came from (balance
heuristic). As functions of z_1, z_2 up to their signs, N_l and H sums of Gaussians at both signs,

    target N_1 N_2 N_3 / |det A_2 det A_1|;
    ways N_1 N_2, N_1 N_3 J_2 and H |det A_1| N_3 J_1, with J_l = |d z_3 / d z_l| =
    2 (h_1 - h_2)^2 p (1 - p) q (1 - q) (w_1 - w_2)^2 / |det A_l| of h = B_{l-1} z_l, p, q of A_l
    and w with A_l w = +-x (l = 2) or A_l w = +-A_2^-1 x (l = 1).

Points are LANES at a time (`lanes`); those of a way that does not lead to +-x get the weight 0.
"""

import math
from dataclasses import dataclass

import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from manybody.data.vector_loops import LANES, get, spread, where_greater
from manybody.io.compiled import njit
from manybody.theory.multi_index.channel import finite, share_out
from manybody.theory.multi_index.channel_loops import ROUND, any_greater, exp_lanes, increase, turn
from manybody.theory.multi_index.samples import normals

CHUNK = 32  # samples that a thread takes at a time
MORE = (16, 256, 4096)  # samples whose points one takes that none of its own comes near
LAYERS, TOKENS = 3, 2
MOMENTS = 16  # sums of a half-sample, in the order of `add`
TINY = 1e-12  # least det of a mixing matrix; smaller at c = 0 alone, on a set of no weight
FARTHEST = 690.0  # exponent at which a Gaussian counts as 0
LARGEST = 1e290  # sum of the ways' densities, over the target's, of a point that has a weight
_SQUARES = tuple(1 / n for n in range(17, 0, -2))
EDGE = 2.0**-33  # uniform numbers closer to 0 or 1 count as there


@dataclass(frozen=True)
class Posterior:
    """Moments of the indices given the output, for n samples, from two half-samples of points.

    log_z (n, 2): log Z_out, but for terms of the output alone; mean (n, 2, 3, 2): E[Z | y] - omega,
    halves, layers, tokens; second (n, 2, 3, 2, 2): E[(Z - omega)_lt (Z - omega)_ls | y].
    """

    log_z: np.ndarray
    mean: np.ndarray
    second: np.ndarray


def points(samples: int, count: int, seed: np.random.SeedSequence) -> np.ndarray:
    """Standard normal points (samples, 2, 4, count) for `posterior`: each half-sample is a piece
    of one scrambled Sobol sequence, `count` (a power of 2) long."""
    whole = 2 ** math.ceil(math.log2(2 * samples * count))  # a balanced one
    pieces = normals(whole, 4, seed, EDGE)[: 2 * samples * count]
    return np.ascontiguousarray(pieces.reshape(samples, 2, count, 4).swapaxes(2, 3))


def posterior(
    x: np.ndarray,
    omega: np.ndarray,
    variance: np.ndarray,
    skip: float,
    nodes: np.ndarray,
    threads: int = 1,
) -> Posterior:
    """Posterior of Z given h_3 = +-x.

    x (n, 2); omega (n, 3, 2): layers, tokens; variance (3,): of each layer, above 0; skip: c >= 0;
    nodes: `points` of n samples, a multiple of LANES each.
    """
    x, omega, variance = finite(x=x, omega=omega, variance=variance)
    if not (variance > 0).all():
        raise ValueError(
            f"variance: found {variance.tolist()}, expected numbers above 0; for a layer known "
            f"perfectly take a variance that is small instead of 0"
        )
    sums = np.zeros((len(x), 2, MOMENTS))

    def run(part: slice) -> None:
        integrate_samples(x[part], omega[part], variance, float(skip), nodes[part], sums[part])

    share_out(run, len(x), CHUNK, threads)
    for n in np.flatnonzero(~(sums[..., 0] > 0).all(axis=1)):
        sums[n] = _with_more_points(n, x, omega, variance, skip, nodes)
    total, moments = sums[..., 0], sums[..., 1:] / sums[..., :1]
    mean = moments[..., :6].reshape(len(x), 2, LAYERS, TOKENS)
    pairs = moments[..., 6:].reshape(len(x), 2, LAYERS, 3)
    second = pairs[..., [0, 2, 2, 1]].reshape(*mean.shape, TOKENS)
    return Posterior(np.log(total / nodes.shape[3]), mean, second)


def _with_more_points(n, x, omega, variance, skip, nodes) -> np.ndarray:
    """Sums of sample n, which no point of its own comes near, by those of the next samples too."""
    sums, own = np.zeros((1, 2, MOMENTS)), slice(n, n + 1)
    for more in MORE:
        others = (n + np.arange(more)) % len(nodes)
        wide = nodes[others].transpose(1, 2, 0, 3).reshape(1, 2, 4, -1)
        integrate_samples(x[own], omega[own], variance, float(skip), wide, sums)
        if (sums[..., 0] > 0).all():
            return sums[0] / more
    raise ValueError(
        f"x: sample {n}, found {x[n].tolist()}, which no point comes near at omega "
        f"{omega[n].tolist()} and variance {variance.tolist()}; expected an index drawn from "
        f"these; take more points"
    )


def index(z: np.ndarray, skip: float) -> np.ndarray:
    """The last layer's index h_3 = B_2(z_1, z_2) z_3, (n, 2), from indices z (n, 3, 2)."""
    h = np.empty((len(z), 2))
    _indices(np.ascontiguousarray(z, dtype=float), float(skip), h)
    return h


@njit(nogil=True, cache=True, error_model="numpy")
def _indices(z, skip, h):
    for n in range(len(z)):
        first = switches(z[n, 0, 0], z[n, 0, 1])
        h1, h2 = apply(first, skip, z[n, 1, 0], z[n, 1, 1])
        w1, w2 = apply(first, skip, z[n, 2, 0], z[n, 2, 1])
        # One by one: compiling what numpy says of shapes that do not fit takes seconds.
        h[n, 0], h[n, 1] = apply(switches(h1, h2), skip, w1, w2)


# --- Weighted draws of the first two layers, sample by sample -------------------------------------


@njit(nogil=True, cache=True)
def integrate_samples(x, omega, variance, skip, nodes, sums):
    """Fills sums (n, 2, MOMENTS): weights, first and second moments of Z - omega.

    x (n, 2), omega (n, 3, 2), variance (3,), nodes (n, 2, 4, points): standard normal numbers of
    each half-sample, two for z_1 and two for z_2 or z_3; points a multiple of LANES.
    """
    work = np.zeros((MOMENTS, 1, LANES))
    for n in range(len(x)):
        for half in range(2):
            work[:] = 0
            draw_points(x[n], omega[n], variance, skip, nodes[n, half], work)
            for number in range(MOMENTS):
                sums[n, half, number] = 0
                for lane in range(LANES):
                    sums[n, half, number] += work[number, 0, lane]


@njit(nogil=True, cache=True, forceinline=True)
def draw_points(x, omega, variance, skip, nodes, work):
    """Adds to `work` (MOMENTS, 1, LANES) what the points nodes (4, n), in standard deviations,
    contribute to one sample x (2,), omega (3, 2), variance (3,)."""
    one = omega[0, 0], omega[0, 1], variance[0]
    two = omega[1, 0], omega[1, 1], variance[1]
    three = omega[2, 0], omega[2, 1], variance[2]
    sd1, sd2, sd3 = math.sqrt(one[2]), math.sqrt(two[2]), math.sqrt(three[2])
    x1, x2 = spread(work, x[0]), spread(work, x[1])
    given = work, skip, one, two, three, guessed_mixing(work, one, skip)
    guess = given[5]
    centre = apply(guess, skip, spread(work, two[0]), spread(work, two[1]))
    for k in range(0, nodes.shape[1], LANES):
        a, b = get(nodes, 0, k), get(nodes, 1, k)
        c, d = get(nodes, 2, k), get(nodes, 3, k)
        z1 = with_sign(work, a * sd1 + one[0], b * sd1 + one[1], one)
        mix1 = mixing(work, z1[0], z1[1], skip)

        z2 = with_sign(work, c * sd2 + two[0], d * sd2 + two[1], two)
        h = apply(mix1, skip, z2[0], z2[1])
        mix2 = mixing(work, h[0], h[1], skip)
        w = invert(mix2, skip, x1, x2)
        v = invert(mix1, skip, w[0], w[1])
        add(given, mix1, mix2, h, w, z1, z2, with_sign(work, v[0], v[1], three))

        z3 = with_sign(work, c * sd3 + three[0], d * sd3 + three[1], three)
        w = apply(mix1, skip, z3[0], z3[1])
        for sign in (1.0, -1.0):
            mix2 = mixing_between(work, w, x1 * sign, x2 * sign, skip)
            if any_greater(mix2[3], 0.0):
                h = index_of(work, mix2)
                v = invert(mix1, skip, h[0], h[1])
                add(given, mix1, mix2, h, w, z1, with_sign(work, v[0], v[1], two), z3)

        step = apply(guess, skip, a * sd2, b * sd2)
        h = centre[0] + step[0], centre[1] + step[1]
        mix2 = mixing(work, h[0], h[1], skip)
        w = invert(mix2, skip, x1, x2)
        for sign in (1.0, -1.0):
            mix1 = mixing_between(work, (z3[0], z3[1]), w[0] * sign, w[1] * sign, skip)
            if any_greater(mix1[3], 0.0):
                u, v = index_of(work, mix1), invert(mix1, skip, h[0], h[1])
                z1 = with_sign(work, u[0], u[1], one)
                add(given, mix1, mix2, h, w, z1, with_sign(work, v[0], v[1], two), z3)


# A mixing matrix A(p, q) is a tuple of p, q, 1 / det A and 1; the last is 0 where there is none. A
# layer is its omega and variance. All but the latter are lanes.


@njit(nogil=True, cache=True, forceinline=True)
def mixing(array, u, v, skip):
    gap = u - v
    one = spread(array, 1.0)
    p = one / (exp_bounded(array, u * gap) + 1.0)
    q = one / (exp_bounded(array, v * gap * -1.0) + 1.0)
    return p, q, inverse_determinant(array, p, q, skip), one


@njit(nogil=True, cache=True)
def switches(u, v):
    """p = s(-u(u - v)) and q = s(-v(v - u)) of numbers, the tokens' attention to each other."""
    gap = u - v
    return 1 / (1 + math.exp(u * gap)), 1 / (1 + math.exp(-v * gap))


@njit(nogil=True, cache=True, forceinline=True)
def inverse_determinant(array, p, q, skip):
    least = spread(array, TINY)
    left = (p + q) * -1.0 + (1 + skip)
    return spread(array, 1 / (1 + skip)) / where_greater(least, left, least, left)


@njit(nogil=True, cache=True, forceinline=True)
def guessed_mixing(array, layer, skip):
    """Near the mixing matrix of layer 1, between that of omega_1 and p = q = 1/4."""
    p, q, _, valid = mixing(array, spread(array, layer[0]), spread(array, layer[1]), skip)
    share = min(layer[2], 1.0)
    p, q = p * (1 - share) + 0.25 * share, q * (1 - share) + 0.25 * share
    return p, q, inverse_determinant(array, p, q, skip), valid


@njit(nogil=True, cache=True, forceinline=True)
def mixing_between(array, w, x1, x2, skip):
    """A with A w = x, if softmax makes such; any other where it makes none."""
    zero, one, quarter = spread(array, 0.0), spread(array, 1.0), spread(array, 0.25)
    inverse = one / (w[1] - w[0])
    p = (x1 - w[0] * (1 + skip)) * inverse
    q = (w[1] * (1 + skip) - x2) * inverse
    least = one - (p + q)  # of the three numbers that are above 0; no number if they are none
    least = where_greater(least, p, p, least)
    least = where_greater(least, q, q, least)
    p = where_greater(least, zero, p, quarter)
    q = where_greater(least, zero, q, quarter)
    valid = where_greater(least, zero, one, zero)
    return p, q, inverse_determinant(array, p, q, skip), valid


@njit(nogil=True, cache=True, forceinline=True)
def index_of(array, mix):
    """h, one of its two signs, of which A is the mixing matrix."""
    one = spread(array, 1.0)
    a, b = log_lanes(array, one / mix[0] - 1.0), log_lanes(array, one / mix[1] - 1.0)
    least = spread(array, 1e-300)
    inverse = one / root_lanes(where_greater(a + b, least, a + b, least))
    return a * inverse, b * inverse * -1.0


@njit(nogil=True, cache=True, forceinline=True)
def apply(mix, skip, u, v):
    """A (u, v)."""
    gap = v - u
    return u * (1 + skip) + mix[0] * gap, v * (1 + skip) - mix[1] * gap


@njit(nogil=True, cache=True, forceinline=True)
def invert(mix, skip, u, v):
    """A^-1 (u, v)."""
    p, q, inverse, _ = mix
    total = u * (1 + skip), v * (1 + skip)
    return (total[0] - (q * u + p * v)) * inverse, (total[1] - (p * v + q * u)) * inverse


@njit(nogil=True, cache=True, forceinline=True)
def with_sign(array, u, v, layer):
    """z = (u, v) with tanh(z.omega / V), its mean sign given |z|, and what `rarity` needs: the log
    of one over the larger of the Gaussian's densities at z and -z, and its share of the two."""
    half = 0.5 / layer[2]
    cross = (u * layer[0] + v * layer[1]) * (2 * half)
    back = cross * -1.0
    size = where_greater(cross, back, cross, back)
    share = spread(array, 1.0) / (exp_lanes(array, size * -2.0) + 1.0)
    sign = share * 2.0 - 1.0
    zero = spread(array, 0.0)
    found = where_greater(zero, cross, sign * -1.0, sign)
    squares = (u * u + v * v + (layer[0] * layer[0] + layer[1] * layer[1])) * half
    return u, v, found, squares - size, share


@njit(nogil=True, cache=True, forceinline=True)
def rarity(array, z, layer):
    """1 / N_l: one over the sum of the Gaussian's densities at z and -z."""
    return exp_bounded(array, z[3]) * z[4] * (2 * math.pi * layer[2])


@njit(nogil=True, cache=True, forceinline=True)
def stretch(mix, h, w):
    """J_l = |d z_3 / d z_l|."""
    p, q, inverse, _ = mix
    gap = (h[0] - h[1]) * (w[0] - w[1])
    return gap * gap * (p - p * p) * (q - q * q) * inverse * 2.0


@njit(nogil=True, cache=True, forceinline=True)
def add(given, mix1, mix2, h, w, z1, z2, z3):
    """Adds points. h = A_1 z_2 and w = A_1 z_3, each up to its sign."""
    work, skip, one, two, three, guess = given
    rare1, rare2, rare3 = rarity(work, z1, one), rarity(work, z2, two), rarity(work, z3, three)
    ways = rare3 + stretch(mix2, h, w) * rare2
    # H |det A_1| / (N_1 N_2), with h in units of the guessed matrix
    v = invert(guess, skip, h[0], h[1])
    near = rarity(work, with_sign(work, v[0], v[1], two), two)
    third = guess[2] / (mix1[2] * near) * rare1 * rare2
    ways = ways + stretch(mix1, z1, z3) * third
    zero = spread(work, 0.0)
    weight = mix1[2] * mix2[2] / ways * mix1[3] * mix2[3]
    weight = where_greater(spread(work, LARGEST), ways, weight, zero)
    increase(work, 0, weight)
    add_layer(work, 1, 7, weight, one, z1)
    add_layer(work, 3, 10, weight, two, z2)
    add_layer(work, 5, 13, weight, three, z3)


@njit(nogil=True, cache=True, forceinline=True)
def add_layer(work, first, second, weight, layer, z):
    """Adds E[z - omega] and E[(z - omega)(z - omega)^T] (tt, ss, ts) over the sign of z."""
    o1, o2 = layer[0], layer[1]
    u, v = z[0] * z[2], z[1] * z[2]
    increase(work, first, weight * (u - o1))
    increase(work, first + 1, weight * (v - o2))
    increase(work, second, weight * (z[0] * z[0] - u * (2 * o1) + o1 * o1))
    increase(work, second + 1, weight * (z[1] * z[1] - v * (2 * o2) + o2 * o2))
    increase(work, second + 2, weight * (z[0] * z[1] - u * o2 - v * o1 + o1 * o2))


@njit(nogil=True, cache=True, forceinline=True)
def exp_bounded(array, lanes):
    """exp of lanes, which count as FARTHEST above it."""
    most = spread(array, FARTHEST)
    return exp_lanes(array, where_greater(lanes, most, most, lanes))


@intrinsic
def _exponent(typing, lanes):
    """n of lanes m 2^n > 0 with m between sqrt(1/2) and sqrt 2."""

    def generate(context, builder, signature, arguments):
        whole = ir.VectorType(ir.IntType(64), LANES)
        bits = builder.bitcast(arguments[0], whole)
        begin = int(np.float64(math.sqrt(0.5)).view(np.int64))
        above = builder.sub(bits, ir.Constant(whole, [begin] * LANES))
        shifted = builder.ashr(above, ir.Constant(whole, [52] * LANES))
        return builder.sitofp(shifted, arguments[0].type)

    return lanes(lanes), generate


@intrinsic
def root_lanes(typing, lanes):
    def generate(context, builder, signature, arguments):
        kind = ir.FunctionType(arguments[0].type, [arguments[0].type])
        function = builder.module.declare_intrinsic(f"llvm.sqrt.v{LANES}f64", fnty=kind)
        return builder.call(function, arguments)

    return lanes(lanes), generate


@njit(nogil=True, cache=True, forceinline=True)
def log_lanes(array, lanes):
    """log of lanes above 0, to 1e-13: 2 artanh((m - 1) / (m + 1)) + n log 2 of m 2^n."""
    exponent = _exponent(lanes)
    rest = turn(lanes, exponent * -1.0 + ROUND)
    ratio = (rest - 1.0) / (rest + 1.0)
    square = ratio * ratio
    total = spread(array, _SQUARES[0])
    for coefficient in _SQUARES[1:]:
        total = total * square + coefficient
    return total * ratio * 2.0 + exponent * math.log(2)
