"""The vanilla transformer encoder that factored attention is set against (potts, section 2)."""

from manybody.models import description


class About(description.Transformer):
    network = "Encoder"
    display_name = "encoder"
    maps = "averaged"
