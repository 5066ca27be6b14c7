"""Facts of a model that follow from its description alone, without torch."""

from collections.abc import Callable
from typing import Any


class About:
    """Facts of an architecture; each one overrides what differs, with a value or a property.

    A property decides by the `description` of a model, or its block of the config.
    """

    network: str  # name of the model's class
    module: str = "network"  # that of the class, in the package of the architecture
    display_name: str  # name of the architecture in claims and legends
    causal: bool = False  # it predicts the next token; else it predicts masked tokens
    # Chains of Metropolis-Hastings may compute ratios in half precision; it then says
    # `coarse_copy_bytes`, `work_size` in bytes of such a copy.
    coarse_chains: bool = False
    # Its attention maps: `fixed` parameters, or `averaged` over sequences; None without any.
    maps: str | None = None
    read: bool = False  # it was trained elsewhere; `read_step` of its network reads it from files
    # How its weights can be found: `recipe` (steps on batches), `fit` (L-BFGS).
    recipes: tuple[str, ...] = ("recipe",)
    # Highest order of interaction that the logits can express; None if only L bounds it.
    order: int | None = None
    nominal: bool = False  # `order` is the depth's name only, and the logits hold higher ones too
    # The number of layers if that sets the order, and with it the colour in figures.
    depth: int | None = None
    # Its logits are sums over pairs of sites, whose couplings `pair_factors` reads.
    pairwise: bool = False
    # It has a block of couplings for each pair, of a `PairModel`, and no heads.
    full: bool = False
    # It is a layer's equation in a paper (potts, eq. 4 and 2): runs are compared by sequence.
    equation: bool = False
    # `sampling.factored` knows what one token changes: eq. 3 of simplicity as it is written, with
    # one head and one bias for all positions.
    closed_form: bool = False
    # d, the numbers that the head reads of one copy, and an upper bound on the numbers of a masked
    # copy while its features are computed; None where only the network knows.
    feature_size: int | None = None
    work_size: int | None = None
    weights: int = 0  # numbers of the weights, where they can be large beside a process of torch

    def __init__(self, description: dict):
        self.description = description

    @property
    def objective(self) -> str:
        return "next-token" if self.causal else "masked"

    @property
    def kind(self) -> str:
        """Its name in comparisons of attention: the architecture, or a reading of it."""
        return self.description["architecture"]

    @property
    def bounded(self) -> bool:
        """True if the order is a restriction: it is not if it exceeds the sequence length L."""
        return self.order is not None and self.order <= self.description["length"]

    @property
    def degree(self) -> int | None:
        """The largest degree of the logits in the other tokens; None if only L bounds it."""
        return None if self.order is None or self.nominal else self.order - 1

    @property
    def generator(self) -> str:
        """Its name where it generates sequences: `BERT, any order`."""
        order = "any order" if self.order is None else f"order {self.order}"
        return f"{self.display_name}, {order}"

    @property
    def label(self) -> str:
        """Its name where it learns, with its size: `BERT 2 × 64`, layers and width."""
        shown = " × ".join(str(size) for size in self.sizes if size is not None)
        return f"{self.display_name} {shown}".rstrip()

    @property
    def sizes(self) -> list:
        """Layers and width; None of one that it does not have."""
        return [self.description.get(key) for key in ("layers", "width")]

    def pair_factors(self, tensor: Callable[[str], Any], layer: int = 0):
        """A (H, L, L) and V (H, |V|, |V|) of a layer, double precision, for models of a `depth`.

        `tensor` reads an array of a checkpoint by its name. A `pairwise` model has the couplings
        J_ij = sum_h A^h_ij V^h.
        """
        raise NotImplementedError

    def from_hamiltonian(self, hamiltonian):
        """The model whose softmax gives the conditionals of a `data.hamiltonian.Hamiltonian`.

        Raises `ValueError` where it cannot express them.
        """
        raise ValueError(
            f"the model is {self.description['architecture']}, whose weights no Hamiltonian gives"
        )


class Transformer(About):
    """Memory of a masked copy, of encoders of L rows."""

    @property
    def feature_size(self) -> int:
        return self.description["width"]

    @property
    def work_size(self) -> int:
        """Numbers a row: residual, norm, q k v, attention's output twice, hidden units twice."""
        numbers = 8 * self.description["width"] + 2 * self.description["mlp"]
        return self.description["length"] * numbers
