"""Raw-score chains of three-layer factored attention, in O(L^2 d + L d^2 + d^3) a proposal.

Symbols as in `factored_deep`. The last square is free (nlp-clones.md section 7, item 2): it scores

    sum_jk A3_jk u_jk . M_j u_jk,   M_j = P2^T diag(V3[s_j, :]) P2   (d x d, a table over tokens).

With delta_jk = p_k + gamma_jk kappa_j the score of a proposal at i changes, over j != i, by

    sum_k p_k . (2 X_k + N_k p_k) + sum_j kappa_j . (2 sum_k A3_jk gamma_jk (Mu_jk + M_j p_k)
                                                    + sum_k A3_jk gamma_jk^2 M_j kappa_j)
    Mu_jk = M_j u_jk     X_k = sum_j A3_jk Mu_jk     N_k = sum_j A3_jk M_j

with Mu, X and N kept for the current state, so that the L^2 d^2 products are made for accepted
proposals only. All in double precision; compiled for the CPU.
"""

import torch
from torch import Tensor

from manybody.sampling import factored_three_cpu as kernels
from manybody.sampling.factored_copies import all_copies
from manybody.sampling.factored_squares import table
from manybody.sampling.factored_weights import Weights


def applies(weights: Weights) -> bool:
    """Whether the model lies on a CPU and its tables over tokens take at most 1 GiB."""
    rank = weights.right[0].shape[1]
    on_cpu = weights.left[0].device.type == "cpu"
    return on_cpu and not weights.full and 8 * weights.vocabulary * rank**2 <= 2**30


class TripleChains:
    """C chains under the raw energy; see `backend.Chains`. Caches: 2 L^2 d + L d^2 a chain."""

    full_batches = False

    def __init__(self, weights: Weights, tokens: Tensor):
        self.weights, self.tokens = weights, tokens.clone()
        rank = weights.right[0].shape[1]
        self.mixing = [a.contiguous() for a in weights.mixing]
        first, second, last = self.mixing
        # gamma_jk = -2 sum_q A2_kq A1_qi A1_qj, indexed [i, j, k]; of the last layer k = j only.
        self.factor = -2.0 * torch.einsum("kq,qi,qj->ijk", second, first, first)
        self.last_factor = -2.0 * torch.einsum("jq,qi,qj->ij", last, first, first)
        self.to_second = table(weights, 0, 1).reshape(rank, -1)
        self.to_output = table(weights, 0, 2).reshape(rank, -1)
        squares = table(weights, 1, 2).reshape(rank**2, -1)
        self.second_to_output = squares
        self.squares = (weights.score_left @ squares.T).view(-1, rank, rank)
        self.rebuild()

    def rebuild(self) -> None:
        (self.u,), features = all_copies(self.weights, self.tokens)
        self.read, last = torch.empty_like(self.u), self.mixing[2]
        count, length, _, rank = self.u.shape
        self.summed = self.u.new_empty(count, length, rank)
        self.forms = self.u.new_empty(count, length, rank, rank)
        self.direct = torch.empty_like(features)
        for c, tokens in enumerate(self.tokens):
            u, squares = self.u[c], self.squares[tokens]
            torch.matmul(u, squares, out=self.read[c])
            self.summed[c] = torch.einsum("jk,jkx->kx", last, self.read[c])
            self.forms[c] = (last.T @ squares.flatten(1)).view(length, rank, rank)
            products = ((last[..., None] * u).mT @ u).flatten(1)
            self.direct[c] = features[c] - products @ self.second_to_output

    def energy(self) -> Tensor:
        energies = torch.empty(len(self.tokens), dtype=torch.float64)
        outputs, bias = self.weights.score_left, self.weights.score_bias
        for c, tokens in enumerate(self.tokens):
            squares = (self.mixing[2] * (self.u[c] * self.read[c]).sum(-1)).sum()
            direct = (self.direct[c] * outputs[tokens]).sum() + bias[tokens].sum()
            energies[c] = -(squares + direct)
        return energies

    def logits(self, chains: Tensor, positions: Tensor) -> Tensor:
        features = torch.empty(len(chains), self.u.shape[-1], dtype=torch.float64)
        _run(
            kernels.masked_features,
            *(chains, positions, self.u, self.direct, self.mixing[2]),
            *(self.second_to_output, features),
        )
        return features @ self.weights.left[2].T + self.weights.bias

    def log_ratio(self, chains: Tensor, positions: Tensor, proposals: Tensor):
        count, (length, rank) = len(chains), self.u.shape[2:]
        along, across, rises = (self.u.new_empty(count, length, rank) for _ in range(3))
        ratios = self.u.new_empty(count)
        weights = self.weights
        _run(
            kernels.score_changes,
            *(chains, positions, proposals, self.tokens, self.read, self.summed, self.forms),
            *(*self.mixing, self.factor, self.last_factor, *weights.right),
            *(self.to_second, self.to_output, weights.score_left, self.squares),
            *(along, across, rises, ratios),
        )
        return ratios, (chains, positions, proposals, along, across, rises)

    def accept(self, handle, accepted: Tensor) -> None:
        if not accepted.any():
            return
        chains, positions, proposals, *changes = (part[accepted] for part in handle)
        _run(
            kernels.replace_tokens,
            *(chains, positions, proposals, self.tokens, self.u, self.read, self.summed),
            *(self.forms, self.direct, self.mixing[2], self.factor, self.squares, *changes),
        )


def _run(loop, *tensors: Tensor) -> None:
    loop(*(tensor.contiguous().numpy() for tensor in tensors))


def open_chains(weights: Weights, tokens: Tensor, energy: str) -> TripleChains:
    return TripleChains(weights, tokens)


def bytes_needed(weights: Weights, energy: str) -> tuple[int, int]:
    """Bytes of the tables, and of one chain's caches with a proposal's changes."""
    length, rank = weights.length, weights.right[0].shape[1]
    tables = weights.vocabulary * rank**2 + 3 * rank**3 + length**3
    return 8 * tables, 8 * (2 * length**2 * rank + length * rank**2 + 5 * length * rank)
