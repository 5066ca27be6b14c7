"""The fast exact samplers of factored attention of the `exact` variant, and which one applies.

On a CPU, under the raw energy, two layers have a closed form (`two_layers`), and with three the
last square is free (`three_layers`). Every other depth, the norm energy, and all on a GPU follow
what a token changes layer by layer (`any_depth`; in compiled loops `deep_loops`), unless it is less
work to make all masked copies anew (`copies`). The norm energy has no closed form, since each of
its L terms is the log of a sum of |V| exponentials: a proposal costs L |V| d multiplications more.
"""

from copy import deepcopy

from torch import Tensor

from manybody.models.base import Model
from manybody.sampling import footprint
from manybody.sampling.factored.any_depth import DeepChains
from manybody.sampling.factored.by_order import GibbsChains, OrderChains
from manybody.sampling.factored.copies import ExplicitChains as ExplicitChains, read
from manybody.sampling.factored.deep_loops import LoopedChains
from manybody.sampling.factored.three_layers import TripleChains
from manybody.sampling.factored.two_layers import PairedChains

CHAINS = {  # by what `footprint.form` calls them
    "two_layers": PairedChains,
    "three_layers": TripleChains,
    "compiled": LoopedChains,
    "any_depth": DeepChains,
}


def open_chains(model: Model, tokens: Tensor, energy: str, gauge: str):
    """The fastest exact backend for `model` at `tokens` (C, L); see `backends.open_chains`."""
    # log softmax is free of the gauge.
    parameters = read(model, gauge if energy == "raw" else "none")
    device = parameters.left[0].device
    form = footprint.form(parameters, energy, device.type)
    return CHAINS[form](parameters, tokens.to(device), energy)


def open_by_order(
    model: Model, tokens: Tensor, energy: str, gauge: str, mu, sampler: str
) -> OrderChains:
    """Chains of `by_order` at `tokens` (C, L), on the CPU whatever the model's device."""
    chains = GibbsChains if sampler == "gibbs" else OrderChains
    return chains(read(deepcopy(model).cpu(), gauge), tokens.cpu(), energy, mu)
