"""The channel of two layers by scipy's adaptive quadrature, which shares no code with `channel`."""

import math
from functools import cache

import numpy as np
from numba import carray, cfunc, njit, types
from scipy import LowLevelCallable
from scipy.integrate import dblquad

from manybody.theory.multi_index import channel

BOX = 6.0  # standard deviations of z_1 on each side


def draw(
    samples: int, overlap: np.ndarray, skip: float, seed: int, activation: str = "softmax"
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x (n, 2), omega (n, 2, 2) and V (2, 2) of the model at an overlap Q (2, 2)."""
    numbers = np.random.default_rng(seed).normal(size=(2, samples, 2, 2))
    values, vectors = np.linalg.eigh(overlap)
    variance = np.eye(2) - overlap
    omega = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T @ numbers[0]
    z = omega + np.linalg.cholesky(variance) @ numbers[1]
    return channel.index(z, skip, activation), omega, variance


def quadrature(
    x: np.ndarray,
    omega: np.ndarray,
    variance: np.ndarray,
    skip: float,
    activation: str = "softmax",
    tolerance: float = 1e-8,
    integrand=None,
    relative: float = 0.0,
) -> tuple[np.ndarray, float, float]:
    """g (2, 2), log Z_out and the error of g by scipy's own estimate, of one sample, x (2,) and
    omega (2, 2), by `dblquad` of `integrand` (`weigh`, compiled, if none) over the box omega_1 +- 6
    sqrt V11; absolute `tolerance` of the integrals, or `relative` to them."""
    integrand = LowLevelCallable(compiled().ctypes) if integrand is None else integrand
    inverse = np.linalg.inv(variance)
    given = (
        *map(float, x), *map(float, omega.ravel()),
        float(inverse[0, 0]), float(inverse[0, 1]), float(inverse[1, 1]), float(skip),
        float(activation == "softmax"),
    )  # fmt: skip
    reach = BOX * math.sqrt(variance[0, 0])
    found = [
        dblquad(
            integrand,
            omega[0, 0] - reach, omega[0, 0] + reach, omega[0, 1] - reach, omega[0, 1] + reach,
            args=(*given, float(moment)), epsabs=tolerance, epsrel=relative,
        )
        for moment in range(5)
    ]  # fmt: skip
    values, errors = np.transpose(found)
    norm = math.log(4 * math.pi**2 * np.linalg.det(variance))
    mean = values[1:].reshape(2, 2) / values[0]
    error = (errors[1:].reshape(2, 2) + np.abs(mean) * errors[0]) / values[0]
    return inverse @ mean, math.log(values[0]) - norm, float((np.abs(inverse) @ error).max())


@njit
def weigh(v, u, x1, x2, o11, o12, o21, o22, p11, p12, p22, skip, softmax, moment):
    """exp(-1/2 sum_t (Z - omega)_t^T V^-1 (Z - omega)_t) / |det B| at z_1 = (u, v), summed over
    z_2 = +-B^-1 x: times component `moment` - 1 of Z - omega, or 1 for moment 0."""
    if softmax > 0:
        p, q = 1 / (1 + math.exp(u * (u - v))), 1 / (1 + math.exp(v * (v - u)))
        b11, b12, b21, b22 = 1 - p + skip, p, q, 1 - q + skip
    else:
        b11, b12, b21, b22 = skip + u * u, u * v, u * v, skip + v * v
    det = b11 * b22 - b12 * b21
    w1, w2 = (b22 * x1 - b12 * x2) / det, (b11 * x2 - b21 * x1) / det
    z1, z2 = u - o11, v - o12
    total = 0.0
    for sign in (1.0, -1.0):
        z3, z4 = sign * w1 - o21, sign * w2 - o22
        exponent = p11 * (z1 * z1 + z2 * z2) + 2 * p12 * (z1 * z3 + z2 * z4)
        exponent += p22 * (z3 * z3 + z4 * z4)
        total += math.exp(-0.5 * exponent) * (1.0, z1, z2, z3, z4)[int(moment)]
    return total / abs(det)


@cache
def compiled():
    """`weigh` as a C function, compiled where it is first asked for."""

    @cfunc(types.double(types.intc, types.CPointer(types.double)))
    def call(count, values):
        a = carray(values, (14,))
        return weigh(
            a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13]
        )

    return call
