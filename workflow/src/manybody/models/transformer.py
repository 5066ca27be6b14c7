"""Options that every transformer has."""

from collections.abc import Iterator

from manybody.io.options import Block, Count, key


class Transformer(Block):
    """Keys of every transformer."""

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
