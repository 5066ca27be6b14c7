"""The backend that holds the chains of a model under an energy, and what all can be asked.

A backend holds C chains under one model and one energy. For the logits h_i(s), those at position
i with only i masked, the energies are (nats)

    raw   E(s) = - sum_i h_i[s_i]                        gauge "none"
    raw   E(s) = - sum_i (h_i[s_i] - mean_a h_i[a])      gauge "mean"
    norm  E(s) = - sum_i log softmax(h_i)[s_i]           (free of the gauge)

Proposals are drawn from softmax(h_i), so the change of term i cancels against the proposal ratio
and only the other positions are ever scored: log alpha = sum_{j != i} score_j(s') - score_j(s).
"""

from typing import Protocol

import numpy as np
from torch import Tensor

from manybody.models import samplers
from manybody.models.base import Model
from manybody.sampling import factored, footprint
from manybody.sampling.masked import CoarseChains, MaskedChains
from manybody.sampling.redraw import Causal, Enumerated, MaskedGibbs


class Chains(Protocol):
    """C chains of length L over |V| tokens. Indices are int64 tensors on the model's device.

    In every call each chain appears at most once, but in `logits` as often as the number `ahead`
    of a backend that has it says: so many steps of a chain, of which most proposals equal the
    current token, are then asked for at once. `rebuild` must leave exactly the caches, to the
    bit, that opening the same tokens anew would give: a restarted run then repeats a killed one.
    """

    tokens: Tensor  # (C, L) int64, the current states

    full_batches: bool
    """True if `log_ratio` is so much more expensive than `logits` that the driver should let every
    chain advance to its next real proposal (b != a) before it asks for ratios."""

    def logits(self, chains: Tensor, positions: Tensor) -> Tensor:
        """Masked logits (n, |V|) at one position of each named chain (n,), from caches."""

    def log_ratio(
        self, chains: Tensor, positions: Tensor, proposals: Tensor
    ) -> tuple[Tensor, object]:
        """log alpha (n,) float64 of setting one token of each named chain, and a handle on it."""

    def accept(self, handle: object, accepted: Tensor) -> None:
        """Take over tokens and caches of the proposals of `handle` where `accepted` (n,) bool."""

    def energy(self) -> Tensor:
        """E (C,) float64 of every chain, gauge included, from caches."""

    def rebuild(self) -> None:
        """Compute the caches from the tokens again, which removes the rounding drift."""


def open_chains(
    model: Model,
    tokens: Tensor,
    energy: str = "raw",
    gauge: str = "none",
    precision: str = "float32",
    sampler: str = "mh",
    mu: np.ndarray | None = None,
) -> Chains:
    """The fastest exact backend for `model`, started at `tokens` (C, L).

    The energy "reference" needs its distribution `mu` (|V|,). A `sampler` other than "mh" gives
    chains for `redraw.redraw`. `precision` float16 or bfloat16 (BERT) computes ratios in it and
    those near their threshold again in the model's own type: the same moves, faster on a GPU. The
    block `clones` of the config refuses what does not fit a model.
    """
    if sampler == "ancestral":
        return Causal(model, tokens)
    if sampler == "enumerated":
        return Enumerated(model, tokens)
    if samplers.by_order(sampler, energy, model.about):
        return factored.open_by_order(model, tokens, energy, gauge, mu, sampler)
    if sampler == "gibbs":
        return MaskedGibbs(model, MaskedChains(model, tokens, energy, gauge))
    if precision != "float32":
        return CoarseChains(model, tokens, energy, gauge, precision)
    if footprint.incremental(model, energy, *_numbers(model)):
        return factored.open_chains(model, tokens, energy, gauge)
    explicit = model.about.closed_form
    return (factored.ExplicitChains if explicit else MaskedChains)(model, tokens, energy, gauge)


def bytes_needed(
    model: Model, energy: str, precision: str = "float32", sampler: str = "mh"
) -> tuple[int, int]:
    """As `footprint.group_bytes`. In half precision the weights stand beside their own type a
    second time while copies are computed."""
    number, device = _numbers(model)
    shared, each = footprint.group_bytes(model, energy, number, device, sampler)
    if precision != "float32":
        shared += 2 * sum(weight.numel() for weight in model.parameters())
    return shared, each


def _numbers(model: Model) -> tuple[int, str]:
    """Bytes of one of the model's numbers, and the device that it is on."""
    weight = next(model.parameters())
    return weight.element_size(), weight.device.type
