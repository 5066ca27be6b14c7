"""The fast exact samplers of factored attention of the `exact` variant, and which one applies.

Under the raw energy two layers have a closed form (`two_layers`), and with three the last square
is free (`three_layers`). Every other depth, and the norm energy, follow what a token changes
layer by layer (`any_depth`; in compiled loops `compiled`), unless it is less work to make all
masked copies anew (`explicit`). The norm energy has no closed form, since each of its L terms is
the log of a sum of |V| exponentials: it costs L |V| d multiplications more for each proposal.
"""

from importlib import import_module

from torch import Tensor

from manybody.models.base import Model
from manybody.sampling import footprint
from manybody.sampling.chains import Chains
from manybody.sampling.factored import parameters as factored_parameters

CLASSES = {  # of chains, by their module
    "two_layers": "PairedChains",
    "three_layers": "TripleChains",
    "compiled": "LoopedChains",
    "any_depth": "DeepChains",
}


def open_chains(model: Model, tokens: Tensor, energy: str, gauge: str) -> Chains:
    """The fastest exact backend for `model` at `tokens` (C, L); see `backends.open_chains`."""
    # log softmax is free of the gauge.
    parameters = factored_parameters.read(model, gauge if energy == "raw" else "none")
    device = parameters.left[0].device
    form = footprint.form(parameters, energy, device.type)
    chains = getattr(import_module(f"{__name__}.{form}"), CLASSES[form])
    return chains(parameters, tokens.to(device), energy)


def open_by_order(model: Model, tokens: Tensor, energy: str, gauge: str, law) -> Chains:
    """Chains of `by_order` at `tokens` (C, L), on the CPU whatever the model's device."""
    from copy import deepcopy

    from manybody.sampling.factored.by_order import OrderChains

    parameters = factored_parameters.read(deepcopy(model).cpu(), gauge)
    return OrderChains(parameters, tokens.cpu(), energy, law)
