"""The block `spectra`: which orders of interaction the checkpoints of a model use."""

import math
from typing import Annotated, Literal

from pydantic import Field

from manybody.io.options import (
    Block,
    Count,
    Positive,
    Seeds,
    Several,
    different,
    key,
    numbered,
    refers,
)

# `measure.spectrum` has both, and imports torch.
LONGEST = 17  # L of sequences whose contexts are enumerated
FEWEST = 4  # sequences, two blocks and what their tokens are exchanged for


class Anchored(Block):
    """The loss of the last checkpoint's logits, cut at each degree in a few positions."""

    size: Count = key("Positions q whose tokens are exchanged; a target takes 2^q forwards.")
    targets: Several = key("Tokens that are predicted.")


class Spectrum(Block):
    """A model's runs, and the sequences that its contexts are made of."""

    source: refers("sources") = key("Name of the source that the model was trained on.")
    model: refers("models") = key("Name of the model.")
    seeds: Seeds = key("Its runs.")
    steps: Literal["all", "last"] | Count | different(numbered("steps", "model")) = key(
        "all checkpoints, the last, so many at most, from a 15th of the last on and spread by "
        "their logarithm, or a list."
    )
    sequences: numbered("sequences of test", "source", FEWEST) = key(
        "The first so many of the test split: half are contexts, half what their tokens are "
        "exchanged for."
    )

    def length(self, config) -> float:
        """L of the source; infinite where it is not known, as that of an alignment."""
        return getattr(config.sources[self.source], "length", None) or math.inf


class DrawnSpectrum(Spectrum):
    """Estimates from samples of contexts, whose errors are stated."""

    kind: Literal["draws"]
    law: Literal["text", "unigram", "model"] = key(
        "What tokens are exchanged for: those of other sequences, draws of the unigram law, or the "
        "model's own."
    )
    orders: Count = key("The largest k of M_k; M_k is 0 for a model of order k or less.")
    bounded: bool = key(
        "Whether the share of each order follows too, which needs a model of order `orders` + 1 at "
        "most.",
        False,
    )
    first: Positive = key("Standard error of M_1 that is asked, as a share of M_1.")
    higher: Positive = key("Standard error of every other M_k, as a share of the variance.")
    forwards: Count = key("Sequences that a checkpoint is given at most for that.")
    anchored: Anchored | None = key(
        "The loss of the last checkpoint by degree; null for none.", None
    )
    passage: int | None = key(
        "Number of the test sequence of which the last checkpoint is asked which token acts on "
        "which, by `forwards` more; null for none.",
        None,
        ge=0,
    )

    def misfits(self, config):
        length, model = self.length(config), config.models[self.model]
        longest = f"at most {length - 1} with sources.{self.source}.length {length}"
        if self.orders >= length:
            yield self.refused("orders", longest, "lower it")
        if self.anchored and self.anchored.size >= length:
            yield self.refused("anchored.size", longest, "lower it")
        if self.passage is not None and self.passage >= self.sequences:
            yield self.refused("passage", f"a number below sequences {self.sequences}", "lower it")
        held = min(length, math.inf if model.about.degree is None else model.about.degree + 1)
        if self.bounded and held > self.orders + 1:
            yield self.refused(
                "bounded",
                f"order {self.orders + 1} at most, as orders is {self.orders}: shares of single "
                f"orders would be wrong",
                "set it to false",
                f" for {self.model} of architecture {model.architecture}, which holds "
                f"{'any order' if held == math.inf else f'order {held}'}",
            )


class EnumeratedSpectrum(Spectrum):
    """All contexts, in double precision: exact but for the choice of sequences."""

    kind: Literal["enumeration"]

    def misfits(self, config):
        length = self.length(config)
        if LONGEST < length < math.inf:
            yield self.refused(
                "kind",
                f"at most {LONGEST} positions, as there are 2^(L - 1) contexts",
                "take draws",
                f" with sources.{self.source}.length {length}",
            )


AnySpectrum = Annotated[DrawnSpectrum | EnumeratedSpectrum, Field(discriminator="kind")]
