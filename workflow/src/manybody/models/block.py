"""What the typed options of all architectures have in common."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1)]
Scale = Annotated[int | float, Field(gt=0)]


class Block(BaseModel):
    """An architecture's keys in the config, one field each: type, bounds, default, description.

    A key that the class does not name is refused. Values are taken as they are written: 2.0 is no
    integer, `true` no number, and what is not finite is no number either.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Choices that do not fit together: the key, and what is wrong with it in a sentence."""
        yield from ()


class Transformer(Block):
    """What every transformer has."""

    layers: Count = Field(description="Number of layers.")
    heads: Count = Field(description="Attention heads; they divide the width.")
    width: Count = Field(description="Width of the residual stream.")
    mlp: Count = Field(description="Width of the hidden layer of the MLP.")

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.width % self.heads:
            yield (
                "heads",
                f"found {self.heads}, which does not divide width {self.width}; expected a "
                f"divisor; change either",
            )
