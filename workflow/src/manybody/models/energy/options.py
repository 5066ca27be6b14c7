from typing import Literal

from pydantic import Field

from manybody.io.options import Block


class Options(Block):
    """energy: the conditionals of a k-body Hamiltonian, fitted or those of the source."""

    order: int = Field(ge=2, le=4, description="Order k of the interaction.")
    parameters: Literal["source"] = Field(
        None,
        description="source: the Hamiltonian that the source was sampled from, nothing is trained. "
        "Such a model has neither training nor init_seed.",
    )
