"""Lanes: arithmetic on as many sequences at once as a vector of the processor is wide.

An array (rows, columns, LANES) holds the same number of `LANES` sequences next to each other, so a
weight that all of them share multiplies whole vectors. In compiled code `get` and `put` move LANES
numbers between an array and a vector, on which + - * / act; `add_mixed` and `add_products` are
products of small matrices that keep a tile of sums in registers. A compiler does not find these
forms in loops over a short last axis.
"""

import operator

import numpy as np
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.extending import intrinsic, overload, register_model

from manybody.io.compiled import njit

LANES = 8
# Of a tile, whose sums, one row of operands and a weight fit in 16 registers, or in 32 where the
# processor has so many. Sums do not depend on it.
HEIGHT, WIDTH = 4 if get_host_cpu_features().get("avx512vl") else 2, 5
# Loops that make no array and keep none need not count who holds those that they are given: for
# small arrays that takes a fifth of the time.
BORROWED = {"_nrt": False}
_FLAGS = ("contract",)  # a product and a sum may become one instruction


class Lanes(types.Type):
    """LANES numbers of one kind in a register."""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        number = ir.FloatType() if kind.dtype == types.float32 else ir.DoubleType()
        super().__init__(manager, kind, ir.VectorType(number, LANES))


@intrinsic
def get(typing, array, row, column):
    """array[row, column, :]"""
    kind = Lanes(array.dtype)

    def generate(context, builder, signature, arguments):
        vector = context.get_value_type(kind)
        place = _address(context, builder, signature.args[0], vector, *arguments)
        return builder.load(place, align=context.get_abi_sizeof(vector.element))

    return kind(array, types.intp, types.intp), generate


@intrinsic
def put(typing, array, row, column, lanes):
    """array[row, column, :] = lanes"""

    def generate(context, builder, signature, arguments):
        *place, lanes = arguments
        place = _address(context, builder, signature.args[0], lanes.type, *place)
        builder.store(lanes, place, align=context.get_abi_sizeof(lanes.type.element))
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, lanes), generate


@intrinsic
def spread(typing, array, number):
    """Lanes that all hold `number`, of the kind of `array`."""
    kind = Lanes(array.dtype)

    def generate(context, builder, signature, arguments):
        number = context.cast(builder, arguments[1], signature.args[1], kind.dtype)
        return broadcast(builder, number)

    return kind(array, number), generate


def _arithmetic(name, instruction):
    @intrinsic
    def of_lanes(typing, first, second):
        kind = first if isinstance(first, Lanes) else second

        def generate(context, builder, signature, arguments):
            values = [
                value
                if isinstance(given, Lanes)
                else broadcast(builder, context.cast(builder, value, given, kind.dtype))
                for given, value in zip(signature.args, arguments, strict=True)
            ]
            return getattr(builder, instruction)(*values, flags=_FLAGS)

        return kind(first, second), generate

    @overload(name)
    def operate(first, second):
        if isinstance(first, Lanes) or isinstance(second, Lanes):
            return lambda first, second: of_lanes(first, second)
        return None


_arithmetic(operator.add, "fadd")
_arithmetic(operator.sub, "fsub")
_arithmetic(operator.mul, "fmul")
_arithmetic(operator.truediv, "fdiv")


@intrinsic
def where_greater(typing, first, second, chosen, other):
    """`chosen` in the lanes where first > second, `other` elsewhere and where one is no number."""

    def generate(context, builder, signature, arguments):
        first, second, chosen, other = arguments
        return builder.select(builder.fcmp_ordered(">", first, second), chosen, other)

    return chosen(first, second, chosen, other), generate


@intrinsic
def _power_of_two(typing, lanes):
    """2^n of lanes that hold whole numbers n, by the exponent bits of the number."""
    bits, mantissa, bias = (32, 23, 127) if lanes.dtype == types.float32 else (64, 52, 1023)

    def generate(context, builder, signature, arguments):
        whole = ir.VectorType(ir.IntType(bits), LANES)
        number = builder.fptosi(arguments[0], whole)
        exponent = builder.add(number, ir.Constant(whole, [bias] * LANES))
        shifted = builder.shl(exponent, ir.Constant(whole, [mantissa] * LANES))
        return builder.bitcast(shifted, arguments[0].type)

    return lanes(lanes), generate


def exponential(array, lanes):
    """exp of lanes <= 0, no less than the least normal number; what is no number stays none."""
    raise NotImplementedError


@overload(exponential)
def _exponential(array, lanes):
    # Terms of the series, least argument, a rounder, and ln 2 in two parts.
    kind, terms, least, bits = np.float64, 13, np.float64(-708.0), 52
    if lanes.dtype == types.float32:
        kind, terms, least, bits = np.float32, 7, np.float32(-87.0), 23
    rounding, inverse = kind(1.5 * 2.0**bits), kind(1 / np.log(2))
    high = kind(0.693359375)
    low = kind(np.log(np.longdouble(2)) - np.longdouble(high))
    inverses, kind_one = tuple(kind(1 / n) for n in range(terms, 0, -1)), kind(1)

    def of_lanes(array, lanes):
        bound = spread(array, least)
        lanes = where_greater(bound, lanes, bound, lanes)
        turns = (lanes * inverse + rounding) - rounding
        rest = (lanes - turns * high) - turns * low
        total = spread(array, kind_one)
        for factor in inverses:
            total = total * (rest * factor) + kind_one
        return total * _power_of_two(turns)

    return of_lanes


def _address(context, builder, given, kind, array, *indices):
    """Pointer to array[indices], the axes left out at 0; no bounds are checked."""
    array = context.make_array(given)(context, builder, array)
    strides = cgutils.unpack_tuple(builder, array.strides)
    if given.layout == "C" and given.ndim == 3:  # what a compiler knows needs no register
        size = context.get_abi_sizeof(context.get_data_type(given.dtype))
        strides[1] = context.get_constant(types.intp, LANES * size)
    offset = context.get_constant(types.intp, 0)
    for index, stride in zip(indices, strides, strict=False):
        offset = builder.add(offset, builder.mul(index, stride))
    return cgutils.pointer_add(builder, array.data, offset, kind.as_pointer())


def broadcast(builder, number):
    """A vector of the processor whose lanes all hold `number`."""
    empty = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
    first = builder.insert_element(empty, number, ir.IntType(32)(0))
    return builder.shuffle_vector(first, empty, lanes_at([0] * LANES))


def lanes_at(numbers):
    """Numbers of lanes as a constant, for a shuffle."""
    return ir.Constant(ir.VectorType(ir.IntType(32), len(numbers)), list(numbers))


def folded(builder, lanes, combine):
    """One number of lanes, by `combine` of two vectors, in an order that no compiler may change."""
    size = LANES
    while size > 1:
        size //= 2
        low = builder.shuffle_vector(lanes, lanes, lanes_at(range(size)))
        high = builder.shuffle_vector(lanes, lanes, lanes_at(range(size, 2 * size)))
        lanes = combine(low, high)
    return builder.extract_element(lanes, ir.IntType(32)(0))


@intrinsic(prefer_literal=True)
def _tile(typing, first, second, out, turned, row, column, height, width, weighted):
    """out[row + r, column + c] += sum over m of products, for r < height and c < width.

    weighted 1: first[row + r, m] * second[m, column + c], a weight times lanes.
    weighted 0: first[row + r, m] * second[column + c, m], lanes times lanes.
    Rows and columns beyond the last are the last, done again. Where `turned` is 1, arrays of lanes
    count as transposed, but not the `out` of weighted 0. Height, width and weighted are literals.
    """
    rows, columns = range(height.literal_value), range(width.literal_value)
    weights = bool(weighted.literal_value)
    kind = Lanes(out.dtype)

    def generate(context, builder, signature, arguments):
        left, right, total = (
            context.make_array(array)(context, builder, argument)
            for array, argument in zip(signature.args[:3], arguments[:3], strict=True)
        )
        vector = context.get_value_type(kind)
        turn = builder.icmp_signed("!=", arguments[3], arguments[3].type(0))

        def exchanged(own, other):
            """Two numbers, the other way around where `turned` is 1."""
            return builder.select(turn, other, own), builder.select(turn, own, other)

        def place(array, turns):
            """Address of an element or vector, by row and column."""
            strides = cgutils.unpack_tuple(builder, array.strides)[:2]
            by_row, by_column = exchanged(*strides) if turns else strides
            one = vector.element if array is left and weights else vector

            def address(row, column):
                step = builder.add(builder.mul(row, by_row), builder.mul(column, by_column))
                return cgutils.pointer_add(builder, array.data, step, one.as_pointer())

            return address

        align = context.get_abi_sizeof(vector.element)
        of_left, of_right = place(left, not weights), place(right, True)
        of_total = place(total, weights)
        shape = cgutils.unpack_tuple(builder, total.shape)[:2]
        of_rows, of_columns = exchanged(*shape) if weights else shape

        def places(first, size, limit):
            last = builder.sub(limit, limit.type(1))
            for step in range(size):
                place = builder.add(first, limit.type(step))
                beyond = builder.icmp_signed(">", place, last)
                yield builder.select(beyond, last, place)

        at_rows = list(places(arguments[4], len(rows), of_rows))
        at_columns = list(places(arguments[5], len(columns), of_columns))
        sums = {}
        for r in rows:
            for c in columns:
                sums[r, c] = cgutils.alloca_once(builder, vector)
                start = builder.load(of_total(at_rows[r], at_columns[c]), align=align)
                builder.store(start, sums[r, c])
        short, long = cgutils.unpack_tuple(builder, left.shape)[:2]
        count = long if weights else builder.select(turn, short, long)
        with cgutils.for_range(builder, count) as loop:
            m = loop.index
            factors = [
                builder.load(of_right(m, at) if weights else of_right(at, m), align=align)
                for at in at_columns
            ]
            for r in rows:
                weight = builder.load(of_left(at_rows[r], m), align=align)
                weight = broadcast(builder, weight) if weights else weight
                for c in columns:
                    product = builder.fmul(weight, factors[c], flags=_FLAGS)
                    more = builder.fadd(builder.load(sums[r, c]), product, flags=_FLAGS)
                    builder.store(more, sums[r, c])
        for (r, c), held in sums.items():
            builder.store(builder.load(held), of_total(at_rows[r], at_columns[c]), align=align)
        return context.get_dummy_value()

    integer = types.intp
    given = (first, second, out, integer, integer, integer, height, width, weighted)
    return types.void(*given), generate


@njit(nogil=True, cache=True, **BORROWED)
def add_mixed(weights, rows, out, turned):
    """out (m, c, LANES) += weights (m, k) @ rows (k, c, LANES); `turned`: both are transposed."""
    columns = out.shape[0] if turned else out.shape[1]
    for column in range(0, columns, WIDTH):
        for row in range(0, len(weights), HEIGHT):
            _tile(weights, rows, out, turned, row, column, HEIGHT, WIDTH, 1)


@njit(nogil=True, cache=True, **BORROWED)
def add_mixed_column(weights, rows, out, column):
    """out (c, m, LANES) += the same for one column, of transposed `rows` (c, k, LANES)."""
    for row in range(0, len(weights), WIDTH):
        _tile(weights, rows, out, 1, row, column, WIDTH, 1, 1)


@njit(nogil=True, cache=True, **BORROWED)
def add_products(left, right, out, turned):
    """out (m, k, LANES) += sum over c of left (m, c, LANES) * right (k, c, LANES), lane by lane;
    `turned`: left and right are transposed."""
    for column in range(0, out.shape[1], WIDTH):
        for row in range(0, len(out), HEIGHT):
            _tile(left, right, out, turned, row, column, HEIGHT, WIDTH, 0)


@njit(nogil=True, cache=True, **BORROWED)
def clear(array):
    """array (rows, columns, LANES) = 0"""
    zero = spread(array, 0.0)
    for row in range(array.shape[0]):
        for column in range(array.shape[1]):
            put(array, row, column, zero)


# Sums may be regrouped (by the compiler, once) so that they use vector instructions.
SUMS = {"reassoc", "contract", "nsz"}


@njit(fastmath=SUMS, nogil=True, cache=True, forceinline=True)
def add_rows(total, weights, rows):
    """total (d) += weights (m) @ rows (m, d), four rows at a time."""
    count = len(weights)
    done = count - count % 4
    for q in range(0, done, 4):
        w0, w1, w2, w3 = weights[q], weights[q + 1], weights[q + 2], weights[q + 3]
        for y in range(len(total)):
            total[y] += (w0 * rows[q, y] + w1 * rows[q + 1, y]) + (
                w2 * rows[q + 2, y] + w3 * rows[q + 3, y]
            )
    for q in range(done, count):
        for y in range(len(total)):
            total[y] += weights[q] * rows[q, y]
