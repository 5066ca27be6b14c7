"""Raw-score chains of two-layer factored attention, by the closed form of the energy.

With G_j = V1[:, s_j], R_j = V2[s_j, :], D_j = R_j * G_j, masking j removes A1_kj G_j from row k of
W = A1 G, so that all L masked copies are known at once (docs/science/nlp-clones.md, section 7):

    -E = sum_{j != k} A2_jk V2[s_j, s_k] + sum_k S_k . W_k^2 - 2 sum_j U_j . G_j + sum_j c_j e[s_j]
    S_k = sum_j A2_jk R_j         U_i = sum_j M_ij D_j        M_ij = sum_k A1_ki A2_jk A1_kj
    c_j = sum_k A2_jk (A1_kj)^2   e[a] = V2[a, :] . V1[:, a]^2

W, S and U are linear in the one-hots: a new token adds a multiple of one table row to each of their
rows. A proposal, its acceptance ratio and its update cost O(L |V|) each. Compiled, for the CPU.
"""

import numpy as np
import torch
from torch import Tensor

from manybody.data.vector_loops import SUMS
from manybody.io.compiled import njit
from manybody.sampling.factored.copies import Parameters


class PairedChains:
    """C chains under the raw energy, each with caches of 3 L |V| doubles, which accumulate; see
    `backends.Chains`. A model in single precision is scored from a copy of them in its own, renewed
    with them, so that no error builds up."""

    full_batches = False

    def __init__(self, parameters: Parameters, tokens: Tensor, energy: str = "raw"):
        self.parameters, self.tokens = parameters, tokens.clone()
        mixing1, mixing2 = parameters.mixing
        loop = mixing1.T @ (mixing2.T * mixing1)
        sent, read = parameters.value_rows(0), parameters.score_rows()
        own = (read * sent.square()).sum(1)
        alone = (mixing2 * mixing1.T.square()).sum(1)
        self._tables = [table.contiguous() for table in (mixing1, mixing2, loop, sent, read)]
        self._alone = (alone.numpy(), own.numpy())
        self._rough = [table.to(parameters.precision) for table in self._tables]
        own_head = (parameters.right[1], parameters.left[1].T)
        self._head = [part.to(parameters.precision).contiguous() for part in own_head]
        self.rebuild()

    def rebuild(self) -> None:
        mixing1, mixing2, loop, sent_rows, read_rows = self._tables
        shape = (*self.tokens.shape, self.parameters.vocabulary)
        w, s, u = caches = tuple(sent_rows.new_empty(shape) for _ in range(3))
        for c, tokens in enumerate(self.tokens):
            sent, read = sent_rows[tokens], read_rows[tokens]
            torch.matmul(mixing1, sent, out=w[c])
            torch.matmul(mixing2.T, read, out=s[c])
            torch.matmul(loop, sent * read, out=u[c])
        copies = tuple(cache.to(self.parameters.precision) for cache in caches)

        def given(tensors):
            return tuple(map(Tensor.numpy, tensors))

        tokens, tables, rough = self.tokens.numpy(), given(self._tables), given(self._rough)
        caches, copies = given(caches), given(copies)
        mixing1, mixing2, _, sent, _ = rough
        none = mixing2[:, :0]
        coefficients = (mixing2, none, none, mixing2)
        self._for_values = (tokens, copies[0], mixing1, *coefficients, sent[0], sent)
        self._for_ratios = (tokens, *copies, *rough)
        self._for_moves = (tokens, *caches, copies, *tables)
        alone, own = self._alone
        self._for_scores = (tokens, *caches, tables[1], alone, *tables[3:], own)

    def energy(self) -> Tensor:
        scores = self._tables[0].new_empty(len(self.tokens))
        raw_scores(*self._for_scores, scores.numpy())
        return -(scores + self.parameters.score_bias[self.tokens].sum(1))

    def logits(self, chains: Tensor, positions: Tensor) -> Tensor:
        right, left = self._head
        values = left.new_empty(len(chains), self.parameters.vocabulary)
        seen(chains.numpy(), positions.numpy(), *self._for_values, values.numpy())
        if not self.parameters.full:
            values = values @ right
        return values @ left + self.parameters.bias

    def log_ratio(self, chains: Tensor, positions: Tensor, proposals: Tensor):
        handle = (chains, positions, proposals)
        ratios = self._tables[0].new_empty(len(chains))
        score_changes(*map(Tensor.numpy, handle), *self._for_ratios, ratios.numpy())
        return ratios, handle

    def accept(self, handle, accepted: Tensor) -> None:
        replace_tokens(*map(Tensor.numpy, (*handle, accepted)), *self._for_moves)


# --- The compiled loops
# One pass over rows of |V| numbers with nothing allocated: few chains are not held up by
# the cost of starting tensor operations. Arithmetic follows the type of the arrays that are read.


@njit(fastmath=SUMS, nogil=True, cache=True)
def seen(chains, positions, tokens, w, mixing1, direct, linear, square, triple, mean, g, out):
    """out (n, |V|): o of `by_order`, what value b of positions[m] (n,) in chains[m] (n,) multiplies
    by rho_b.

    tokens (C, L); w (C, L, |V|); g (|V|, |V|), mean (|V|,); the coefficients (L, L). With direct =
    triple = A2 and no others, which are then (L, 0), it is sum_k A2_ik x_k of the copy that masks
    i, where x_k is the one-hot s_k (0 for k = i) plus (W_k - A1_ki G_i)^2.
    """
    length, vocabulary = w.shape[1], w.shape[2]
    for m in range(len(chains)):
        c, i = chains[m], positions[m]
        own, total = g[tokens[c, i]], out[m]
        total[:] = 0.0
        for j in range(linear.shape[1]):
            x, y = linear[i, j], square[i, j]
            if j != i and (x != 0.0 or y != 0.0):
                row = g[tokens[c, j]]
                for v in range(vocabulary):
                    total[v] += (x * mean[v] + y * row[v]) * row[v]
        for k in range(length):
            row, back, weight = w[c, k], mixing1[k, i], triple[i, k]
            for v in range(vocabulary):
                value = row[v] - back * own[v]
                total[v] += weight * value * value
        for j in range(length):
            if j != i:
                total[tokens[c, j]] += direct[i, j]


@njit(fastmath=SUMS, nogil=True, cache=True)
def score_changes(
    chains, positions, proposals, tokens, w, s, u, mixing1, mixing2, loop, sent, read, out
):
    """out (n,): what the raw score of chains[m] rises by if positions[m] takes proposals[m]; tokens
    (C, L), caches w, s, u (C, L, |V|), mixing1, mixing2, loop (L, L), sent, read (|V|, |V|)."""
    length, vocabulary = w.shape[1], w.shape[2]
    for m in range(len(chains)):
        c, i, b = chains[m], positions[m], proposals[m]
        a = tokens[c, i]
        g_old, g_new, r_old = sent[a], sent[b], read[a]
        total = np.float64(s[c, i, b] - s[c, i, a] - mixing2[i, i] * (r_old[b] - r_old[a]))
        for k in range(length):
            own, weight, w_row, s_row = mixing1[k, i], mixing2[i, k], w[c, k], s[c, k]
            part = own - own
            for v in range(vocabulary):
                change = own * (g_new[v] - g_old[v])
                part += (s_row[v] - weight * r_old[v]) * change * (w_row[v] + w_row[v] + change)
            total += part
        u_row, own = u[c, i], loop[i, i]
        part = own - own
        for v in range(vocabulary):
            part += (g_new[v] - g_old[v]) * (u_row[v] - own * r_old[v] * g_old[v])
        out[m] = total - 2.0 * part


@njit(fastmath=SUMS, nogil=True, cache=True)
def replace_tokens(
    chains, positions, proposals, accepted, tokens, w, s, u, copies, mixing1, mixing2, loop, sent,
    read,
):  # fmt: skip
    """`copies` are what the other loops read: w, s and u themselves or in single precision."""
    length, vocabulary = w.shape[1], w.shape[2]
    w_copy, s_copy, u_copy = copies
    for m in np.flatnonzero(accepted):
        c, i, b = chains[m], positions[m], proposals[m]
        a = tokens[c, i]
        g_old, g_new, r_old, r_new = sent[a], sent[b], read[a], read[b]
        for k in range(length):
            own, weight, around = mixing1[k, i], mixing2[i, k], loop[k, i]
            for v in range(vocabulary):
                w[c, k, v] += own * (g_new[v] - g_old[v])
                w_copy[c, k, v] = w[c, k, v]
            for v in range(vocabulary):
                s[c, k, v] += weight * (r_new[v] - r_old[v])
                s_copy[c, k, v] = s[c, k, v]
            for v in range(vocabulary):
                u[c, k, v] += around * (r_new[v] * g_new[v] - r_old[v] * g_old[v])
                u_copy[c, k, v] = u[c, k, v]
        tokens[c, i] = b


@njit(fastmath=SUMS, nogil=True, cache=True)
def raw_scores(tokens, w, s, u, mixing2, alone, sent, read, own, out):
    """sum_i h_i[s_i] (C,), `own` (|V|,) weighing what a token adds by itself, biases left out."""
    count, length, vocabulary = w.shape
    for c in range(count):
        total = 0.0
        for k in range(length):
            a = tokens[c, k]
            total += s[c, k, a] - mixing2[k, k] * read[a, a] + alone[k] * own[a]
            g, part = sent[a], 0.0
            for v in range(vocabulary):
                part += s[c, k, v] * w[c, k, v] * w[c, k, v] - 2.0 * u[c, k, v] * g[v]
            total += part
        out[c] = total
