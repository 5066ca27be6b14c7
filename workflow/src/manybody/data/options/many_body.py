from typing import Literal

from manybody.data.options import Sampled, TensorFile, Vectors
from manybody.io.options import Count, Positive, key, nearest_of


class Options(Sampled):
    """Samples of a Hamiltonian with k-body interactions."""

    kind: Literal["many-body"]
    order: int = key("Order k of the interaction, 2 to 4.", ge=2, le=4)
    couplings: nearest_of(Vectors, TensorFile) = key(
        "Interaction J of the sites, the mean of P products of random vectors, or a file's."
    )
    colours: Literal["potts"] | nearest_of(
        Vectors, TensorFile
    ) = key("Interaction U of the colours; potts is 1 where all colours are equal and 0 elsewhere.")
    logit_scale: Positive = key(
        "High-temperature scale S of the logits, which sets beta = S / sigma_h."
    )
    sweeps: Count = key("Gibbs sweeps of each chain from a uniform start.")

    @property
    def hamiltonian_order(self) -> int:
        return self.order

    def problems(self):
        if self.length < self.order:
            yield (
                "length",
                f"found {self.length}; expected at least {self.order} sites, the order of the "
                f"interaction; take at least {self.order}",
            )
