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

import torch
from torch import Tensor

from manybody.sampling.factored import deep_loops as kernels
from manybody.sampling.factored.copies import all_copies
from manybody.sampling.factored.parameters import Parameters
from manybody.sampling.factored.squares import table


class TripleChains:
    """C chains under the raw energy; see `chains.Chains`.

    Caches: 2 L^2 d + L d^2 doubles a chain.
    """

    full_batches = False

    def __init__(self, parameters: Parameters, tokens: Tensor, energy: str = "raw"):
        self.parameters, self.tokens = parameters, tokens.clone()
        first, second, last = parameters.mixing
        rank = parameters.right[0].shape[1]
        # gamma_jk = -2 sum_q A2_kq A1_qi A1_qj, indexed [i, j, k]; of the last layer k = j only.
        factor = -2.0 * torch.einsum("kq,qi,qj->ijk", second, first, first)
        last_factor = -2.0 * torch.einsum("jq,qi,qj->ij", last, first, first)
        to_second, to_output, squares = (
            table(parameters, layer, target).reshape(rank**2, rank)
            for layer, target in ((0, 1), (0, 2), (1, 2))
        )
        self._forms = (parameters.score_left @ squares.T).view(-1, rank, rank)
        self._squares_to_output = squares
        self._head = parameters.left[2].T.contiguous()
        given = self._given
        self._mixing = given(*parameters.mixing)
        self._squares = given(squares, self._forms)
        self._changes = given(
            *(factor, last_factor, *parameters.right),
            *(to_second.view(rank, -1), to_output.view(rank, -1), parameters.score_left),
        )
        self.rebuild()

    def _given(self, *tensors: Tensor) -> tuple:
        """Contiguous arrays for the compiled loops."""
        return tuple(tensor.contiguous().numpy() for tensor in tensors)

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
            direct[c] = features[c] - products @ self._squares_to_output
        self.u, self.read, self.direct = u, read, direct
        self._tokens = self.tokens.numpy()
        self._caches = self._given(u, read, summed, forms, direct)

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
        kernels.masked_features(
            *(chains.numpy(), positions.numpy(), u, direct),
            *(self._mixing[2], self._squares[0], features.numpy()),
        )
        return features @ self._head + self.parameters.bias

    def log_ratio(self, chains: Tensor, positions: Tensor, proposals: Tensor):
        moves = (chains.numpy(), positions.numpy(), proposals.numpy())
        shape = (len(chains), *self.direct.shape[1:])
        changes = tuple(self.direct.new_empty(shape).numpy() for _ in range(3))
        ratios = torch.empty(len(chains), dtype=torch.float64)
        _, *caches, _ = self._caches
        kernels.score_changes(
            *(*moves, self._tokens, *caches, *self._mixing, *self._changes, self._squares[1]),
            *(*changes, ratios.numpy()),
        )
        return ratios, (moves, changes)

    def accept(self, handle, accepted: Tensor) -> None:
        moves, changes = handle
        kernels.replace_tokens(
            *(*moves, accepted.numpy(), self._tokens, *self._caches, self._mixing[2]),
            *(self._changes[0], self._squares[1], *changes),
        )
