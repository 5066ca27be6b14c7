"""The fast exact samplers of factored attention of the `exact` variant, and which one applies.

Under the raw energy two layers have a closed form (`factored_two`), and with three the last square
is free (`factored_three`). Every other depth, and the norm energy, follow what a token changes
layer by layer (`factored_deep`; in compiled loops `factored_loops`). The norm energy has no closed
form, since each of its L terms is the log of a sum of |V| exponentials: it costs L |V| d
multiplications more for each proposal.
"""

from types import ModuleType

from torch import Tensor

from manybody.models.base import Model
from manybody.sampling import factored_deep, factored_two, factored_weights
from manybody.sampling.backend import Chains
from manybody.sampling.factored_weights import Weights


def supports(model: Model, energy: str, gauge: str) -> bool:
    """Whether the forms hold, whatever the energy and gauge: one head, no LayerNorm, and a bias
    that all positions share."""
    factored = model.description["architecture"] == "factored"
    return factored and model.variant == "exact" and model.heads == 1 and model.fields is None


def open_chains(model: Model, tokens: Tensor, energy: str, gauge: str) -> Chains:
    """The fastest exact backend for `model` at `tokens` (C, L); see `backend.open_chains`."""
    weights = _read(model, energy, gauge)
    return _form(weights, energy).open_chains(weights, tokens.to(weights.left[0].device), energy)


def bytes_needed(model: Model, energy: str, gauge: str) -> tuple[int, int]:
    """Bytes of tables and work space shared by all chains, and bytes for each chain."""
    weights = _read(model, energy, gauge)
    return _form(weights, energy).bytes_needed(weights, energy)


def _form(weights: Weights, energy: str) -> ModuleType:
    if energy == "raw" and weights.layers == 2:
        return factored_two
    if weights.layers > 2 and weights.left[0].device.type == "cpu":
        # Compiled loops: imported where they are used.
        from manybody.sampling import factored_loops, factored_three

        if energy == "raw" and weights.layers == 3 and factored_three.applies(weights):
            return factored_three
        if factored_loops.applies(weights):
            return factored_loops
    return factored_deep


def _read(model: Model, energy: str, gauge: str) -> Weights:
    # log softmax is free of the gauge.
    return factored_weights.read(model, gauge if energy == "raw" else "none")
