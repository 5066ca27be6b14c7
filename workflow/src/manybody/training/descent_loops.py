"""The compiled loops of `descent`: one visit to each long vector does all that is to be done."""

from manybody.data.vector_loops import SUMS
from manybody.io.compiled import njit

BLOCK = 2048  # numbers that are summed in the precision of the vectors; they stay in the cache


@njit(nogil=True, cache=True, fastmath=SUMS)
def compare(steps, changes, gradient, scale, kept, length, first, last, found):
    """Ends the newest step and adds its inner products over [first, last) to found (5, m).

    steps and changes (rows, n), of which the rows `kept` count, the newest last. The newest row of
    steps is a direction, which is multiplied by the length taken, and of changes the gradient
    before it, which becomes the difference. With the newest s, y and the gradient g, found has s_k
    . y, s . y_k, y_k . y, s_k . g and y_k . g, where the products of y and y or g have the weights
    `scale` (n,).
    """
    newest = kept[-1]
    step, change, factor = steps[newest], changes[newest], gradient.dtype.type(length)
    for start in range(first, last, BLOCK):
        stop = min(start + BLOCK, last)
        for e in range(start, stop):
            step[e] *= factor
            change[e] = gradient[e] - change[e]
        for k in range(len(kept)):
            other_step, other_change = steps[kept[k]], changes[kept[k]]
            zero = gradient.dtype.type(0)
            one, two, three, four, five = zero, zero, zero, zero, zero
            for e in range(start, stop):
                weighted = scale[e] * other_change[e]
                one += other_step[e] * change[e]
                two += step[e] * other_change[e]
                three += weighted * change[e]
                four += other_step[e] * gradient[e]
                five += weighted * gradient[e]
            found[0, k] += one
            found[1, k] += two
            found[2, k] += three
            found[3, k] += four
            found[4, k] += five


@njit(nogil=True, cache=True, fastmath=SUMS)
def move(steps, changes, gradient, scale, kept, shares, free, length, vector, first, last):
    """Makes a direction in row `free` of steps, notes the gradient in that of changes, and moves
    `vector` by `length` times the direction, over [first, last).

    The direction is the sum over kept rows of shares[0] steps plus `scale` times that of shares[1]
    changes and shares[2, 0] gradients. Returns its inner product with the gradient.
    """
    slope, out, noted = 0.0, steps[free], changes[free]
    factor, own = gradient.dtype.type(length), gradient.dtype.type(shares[2, 0])
    for start in range(first, last, BLOCK):
        stop = min(start + BLOCK, last)
        for e in range(start, stop):
            out[e] = own * gradient[e]
        for k in range(len(kept)):
            other, share = changes[kept[k]], gradient.dtype.type(shares[1, k])
            for e in range(start, stop):
                out[e] += share * other[e]
        for e in range(start, stop):
            out[e] *= scale[e]
        for k in range(len(kept)):
            other, share = steps[kept[k]], gradient.dtype.type(shares[0, k])
            for e in range(start, stop):
                out[e] += share * other[e]
        part = gradient.dtype.type(0)
        for e in range(start, stop):
            part += out[e] * gradient[e]
            noted[e] = gradient[e]
            vector[e] += factor * out[e]
        slope += part
    return slope
