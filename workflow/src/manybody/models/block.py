"""What the typed options of all architectures have in common."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, WrapValidator


def key(description: str, default: Any = ..., **bounds) -> Any:
    """A key of a block; one without a default has to be given."""
    return Field(default, description=description, **bounds)


def number(**bounds) -> Any:
    """The type of a number within bounds. An integer stays one, and is written as one."""
    return Annotated[float, Field(**bounds), WrapValidator(_as_written)]


def _as_written(value, check):
    check(value)
    return value


Count = Annotated[int, Field(ge=1)]
Positive = number(gt=0)
Text = Annotated[str, Field(min_length=1)]
Repository = Annotated[str, Field(pattern=r"^[\w.-]+/[\w.-]+$")]  # of the Hugging Face hub


class Block(BaseModel):
    """A mapping of the config: one field a key, with type, bounds, default and description.

    A key that the class does not name is refused. Values are taken as they are written: 2.0 is no
    integer, since paths are made of numbers, `true` is no number, nor is what is not finite. A key
    may be left out if it has a default, which is None where nothing takes its place.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Choices that do not fit together: the key ('' for all), and a sentence that says so."""
        yield from ()


class Transformer(Block):
    """What every transformer has."""

    layers: Count = key("Number of layers.")
    heads: Count = key("Attention heads; they divide the width.")
    width: Count = key("Width of the residual stream.")
    mlp: Count = key("Width of the hidden layer of the MLP.")

    def problems(self) -> Iterator[tuple[str, str]]:
        if self.width % self.heads:
            yield (
                "heads",
                f"found {self.heads}, which does not divide width {self.width}; expected a "
                f"divisor; change either",
            )
