"""Which backend holds the chains of a model under an energy."""

from torch import Tensor

from manybody.models.base import Model
from manybody.sampling import footprint
from manybody.sampling.chains import Chains


def open_chains(
    model: Model,
    tokens: Tensor,
    energy: str = "raw",
    gauge: str = "none",
    precision: str = "float32",
) -> Chains:
    """The fastest exact backend for `model`, started at `tokens` (C, L).

    `precision="bfloat16"` (BERT) computes ratios in bfloat16 and those near their threshold again
    in the model's own type: the same moves, faster on a GPU. The block `clones` of the config
    refuses what does not fit a model.
    """
    if precision == "bfloat16":
        from manybody.sampling.masked import CoarseChains

        return CoarseChains(model, tokens, energy, gauge)
    if footprint.incremental(model, energy, *_numbers(model)):
        from manybody.sampling import factored

        return factored.open_chains(model, tokens, energy, gauge)
    from manybody.sampling.masked import MaskedChains

    return MaskedChains(model, tokens, energy, gauge)


def bytes_needed(
    model: Model, energy: str, gauge: str, precision: str = "float32"
) -> tuple[int, int]:
    """Bytes of tables shared by all chains, and bytes for each chain (caches and work space).

    In bfloat16 the weights stand beside their own type a second time while copies are computed.
    """
    shared, each = footprint.group_bytes(model, energy, *_numbers(model))
    if precision == "bfloat16":
        shared += 2 * sum(weight.numel() for weight in model.parameters())
    return shared, each


def _numbers(model: Model) -> tuple[int, str]:
    """Bytes of one of the model's numbers, and the device that it is on."""
    weight = next(model.parameters())
    return weight.element_size(), weight.device.type
