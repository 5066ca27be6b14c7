from typing import Literal

from manybody.data.options import Derived
from manybody.io.options import Inside, Seed, key, refers


class Options(Derived):
    """A text in which some tokens are noise, beside which clones are read."""

    reads = ("train.parquet", "validation.parquet", "test.parquet")
    kind: Literal["noisy"]
    source: refers("sources", "text") = key("Source whose sequences they are, the first of each.")
    share: Inside = key(
        "Share of the tokens that are replaced, by draws of the training text's unigram law."
    )
    seed: Seed = key("Draws which, and by what.")
