"""Which backend holds the chains of a model under an energy."""

from torch import Tensor

from manybody import models
from manybody.models.base import Model
from manybody.sampling import footprint
from manybody.sampling.chains import ENERGIES, GAUGES, PRECISIONS, Chains


def open_chains(
    model: Model,
    tokens: Tensor,
    energy: str = "raw",
    gauge: str = "none",
    precision: str = "float32",
) -> Chains:
    """The fastest exact backend for `model`, started at `tokens` (C, L).

    `precision="bfloat16"` (BERT) computes ratios in bfloat16 and those near their threshold again
    in the model's own type: the same moves, faster on a GPU. Raises `ValueError` for an energy,
    gauge or precision that is not known or does not fit, and for a causal model.
    """
    _check(model, energy, gauge, precision)
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
    _check(model, energy, gauge, precision)
    shared, each = footprint.group_bytes(model, energy, *_numbers(model))
    if precision == "bfloat16":
        shared += 2 * sum(weight.numel() for weight in model.parameters())
    return shared, each


def _numbers(model: Model) -> tuple[int, str]:
    """Bytes of one of the model's numbers, and the device that it is on."""
    weight = next(model.parameters())
    return weight.element_size(), weight.device.type


def _check(model: Model, energy: str, gauge: str, precision: str) -> None:
    if energy not in ENERGIES:
        raise ValueError(f"energy is {energy!r}; expected one of {', '.join(ENERGIES)}")
    if gauge not in GAUGES:
        raise ValueError(f"gauge is {gauge!r}; expected one of {', '.join(GAUGES)}")
    if model.about.causal:
        name = model.description["architecture"]
        raise ValueError(f"{name} predicts the next token; clones need a masked model")
    if precision not in PRECISIONS:
        raise ValueError(f"precision is {precision!r}; expected {' or '.join(PRECISIONS)}")
    if precision == "bfloat16" and not model.about.bfloat16_chains:
        known = " or ".join(models.architectures_with("bfloat16_chains"))
        raise ValueError(
            f"precision bfloat16 is for {known}; the loops of "
            f"{model.description['architecture']} models take float32"
        )
