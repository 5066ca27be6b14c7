"""Chains of factored attention of three layers and more in compiled loops for a CPU.

The sums that `any_depth` takes over tensors of many proposals, made proposal by proposal in
arrays that stay in cache; shapes and symbols as there. Every step is a sum of weighted rows: the
matrices are too small for calls of a linear algebra library to pay.

Every square goes through its tables. The raw score of a proposal reads sum_k Aout_jk delta_jk .
M_j (u_jk + u'_jk) for each square, M_j as in `three_layers`, so that only accepted proposals need
their features.
"""

import numpy as np
import torch
from torch import Tensor

from manybody.data.vector_loops import SUMS, add_rows
from manybody.io.compiled import njit
from manybody.sampling import footprint
from manybody.sampling.factored.any_depth import DeepChains, table, ways
from manybody.sampling.factored.copies import Parameters


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


@njit(nogil=True, cache=True)
def answer(step, table, tokens, sent, new, old, maps, out):
    """out (L + 2, d): beta(step, q_j) of every position, beta(step, step), and new - old."""
    maps[:] = 0.0
    add_rows(maps.reshape(len(step) ** 2), step, table)
    out[:] = 0.0
    for j in range(len(tokens)):
        add_rows(out[j], sent[tokens[j]], maps)
    add_rows(out[-2], step, maps)
    for x in range(len(step)):
        out[-1, x] = new[x] - old[x]


@njit(nogil=True, cache=True)
def deep_changes(
    chains, positions, proposals, tokens, states, mixing, ways, factors, inputs, first, to_output,
    between, forms, outputs, deltas, rises, ratios,
):  # fmt: skip
    """`deltas` of the input of every squared layer above the first, `rises` of the features.

    Tables: `first[t]` leads from the first square to the t-th layer above it, `between[s, t]` from
    the s-th of the squares above it to the t-th, `to_output[s]` to the last layer. With `forms`,
    M_a of every token and square (none for the norm energy), `ratios` is the rise of the raw score
    and `rises` lacks what `complete_rises` adds.
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
            delta = deltas[s, n]
            for j in range(length):
                for k in range(length):
                    for x in range(rank):
                        delta[j, k, x] = along[s, k, x] + factors[s, i, j, k] * across[s, j, x]
                if s:
                    add_products(delta[j], mixing[s + 1], read[s, j])
            delta[i] = 0.0
            state = states[s, c]
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
            gather_products(mixing[-1], delta, both, weighted, of_each)
            if raw:
                for j in range(length):
                    form = forms[s, tokens[c, j]]
                    ratios[n] += dot(of_each[j].reshape(rank * rank), form)
            else:
                add_products(rise, of_each.reshape(length, rank * rank), to_output[s])
        if raw:
            for j in range(length):
                ratios[n] += dot(rise[j], outputs[tokens[c, j]])


@njit(nogil=True, cache=True)
def complete_rises(chains, states, deltas, mixing, to_output, rises):
    """Adds to `rises` what goes through the squares above the first, whose input changes."""
    length, rank = rises.shape[1], rises.shape[2]
    weighted = np.empty((rank, length), rises.dtype)
    of_each = np.empty((length, rank, rank), rises.dtype)
    for n in range(len(chains)):
        for s in range(len(states)):
            both = 2.0 * states[s, chains[n]] + deltas[s, n]
            gather_products(mixing[-1], deltas[s, n], both, weighted, of_each)
            add_products(rises[n], of_each.reshape(length, rank * rank), to_output[s])


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


class LoopedChains(DeepChains):
    """C chains under either energy; see `backends.Chains`."""

    def __init__(self, parameters: Parameters, tokens: Tensor, energy: str):
        super().__init__(parameters, tokens, energy)
        last, rank = parameters.layers - 1, parameters.right[0].shape[1]
        between = torch.zeros(last - 1, last - 1, rank, rank**2, dtype=torch.float64)
        for layer in range(1, last):
            for target in range(layer + 1, last):
                between[layer - 1, target - 1] = table(parameters, layer, target).view(rank, -1)
        first = [table(parameters, 0, target).view(rank, -1) for target in range(1, last + 1)]
        to_output = [square.to_output for square in self.squares]
        self.scores_first = (
            energy == "raw" and footprint.score_bytes(parameters) <= footprint.TABLES
        )
        forms = between.new_empty(0, 0, rank**2)
        if self.scores_first:
            forms = torch.stack([parameters.score_left @ squares.T for squares in to_output])
        factors = [-way[..., : parameters.length].mT for way in self.first[:-1]]
        stacks = (parameters.mixing, self.first, factors, parameters.right, first)
        rest = (torch.stack(to_output), between, forms, parameters.score_left)
        self._arrays = tuple(part.numpy() for part in (*map(torch.stack, stacks), *rest))

    def _open_first(self):
        return ways(self.parameters)

    def _propose(self, chains: Tensor, positions: Tensor, proposals: Tensor):
        if not self.scores_first:
            return super()._propose(chains, positions, proposals)
        moves = (chains, positions, proposals)
        deltas, rises, ratios = self._run(*moves)
        return ratios, (*moves, rises, ratios, *deltas)

    def _changes(self, chains, tokens, positions, proposals):
        deltas, rises, _ = self._run(chains, positions, proposals)
        return list(deltas), rises

    def _run(self, *moves: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Changes of the states (squares, n, L, L, d) and of the features (n, L, d), and, where
        scores come first, the ratios (n,), for which those features are not completed."""
        squares, _, *shape = self.inputs.shape
        deltas = self.inputs.new_empty(squares, len(moves[0]), *shape)
        rises, ratios = deltas.new_empty(len(moves[0]), *shape[1:]), deltas.new_empty(len(moves[0]))
        given, found = (*moves, self.tokens, self.inputs), (deltas, rises, ratios)
        deep_changes(*map(Tensor.numpy, given), *self._arrays, *map(Tensor.numpy, found))
        return deltas, rises, ratios

    def _take(self, chains, positions, proposals, features, scores, *changes) -> None:
        if self.scores_first:
            mixing, *_, to_output, _, _, _ = self._arrays
            given = map(Tensor.numpy, (chains, self.inputs, torch.stack(changes)))
            complete_rises(*given, mixing, to_output, features.numpy())
            features += self.features[chains]
            tokens = self.tokens[chains].scatter(1, positions[:, None], proposals[:, None])
            scores = self._scores(features, tokens)
        super()._take(chains, positions, proposals, features, scores, *changes)
