from pydantic import Field

from manybody.io.options import Block, number


class Options(Block):
    """interpolated: between factored and common attention."""

    a: number(ge=0) = Field(
        description="0 is factored attention (positions make the scores, colours the values), 1 "
        "has both in both.",
    )
