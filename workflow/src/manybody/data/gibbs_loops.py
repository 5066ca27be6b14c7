"""The compiled loops of `gibbs`.

A chain keeps the logits of all its sites and colours, so that a visit looks at |V| numbers. Only
where it changes a colour, c to c', do the logits of the other sites i move:

    logit_i(a) += sum_b (u_{c' a b} - u_{c a b}) R_b(i),   R_b(i) = sum_{t in b} k! J_{j t i}

with j the site visited, t the (k-2)-subsets of the other sites, b their colours in any order and
u = -beta U. So J is summed by colours for all i at once, in rows that a processor adds as vectors,
and bins b that hold no subset, or that U couples to neither colour, are left out. A chunk of chains
visits a site together: they share the rows of J, which stay in cache.

In what follows `model` is what `gibbs.prepare` returns; a site with no colour has colour |V|:
  weights   (L, T, G, LANES) float32, k! J_jti, subsets t of the sites other than j in lexicographic
            order, sites i in G vectors, with zeros beyond the last
  prefixes  uint32, bin of k-2 colours, the number of bins where U needs none: (|V|+1, |V|+1), or
            (1, |V|+1) for k = 3 and (1, 1) for k = 2
  wanted    (|V|+1, bins+1) uint8, 1 where U couples a colour to a bin
  meets     (|V|+1, |V|+1) uint8, 1 where U couples a colour to a bin with the second colour
  table     (|V|+1, |V|, B, LANES) float32, u_{cab}, three empty bins or more at the end; no colour,
            no coupling
and `vectors` a tuple of G numbers: its length is known when loops are compiled, so that they need
no loop over the vectors of a row.
"""

import math

import numpy as np

from manybody.data.vector_loops import BORROWED, clear, get, put, spread
from manybody.io.compiled import njit

CHUNK = 32  # chains that move together; their logits and the rows of J of a site fit into cache
RENEWAL = 16  # sweeps after which logits are summed anew, so that rounding does not build up
# A product and a sum may become one instruction; the order of sums stays as written.
_FLAGS = {"contract", "nsz"}
ROUND = np.float32(1.5 * 2**23)  # adding it rounds to a whole number
INVERSE_LN2 = np.float32(1 / np.log(2))
_SERIES = tuple(np.float32(1 / math.factorial(n)) for n in range(7, -1, -1))
LN2_HIGH = np.float32(0.693359375)  # ln 2 in two parts, the first short enough for exact products
LN2_LOW = np.float32(np.log(2) - 0.693359375)


@njit(nogil=True, cache=True)
def sample_chains(tokens, states, changes, order, vectors, model, uniform):
    """Moves chains from uniform colours, or from `tokens` (n, L) unless `uniform`, by
    changes.shape[1] sweeps to new `tokens`; counts changed colours in `changes` (n, sweeps).

    states: (n, 4), of the random numbers; n <= CHUNK. Places without a chain are drawn for too, as
    a compiler may treat the last places of an array in another way.
    """
    (count, sites), vocabulary = tokens.shape, model[4].shape[1]
    words, uniforms = np.zeros((4, CHUNK), np.uint64), np.empty(CHUNK, np.float32)
    # Numbers one by one: compiling what numpy says of shapes that do not fit takes seconds.
    for n in range(count):
        for word in range(4):
            words[word, n] = states[n, word]
    chains = np.zeros((CHUNK, sites), np.uint32)
    for i in range(sites):
        draw_uniforms(words, uniforms)
        for n in range(count):
            chains[n, i] = int(uniforms[n] * vocabulary) if uniform else tokens[n, i]
    logits = np.zeros((CHUNK, vocabulary, *model[0].shape[2:]), np.float32)
    by_site = logits.reshape(CHUNK, vocabulary, -1)
    gathered = np.zeros((vocabulary, CHUNK), np.float32)
    drawn = np.zeros(CHUNK, np.uint32)
    work = buffers(model)
    for sweep in range(changes.shape[1]):
        if sweep % RENEWAL == 0:
            for n in range(count):
                initial_logits(chains[n], order, vectors, model, work, logits[n])
        for i in range(sites):
            for n in range(count):
                for a in range(vocabulary):
                    gathered[a, n] = by_site[n, a, i]
            draw_uniforms(words, uniforms)
            draw_colours(gathered, uniforms, drawn)
            for n in range(count):
                if drawn[n] != chains[n, i]:
                    move_logits(i, chains[n], drawn[n], order, vectors, model, work, logits[n])
                    chains[n, i] = drawn[n]
                    changes[n, sweep] += 1
    for n in range(count):
        for i in range(sites):
            tokens[n, i] = chains[n, i]


@njit(nogil=True, cache=True)
def buffers(model):
    """Work arrays of `move_logits`, of which `sums` and `held` are zero before and after it."""
    weights, table = model[0], model[4]
    (sites, _, groups, lanes), bins = weights.shape, model[2].shape[1] - 1
    sums = np.zeros((bins + 3, groups, lanes), np.float32)  # three more: see `fold`
    held = np.zeros(bins, np.uint8)
    listed = np.empty(bins + 3, np.uint32)
    steps = np.zeros(table.shape[1:], np.float32)
    return sums, held, listed, steps, np.empty(sites - 1, np.uint32), np.empty(bins + 1, np.uint8)


@njit(nogil=True, cache=True)
def initial_logits(chain, order, vectors, model, work, logits):
    """Sets `logits` (|V|, G, LANES), as if the sites got their colours one after another."""
    partial = np.full(len(chain), model[4].shape[1], np.uint32)
    clear(logits)
    for i in range(len(chain)):
        move_logits(i, partial, chain[i], order, vectors, model, work, logits)
        partial[i] = chain[i]


@njit(nogil=True, cache=True, **BORROWED)
def move_logits(site, chain, new, order, vectors, model, work, logits):
    """Moves `logits` (|V|, G, LANES) to where they are with colour `new` at a site of `chain`."""
    weights, prefixes, wanted, meets, table = model
    sums, held, listed, steps, others, needs = work
    old = chain[site]
    for j in range(len(others)):
        others[j] = chain[j + (j >= site)]
    for b in range(len(needs)):
        needs[b] = wanted[old, b] | wanted[new, b]
    pair, rows = 0, weights[site]
    if order == 2:
        add_row(sums, 0, rows, 0, vectors)
        held[0] = 1
    elif order == 3:
        for j in range(len(others)):
            b = prefixes[0, others[j]]
            if needs[b]:
                add_row(sums, b, rows, j, vectors)
                held[b] = 1
    else:
        for j in range(len(others)):
            c = others[j]
            if meets[old, c] | meets[new, c]:
                for k in range(j + 1, len(others)):
                    b = prefixes[c, others[k]]
                    if needs[b]:
                        add_row(sums, b, rows, pair + k - j - 1, vectors)
                        held[b] = 1
            pair += len(others) - j - 1
    one, other = table[new], table[old]
    for a in range(len(steps)):
        for column in range(steps.shape[1]):
            put(steps, a, column, get(one, a, column) - get(other, a, column))
    fold(sums, held, listed, steps, logits, vectors)


@njit(nogil=True, cache=True, forceinline=True)
def add_row(sums, b, rows, row, vectors):
    for g in range(len(vectors)):
        put(sums, b, g, get(sums, b, g) + get(rows, row, g))


@njit(nogil=True, cache=True, forceinline=True)
def fold(sums, held, listed, steps, logits, vectors):
    """logits[a] += sum of steps[a, b] * sums[b] over the bins held; then these are cleared.

    Bins are taken in fours, the last of which are filled up with bins that stay empty, and colours
    in fives, whose sums are held in registers.
    """
    count, bins, colours = 0, len(held), len(steps)
    shares = steps.reshape(colours, -1)
    for b in range(bins):
        listed[count] = b
        count += held[b]
        held[b] = 0
    for empty in range(3):
        listed[count + empty] = bins + empty
    fives = colours - colours % 5
    for g in range(len(vectors)):
        for a in range(0, fives, 5):
            t0, t1, t2 = get(logits, a, g), get(logits, a + 1, g), get(logits, a + 2, g)
            t3, t4 = get(logits, a + 3, g), get(logits, a + 4, g)
            for start in range(0, count, 4):
                t0 = _add_four(t0, sums, listed, start, g, shares, a)
                t1 = _add_four(t1, sums, listed, start, g, shares, a + 1)
                t2 = _add_four(t2, sums, listed, start, g, shares, a + 2)
                t3 = _add_four(t3, sums, listed, start, g, shares, a + 3)
                t4 = _add_four(t4, sums, listed, start, g, shares, a + 4)
            put(logits, a, g, t0)
            put(logits, a + 1, g, t1)
            put(logits, a + 2, g, t2)
            put(logits, a + 3, g, t3)
            put(logits, a + 4, g, t4)
        for a in range(fives, colours):
            total = get(logits, a, g)
            for start in range(0, count, 4):
                total = _add_four(total, sums, listed, start, g, shares, a)
            put(logits, a, g, total)
    zero = spread(sums, 0.0)
    for n in range(count):
        for g in range(len(vectors)):
            put(sums, listed[n], g, zero)


@njit(nogil=True, cache=True, forceinline=True)
def _add_four(total, sums, listed, start, g, shares, a):
    b0, b1, b2, b3 = listed[start], listed[start + 1], listed[start + 2], listed[start + 3]
    total = total + get(sums, b0, g) * shares[a, b0] + get(sums, b1, g) * shares[a, b1]
    return total + (get(sums, b2, g) * shares[a, b2] + get(sums, b3, g) * shares[a, b3])


@njit(fastmath=_FLAGS, nogil=True, cache=True, forceinline=True)
def draw_colours(logits, uniforms, drawn):
    """A colour for each chain from softmax of `logits` (|V|, n), by inversion of `uniforms` (n,):
    loops over chains, which a compiler turns into vector instructions."""
    vocabulary, count = logits.shape
    top = logits[0].copy()
    for a in range(1, vocabulary):
        for n in range(count):
            top[n] = max(top[n], logits[a, n])
    weights = np.empty((vocabulary, count), np.float32)
    total = np.zeros(count, np.float32)
    bits = np.empty(count, np.int32)
    powers = bits.view(np.float32)
    rest = np.empty(count, np.float32)
    for a in range(vocabulary):
        # exp(x) = 2^t exp(r): t whole, its power by the bits of a number; exp(r) as a series.
        for n in range(count):
            x = max(logits[a, n] - top[n], np.float32(-87))
            turns = (x * INVERSE_LN2 + ROUND) - ROUND
            bits[n] = (np.int32(turns) + 127) << 23
            rest[n] = (x - turns * LN2_HIGH) - turns * LN2_LOW
        for n in range(count):
            r = rest[n]
            e = _SERIES[0]
            for coefficient in _SERIES[1:]:
                e = e * r + coefficient
            total[n] += e * powers[n]
            weights[a, n] = total[n]
    for n in range(count):
        total[n] *= uniforms[n]
        drawn[n] = 0
    for a in range(vocabulary - 1):
        for n in range(count):
            drawn[n] += weights[a, n] <= total[n]


@njit(nogil=True, cache=True)
def draw_uniforms(words, uniforms):
    """Numbers in [0, 1), 24 random bits each, from xoshiro256++; moves its `words` (4, n)."""
    w0, w1, w2, w3 = words[0], words[1], words[2], words[3]
    for n in range(len(uniforms)):
        total = w0[n] + w3[n]
        result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + w0[n]
        shifted = w1[n] << np.uint64(17)
        w2[n] ^= w0[n]
        w3[n] ^= w1[n]
        w1[n] ^= w2[n]
        w0[n] ^= w3[n]
        w2[n] ^= shifted
        w3[n] = (w3[n] << np.uint64(45)) | (w3[n] >> np.uint64(19))
        uniforms[n] = np.float32(np.int32(result >> np.uint64(40))) * np.float32(2.0**-24)
