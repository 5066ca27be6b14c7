"""Which backend holds the chains of a model under an energy."""

from torch import Tensor

from manybody.models.base import Model
from manybody.sampling import combinations, footprint
from manybody.sampling.chains import Chains
from manybody.sampling.reference import Reference


def open_chains(
    model: Model,
    tokens: Tensor,
    energy: str = "raw",
    gauge: str = "none",
    precision: str = "float32",
    sampler: str = "mh",
    reference: Reference | None = None,
) -> Chains:
    """The fastest exact backend for `model`, started at `tokens` (C, L).

    The energies "reference" and "brook" need their `reference`. Chains of `sampler` other than "mh"
    are those that `redraw.redraw` moves.

    `precision="bfloat16"` (BERT) computes ratios in bfloat16 and those near their threshold again
    in the model's own type: the same moves, faster on a GPU. The block `clones` of the config
    refuses what does not fit a model.
    """
    if sampler == "ancestral":
        from manybody.sampling.redraw import Causal

        return Causal(model, tokens)
    if combinations.by_order(sampler, energy, model.about):
        from manybody.sampling import factored

        law = None if reference is None else reference.law
        chains = factored.open_by_order(model, tokens, energy, gauge, law)
        if sampler != "gibbs":
            return chains
        from manybody.sampling.redraw import FactoredGibbs

        return FactoredGibbs(model, chains)
    if sampler == "gibbs":
        from manybody.sampling.masked import MaskedChains
        from manybody.sampling.redraw import MaskedGibbs

        scored = (
            MaskedChains(model, tokens, energy, gauge)
            if energy in ("raw", "norm")
            else open_chains(model, tokens, energy, gauge, reference=reference)
        )
        return MaskedGibbs(model, scored)
    if energy in ("reference", "brook"):
        from manybody.sampling.paths import PathChains

        return PathChains(model, tokens, reference.paths)
    if precision == "bfloat16":
        from manybody.sampling.masked import CoarseChains

        return CoarseChains(model, tokens, energy, gauge)
    if footprint.incremental(model, energy, *_numbers(model)):
        from manybody.sampling import factored

        return factored.open_chains(model, tokens, energy, gauge)
    if model.about.closed_form:
        from manybody.sampling.factored.explicit import ExplicitChains

        return ExplicitChains(model, tokens, energy, gauge)
    from manybody.sampling.masked import MaskedChains

    return MaskedChains(model, tokens, energy, gauge)


def bytes_needed(
    model: Model,
    energy: str,
    gauge: str,
    precision: str = "float32",
    sampler: str = "mh",
    paths: int = 0,
) -> tuple[int, int]:
    """Bytes of tables shared by all chains, and bytes for each chain (caches and work space).

    In bfloat16 the weights stand beside their own type a second time while copies are computed.
    """
    number, device = _numbers(model)
    shared, each = footprint.group_bytes(model, energy, number, device, sampler, paths)
    if precision == "bfloat16":
        shared += 2 * sum(weight.numel() for weight in model.parameters())
    return shared, each


def _numbers(model: Model) -> tuple[int, str]:
    """Bytes of one of the model's numbers, and the device that it is on."""
    weight = next(model.parameters())
    return weight.element_size(), weight.device.type
