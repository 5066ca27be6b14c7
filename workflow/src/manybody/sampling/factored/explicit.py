"""Chains of factored attention of many layers: every masked copy computed anew.

From five layers on, or with a rank near |V|, what a token changes (`any_depth`) costs more than the
copies themselves, a few at a time so that their sums of squares stay in a processor's cache, in the
model's own precision.
"""

import torch
from torch import Tensor

from manybody.models.factored.network import Factored
from manybody.sampling.factored import copies, parameters
from manybody.sampling.masked import MaskedChains


class ExplicitChains(MaskedChains):
    """C chains under either energy; see `chains.Chains`."""

    def __init__(self, model: Factored, tokens: Tensor, energy: str, gauge: str):
        self.parameters = parameters.read(model, "none", model.left[0].dtype)
        super().__init__(model, tokens, energy, gauge)

    def _some_copies(self, tokens: Tensor, positions: Tensor) -> Tensor:
        rows = torch.arange(len(tokens), device=tokens.device).repeat_interleave(positions.shape[1])
        return copies.features(self.parameters, tokens, rows, positions.flatten())
