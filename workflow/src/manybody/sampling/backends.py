"""Which backend holds the chains of a model under an energy."""

from torch import Tensor

from manybody import models
from manybody.models.base import Model
from manybody.sampling.chains import ENERGIES, GAUGES, MEMORY, PRECISIONS, Chains


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
    return _module(model, energy, gauge).open_chains(model, tokens, energy, gauge)


def bytes_needed(
    model: Model, energy: str, gauge: str, precision: str = "float32"
) -> tuple[int, int]:
    """Bytes of tables shared by all chains, and bytes for each chain (caches and work space)."""
    _check(model, energy, gauge, precision)
    if precision == "bfloat16":
        from manybody.sampling import masked

        return masked.bytes_needed(model, energy, gauge, precision)
    return _module(model, energy, gauge).bytes_needed(model, energy, gauge)


def _module(model: Model, energy: str, gauge: str):
    if model.closed_form:
        from manybody.sampling import factored

        # Of many layers the tables outgrow any machine: explicit masked copies then.
        if sum(factored.bytes_needed(model, energy, gauge)) <= MEMORY:
            return factored
    from manybody.sampling import masked

    return masked


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
