"""The interface of a model's chains to the Metropolis-Hastings driver.

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


class Chains(Protocol):
    """C chains of length L over |V| tokens. Indices are int64 tensors on the model's device.

    In every call each chain appears at most once. `rebuild` must leave exactly the caches, to the
    bit, that opening the same tokens anew would give: a restarted run then repeats a killed one.
    """

    tokens: Tensor  # (C, L) int64, the current states

    full_batches: bool
    """True if `log_ratio` is so much more expensive than `logits` that the driver should let every
    chain advance to its next real proposal (b != a) before it asks for ratios."""

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
