"""L-BFGS for long vectors in single precision, on several threads.

What the two loops of L-BFGS need of the vectors are their inner products; a step reads each vector
twice, once for the products and once for the direction. Sums are those of chunks, in their order,
so that a result is the same for any number of threads.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from manybody.training import descent_loops as loops

CHUNK = 2**18  # numbers that a thread takes at a time
FIRST = 0.3  # length of the first step, whose direction knows of no other number
ENOUGH = 1e-4  # share of the fall that the slope promises
SHORTEST = 1e-6  # length of a step that is no longer tried


def each(threads: int, function: Callable, parts: Iterable) -> list:
    """What function(part) returns for each part, in their order, by so many threads."""
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
    chunks = [(start, min(start + CHUNK, size)) for start in range(0, size, CHUNK)]
    gradient, kept, length = np.empty_like(vector), [], FIRST
    value = objective(vector, gradient)
    for iteration in range(iterations):
        remembered, products = np.array(kept, np.int64), np.zeros((5, len(kept)))
        if kept:
            products = _compare(
                threads, chunks, steps, changes, gradient, scale, remembered, length
            )
            newest = kept[-1]
            crossed[kept, newest], crossed[newest, kept] = products[:2]
            turned[kept, newest] = turned[newest, kept] = products[2]
            if crossed[newest, newest] <= 0:  # a step across a hill says nothing of a valley
                kept, products = kept[:-1], products[:, :-1]
                remembered = remembered[:-1]
            length = 1.0
        part = np.ix_(kept, kept)
        shares = _shares(crossed[part], turned[part], *products[3:])
        free = next(row for row in range(rows) if row not in kept)
        given = (steps, changes, gradient, scale, remembered, shares, free, length, vector)
        slope = sum(each(threads, lambda chunk, given=given: loops.move(*given, *chunk), chunks))
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


def _compare(threads, chunks, *given):
    *_, kept, _ = given

    def part(chunk):
        found = np.zeros((5, len(kept)))
        loops.compare(*given, *chunk, found)
        return found

    return sum(each(threads, part, chunks))


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
