from typing import Literal

from pydantic import Field

from manybody.models.transformer import Transformer


class Options(Transformer):
    """encoder: the post-LN encoder."""

    positions: Literal["learnt", "sinusoidal"] = Field(
        "learnt",
        description="How positions are told apart, learnt where nothing is said; the tutorial that "
        "the paper probably used has sinusoidal.",
    )
    head: Literal["linear", "mlp"] = Field(
        "linear",
        description="From the last layer to logits, linear where nothing is said; mlp has a hidden "
        "layer with LayerNorm and ReLU, as that tutorial.",
    )
