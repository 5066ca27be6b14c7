"""The inner loops of `factored_loss` and what they are made of: lanes.

Lanes are arithmetic on as many sequences at once as a vector of the processor is wide. An array
(rows, columns, LANES) holds the same number of `LANES` sequences next to each other, so a weight
that all of them share multiplies whole vectors, whatever |V| and L are. In compiled code `get` and
`put` move LANES numbers between an array and a vector, on which + - * / act; `add_mixed` and
`add_products` are products of small matrices that keep a tile of sums in registers. A compiler
does not find these forms in loops over a short last axis, so they are given to it as they are.

Symbols: X one-hot tokens, G values of the first layer, Z = A1 G what it gives with nothing masked;
in the copy that masks i, row k of it is Z_k - A1_ki G_i (many-body, section 4). All in one file,
since the cache of compiled loops is renewed only with the file that a loop is in.

`get`, `put` and `spread` serve `sampling.gibbs_loops` too. numba renews a function's cached machine
code when its own file changes: whoever changes these three must also change that file.
"""

import operator

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.extending import intrinsic, overload, register_model

LANES = 8
CHUNK = 64  # sequences whose gradients are summed before those of other chunks are added
WORK = 13  # arrays (L, |V|, LANES) of a group of sequences
HEIGHT, WIDTH = 2, 5  # of a tile: its sums, one row of operands and a weight fit in 16 registers
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
        array, *place = arguments
        array = context.make_array(signature.args[0])(context, builder, array)
        return _load(context, builder, array, context.get_value_type(kind), *place)

    return kind(array, types.intp, types.intp), generate


@intrinsic
def put(typing, array, row, column, lanes):
    """array[row, column, :] = lanes"""

    def generate(context, builder, signature, arguments):
        array, *place, lanes = arguments
        array = context.make_array(signature.args[0])(context, builder, array)
        _store(context, builder, array, lanes, *place)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp, lanes), generate


@intrinsic
def spread(typing, array, number):
    """Lanes that all hold `number`, of the kind of `array`."""
    kind = Lanes(array.dtype)

    def generate(context, builder, signature, arguments):
        number = context.cast(builder, arguments[1], signature.args[1], kind.dtype)
        return _spread(builder, number)

    return kind(array, number), generate


def _arithmetic(name, instruction):
    @intrinsic
    def of_lanes(typing, first, second):
        kind = first if isinstance(first, Lanes) else second

        def generate(context, builder, signature, arguments):
            values = [
                value
                if isinstance(given, Lanes)
                else _spread(builder, context.cast(builder, value, given, kind.dtype))
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
        exponent = builder.add(
            builder.fptosi(arguments[0], whole), ir.Constant(whole, [bias] * LANES)
        )
        shifted = builder.shl(exponent, ir.Constant(whole, [mantissa] * LANES))
        return builder.bitcast(shifted, arguments[0].type)

    return lanes(lanes), generate


def _constants(dtype):
    """Of exp: terms of its series, the least argument, a number that rounds, ln 2 in two parts."""
    single = dtype == types.float32
    kind = np.float32 if single else np.float64
    high = kind(0.693359375)
    rounding = kind(1.5 * 2.0 ** (23 if single else 52))
    return (
        7 if single else 13,
        kind(-87.0 if single else -708.0),
        rounding,
        kind(1 / np.log(2)),
        high,
        kind(np.log(np.longdouble(2)) - np.longdouble(high)),
    )


def exponential(array, lanes):
    """exp of lanes <= 0, no less than the least normal number; what is no number stays none."""
    raise NotImplementedError


@overload(exponential)
def _exponential(array, lanes):
    terms, least, rounding, inverse, high, low = _constants(lanes.dtype)
    kind = type(least)
    inverses = tuple(kind(1 / n) for n in range(terms, 0, -1))

    def of_lanes(array, lanes):
        bound = spread(array, least)
        lanes = where_greater(bound, lanes, bound, lanes)
        turns = (lanes * inverse + rounding) - rounding
        rest = (lanes - turns * high) - turns * low
        total = spread(array, kind_one)
        for factor in inverses:
            total = total * (rest * factor) + kind_one
        return total * _power_of_two(turns)

    kind_one = kind(1)
    return of_lanes


def _address(context, builder, array, kind, *indices):
    """Pointer to array[indices], the axes left out at 0; no bounds are checked."""
    strides = cgutils.unpack_tuple(builder, array.strides)
    offset = context.get_constant(types.intp, 0)
    for index, stride in zip(indices, strides, strict=False):
        offset = builder.add(offset, builder.mul(index, stride))
    return cgutils.pointer_add(builder, array.data, offset, kind.as_pointer())


def _load(context, builder, array, kind, *indices):
    number = kind.element if isinstance(kind, ir.VectorType) else kind
    align = 4 if isinstance(number, ir.FloatType) else 8
    return builder.load(_address(context, builder, array, kind, *indices), align=align)


def _store(context, builder, array, lanes, *indices):
    align = 4 if isinstance(lanes.type.element, ir.FloatType) else 8
    builder.store(lanes, _address(context, builder, array, lanes.type, *indices), align=align)


def _spread(builder, number):
    empty = ir.Constant(ir.VectorType(number.type, LANES), ir.Undefined)
    first = ir.IntType(32)(0)
    places = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(builder.insert_element(empty, number, first), empty, places)


@intrinsic(prefer_literal=True)
def _tile(typing, first, second, out, turned, row, column, height, width, weighted):
    """out[row + r, column + c] += sum over m of products, for r < height and c < width.

    weighted 1: first[row + r, m] * second[m, column + c], a weight times lanes.
    weighted 0: first[row + r, m] * second[column + c, m], lanes times lanes.
    Rows and columns beyond the last are the last, done again. Where `turned` is 1, arrays of lanes
    count as transposed, but not the `out` of weighted 0. Height, width and weighted are known when
    this is compiled.
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

        def place(array, turns):
            """Address of an element or vector, by row and column."""
            strides = cgutils.unpack_tuple(builder, array.strides)[:2]
            if turns:
                strides = [
                    builder.select(turn, other, own)
                    for own, other in zip(strides, strides[::-1], strict=True)
                ]
            one = vector if array is not left or not weights else vector.element

            def address(*indices):
                steps = [
                    builder.mul(index, stride)
                    for index, stride in zip(indices, strides, strict=True)
                ]
                return cgutils.pointer_add(
                    builder, array.data, builder.add(*steps), one.as_pointer()
                )

            return address

        align = 4 if isinstance(vector.element, ir.FloatType) else 8
        of_left, of_right = place(left, not weights), place(right, True)
        of_total = place(total, weights)
        shapes = [cgutils.unpack_tuple(builder, array.shape)[:2] for array in (left, total)]
        of_rows, of_columns = shapes[1]
        if weights:
            of_rows, of_columns = (
                builder.select(turn, other, own)
                for own, other in ((of_rows, of_columns), (of_columns, of_rows))
            )

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
        short, long = shapes[0]
        count = long if weights else builder.select(turn, short, long)
        with cgutils.for_range(builder, count) as loop:
            m = loop.index
            factors = [
                builder.load(of_right(m, at) if weights else of_right(at, m), align=align)
                for at in at_columns
            ]
            for r in rows:
                weight = builder.load(of_left(at_rows[r], m), align=align)
                weight = _spread(builder, weight) if weights else weight
                for c in columns:
                    product = builder.fmul(weight, factors[c], flags=_FLAGS)
                    more = builder.fadd(builder.load(sums[r, c]), product, flags=_FLAGS)
                    builder.store(more, sums[r, c])
        for (r, c), held in sums.items():
            pointer = of_total(at_rows[r], at_columns[c])
            builder.store(builder.load(held), pointer, align=align)
        return context.get_dummy_value()

    integer = types.intp
    given = (first, second, out, integer, integer, integer, height, width, weighted)
    return types.void(*given), generate


@njit(nogil=True, cache=True)
def add_mixed(weights, rows, out, turned):
    """out (m, c, LANES) += weights (m, k) @ rows (k, c, LANES); `turned`: both are transposed."""
    columns = out.shape[0] if turned else out.shape[1]
    for column in range(0, columns, WIDTH):
        for row in range(0, len(weights), HEIGHT):
            _tile(weights, rows, out, turned, row, column, HEIGHT, WIDTH, 1)


@njit(nogil=True, cache=True)
def add_mixed_column(weights, rows, out, column):
    """out (c, m, LANES) += the same for one column, of transposed `rows` (c, k, LANES)."""
    for row in range(0, len(weights), WIDTH):
        _tile(weights, rows, out, 1, row, column, WIDTH, 1, 1)


@njit(nogil=True, cache=True)
def add_products(left, right, out, turned):
    """out (m, k, LANES) += sum over c of left (m, c, LANES) * right (k, c, LANES), lane by lane.

    `turned`: left and right are transposed.
    """
    for column in range(0, out.shape[1], WIDTH):
        for row in range(0, len(out), HEIGHT):
            _tile(left, right, out, turned, row, column, HEIGHT, WIDTH, 0)


@njit(nogil=True, cache=True)
def clear(array):
    """array (rows, columns, LANES) = 0"""
    zero = spread(array, 0.0)
    for row in range(array.shape[0]):
        for column in range(array.shape[1]):
            put(array, row, column, zero)


@njit(nogil=True, cache=True)
def do_chunks(
    first, last, gradients, tokens, weights, mixing, mixing_t, values, values_t, bias, squares,
    loss, correct, of_mixing, of_values, of_bias, of_squares,
    work, scores, lanes_mixing, lanes_values, lanes_bias, lanes_squares, two, three,
):  # fmt: skip
    """Chunks first..last - 1 of the sequences: their losses, and their gradients by chunk.

    two, three: None, but for the one that says how many layers there are. numba leaves out what
    hangs on a None, so each depth is compiled when it is first used, in half the time of all.
    """
    layers, length, vocabulary = len(values), work.shape[1], work.shape[2]
    x, features, errors, of_features = work[0], work[1], work[2], work[3]
    arrays = (
        work[4], work[5], work[6], work[7], work[8], work[9], work[10], work[11], work[12]
    )  # fmt: skip
    last_v, last_vt = values[layers - 1], values_t[layers - 1]
    for chunk in range(first, last):
        stop = min(len(tokens), (chunk + 1) * CHUNK)
        for layer in range(len(mixing)):
            clear(lanes_mixing[layer])
        for layer in range(layers):
            clear(lanes_values[layer])
        clear(lanes_bias)
        clear(lanes_squares)
        for start in range(chunk * CHUNK, stop, LANES):
            _read(tokens, weights, start, stop, x, scores)
            if two is not None:
                _two_layers(
                    gradients, x, scores, mixing, mixing_t, values, values_t, bias, squares,
                    features, errors, of_features, arrays, lanes_mixing, lanes_values,
                    lanes_squares,
                )  # fmt: skip
            elif three is not None:
                _three_layers(
                    gradients, x, scores, mixing, mixing_t, values, values_t, bias, features,
                    errors, of_features, arrays, lanes_mixing, lanes_values,
                )  # fmt: skip
            else:
                clear(features)
                add_mixed(mixing[0], x, features, 0)
                for i in range(length):
                    _predict(
                        i, gradients, x, scores, last_v, last_vt, bias, features, errors,
                        of_features,
                    )  # fmt: skip
                if gradients:
                    add_products(of_features, x, lanes_mixing[0], 0)
            if gradients:
                add_products(errors, features, lanes_values[layers - 1], 1)
                for i in range(length):
                    for a in range(vocabulary):
                        put(lanes_bias, 0, a, get(lanes_bias, 0, a) + get(errors, i, a))
            for lane in range(min(LANES, stop - start)):
                for i in range(length):
                    loss[start + lane, i] = np.log(scores[2, i, lane]) + scores[0, i, lane]
                    correct[start + lane, i] = scores[1, i, lane] > 0
        if gradients:
            for layer in range(len(mixing)):
                _sum_lanes(lanes_mixing[layer], of_mixing[chunk, layer])
            for layer in range(layers):
                _sum_lanes(lanes_values[layer], of_values[chunk, layer])
            _sum_lanes(lanes_bias, of_bias[chunk])
            _sum_lanes(lanes_squares, of_squares[chunk])


@njit(nogil=True, cache=True)
def _read(tokens, weights, start, stop, x, scores):
    """One-hot tokens and weights of LANES sequences; those beyond the end weigh nothing."""
    clear(x)
    for lane in range(LANES):
        place = min(start + lane, stop - 1)
        for i in range(len(x)):
            x[i, tokens[place, i], lane] = 1
            scores[0, i, lane] = weights[place, i] if start + lane < stop else 0


@njit(nogil=True, cache=True)
def _two_layers(
    gradients, x, scores, mixing, mixing_t, values, values_t, bias, squares, features, errors,
    of_features, arrays, lanes_mixing, lanes_values, lanes_squares,
):  # fmt: skip
    """Equation 7 of many-body: nothing is done once per copy."""
    length, vocabulary, _ = x.shape
    first, z, of_z, of_first, inputs, crossed, of_crossed, of_inputs, _ = arrays
    last_v, last_vt, lanes_last = values[1], values_t[1], lanes_mixing[1]
    clear(first)
    clear(z)
    clear(features)
    clear(crossed)
    add_mixed(values[0], x, first, 1)
    add_mixed(mixing[0], first, z, 0)
    for k in range(length):
        for a in range(vocabulary):
            put(inputs, k, a, get(z, k, a) * get(z, k, a) + get(x, k, a))
    add_mixed(mixing[1], inputs, features, 0)
    add_mixed(mixing[2], z, crossed, 0)
    for i in range(length):
        own, square = mixing[1, i, i], squares[0, i]
        for a in range(vocabulary):
            v = get(first, i, a)
            more = v * (v * square - (get(crossed, i, a) + get(crossed, i, a)))
            put(features, i, a, get(features, i, a) + (more - get(x, i, a) * own))
        _predict(
            i, gradients, x, scores, last_v, last_vt, bias, features, errors, of_features
        )  # fmt: skip
    if not gradients:
        return
    add_products(of_features, inputs, lanes_last, 0)
    clear(of_inputs)
    add_mixed(mixing_t[1], of_features, of_inputs, 0)
    for i in range(length):
        square = squares[0, i]
        of_own, of_square = get(lanes_last, i, i), get(lanes_squares, 0, i)
        for a in range(vocabulary):
            g, v = get(of_features, i, a), get(first, i, a)
            of_own = of_own - g * get(x, i, a)
            of_square = of_square + g * (v * v)
            half = g * (v * square - get(crossed, i, a))
            put(of_first, i, a, half + half)
            put(of_crossed, i, a, (g + g) * (v * -1.0))
            half = get(of_inputs, i, a) * get(z, i, a)
            put(of_z, i, a, half + half)
        put(lanes_last, i, i, of_own)
        put(lanes_squares, 0, i, of_square)
    add_products(of_crossed, z, lanes_mixing[2], 0)
    add_mixed(mixing_t[2], of_crossed, of_z, 0)
    _first_layer_back(
        x, mixing_t[0], first, of_z, of_first, lanes_mixing[0], lanes_values[0]
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _three_layers(
    gradients, x, scores, mixing, mixing_t, values, values_t, bias, features, errors, of_features,
    arrays, lanes_mixing, lanes_values,
):  # fmt: skip
    """Copy by copy: y = (Z - A1 G_i)^2 + X, then (A2 y V2^T)^2 is added."""
    length, vocabulary, _ = x.shape
    first, z, of_z, of_first, own, y, mixed, deep, of_mixed = arrays
    first_a, second_a, third_a, second_at = mixing[0], mixing[1], mixing[2], mixing_t[1]
    second_v, second_vt, last_v, last_vt = values[1], values_t[1], values[2], values_t[2]
    lanes_first, lanes_second, lanes_third = lanes_mixing[0], lanes_mixing[1], lanes_mixing[2]
    lanes_second_v = lanes_values[1]
    clear(first)
    clear(z)
    clear(of_z)
    add_mixed(values[0], x, first, 1)
    add_mixed(first_a, first, z, 0)
    zero = spread(x, 0.0)
    for i in range(length):
        for k in range(length):
            back, kept = first_a[k, i], 0.0 if k == i else 1.0
            for a in range(vocabulary):
                value = get(z, k, a) - get(first, i, a) * back
                put(own, k, a, value)
                put(y, k, a, value * value + get(x, k, a) * kept)
                put(mixed, k, a, zero)
                put(deep, k, a, zero)
        add_mixed(second_a, y, mixed, 0)
        add_mixed(second_v, mixed, deep, 1)
        for a in range(vocabulary):
            total = zero
            for k in range(length):
                q = get(deep, k, a)
                total = total + (get(y, k, a) + q * q) * third_a[i, k]
            put(features, i, a, total)
        _predict(
            i, gradients, x, scores, last_v, last_vt, bias, features, errors, of_features
        )  # fmt: skip
        if not gradients:
            continue
        for k in range(length):
            weight, total = third_a[i, k], get(lanes_third, i, k)
            for a in range(vocabulary):
                g, q = get(of_features, i, a), get(deep, k, a)
                total = total + g * (get(y, k, a) + q * q)
                half = g * (q * weight)
                put(deep, k, a, half + half)
                put(of_mixed, k, a, zero)
            put(lanes_third, i, k, total)
        add_products(deep, mixed, lanes_second_v, 1)
        add_mixed(second_vt, deep, of_mixed, 1)
        add_products(of_mixed, y, lanes_second, 0)
        for k in range(length):
            weight = third_a[i, k]
            for a in range(vocabulary):
                put(y, k, a, get(of_features, i, a) * weight)
        add_mixed(second_at, of_mixed, y, 0)  # y holds its own gradient from here on
        for a in range(vocabulary):
            put(of_first, i, a, zero)
        for k in range(length):
            back, total = first_a[k, i], get(lanes_first, k, i)
            for a in range(vocabulary):
                half = get(y, k, a) * get(own, k, a)
                given = half + half
                put(of_z, k, a, get(of_z, k, a) + given)
                put(of_first, i, a, get(of_first, i, a) - given * back)
                total = total - given * get(first, i, a)
            put(lanes_first, k, i, total)
    if gradients:
        _first_layer_back(x, mixing_t[0], first, of_z, of_first, lanes_first, lanes_values[0])


@njit(nogil=True, cache=True)
def _first_layer_back(x, mixing_t, first, of_z, of_first, lanes_mixing, lanes_values):
    """From the gradients of Z, and of G where it is used apart from Z."""
    add_products(of_z, first, lanes_mixing, 0)
    add_mixed(mixing_t, of_z, of_first, 0)
    add_products(of_first, x, lanes_values, 1)


@njit(nogil=True, cache=True)
def _predict(
    i, gradients, x, scores, values, values_t, bias, features, errors, of_features
):  # fmt: skip
    """Copy i from its features: `errors` = weight * (softmax - X_i), and what goes to `scores`.

    scores[0], the weight of the copy, becomes the greatest logit minus the token's; the loss is
    that plus the logarithm of scores[2]. scores[1] is above 0 where the token has the greatest.
    """
    vocabulary = len(bias)
    for a in range(vocabulary):
        put(errors, i, a, spread(x, bias[a]))
    add_mixed_column(values, features, errors, i)
    zero, best = spread(x, 0.0), get(errors, i, 0)
    chosen, target = get(x, i, 0), best * get(x, i, 0)
    for a in range(1, vocabulary):
        logit, here = get(errors, i, a), get(x, i, a)
        target = target + logit * here
        chosen = where_greater(logit, best, here, chosen)
        best = where_greater(logit, best, logit, best)
    total = zero
    for a in range(vocabulary):
        share = exponential(x, get(errors, i, a) - best)
        put(errors, i, a, share)
        total = total + share
    weight = get(scores, 0, i)
    put(scores, 0, i, best - target)
    put(scores, 1, i, chosen)
    put(scores, 2, i, total)
    if gradients:
        scale = weight / total
        for a in range(vocabulary):
            put(errors, i, a, get(errors, i, a) * scale - get(x, i, a) * weight)
            put(of_features, i, a, zero)
        add_mixed_column(values_t, errors, of_features, i)


@njit(nogil=True, cache=True)
def _sum_lanes(lanes, out):
    """out (m, k) = the sums over lanes of (m, k, LANES), in one order."""
    for i in range(len(out)):
        for j in range(out.shape[1]):
            total = lanes[i, j, 0]
            for lane in range(1, LANES):
                total += lanes[i, j, lane]
            out[i, j] = total
