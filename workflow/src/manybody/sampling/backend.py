"""What the Metropolis-Hastings driver asks of a model, and who answers.

A backend holds C chains under one model and one energy. For the logits h_i(s), those at position
i with only i masked, the energies are (nats)

    raw   E(s) = - sum_i h_i[s_i]                        gauge "none"
    raw   E(s) = - sum_i (h_i[s_i] - mean_a h_i[a])      gauge "mean"
    norm  E(s) = - sum_i log softmax(h_i)[s_i]           (free of the gauge)

Proposals are drawn from softmax(h_i), so the change of term i cancels against the proposal ratio
and only the other positions are ever scored: log alpha = sum_{j != i} score_j(s') - score_j(s).
"""

from typing import Protocol

from torch import Tensor

from manybody.models.base import Model

ENERGIES = ("raw", "norm")
GAUGES = ("none", "mean")
PRECISIONS = ("float32", "bfloat16")
COARSE = ("bert",)  # architectures whose chains can move in bfloat16
MEMORY = 12 << 30  # bytes for tables, caches and work space of the chains that move together


class Chains(Protocol):
    """C chains of length L over |V| tokens. Indices are int64 tensors on the model's device.

    In every call each chain appears at most once. `rebuild` must leave exactly the caches, to the
    bit, that opening the same tokens anew would give: a restarted run then repeats a killed one.
    """

    tokens: Tensor  # (C, L) int64, the current states

    full_batches: bool
    """Whether `log_ratio` is so much dearer than `logits` that the driver should let every chain
    advance to its next real proposal (b != a) before it asks for ratios."""

    def logits(self, chains: Tensor, positions: Tensor) -> Tensor:
        """Masked logits (n, |V|) at one position of each named chain (n,), from caches."""
        ...

    def log_ratio(
        self, chains: Tensor, positions: Tensor, proposals: Tensor
    ) -> tuple[Tensor, object]:
        """log alpha (n,) float64 of setting one token of each named chain, and a handle on it."""
        ...

    def accept(self, handle: object, accepted: Tensor) -> None:
        """Take over tokens and caches of the proposals of `handle` where `accepted` (n,) bool."""
        ...

    def energy(self) -> Tensor:
        """E (C,) float64 of every chain, gauge included, from caches."""
        ...

    def rebuild(self) -> None:
        """Compute the caches from the tokens again, which removes the rounding drift."""
        ...


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
    if model.description["architecture"] == "factored":
        from manybody.sampling import factored

        # Of many layers the tables outgrow any machine: explicit masked copies then.
        if factored.supports(model, energy, gauge) and (
            sum(factored.bytes_needed(model, energy, gauge)) <= MEMORY
        ):
            return factored
    from manybody.sampling import masked

    return masked


def _check(model: Model, energy: str, gauge: str, precision: str) -> None:
    if energy not in ENERGIES:
        raise ValueError(f"energy is {energy!r}; expected one of {', '.join(ENERGIES)}")
    if gauge not in GAUGES:
        raise ValueError(f"gauge is {gauge!r}; expected one of {', '.join(GAUGES)}")
    if model.causal:
        name = model.description["architecture"]
        raise ValueError(f"{name} predicts the next token; clones need a masked model")
    if precision not in PRECISIONS:
        raise ValueError(f"precision is {precision!r}; expected {' or '.join(PRECISIONS)}")
    if precision == "bfloat16" and model.description["architecture"] not in COARSE:
        raise ValueError(
            f"precision bfloat16 is for {' or '.join(COARSE)}; the loops of "
            f"{model.description['architecture']} models take float32"
        )
