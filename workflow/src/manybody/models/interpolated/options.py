from pydantic import Field

from manybody.models.block import Block


class Options(Block):
    """interpolated: between factored and common attention."""

    a: int | float = Field(
        ge=0,
        description="0 is factored attention (positions make the scores, colours the values), 1 "
        "has both in both.",
    )
