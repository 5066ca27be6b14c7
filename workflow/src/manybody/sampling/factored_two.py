"""Raw-score chains of two-layer factored attention, by the closed form of the energy.

With G_j = V1[:, s_j], R_j = V2[s_j, :], D_j = R_j * G_j, masking j removes A1_kj G_j from row k of
W = A1 G, so that all L masked copies are known at once (nlp-clones.md section 7):

    -E = sum_{j != k} A2_jk V2[s_j, s_k] + sum_k S_k . W_k^2 - 2 sum_j U_j . G_j + sum_j c_j e[s_j]
    S_k = sum_j A2_jk R_j         U_i = sum_j M_ij D_j        M_ij = sum_k A1_ki A2_jk A1_kj
    c_j = sum_k A2_jk (A1_kj)^2   e[a] = V2[a, :] . V1[:, a]^2

W, S and U are linear in the one-hots: a new token adds a multiple of one table row to each of their
rows. A proposal, its acceptance ratio and its update cost O(L |V|) each, all in double precision.
"""

import torch
from torch import Tensor

from manybody.sampling.factored_weights import Weights


class PairedChains:
    """C chains under the raw energy; see `backend.Chains`. Caches: 3 L |V| doubles a chain."""

    full_batches = False

    def __init__(self, weights: Weights, tokens: Tensor):
        self.weights, self.tokens = weights, tokens.clone()
        self.mixing1, self.mixing2 = (a.contiguous() for a in weights.mixing)
        self.loop = self.mixing1.T @ (self.mixing2.T * self.mixing1)
        self.sent, self.read = weights.value_rows(0), weights.score_rows().contiguous()
        self.alone = (self.mixing2 * self.mixing1.T.square()).sum(1)
        self.alone_value = (self.read * self.sent.square()).sum(1)
        if tokens.device.type == "cpu":
            from manybody.sampling import factored_two_cpu as kernels

            self._kernels = _OnArrays(kernels)
        else:
            self._kernels = _OnTensors
        self.rebuild()

    def rebuild(self) -> None:
        shape = (*self.tokens.shape, self.weights.vocabulary)
        self.w, self.s, self.u = (self.sent.new_empty(shape) for _ in range(3))
        for c, tokens in enumerate(self.tokens):
            sent, read = self.sent[tokens], self.read[tokens]
            torch.matmul(self.mixing1, sent, out=self.w[c])
            torch.matmul(self.mixing2.T, read, out=self.s[c])
            torch.matmul(self.loop, sent * read, out=self.u[c])

    def energy(self) -> Tensor:
        tokens, rows = self.tokens, torch.arange(self.tokens.shape[1], device=self.tokens.device)
        energies = torch.empty(len(tokens), dtype=torch.float64, device=tokens.device)
        for c, (s, w, u) in enumerate(zip(self.s, self.w, self.u, strict=True)):
            t = tokens[c]
            pairs = s[rows, t].sum() - (self.mixing2.diagonal() * self.read[t, t]).sum()
            squares = (s * w.square()).sum() - 2 * (u * self.sent[t]).sum()
            own = (self.alone * self.alone_value[t] + self.weights.score_bias[t]).sum()
            energies[c] = -(pairs + squares + own)
        return energies

    def logits(self, chains: Tensor, positions: Tensor) -> Tensor:
        weights = self.weights
        values = self._kernels.masked_values(
            chains, positions, self.tokens, self.w, self.mixing1, self.mixing2, self.sent
        )
        return weights.project(1, values) @ weights.left[1].T + weights.bias

    def log_ratio(self, chains: Tensor, positions: Tensor, proposals: Tensor):
        handle = (chains, positions, proposals)
        return self._kernels.score_changes(*handle, *self._state()), handle

    def accept(self, handle, accepted: Tensor) -> None:
        self._kernels.replace_tokens(*(index[accepted] for index in handle), *self._state())

    def _state(self):
        return (
            *(self.tokens, self.w, self.s, self.u),
            *(self.mixing1, self.mixing2, self.loop, self.sent, self.read),
        )


class _OnArrays:
    """The compiled loops, called with the memory of the tensors."""

    def __init__(self, kernels):
        self._loops = kernels

    def masked_values(self, chains, *state) -> Tensor:
        out = torch.empty(len(chains), state[-1].shape[1], dtype=torch.float64)
        self._loops.masked_values(*_arrays(chains, *state, out))
        return out

    def score_changes(self, chains, *state) -> Tensor:
        out = torch.empty(len(chains), dtype=torch.float64)
        self._loops.score_changes(*_arrays(chains, *state, out))
        return out

    def replace_tokens(self, *state) -> None:
        self._loops.replace_tokens(*_arrays(*state))


def _arrays(*tensors: Tensor):
    return [tensor.contiguous().numpy() for tensor in tensors]


class _OnTensors:
    """The same three steps for all chains at once, for a GPU."""

    @staticmethod
    def masked_values(chains, positions, tokens, w, mixing1, mixing2, sent) -> Tensor:
        states = tokens[chains]
        own = sent[states.gather(1, positions[:, None])]
        values = w[chains] - mixing1.T[positions][..., None] * own
        total = torch.einsum("nk,nkv->nv", mixing2[positions], values.square())
        direct = mixing2[positions].scatter(1, positions[:, None], 0.0)
        return total.scatter_add_(1, states, direct)

    @staticmethod
    def score_changes(
        chains, positions, proposals, tokens, w, s, u, mixing1, mixing2, loop, sent, read
    ) -> Tensor:
        old = tokens[chains, positions]
        step, r = sent[proposals] - sent[old], read[old]
        own, weight = mixing1.T[positions][..., None], mixing2[positions][..., None]
        direct = s[chains, positions, proposals] - s[chains, positions, old]
        direct -= mixing2[positions, positions] * (read[old, proposals] - read[old, old])
        seen = s[chains] - weight * r[:, None]
        change = own * step[:, None]
        squares = (seen * change * (2 * w[chains] + change)).sum((1, 2))
        loops = u[chains, positions] - loop[positions, positions][:, None] * r * sent[old]
        return direct + squares - 2 * (step * loops).sum(1)

    @staticmethod
    def replace_tokens(
        chains, positions, proposals, tokens, w, s, u, mixing1, mixing2, loop, sent, read
    ) -> None:
        old = tokens[chains, positions]
        g_old, g_new, r_old, r_new = sent[old], sent[proposals], read[old], read[proposals]
        w[chains] += mixing1.T[positions][..., None] * (g_new - g_old)[:, None]
        s[chains] += mixing2[positions][..., None] * (r_new - r_old)[:, None]
        u[chains] += loop.T[positions][..., None] * (r_new * g_new - r_old * g_old)[:, None]
        tokens[chains, positions] = proposals


def open_chains(weights: Weights, tokens: Tensor, energy: str) -> PairedChains:
    return PairedChains(weights, tokens)


def bytes_needed(weights: Weights, energy: str) -> tuple[int, int]:
    """Bytes of the two |V| x |V| tables (and their making), and of one chain's caches."""
    vocabulary, length = weights.vocabulary, weights.length
    return 8 * 3 * vocabulary**2, 8 * (3 * length + 4) * vocabulary
