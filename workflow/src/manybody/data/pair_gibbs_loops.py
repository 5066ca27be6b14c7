"""The compiled loops of `pair_gibbs`.

The weight of every colour at every site of a chain, exp(logit), is kept. When a site's colour
changes, the rows of its neighbours are multiplied by two rows of tables, so that a visit takes no
exponential; a site that keeps its colour, as most do, costs one comparison. `move_wide` keeps
logits instead, in double precision, where they are beyond what single precision holds. `scale` and
`pick` go along a row LANES numbers at a time, as no compiler finds vectors in rows this short.
"""

import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from manybody.data.vector_loops import LANES, broadcast, folded, lanes_at
from manybody.io.compiled import njit

REFRESH = 32  # sweeps after which weights are made anew, against rounding
_WHOLE, _ROW = ir.IntType(32), ir.VectorType(ir.FloatType(), LANES)
_ZERO = ir.Constant(_ROW, [0.0] * LANES)


def _array(context, builder, kind, value):
    array = context.make_array(kind)(context, builder, value)
    return array.data, cgutils.unpack_tuple(builder, array.shape)[0]


def _lanes(builder, data, start):
    return builder.bitcast(builder.gep(data, [start]), _ROW.as_pointer())


@intrinsic
def scale(typing, row, first, second):
    """row *= first * second, all (width,) float32; the sum of the new row."""

    def generate(context, builder, signature, arguments):
        given = zip(signature.args, arguments, strict=True)
        parts = [_array(context, builder, kind, value) for kind, value in given]
        width = parts[0][1]
        total = cgutils.alloca_once_value(builder, _ZERO)
        builder.store(_ZERO, total)
        with cgutils.for_range_slice(builder, width.type(0), width, width.type(LANES)) as (at, _):
            held = [_lanes(builder, data, at) for data, _ in parts]
            old, one, other = (builder.load(place, align=4) for place in held)
            # `first` and `second` before `old`: the product of a factor and a reciprocal is mild.
            new = builder.fmul(old, builder.fmul(one, other))
            builder.store(new, held[0], align=4)
            builder.store(builder.fadd(builder.load(total), new), total)
        return folded(builder, builder.load(total), builder.fadd)

    return types.float32(row, first, second), generate


@intrinsic
def pick(typing, row, left_out, target):
    """Number of partial sums of `row` (width,), its entry `left_out` as 0, that are <= target."""

    def generate(context, builder, signature, arguments):
        data, width = _array(context, builder, signature.args[0], arguments[0])
        left_out = broadcast(builder, builder.trunc(arguments[1], _WHOLE))
        target = broadcast(builder, arguments[2])
        before = cgutils.alloca_once_value(builder, _ZERO)
        count = cgutils.alloca_once_value(builder, width.type(0))
        builder.store(_ZERO, before)
        builder.store(width.type(0), count)
        with cgutils.for_range_slice(builder, width.type(0), width, width.type(LANES)) as (at, _):
            lanes = builder.load(_lanes(builder, data, at), align=4)
            start = broadcast(builder, builder.trunc(at, _WHOLE))
            numbers = builder.add(start, lanes_at(range(LANES)))
            gone = builder.icmp_signed("==", numbers, left_out)
            lanes = builder.select(gone, _ZERO, lanes)
            for step in (1, 2, 4):  # partial sums of 2, 4, then 8 neighbours
                earlier = [LANES] * step + list(range(LANES - step))
                lanes = builder.fadd(lanes, builder.shuffle_vector(lanes, _ZERO, lanes_at(earlier)))
            lanes = builder.fadd(lanes, builder.load(before))
            last = builder.shuffle_vector(lanes, lanes, lanes_at([LANES - 1] * LANES))
            builder.store(last, before)
            below = builder.bitcast(builder.fcmp_ordered("<=", lanes, target), ir.IntType(LANES))
            found = builder.zext(builder.ctpop(below), width.type)
            builder.store(builder.add(builder.load(count), found), count)
        return builder.load(count)

    return types.intp(row, types.intp, types.float32), generate


@njit(nogil=True, cache=True)
def copy(source, target):
    """target (n,) = source (n,). A slice would: but what numpy says of shapes that do not fit takes
    seconds to compile."""
    for n in range(len(source)):
        target[n] = source[n]


@njit(nogil=True, cache=True)
def move(tokens, states, changes, energies, graph, tables, colours):
    """Moves chains `tokens` (n, L) by len(changes) sweeps, sites from left to right.

    states: (n, 4) uint64, of the random numbers; they are moved on
    changes: (sweeps,) int64, to which the numbers of changed colours are added
    energies: (n, sweeps) float64, gets H after each sweep; (n, 0) for none
    graph: offsets (L + 1,), others (2 P,), pairs (2 P,) uint32: the neighbours of site i and the
        numbers of their pairs are entries offsets[i] .. offsets[i + 1]; J of them (2 P,) float64
    tables: factors and reciprocals (P, |V|, width) float32, exp(+-logit) that colour a of one site
        gives the colours of the other, 1 beyond |V|; alone (L, width), weights without neighbours,
        0 beyond |V|
    colours: (|V|, |V|) float64, U (eq. 1 of docs/science/potts.md)
    """
    offsets, others, pairs, strengths = graph
    factors, reciprocals, alone = tables
    length, vocabulary = tokens.shape[1], factors.shape[1]
    boltzmann, totals = np.empty_like(alone), np.empty(length, np.float32)
    ones = np.ones(alone.shape[1], np.float32)
    state, chain = np.empty(4, np.uint64), np.empty(length, np.uint32)
    for n in range(len(tokens)):
        copy(states[n], state)
        copy(tokens[n], chain)
        for sweep in range(len(changes)):
            if sweep % REFRESH == 0:
                refresh(chain, offsets, others, pairs, factors, alone, ones, boltzmann, totals)
            changed = 0
            for i in range(length):
                old = chain[i]
                target = single(state) * totals[i] - boltzmann[i, old]
                if target < 0:  # the old colour is the first on the line of all weights
                    continue
                new = np.uint32(min(pick(boltzmann[i], np.int64(old), target), vocabulary - 1))
                changed += new != old
                chain[i] = new
                for entry in range(offsets[i], offsets[i + 1]):
                    j, pair = others[entry], pairs[entry]
                    totals[j] = scale(boltzmann[j], factors[pair, new], reciprocals[pair, old])
            changes[sweep] += changed
            if energies.shape[1]:
                energies[n, sweep] = energy(chain, offsets, others, strengths, colours)
        copy(chain, tokens[n])
        copy(state, states[n])


@njit(nogil=True, cache=True)
def refresh(chain, offsets, others, pairs, factors, alone, ones, boltzmann, totals):
    """Weights (L, width) and their sums (L,) of one chain, from its colours alone."""
    for i in range(len(chain)):
        copy(alone[i], boltzmann[i])
        totals[i] = scale(boltzmann[i], ones, ones)
        for entry in range(offsets[i], offsets[i + 1]):
            totals[i] = scale(boltzmann[i], factors[pairs[entry], chain[others[entry]]], ones)


@njit(nogil=True, cache=True)
def move_wide(tokens, states, changes, energies, graph, coupled, colours):
    """`move` for logits of any size; `coupled` are those (|V|, |V|) which colour b of one site
    gives colour a of the other by J = 1."""
    offsets, others, _, strengths = graph
    length, vocabulary = tokens.shape[1], len(coupled)
    logits, sums = np.empty((length, vocabulary)), np.empty(vocabulary)
    state, chain = np.empty(4, np.uint64), np.empty(length, np.uint32)
    for n in range(len(tokens)):
        copy(states[n], state)
        copy(tokens[n], chain)
        for sweep in range(len(changes)):
            if sweep % REFRESH == 0:
                logits[:] = 0.0
                for i in range(length):
                    for entry in range(offsets[i], offsets[i + 1]):
                        strength, colour = strengths[entry], chain[others[entry]]
                        for a in range(vocabulary):
                            logits[i, a] += strength * coupled[a, colour]
            changed = 0
            for i in range(length):
                old, top, total = chain[i], logits[i].max(), 0.0
                for a in range(vocabulary):
                    total += math.exp(logits[i, a] - top)
                    sums[a] = total
                new = np.uint32(np.searchsorted(sums, double(state) * total, side="right"))
                new = min(new, np.uint32(vocabulary - 1))
                if new == old:
                    continue
                changed += 1
                chain[i] = new
                for entry in range(offsets[i], offsets[i + 1]):
                    row, strength = logits[others[entry]], strengths[entry]
                    for a in range(vocabulary):
                        row[a] += strength * (coupled[a, new] - coupled[a, old])
            changes[sweep] += changed
            if energies.shape[1]:
                energies[n, sweep] = energy(chain, offsets, others, strengths, colours)
        copy(chain, tokens[n])
        copy(state, states[n])


@njit(nogil=True, cache=True)
def energy(chain, offsets, others, strengths, colours):
    """H of one chain: 2 J U once for every pair."""
    total = 0.0
    for i in range(len(chain)):
        for entry in range(offsets[i], offsets[i + 1]):
            total += strengths[entry] * colours[chain[i], chain[others[entry]]]
    return total


@njit(nogil=True, cache=True)
def scatter(tokens, states, vocabulary):
    """Fills `tokens` (n, L) with uniform colours."""
    for n in range(len(tokens)):
        for i in range(tokens.shape[1]):
            tokens[n, i] = int(double(states[n]) * vocabulary)


@njit(nogil=True, cache=True)
def bits(state):
    """64 random bits from xoshiro256++; moves its `state` (4,) uint64."""
    total = state[0] + state[3]
    result = ((total << np.uint64(23)) | (total >> np.uint64(41))) + state[0]
    shifted = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = (state[3] << np.uint64(45)) | (state[3] >> np.uint64(19))
    return result


@njit(nogil=True, cache=True)
def single(state):
    """A float32 in [0, 1) with 24 random bits."""
    return np.float32(np.int64(bits(state) >> np.uint64(40))) * np.float32(2.0**-24)


@njit(nogil=True, cache=True)
def double(state):
    """A float64 in [0, 1) with 53 random bits."""
    return np.int64(bits(state) >> np.uint64(11)) * 2.0**-53
