from typing import Literal

from manybody.data.options import Derived
from manybody.io.options import Seed, key, refers


class Options(Derived):
    """A clone of known order without training: n-grams of another source, drawn exactly."""

    reads = ("train.parquet", "test.parquet")
    carded = True
    kind: Literal["n-gram-clone"]
    source: refers(
        "sources",
        wanted="whose length the config says, made from no other",
        fits=lambda source: source.made_from is None and source.length,
    ) = key("Source whose training sequences n-grams are counted in.")
    order: int = key("Order n: a token depends on the n - 1 before it.", ge=1, le=8)
    smoothing: Literal["kneser-ney", "maximum-entropy"] = key(
        "kneser-ney is interpolated and gives every sequence some probability; maximum-entropy is "
        "the law of largest entropy with the frequencies of the training blocks' n-grams and of "
        "their beginnings."
    )
    seed: Seed = key("Draws the sequences.")

    def misfits(self, path, config):
        text = config.sources[self.source]
        if self.order > text.length:
            yield (
                f"{path}.order: found {self.order}; expected at most the L = {text.length} of "
                f"source {self.source}, since n-grams are runs within a block; lower it"
            )
        elif (text.vocabulary or 1) ** self.order >= 2**63:
            yield (
                f"{path}.order: found {self.order} with the |V| = {text.vocabulary} of source "
                f"{self.source}; expected |V|^n below 2^63, as n-grams are numbered; lower it"
            )
