from typing import Literal

from manybody.data.options import Drawn, TensorFile
from manybody.io.options import Block, NotNegative, Seed, key, nearest_of


class RandomRules(Block):
    """Rules of a tree that are drawn: each pair of children has one parent."""

    deviation: NotNegative = key("Standard deviation of the logits of a parent's pairs.")


class Options(Drawn):
    """Leaves of a binary tree, exact: the whole tree, or one filtered at a level."""

    conditionals = ("test.parquet", "manybody.data.tree")
    kind: Literal["tree"]
    depth: int = key("Depth l; the L = 2^l leaves are the sequence.", ge=1, le=12)
    level: Seed = key(
        "Level k of the filter: the nodes at depth k are independent given the root; 0 is the "
        "whole tree."
    )
    vocabulary: int = key("Symbols q = |V|, of leaves and other nodes.", ge=2, le=16)
    rules: nearest_of(RandomRules, TensorFile) = key(
        "Probabilities of the pairs of children of each symbol (q, q, q), random or of a file."
    )
    seed: Seed = key("Draws the rules, and the sequences of each level.")

    @property
    def length(self) -> int:
        return 2**self.depth

    def problems(self):
        if self.level > self.depth:
            yield (
                "level",
                f"found {self.level}; expected at most the depth {self.depth}, at which the "
                f"leaves are independent given the root; lower it",
            )
