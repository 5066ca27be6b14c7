"""Speed of the denoiser of the multi-index channel, against scipy's adaptive quadrature.

The published way is `dblquad` with a Python integrand that calls compiled functions of small
arrays: softmax, solve, determinant. Four numerators and a normaliser are integrated over
the same box, which the published code does not. Its tolerance is the loosest power of ten that
brings g to 1e-5 of the exact value. Further baselines are a Python integrand of plain numbers
(`math`), several times as fast as the published one, and a compiled one (`LowLevelCallable`).
"""

import statistics
from functools import partial

import numpy as np
from numba import njit

from benchmarks.harness import medians, row, seconds
from benchmarks.quadrature import draw, quadrature, weigh
from manybody.theory.multi_index import channel

OVERLAPS = ((0.0, 0.5), (0.0, 0.9), (0.5, 0.99))
SKIP = 1.0
ACCURACY = 1e-5  # of g, on both sides
SAMPLES = 2048
CASES = 2  # for the compiled baseline, and the first of them for the Python one
BLOCKS = 5


def measure() -> list[dict]:
    """Rows `what, ours, baseline, ratio, unit, threads` in evaluations/s: the denoiser against
    three baselines on one thread, geometric means over three Q; two threads against one."""
    rates = {name: [] for name in ("ours", *INTEGRANDS)}
    for overlaps in OVERLAPS:
        x, omega, variance = draw(SAMPLES, np.diag(overlaps), SKIP, 1)
        rates["ours"] += medians([partial(_ours, x, omega, variance, 1)], BLOCKS)
        exact = channel.denoiser(
            channel.posterior(x[:CASES], omega[:CASES], variance, SKIP, extra=3), variance
        )
        spent = dict.fromkeys(INTEGRANDS, 0.0)
        for n in range(CASES):
            given = x[n], omega[n], variance, SKIP
            tolerance = _tolerance(given, exact[n])
            for name, integrand in INTEGRANDS.items():
                spent[name] += seconds(
                    partial(quadrature, *given, tolerance=tolerance, integrand=integrand)
                )
        for name, taken in spent.items():
            rates[name].append(CASES / taken)
    ours, published, plain, fast = (statistics.geometric_mean(found) for found in rates.values())
    x, omega, variance = draw(SAMPLES, np.diag(OVERLAPS[1]), SKIP, 1)
    one, two = medians([partial(_ours, x, omega, variance, n) for n in (1, 2)], BLOCKS)
    unit, against = "evaluations/s", "denoiser against"
    return [
        row(f"{against} dblquad, Python integrand as published", ours, published, unit),
        row(f"{against} dblquad, Python integrand of plain numbers", ours, plain, unit),
        row(f"{against} dblquad, compiled integrand", ours, fast, unit),
        row(f"{against} one thread", two, one, unit, 2),
    ]


def published(v, u, x1, x2, o11, o12, o21, o22, p11, p12, p22, skip, softmax, moment):
    """`weigh` with arrays, as the published code has it; softmax only."""
    given = o11, o12, o21, o22, p11, p12, p22, skip
    plus = _weigh_arrays(np.array([u, v]), x1, x2, *given)
    minus = _weigh_arrays(np.array([u, v]), -x1, -x2, *given)
    return plus[int(moment)] + minus[int(moment)]


@njit
def _weigh_arrays(z1, x1, x2, o11, o12, o21, o22, p11, p12, p22, skip):
    x, omega = np.array([x1, x2]), np.array([[o11, o12], [o21, o22]])
    inverse = np.array([[p11, p12], [p12, p22]])
    scores = np.outer(z1, z1)
    mixing = skip * np.eye(2)
    for t in range(2):
        weights = np.exp(scores[t] - scores[t].max())
        mixing[t] += weights / weights.sum()
    off = np.zeros((2, 2))
    off[0], off[1] = z1, np.linalg.solve(mixing, x)
    off -= omega
    exponent = np.trace(off.T @ inverse @ off)
    found = np.ones(5)
    found[1:] = off.flatten()
    return found * np.exp(-exponent / 2) / np.abs(np.linalg.det(mixing))


INTEGRANDS = {"published": published, "plain": weigh.py_func, "compiled": None}  # see `quadrature`


def _tolerance(given: tuple, exact: np.ndarray) -> float:
    """The loosest power of ten with which `dblquad` finds g to ACCURACY."""
    for digits in range(3, 13):
        g = quadrature(*given, tolerance=10.0**-digits)[0]
        if np.abs(g - exact).max() <= ACCURACY:
            return 10.0**-digits
    raise RuntimeError(f"dblquad finds g to {ACCURACY:g} with no tolerance down to 1e-12")


def _ours(x: np.ndarray, omega: np.ndarray, variance: np.ndarray, threads: int) -> float:
    def call(x, omega) -> None:
        channel.denoiser(channel.posterior(x, omega, variance, SKIP, threads=threads), variance)

    call(x[:1], omega[:1])
    return len(x) / seconds(call, x, omega)
