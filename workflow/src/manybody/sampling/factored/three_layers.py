"""Raw-score chains of three-layer factored attention, in O(L^2 d + L d^2 + d^3) a proposal.

Symbols as in `any_depth`. The last square is free (docs/science/nlp-clones.md, section 7, item 2):
it scores
    sum_jk A3_jk u_jk . M_j u_jk,   M_j = P2^T diag(V3[s_j, :]) P2   (d x d, a table over tokens).

With delta_jk = p_k + gamma_jk kappa_j the score of a proposal at i changes, over j != i, by

    sum_k p_k . (2 X_k + N_k p_k) + sum_j kappa_j . (2 sum_k A3_jk gamma_jk (Mu_jk + M_j p_k)
                                                    + sum_k A3_jk gamma_jk^2 M_j kappa_j)
    Mu_jk = M_j u_jk     X_k = sum_j A3_jk Mu_jk     N_k = sum_j A3_jk M_j

with Mu, X and N kept for the current state, so that the L^2 d^2 products are made for accepted
proposals only. Compiled, for the CPU.
"""

import numpy as np
import torch
from torch import Tensor

from manybody.data.vector_loops import SUMS, add_rows
from manybody.io.compiled import njit
from manybody.sampling.factored.any_depth import table, ways
from manybody.sampling.factored.copies import Parameters, all_copies
from manybody.sampling.factored.deep_loops import answer, dot, mix, mix_row


class TripleChains:
    """C chains under the raw energy, 2 L^2 d + L d^2 doubles each; see `backends.Chains`."""

    full_batches = False

    def __init__(self, parameters: Parameters, tokens: Tensor, energy: str = "raw"):
        self.parameters, self.tokens = parameters, tokens.clone()
        rank = parameters.rank
        (to_second_layer, to_features), (factor,) = ways(parameters)  # gamma_jk is the factor
        first = (table(parameters, 0, target).view(rank, -1) for target in (1, 2))
        self._to_output = table(parameters, 1, 2).view(rank**2, rank)
        self._forms = (parameters.score_left @ self._to_output.T).view(-1, rank, rank)
        self._head = parameters.left[2].T.contiguous()
        (self._mixing,) = _given(parameters.mixing[2])
        self._changes = _given(
            factor, to_second_layer, to_features, *parameters.right, *first, parameters.score_left
        )
        self.rebuild()

    def rebuild(self) -> None:
        (u,), features = all_copies(self.parameters, self.tokens)
        count, length, _, rank = u.shape
        last = self.parameters.mixing[2]
        read, direct = torch.empty_like(u), torch.empty_like(features)
        summed, forms = torch.empty_like(features), u.new_empty(count, length, rank, rank)
        for c, tokens in enumerate(self.tokens):
            squares = self._forms[tokens]
            torch.matmul(u[c], squares, out=read[c])
            summed[c] = torch.einsum("jk,jkx->kx", last, read[c])
            forms[c] = (last.T @ squares.flatten(1)).view(length, rank, rank)
            products = ((last[..., None] * u[c]).mT @ u[c]).flatten(1)
            direct[c] = features[c] - products @ self._to_output
        self.u, self.read, self.direct = u, read, direct
        self._tokens = self.tokens.numpy()
        self._caches = _given(u, read, summed, forms, direct)

    def energy(self) -> Tensor:
        energies = torch.empty(len(self.tokens), dtype=torch.float64)
        outputs, bias = self.parameters.score_left, self.parameters.score_bias
        for c, tokens in enumerate(self.tokens):
            products = (self.u[c] * self.read[c]).sum(-1)
            direct = (self.direct[c] * outputs[tokens]).sum() + bias[tokens].sum()
            energies[c] = -((self.parameters.mixing[2] * products).sum() + direct)
        return energies

    def logits(self, chains: Tensor, positions: Tensor) -> Tensor:
        u, _, _, _, direct = self._caches
        features = self._head.new_empty(len(chains), len(self._head))
        moves, tables = (chains.numpy(), positions.numpy()), (self._mixing, self._to_output.numpy())
        masked_features(*moves, u, direct, *tables, features.numpy())
        return features @ self._head + self.parameters.bias

    def log_ratio(self, chains: Tensor, positions: Tensor, proposals: Tensor):
        moves = (chains.numpy(), positions.numpy(), proposals.numpy())
        _, length, rank = self.direct.shape
        shapes = ((len(chains), rows, rank) for rows in (length, length + 2, length))
        changes = tuple(self.direct.new_empty(shape).numpy() for shape in shapes)
        ratios = torch.empty(len(chains), dtype=torch.float64)
        tables = (self._mixing, *self._changes, self._forms.numpy())
        score_changes(*moves, self._tokens, *self._caches[1:4], *tables, *changes, ratios.numpy())
        return ratios, (moves, changes)

    def accept(self, handle, accepted: Tensor) -> None:
        moves, changes = handle
        tables = (self._mixing, self._changes[0], self._forms.numpy())
        replace_tokens(*moves, accepted.numpy(), self._tokens, *self._caches, *tables, *changes)


def _given(*tensors: Tensor) -> tuple:
    """Contiguous arrays for the compiled loops."""
    return tuple(tensor.contiguous().numpy() for tensor in tensors)


# --- The compiled loops


@njit(nogil=True, cache=True)
def masked_features(chains, positions, u, direct, mixing3, to_output, out):
    """out (n, d): features of the copy of chains[m] (n,) that masks positions[m] (n,), of u
    (C, L, L, d), direct (C, L, d), mixing3 (L, L) and to_output (d^2, d)."""
    length, rank = u.shape[2], u.shape[3]
    products = np.empty((rank, rank), u.dtype)
    weighted = np.empty(length, u.dtype)
    for m in range(len(chains)):
        c, i = chains[m], positions[m]
        rows = u[c, i]
        products[:] = 0.0
        for x in range(rank):
            for k in range(length):
                weighted[k] = mixing3[i, k] * rows[k, x]
            add_rows(products[x], weighted, rows)
        out[m] = direct[c, i]
        add_rows(out[m], products.reshape(rank * rank), to_output)


@njit(nogil=True, cache=True)
def score_changes(
    chains, positions, proposals, tokens, read, summed, forms, mixing3, factor, to_second_layer,
    to_features, sent, inputs2, inputs3, to_second, to_output, outputs, squares,
    along, across, rises, out,
):  # fmt: skip
    """out (n,): what the raw score of chains[m] rises by if positions[m] takes proposals[m]. Fills
    what `replace_tokens` needs: along and rises (n, L, d), across (n, L + 2, d; see `answer`)."""
    length, rank = along.shape[1], along.shape[2]
    kind = read.dtype
    maps = np.empty((rank, rank), kind)
    across3 = np.empty((length + 2, rank), kind)
    step, own = np.empty(rank, kind), np.empty(rank, kind)
    weighted, row = np.empty(length, kind), np.empty(rank, kind)
    for m in range(len(chains)):
        c, i, b = chains[m], positions[m], proposals[m]
        a = tokens[c, i]
        for x in range(rank):
            step[x] = sent[b, x] - sent[a, x]

        answer(step, to_second, tokens[c], sent, inputs2[b], inputs2[a], maps, across[m])
        mix(to_second_layer[i], across[m], along[m])
        answer(step, to_output, tokens[c], sent, inputs3[b], inputs3[a], maps, across3)
        mix(to_features[i], across3, rises[m])

        total = 0.0
        for j in range(length):
            if j != i:
                total += dot(rises[m, j], outputs[tokens[c, j]])

        form = squares[tokens[c, i]]
        for k in range(length):
            # p_k . (2 X_k + N_k p_k), without the share of copy i in X_k and N_k
            mix_row(along[m, k], forms[c, k], row)
            for x in range(rank):
                row[x] += summed[c, k, x] + summed[c, k, x]
            total += dot(row, along[m, k])
            mix_row(along[m, k], form, row)
            for x in range(rank):
                row[x] += read[c, i, k, x] + read[c, i, k, x]
            total -= mixing3[i, k] * dot(row, along[m, k])

        for j in range(length):
            if j == i:
                continue
            # 2 kappa_j . sum_k A_jk gamma_jk (Mu_jk + M_j p_k), and
            # (sum_k A_jk gamma_jk^2) kappa_j . M_j kappa_j
            square = 0.0
            for k in range(length):
                weighted[k] = mixing3[j, k] * factor[i, j, k]
                square += weighted[k] * factor[i, j, k]
            mix_row(weighted, read[c, j], own)
            total += 2.0 * dot(own, across[m, j])
            mix_row(weighted, along[m], own)
            mix_row(across[m, j], squares[tokens[c, j]], row)
            total += 2.0 * dot(own, row) + square * dot(across[m, j], row)
        out[m] = total


@njit(fastmath=SUMS, nogil=True, cache=True)
def replace_tokens(
    chains, positions, proposals, accepted, tokens, u, read, summed, forms, direct, mixing3, factor,
    squares, along, across, rises,
):  # fmt: skip
    """Renews tokens and caches where `accepted` (n,), with what `score_changes` has filled."""
    length, rank = along.shape[1], along.shape[2]
    row, of_copy = np.empty(rank, u.dtype), np.empty(rank, u.dtype)
    for m in np.flatnonzero(accepted):
        c, i, b = chains[m], positions[m], proposals[m]
        a = tokens[c, i]
        for j in range(length):
            if j == i:
                continue
            form = squares[tokens[c, j]]
            mix_row(across[m, j], form, of_copy)
            for k in range(length):
                mix_row(along[m, k], form, row)
                gamma, weight = factor[i, j, k], mixing3[j, k]
                for x in range(rank):
                    change = row[x] + gamma * of_copy[x]
                    u[c, j, k, x] += along[m, k, x] + gamma * across[m, j, x]
                    read[c, j, k, x] += change
                    summed[c, k, x] += weight * change
            for x in range(rank):
                direct[c, j, x] += rises[m, j, x]
        for k in range(length):
            weight = mixing3[i, k]
            mix_row(u[c, i, k], squares[b], row)
            for x in range(rank):
                summed[c, k, x] += weight * (row[x] - read[c, i, k, x])
                read[c, i, k, x] = row[x]
                for y in range(rank):
                    forms[c, k, x, y] += weight * (squares[b, x, y] - squares[a, x, y])
        tokens[c, i] = b
