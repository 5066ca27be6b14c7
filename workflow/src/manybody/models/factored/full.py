"""Full couplings: a |V| x |V| block for each pair of sites, and a field for each site."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from manybody.data.pair_model import PairModel
from manybody.models.base import Conditionals


class Full(Conditionals):
    """The conditionals of a Potts model, log P(s_i = a | others) = h_i(a) + sum_j J_ij(a, s_j) + c.

    `couplings` (L (L - 1) / 2, |V|, |V|) are the blocks of the pairs i < j, by a, then b; `bias`
    (L, |V|) are the fields. What J is the limit of: factored attention with |V|^2 heads.
    """

    def __init__(self, vocabulary: int, length: int, **sizes):
        super().__init__("factored", vocabulary, length, **sizes)
        pairs = length * (length - 1) // 2
        self.couplings = nn.Parameter(torch.zeros(pairs, vocabulary, vocabulary))
        self.bias = nn.Parameter(torch.zeros(length, vocabulary))

    def features(self, tokens: Tensor, mask: Tensor | None = None) -> Tensor:
        """The sums over all sites that are not masked; a site does not count for itself."""
        self.check_tokens(tokens)
        x = functional.one_hot(tokens, self.vocabulary).to(self.bias.dtype)
        if mask is not None:
            x = x.masked_fill(mask[..., None], 0.0)
        return torch.einsum("njb,ijab->nia", x, self._blocks()) + self.bias

    def _blocks(self) -> Tensor:
        first, second = torch.triu_indices(self.length, self.length, 1, device=self.bias.device)
        blocks = self.couplings.new_zeros(2 * (self.length,) + 2 * (self.vocabulary,))
        blocks[first, second] = self.couplings
        blocks[second, first] = self.couplings.mT
        return blocks

    @torch.no_grad()
    def take(self, model: PairModel) -> None:
        first, second = torch.triu_indices(self.length, self.length, 1)
        self.couplings.copy_(torch.from_numpy(model.couplings[first, second]))
        self.bias.copy_(torch.from_numpy(model.fields))
