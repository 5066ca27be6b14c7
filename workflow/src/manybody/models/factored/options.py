from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from manybody.io.options import Block, Count, Positive


class Options(Block):
    """factored: the attention of the papers."""

    layers: Count = Field(
        description="Number of layers n; the order of interaction is 2^(n-1) + 1."
    )
    rank: Count | None = Field(
        description="Rank r of the value matrices, at most |V|; null for full matrices."
    )
    bias: bool | Literal["site"] = Field(
        description="A bias for each output token; site where each position has its own, the "
        "fields of a Potts model (one layer)."
    )
    variant: Literal["exact", "paper"] = Field(
        description="exact bounds the order; paper adds LayerNorm, and the order is nominal."
    )
    heads: Count = Field(1, description="Number of heads in each layer; 1 where nothing is said.")
    attention: Literal["free", "softmax"] = Field(
        "free",
        description="free weights (where nothing is said), or softmax, positive with row sums 1.",
    )
    init_scale: Positive | Annotated[list[Positive], Field(min_length=1)] = Field(
        None,
        description="Scale g of uniform initial values within g sqrt(3/N), N = L or |V|: one, or "
        "one for each layer. Normal, as in the language models, where nothing is said.",
    )

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.bias == "site" and self.layers > 1:
            yield (
                "bias",
                f"found site with {self.layers} layers; expected one layer; set bias to true or "
                f"false",
            )
        if self.heads > 1 and self.variant == "paper":
            yield (
                "heads",
                f"found {self.heads} with variant paper, which has one head; expected 1; leave "
                f"heads out, or take variant exact",
            )
        if self.init_scale is not None and self.rank is not None:
            yield (
                "init_scale",
                f"found {self.init_scale} with rank {self.rank}; expected rank null, since uniform "
                f"initial values are those of full V; set it, or leave init_scale out",
            )
        if isinstance(self.init_scale, list) and len(self.init_scale) != self.layers:
            yield (
                "init_scale",
                f"found {self.init_scale} for {self.layers} layers; expected one scale for each; "
                f"list them, or give one number for all",
            )
