"""The channel of three layers of attention, two tokens, rank 1
(docs/science/multi-index.md, section 3).

The indices Z = (z_1, z_2, z_3) of a sample have z_lt ~ N(omega_lt, V_l) for each token t, layers
independent: the map is even in each z_l, so overlaps of different layers vanish. What is seen is
h_3 = B_2(z_1, z_2) z_3 up to its sign, as the output softmax(h_3 h_3^T) does not depend on more.
Posterior averages are integrals over four numbers, z_1 and z_2, where z_3 = +-B_2^-1 h_3. They are
sums over weighted quasi-random points: two half-samples of their own, so that products of two
averages have no bias from the noise of one.
"""

import math
from dataclasses import dataclass

import numpy as np
from numba import njit

from manybody.data.vector_loops import LANES
from manybody.theory.multi_index.channel import share_out
from manybody.theory.multi_index.channel_three_loops import (
    MOMENTS,
    apply,
    integrate_samples,
    switches,
)
from manybody.theory.multi_index.samples import normals

CHUNK = 32  # samples that a thread takes at a time
MORE = (16, 256, 4096)  # samples whose points one takes that none of its own comes near
LAYERS, TOKENS = 3, 2
EDGE = 2.0**-33  # uniform numbers closer to 0 or 1 count as there


@dataclass(frozen=True)
class Posterior:
    """Moments of the indices given the output, for n samples, from two half-samples of points.

    log_z (n, 2): log Z_out, without terms that depend on the output only; mean (n, 2, 3, 2):
    E[Z | y] - omega, halves, layers, tokens; second (n, 2, 3, 2, 2): E[(Z - omega)_lt
    (Z - omega)_ls | y] of each layer; effective (n, 2): number of points of equal weight that
    would be as good.
    """

    log_z: np.ndarray
    mean: np.ndarray
    second: np.ndarray
    effective: np.ndarray


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
    nodes: `points` of n samples.
    """
    x, omega, variance = _checked(x, omega, variance, nodes)
    sums = np.zeros((len(x), 2, MOMENTS))

    def run(part: slice) -> None:
        integrate_samples(x[part], omega[part], variance, float(skip), nodes[part], sums[part])

    share_out(run, len(x), CHUNK, threads)
    for n in np.flatnonzero(~(sums[..., 0] > 0).all(axis=1)):
        sums[n] = _with_more_points(n, x, omega, variance, skip, nodes)
    total = sums[..., 0]
    moments = sums[..., 2:] / total[..., None]
    pairs = moments[..., 6:].reshape(len(x), 2, LAYERS, 3)
    second = pairs[..., [0, 2, 2, 1]].reshape(len(x), 2, LAYERS, TOKENS, TOKENS)
    return Posterior(
        np.log(total / nodes.shape[3]),
        moments[..., :6].reshape(len(x), 2, LAYERS, TOKENS),
        second,
        total**2 / sums[..., 1],
    )


def _with_more_points(n, x, omega, variance, skip, nodes) -> np.ndarray:
    """Sums of sample n, which no point of its own comes near, by those of the next samples too."""
    for more in MORE:
        others = (n + np.arange(more)) % len(nodes)
        wide = nodes[others].transpose(1, 2, 0, 3).reshape(1, 2, 4, -1)
        sums = np.zeros((1, 2, MOMENTS))
        own = slice(n, n + 1)
        integrate_samples(x[own], omega[own], variance, float(skip), wide, sums)
        if (sums[..., 0] > 0).all():
            sums[..., 1] /= more  # of squares
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


def _checked(x, omega, variance, nodes):
    x, omega, variance = (np.ascontiguousarray(a, dtype=float) for a in (x, omega, variance))
    expected = {
        "x": (x, ("n", 2)),
        "omega": (omega, (len(x), LAYERS, TOKENS)),
        "variance": (variance, (LAYERS,)),
        "nodes": (nodes, (len(x), 2, 4, "points")),
    }
    for name, (values, shape) in expected.items():
        right = values.ndim == len(shape) and all(
            wanted in (found, "n", "points")
            for found, wanted in zip(values.shape, shape, strict=False)
        )
        if not right:
            raise ValueError(
                f"{name}: found shape {values.shape}, expected {shape}: three layers of rank 1, "
                f"two tokens"
            )
        if not np.isfinite(values).all():
            raise ValueError(f"{name}: found a number that is not finite")
    if nodes.shape[3] % LANES:
        raise ValueError(f"nodes: found {nodes.shape[3]} points, expected a multiple of {LANES}")
    if not (variance > 0).all():
        raise ValueError(
            f"variance: found {variance.tolist()}, expected numbers above 0; for a layer known "
            f"perfectly take a variance that is small instead of 0"
        )
    return x, omega, variance
