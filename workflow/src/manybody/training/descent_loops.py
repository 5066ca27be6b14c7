"""The compiled loops of `descent`: what a step needs of long vectors, a chunk after the other.

Each chunk leaves its sums in a row of its own, so that the chunks can be shared out among threads.
"""

from manybody.data.vector_loops import SUMS
from manybody.io.compiled import njit

CHUNK = 2**12  # numbers of a vector that are taken at a time: a few such stay in the cache


@njit(nogil=True, cache=True, fastmath=SUMS)
def compare(steps, changes, gradient, scale, kept, length, found, first, last):
    """Ends the newest step in chunks `first` to `last`; inner products go to found[chunk] (4, m).

    The newest of the kept rows of steps is a direction, which is multiplied by the length taken,
    and of changes the gradient before it, which becomes the difference. With the newest y and the
    gradient g these are s_k . y, y_k . y, s_k . g and y_k . g, those of y_k weighted by `scale`.
    """
    for chunk in range(first, last):
        start, stop = chunk * CHUNK, min((chunk + 1) * CHUNK, len(gradient))
        step, change = steps[kept[-1], start:stop], changes[kept[-1], start:stop]
        slope, weights = gradient[start:stop], scale[start:stop]
        for e in range(stop - start):
            step[e] *= length
            change[e] = slope[e] - change[e]
        for k in range(len(kept)):
            _products(
                steps[kept[k], start:stop], changes[kept[k], start:stop], change, slope, weights,
                found[chunk, :, k],
            )  # fmt: skip


@njit(nogil=True, cache=True, fastmath=SUMS, forceinline=True)
def _products(step, change, newest, gradient, weights, found):
    zero = step.dtype.type(0)
    crossed, turned, of_step, of_change = zero, zero, zero, zero
    for e in range(len(step)):
        weighted = change[e] * weights[e]
        crossed += step[e] * newest[e]
        turned += weighted * newest[e]
        of_step += step[e] * gradient[e]
        of_change += weighted * gradient[e]
    found[:] = crossed, turned, of_step, of_change


@njit(nogil=True, cache=True, fastmath=SUMS)
def move(
    steps, changes, gradient, scale, kept, shares, free, length, vector, found, first, last
):  # fmt: skip
    """Makes a direction in row `free` of steps, notes the gradient in that of changes, and moves
    the vector by `length` times the direction, in the chunks from `first` to `last`; writes
    direction . gradient to found[chunk].

    The direction is the sum over kept rows of shares[0] steps plus `scale` times that of shares[1]
    changes and shares[2, 0] gradients.
    """
    for chunk in range(first, last):
        start, stop = chunk * CHUNK, min((chunk + 1) * CHUNK, len(gradient))
        out, slope, weights = steps[free, start:stop], gradient[start:stop], scale[start:stop]
        for e in range(stop - start):
            out[e] = shares[2, 0] * slope[e]
        for k in range(len(kept)):
            _add(out, shares[1, k], changes[kept[k], start:stop])
        for e in range(stop - start):
            out[e] *= weights[e]
        for k in range(len(kept)):
            _add(out, shares[0, k], steps[kept[k], start:stop])
        total, noted, moved = out.dtype.type(0), changes[free, start:stop], vector[start:stop]
        for e in range(stop - start):
            noted[e] = slope[e]
            moved[e] += length * out[e]
            total += out[e] * slope[e]
        found[chunk] = total


@njit(nogil=True, cache=True, fastmath=SUMS, forceinline=True)
def _add(out, share, row):
    for e in range(len(out)):
        out[e] += share * row[e]
