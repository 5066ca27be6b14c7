"""Chains of factored attention of three layers and more in compiled loops for a CPU.

The sums of `any_depth`, proposal by proposal in arrays that stay in cache; shapes and symbols as
there. Every step sums weighted rows: matrices are too small for a linear algebra library to pay.

Every square goes through its tables. The raw score of a proposal reads sum_k Aout_jk delta_jk . M_j
(u_jk + u'_jk) for each square, M_j as in `three_layers`, so that only accepted proposals need their
features. The norm score needs those of every proposal: what the squares give to them is summed anew
from the proposed u', so that these sums take the model's own precision and no error builds up.
"""

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from manybody.data.vector_loops import LANES, SUMS, add_mixed, add_rows
from manybody.io.compiled import njit
from manybody.models.linear import linear
from manybody.sampling import footprint
from manybody.sampling.draws import log_sums
from manybody.sampling.factored.any_depth import DeepChains, table, ways
from manybody.sampling.factored.copies import Parameters, all_copies


@njit(fastmath=SUMS, nogil=True, cache=True, forceinline=True)
def add_products(total, weights, rows):
    """total (n, d) += weights (n, m) @ rows (m, d), two by four rows at a time."""
    pairs, count = len(total) - len(total) % 2, len(rows)
    done = count - count % 4
    for k in range(0, pairs, 2):
        for q in range(0, done, 4):
            v0, v1, v2, v3 = weights[k, q], weights[k, q + 1], weights[k, q + 2], weights[k, q + 3]
            w0, w1 = weights[k + 1, q], weights[k + 1, q + 1]
            w2, w3 = weights[k + 1, q + 2], weights[k + 1, q + 3]
            for y in range(total.shape[1]):
                r0, r1, r2, r3 = rows[q, y], rows[q + 1, y], rows[q + 2, y], rows[q + 3, y]
                total[k, y] += (v0 * r0 + v1 * r1) + (v2 * r2 + v3 * r3)
                total[k + 1, y] += (w0 * r0 + w1 * r1) + (w2 * r2 + w3 * r3)
        for q in range(done, count):
            for y in range(total.shape[1]):
                total[k, y] += weights[k, q] * rows[q, y]
                total[k + 1, y] += weights[k + 1, q] * rows[q, y]
    for k in range(pairs, len(total)):
        add_rows(total[k], weights[k], rows)


@njit(nogil=True, cache=True)
def mix(weights, rows, out):
    """out (m, d) = weights (m, L) @ rows (L, d)."""
    out[:] = 0.0
    add_products(out, weights, rows)


@njit(fastmath=SUMS, nogil=True, cache=True, forceinline=True)
def dot(x, y):
    total = x[0] - x[0]
    for v in range(len(x)):
        total += x[v] * y[v]
    return total


@njit(nogil=True, cache=True, forceinline=True)
def mix_row(weights, rows, out):
    """out (d,) = weights (L,) @ rows (L, d)."""
    out[:] = 0.0
    add_rows(out, weights, rows)


@njit(nogil=True, cache=True)
def answer(step, table, tokens, sent, new, old, maps, out):
    """out (L + 2, d): beta(step, q_j) of every position, beta(step, step), and new - old."""
    mix_row(step, table, maps.reshape(len(step) ** 2))
    for j in range(len(tokens)):
        mix_row(sent[tokens[j]], maps, out[j])
    mix_row(step, maps, out[-2])
    for x in range(len(step)):
        out[-1, x] = new[x] - old[x]


@njit(nogil=True, cache=True)
def deep_changes(
    chains, positions, proposals, tokens, states, mixing, ways, factors, inputs, first, between,
    forms, outputs, outer, deltas, rises, ratios, products,
):  # fmt: skip
    """`deltas` of the input of every squared layer above the first, `rises` of the features
    without what goes through these squares.

    Tables: `first[t]` leads from the first square to the t-th layer above it, `between[s, t]` from
    the s-th of the squares above it to the t-th. With `forms`, M_a of every token and square,
    `ratios` is the rise of the raw score. Else `products` (n, L, squares, d, d'; see `square`) are
    sum_k A_jk u'_jk (x) u'_jk of the proposals, A = `outer` in the precision of `products`.
    """
    raw = len(forms) > 0
    squares, length, rank = len(states), rises.shape[1], rises.shape[2]
    kind = rises.dtype
    ratios[:] = 0.0
    step, maps = np.empty(rank, kind), np.empty((rank, rank), kind)
    along = np.empty((squares, length, rank), kind)
    across = np.empty((squares + 1, length + 2, rank), kind)
    read = np.empty((squares, length, length, rank), kind)
    both = np.empty((length, length, rank), kind)
    turned, heard = np.empty_like(both), np.empty_like(both)
    of_each = np.empty((length, rank, rank), kind)
    weighted, responses = np.empty((rank, length), kind), np.empty((length, rank), kind)
    changed = np.zeros((length, products.shape[-1]), outer.dtype)
    own = np.empty((length, rank), outer.dtype)
    for n in range(len(chains)):
        c, i, b = chains[n], positions[n], proposals[n]
        a = tokens[c, i]
        for x in range(rank):
            step[x] = inputs[0, b, x] - inputs[0, a, x]
        rise = rises[n]
        for t in range(squares + 1):
            new, old = inputs[t + 1, b], inputs[t + 1, a]
            answer(step, first[t], tokens[c], inputs[0], new, old, maps, across[t])
            mix(ways[t, i], across[t], along[t] if t < squares else rise)
        read[:] = 0.0
        for s in range(squares):
            delta, state = deltas[s, n], states[s, c]
            for j in range(length):
                for k in range(length):
                    for x in range(rank):
                        delta[j, k, x] = along[s, k, x] + factors[s, i, j, k] * across[s, j, x]
                if s:
                    add_products(delta[j], mixing[s + 1], read[s, j])
                if j == i:
                    delta[j] = 0.0
                if not raw:
                    for k in range(length):
                        for x in range(rank):
                            changed[k, x] = state[j, k, x] + delta[j, k, x]
                    square(changed, outer[j], own, products[n, j, s])
            if not raw and s + 1 == squares:
                continue
            for j in range(length):
                for k in range(length):
                    for x in range(rank):
                        both[j, k, x] = state[j, k, x] + state[j, k, x] + delta[j, k, x]
            for t in range(s + 1, squares):
                if s:
                    for j in range(length):
                        # beta of all pairs of rows of delta_j and both_j
                        forms_of(delta[j], between[s, t], of_each)
                        for k in range(length):
                            add_rows(read[t, j, k], both[j, k], of_each[k])
                    continue
                # delta_jk = along_k + factor_jk across_j: L + L forms instead of L^2.
                forms_of(along[0], between[0, t], of_each)
                for k in range(length):
                    for j in range(length):
                        turned[k, j] = both[j, k]
                    mix(turned[k], of_each[k], heard[k])
                forms_of(across[0, :length], between[0, t], of_each)
                for j in range(length):
                    mix(both[j], of_each[j], responses)
                    for k in range(length):
                        for x in range(rank):
                            read[t, j, k, x] += (
                                heard[k, j, x] + factors[0, i, j, k] * responses[k, x]
                            )
            if raw:
                gather_products(mixing[-1], delta, both, weighted, of_each)
                for j in range(length):
                    form = forms[s, tokens[c, j]]
                    ratios[n] += dot(of_each[j].reshape(rank * rank), form)
        if raw:
            for j in range(length):
                ratios[n] += dot(rise[j], outputs[tokens[c, j]])


@njit(nogil=True, cache=True)
def squares_of(chains, states, outer, products):
    """products (n, L, squares, d, d') = sum_k A_jk u_jk (x) u_jk of the states of chains (n,)."""
    length, rank = states.shape[-2:]
    rows = np.zeros((length, products.shape[-1]), outer.dtype)
    own = np.empty((length, rank), outer.dtype)
    for n in range(len(chains)):
        for j in range(length):
            for s in range(len(states)):
                for k in range(length):
                    for x in range(rank):  # not at once, which takes seconds to compile
                        rows[k, x] = states[s, chains[n], j, k, x]
                square(rows, outer[j], own, products[n, j, s])


@njit(nogil=True, cache=True)
def square(rows, weights, weighted, out):
    """out (d, d') = sum_k weights_k rows_k (x) rows_k, the rows (L, d') and so the last columns of
    `out` filled up with zeros to whole lanes; `weighted` (L, d) is work space."""
    for k in range(len(rows)):
        for x in range(len(out)):
            weighted[k, x] = weights[k] * rows[k, x]
    out[:] = 0.0
    lanes = rows.shape[1] // LANES
    by_lanes = out.reshape(len(out), lanes, LANES)
    add_mixed(weighted.T, rows.reshape(len(rows), lanes, LANES), by_lanes, 0)


@njit(nogil=True, cache=True)
def gather_products(mixing, delta, both, weighted, out):
    """out_j (d, d) = sum_k A_jk delta_jk (x) both_jk."""
    for j in range(len(out)):
        for k in range(delta.shape[1]):
            for x in range(delta.shape[2]):
                weighted[x, k] = mixing[j, k] * delta[j, k, x]
        mix(weighted, both[j], out[j])


@njit(nogil=True, cache=True)
def forms_of(vectors, table, out):
    """out (m, d, d): the matrices beta(x, .), [y, result], of vectors x (m, d)."""
    mix(vectors, table, out.reshape(len(out), table.shape[1]))


@njit(nogil=True, cache=True)
def add_direct(chains, direct, rises, features):
    """Adds direct + rises, what comes of tokens and of the first square, to features (n, L, d)."""
    for n in range(len(chains)):
        for j in range(features.shape[1]):
            for x in range(features.shape[2]):
                features[n, j, x] += direct[chains[n], j, x] + rises[n, j, x]


@njit(nogil=True, cache=True)
def norm_ratios(chains, positions, proposals, tokens, kept, logits, sums, scores, ratios):
    """Fills scores (n, L) of proposals, by logits (n, L, |V|) and the logarithms (n, L) of their
    sums of exponentials, and ratios (n,): the sum over other positions of scores less `kept`."""
    for n in range(len(chains)):
        c, i = chains[n], positions[n]
        ratios[n] = 0.0
        for j in range(scores.shape[1]):
            token = proposals[n] if j == i else tokens[c, j]
            scores[n, j] = np.float64(logits[n, j, token]) - sums[n, j]
            if j != i:
                ratios[n] += scores[n, j] - kept[c, j]


@njit(nogil=True, cache=True)
def take(chains, positions, proposals, accepted, deltas, rises, tokens, states, direct):
    """Sets tokens (C, L), states and direct to the proposals of chains (n,) that are accepted."""
    for n in np.flatnonzero(accepted):
        c = chains[n]
        tokens[c, positions[n]] = proposals[n]
        for s in range(len(states)):
            add_to(states[s, c], deltas[s, n])
        add_to(direct[c], rises[n])


@njit(nogil=True, cache=True)
def add_to(state, change):
    """state += change, both of one block."""
    state, change = state.reshape(-1), change.reshape(-1)
    for v in range(len(state)):
        state[v] += change[v]


@njit(nogil=True, cache=True)
def replace_rows(chains, accepted, rows, kept):
    """kept[chains[n]] = rows[n] where `accepted` (n,)."""
    for n in np.flatnonzero(accepted):
        old, new = kept[chains[n]].reshape(-1), rows[n].reshape(-1)
        for v in range(len(new)):
            old[v] = new[v]


class LoopedChains(DeepChains):
    """C chains under either energy; see `backends.Chains`."""

    def __init__(self, parameters: Parameters, tokens: Tensor, energy: str):
        super().__init__(parameters, tokens, energy)
        last, rank = parameters.layers - 1, parameters.rank
        between = torch.zeros(last - 1, last - 1, rank, rank**2, dtype=torch.float64)
        for layer in range(1, last):
            for target in range(layer + 1, last):
                between[layer - 1, target - 1] = table(parameters, layer, target).view(rank, -1)
        first = [table(parameters, 0, target).view(rank, -1) for target in range(1, last + 1)]
        to_output = [square.to_output for square in self.squares]
        fits = footprint.score_bytes(parameters) <= footprint.TABLES
        self.scores_first = energy == "raw" and fits
        forms, outer = between.new_empty(0, 0, rank**2), self.outer
        if self.scores_first:
            outer = outer.to(parameters.precision)  # not read: the loops are compiled for one kind
            forms = torch.stack([parameters.score_left @ squares.T for squares in to_output])
        stacks = (parameters.mixing, *self.first, parameters.right, first)
        rest = (between, forms, parameters.score_left, outer)
        self._arrays = tuple(part.numpy() for part in (*map(torch.stack, stacks), *rest))

    def _open_first(self):
        return ways(self.parameters)

    def rebuild(self) -> None:
        parameters, last = self.parameters, self.parameters.layers - 1
        self.inputs, features = all_copies(parameters, self.tokens)
        kind = parameters.precision if self.energy_name == "norm" else features.dtype
        lanes, shape = -parameters.rank % LANES, (parameters.rank, -1)
        tables = (one.to_output.unflatten(0, shape) for one in self.squares)
        to_output = torch.cat([pad(one, (0, 0, 0, lanes)) for one in tables]).flatten(0, 1)
        self.outer, self.to_output = parameters.mixing[last].to(kind), to_output.T.to(kind)
        # What the features read of tokens and of the first square alone.
        self.direct = features.clone()
        for chain in torch.arange(len(features)).split(1):
            self.direct[chain] -= self._products(chain) @ to_output
        self.features = features.to(kind)
        self.scores = self._scores(self.features, self.tokens)

    def _products(self, chains: Tensor) -> Tensor:
        """sum_k A_jk u_jk (x) u_jk (n, L, squares d d') of the current states."""
        products = self._empty(self.inputs, len(chains))
        squares_of(*map(Tensor.numpy, (chains, self.inputs, self.parameters.mixing[-1], products)))
        return products.flatten(2)

    def _empty(self, like: Tensor, count: int) -> Tensor:
        squares, _, length, _, rank = self.inputs.shape
        return like.new_empty(count, length, squares, rank, -(-rank // LANES) * LANES)

    def _propose(self, chains: Tensor, positions: Tensor, proposals: Tensor):
        moves = (chains, positions, proposals)
        if self.energy_name == "raw" and not self.scores_first:
            return super()._propose(*moves)
        (deltas, rises), ratios, products = self._run(*moves)
        if self.scores_first:
            return ratios, (*moves, None, None, deltas, rises)
        features = self._features(chains, rises, products)
        logits, scores = self._head(features), ratios.new_empty(rises.shape[:2])
        given = (*moves, self.tokens, self.scores, logits, log_sums(logits), scores, ratios)
        norm_ratios(*map(Tensor.numpy, given))
        return ratios, (*moves, features, scores, deltas, rises)

    def _changes(self, chains, tokens, positions, proposals):
        changes, _, products = self._run(chains, positions, proposals)
        return changes, self._features(chains, changes[1], products)

    def _features(self, chains: Tensor, rises: Tensor, products: Tensor) -> Tensor:
        features = linear(products, self.to_output)
        add_direct(*map(Tensor.numpy, (chains, self.direct, rises, features)))
        return features

    def _run(self, *moves: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor, Tensor]:
        """Changes of the states: of the squares' (squares, n, L, L, d) and of `direct` (n, L, d).
        Then the ratios (n,), where scores come first, or else the products (n, L, squares d d')."""
        squares, _, length, _, rank = self.inputs.shape
        deltas = self.inputs.new_empty(squares, len(moves[0]), length, length, rank)
        rises = deltas.new_empty(len(moves[0]), length, rank)
        ratios = deltas.new_empty(len(moves[0]))
        kind = torch.from_numpy(self._arrays[-1])
        products = self._empty(kind, 0 if self.scores_first else len(moves[0]))
        given, found = (*moves, self.tokens, self.inputs), (deltas, rises, ratios, products)
        deep_changes(*map(Tensor.numpy, given), *self._arrays, *map(Tensor.numpy, found))
        return (deltas, rises), ratios, products.flatten(2)

    def _take(self, accepted, *parts) -> None:
        *moves, features, scores, deltas, rises = parts
        given = (*moves, accepted, deltas, rises, self.tokens, self.inputs, self.direct)
        take(*map(Tensor.numpy, given))
        if not self.scores_first:
            for rows, kept in ((features, self.features), (scores, self.scores)):
                replace_rows(*map(Tensor.numpy, (moves[0], accepted, rows, kept)))
            return
        chains = moves[0][accepted]
        self.features[chains] = self.direct[chains] + linear(self._products(chains), self.to_output)
        self.scores[chains] = self._scores(self.features[chains], self.tokens[chains])
