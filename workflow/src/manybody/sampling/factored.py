"""The fast exact samplers of factored attention of the `exact` variant, and which one applies.

Two layers under the raw energy have a closed form (`factored_two`); every other depth, and the norm
energy, follow what a token changes layer by layer (`factored_deep`). The norm energy has no closed
form, since each of its L terms is the log of a sum of |V| exponentials: it costs L |V| d
multiplications more for each proposal.
"""

from torch import Tensor

from manybody.models.base import Model
from manybody.sampling import factored_deep, factored_two, factored_weights
from manybody.sampling.backend import Chains


def supports(model: Model, energy: str, gauge: str) -> bool:
    """Whether the forms hold, whatever the energy and gauge: no LayerNorm between the layers."""
    return model.description["architecture"] == "factored" and model.variant == "exact"


def open_chains(model: Model, tokens: Tensor, energy: str, gauge: str) -> Chains:
    """The fastest exact backend for `model` at `tokens` (C, L); see `backend.open_chains`."""
    weights = _read(model, energy, gauge)
    tokens = tokens.to(weights.left[0].device)
    if _paired(model, energy):
        return factored_two.PairedChains(weights, tokens)
    return factored_deep.DeepChains(weights, tokens, energy, model.left[0].dtype)


def bytes_needed(model: Model, energy: str, gauge: str) -> tuple[int, int]:
    """Bytes of tables and work space shared by all chains, and bytes for each chain."""
    weights = _read(model, energy, gauge)
    if _paired(model, energy):
        return factored_two.bytes_needed(weights)
    return factored_deep.bytes_needed(weights, energy)


def _paired(model: Model, energy: str) -> bool:
    return model.layers == 2 and energy == "raw"


def _read(model: Model, energy: str, gauge: str) -> factored_weights.Weights:
    # log softmax is free of the gauge.
    return factored_weights.read(model, gauge if energy == "raw" else "none")
