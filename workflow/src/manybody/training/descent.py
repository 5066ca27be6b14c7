"""L-BFGS for long vectors in single precision, on several threads.

A step reads each vector twice, for the inner products that L-BFGS needs and for the direction. Sums
are those of chunks, in their order, so that a result is the same for any number of threads.
"""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from manybody.io.compiled import each
from manybody.training import descent_loops as loops

FIRST = 0.3  # length of the first step, whose direction knows of no other number
ENOUGH = 1e-4  # share of the fall that the slope promises
SHORTEST = 1e-6  # length of a step that is no longer tried


def minimise(
    objective: Callable,
    vector: np.ndarray,
    scale: np.ndarray,
    iterations: int,
    *,
    history: int,
    tolerance: float = 0.0,
    threads: int = 1,
    callback: Callable | None = None,
) -> tuple[float, int]:
    """Moves `vector` (n,) to where the objective is least; returns that and the iterations taken.

    objective(vector, gradient) returns a value and writes its gradient. scale (n,): inverse second
    derivatives, or what is known of them. `history` steps are remembered. Ends where a step lowers
    the value by less than `tolerance` times itself. callback gets it after each iteration.
    """
    rows, kind, chunks = history + 1, vector.dtype.type, -(-len(vector) // loops.CHUNK)
    steps, changes = np.zeros((2, rows, len(vector)), kind)
    # s_k . y_l, of k no newer than l, and y_k . y_l weighted by `scale`.
    crossed, turned = np.zeros((2, rows, rows))
    ends = [chunks * part // threads for part in range(threads + 1)]

    def summed(loop: Callable, shape: tuple[int, ...], *given) -> np.ndarray:
        found = np.empty((chunks, *shape))
        each(threads, lambda part: loop(*given, found, *part), pairwise(ends))
        return found.sum(axis=0)

    gradient, kept, length = np.empty_like(vector), [], FIRST
    value = objective(vector, gradient)
    for iteration in range(iterations):
        products = np.zeros((4, 0))
        if kept:
            products = summed(
                loops.compare, (4, len(kept)), steps, changes, gradient, scale, np.array(kept),
                kind(length),
            )  # fmt: skip
            newest = kept[-1]
            crossed[kept, newest] = products[0]
            turned[kept, newest] = turned[newest, kept] = products[1]
            if crossed[newest, newest] <= 0:  # a step across a hill says nothing of a valley
                kept, products = kept[:-1], products[:, :-1]
            length = 1.0
        own = np.ix_(kept, kept)
        shares = _shares(crossed[own], turned[own], *products[2:]).astype(kind)
        free = next(row for row in range(rows) if row not in kept)
        slope = summed(
            loops.move, (), steps, changes, gradient, scale, np.array(kept, int), shares, free,
            kind(length), vector,
        )  # fmt: skip
        while True:
            found = objective(vector, gradient)
            if found <= value + ENOUGH * length * slope:
                break
            # The least of the parabola through both values and the slope.
            least = -slope * length**2 / (2 * (found - value - slope * length))
            shorter = min(max(least, 0.1 * length), 0.5 * length)
            if not shorter > SHORTEST:
                vector -= kind(length) * steps[free]
                return value, iteration
            vector += kind(shorter - length) * steps[free]
            length = shorter
        fall, value = value - found, found
        kept = [*kept, free][-history:]
        if callback is not None:
            callback(value)
        if fall <= tolerance * abs(value):
            return value, iteration + 1
    return value, iterations


def _shares(crossed, turned, of_steps, of_changes):
    """Shares (3, m) of steps, changes and, in the first column, the gradient in the direction.

    crossed (m, m): s_k . y_l, of which k <= l count; turned: y_k . y_l, weighted; of_steps and
    of_changes (m,): the products of s_k and y_k with the gradient.
    """
    count = len(crossed)
    taken, back, ahead = np.zeros((3, count))
    for k in reversed(range(count)):
        taken[k] = (of_steps[k] - crossed[k] @ back) / crossed[k, k]
        back[k] = taken[k]
    own = crossed[-1, -1] / turned[-1, -1] if count else 1.0
    for k in range(count):
        here = own * (of_changes[k] - turned[k] @ back) + crossed[:, k] @ ahead
        ahead[k] = taken[k] - here / crossed[k, k]
    shares = np.zeros((3, max(count, 1)))
    shares[0, :count], shares[1, :count], shares[2, 0] = -ahead, own * back, -own
    return shares
