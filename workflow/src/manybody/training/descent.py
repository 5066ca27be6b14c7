"""L-BFGS for long vectors in single precision, on several threads.

What the two loops of L-BFGS need of the vectors are their inner products; a step reads each vector
twice, once for the products and once for the direction. Sums are those of chunks, in their order,
so that a result is the same for any number of threads.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

CHUNK = 2**14  # numbers that a thread takes at a time: a few such stay in the cache
FIRST = 0.3  # length of the first step, whose direction knows of no other number
ENOUGH = 1e-4  # share of the fall that the slope promises
SHORTEST = 1e-6  # length of a step that is no longer tried


def each(threads: int, function: Callable, parts: Iterable) -> list:
    """Results of function(part), in the order of the parts, by so many threads."""
    if threads == 1:
        return [function(part) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, parts))


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
    the objective by less than `tolerance` times its value, or where no step lowers it. callback
    gets the value after each iteration.
    """
    rows, size = history + 1, len(vector)
    steps, changes = np.zeros((2, rows, size), vector.dtype)
    crossed, turned = np.zeros((2, rows, rows))  # s_k . y_l, and y_k . y_l weighted by `scale`
    parts = [slice(start, start + CHUNK) for start in range(0, size, CHUNK)]
    gradient, kept, length = np.empty_like(vector), [], FIRST
    value = objective(vector, gradient)
    for iteration in range(iterations):
        products = np.zeros((5, 0))
        if kept:
            given = (steps, changes, gradient, scale, kept, length)
            products = sum(each(threads, lambda part, given=given: _compare(*given, part), parts))
            newest = kept[-1]
            crossed[kept, newest], crossed[newest, kept] = products[:2]
            turned[kept, newest] = turned[newest, kept] = products[2]
            if crossed[newest, newest] <= 0:  # a step across a hill says nothing of a valley
                kept, products = kept[:-1], products[:, :-1]
            length = 1.0
        own = np.ix_(kept, kept)
        shares = _shares(crossed[own], turned[own], *products[3:]).astype(vector.dtype)
        free = next(row for row in range(rows) if row not in kept)
        given = (steps, changes, gradient, scale, kept, shares, free, length, vector)
        slope = sum(each(threads, lambda part, given=given: _move(*given, part), parts))
        while True:
            found = objective(vector, gradient)
            if found <= value + ENOUGH * length * slope:
                break
            # The least of the parabola through both values and the slope.
            least = -slope * length**2 / (2 * (found - value - slope * length))
            shorter = min(max(least, 0.1 * length), 0.5 * length)
            if not shorter > SHORTEST:
                vector -= vector.dtype.type(length) * steps[free]
                return value, iteration
            vector += vector.dtype.type(shorter - length) * steps[free]
            length = shorter
        fall, value = value - found, found
        kept = [*kept, free][-history:]
        if callback is not None:
            callback(value)
        if fall <= tolerance * abs(value):
            return value, iteration + 1
    return value, iterations


def _compare(steps, changes, gradient, scale, kept, length, part) -> np.ndarray:
    """Ends the newest step, in a part of the vectors, and returns its inner products (5, m).

    The newest of the kept rows of steps is a direction, which is multiplied by the length taken,
    and of changes the gradient before it, which becomes the difference. With the newest s, y and
    the gradient g these are s_k . y, s . y_k, y_k . y, s_k . g and y_k . g, where the products of y
    and y or g have the weights `scale`.
    """
    newest, gradient = kept[-1], gradient[part]
    steps[newest, part] *= length
    np.subtract(gradient, changes[newest, part], out=changes[newest, part])
    found = np.empty((5, len(kept)))
    for k, row in enumerate(kept):
        step, change = steps[row, part], changes[row, part]
        weighted = change * scale[part]
        pairs = [
            (step, changes[newest, part]),
            (steps[newest, part], change),
            (weighted, changes[newest, part]),
            (step, gradient),
            (weighted, gradient),
        ]
        # By no library of matrices, which would start threads of its own.
        found[:, k] = [np.einsum("n,n", *pair) for pair in pairs]
    return found


def _move(steps, changes, gradient, scale, kept, shares, free, length, vector, part) -> float:
    """Makes a direction in row `free` of steps, notes the gradient in that of changes, and moves
    the vector by `length` times the direction, in a part; returns direction . gradient.

    The direction is the sum over kept rows of shares[0] steps plus `scale` times that of shares[1]
    changes and shares[2, 0] gradients.
    """
    out, gradient = steps[free, part], gradient[part]
    np.multiply(gradient, shares[2, 0], out=out)
    for k, row in enumerate(kept):
        out += shares[1, k] * changes[row, part]
    out *= scale[part]
    for k, row in enumerate(kept):
        out += shares[0, k] * steps[row, part]
    changes[free, part] = gradient
    vector[part] += vector.dtype.type(length) * out
    return float(np.einsum("n,n", out, gradient))


def _shares(crossed, turned, of_steps, of_changes):
    """Shares (3, m) of steps, changes and, in the first column, the gradient in the direction.

    crossed (m, m): s_k . y_l; turned: y_k . y_l, weighted; of_steps and of_changes (m,): the
    products of s_k and y_k with the gradient.
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
