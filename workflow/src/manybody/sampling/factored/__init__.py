"""The fast exact samplers of factored attention of the `exact` variant, and which one applies.

Under the raw energy two layers have a closed form (`two_layers`), and with three the last square
is free (`three_layers`). Every other depth, and the norm energy, follow what a token changes
layer by layer (`any_depth`; in compiled loops `compiled`). The norm energy has no closed
form, since each of its L terms is the log of a sum of |V| exponentials: it costs L |V| d
multiplications more for each proposal.
"""

from types import ModuleType

from torch import Tensor

from manybody.models.base import Model
from manybody.sampling.chains import Chains
from manybody.sampling.factored import any_depth, two_layers
from manybody.sampling.factored import weights as factored_weights
from manybody.sampling.factored.weights import Weights


def open_chains(model: Model, tokens: Tensor, energy: str, gauge: str) -> Chains:
    """The fastest exact backend for `model` at `tokens` (C, L); see `backends.open_chains`."""
    weights = _read(model, energy, gauge)
    return _form(weights, energy).open_chains(weights, tokens.to(weights.left[0].device), energy)


def bytes_needed(model: Model, energy: str, gauge: str) -> tuple[int, int]:
    """Bytes of tables and work space shared by all chains, and bytes for each chain."""
    weights = _read(model, energy, gauge)
    return _form(weights, energy).bytes_needed(weights, energy)


def _form(weights: Weights, energy: str) -> ModuleType:
    if energy == "raw" and weights.layers == 2:
        return two_layers
    if weights.layers > 2 and weights.left[0].device.type == "cpu":
        # Compiled loops: imported where they are used.
        from manybody.sampling.factored import compiled, three_layers

        if energy == "raw" and weights.layers == 3 and three_layers.applies(weights):
            return three_layers
        if compiled.applies(weights):
            return compiled
    return any_depth


def _read(model: Model, energy: str, gauge: str) -> Weights:
    # log softmax is free of the gauge.
    return factored_weights.read(model, gauge if energy == "raw" else "none")
