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

    def misfits(self, path, config):
        length = getattr(
            config.sources[self.source], "length", None
        )  # an alignment's is in its file
        for name, found, most in self.lengths(length) if length else ():
            if found > most:
                yield (
                    f"{path}.{name}: found {found}; expected at most {most} with "
                    f"sources.{self.source}.length {length}; lower it"
                )

    def lengths(self, length: int):
        """Numbers that the length of a sequence bounds: name, value, bound."""
        return ()

    def _too_long(self, path, config, key):
        """True if all contexts are too many to be enumerated."""
        length = getattr(config.sources[self.source], "length", None)
        if (length or 0) > LONGEST:
            yield (
                f"{path}: found {key} with sources.{self.source}.length {length}; "
                f"expected at most {LONGEST} positions, as there are 2^(L - 1) contexts; take draws"
            )


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

    def misfits(self, path, config):
        yield from super().misfits(path, config)
        if self.passage is not None and self.passage >= self.sequences:
            yield (
                f"{path}.passage: found {self.passage}; expected a number below {path}.sequences "
                f"{self.sequences}; lower it"
            )
        model = config.models[self.model]
        length = getattr(config.sources[self.source], "length", None) or math.inf
        held = min(length, math.inf if model.about.degree is None else model.about.degree + 1)
        if self.bounded and held > self.orders + 1:
            yield (
                f"{path}.bounded: found true for {self.model} of architecture "
                f"{model.architecture}, which holds "
                f"{'any order' if held == math.inf else f'order {held}'}; expected order "
                f"{self.orders + 1} at most, as orders is {self.orders}: shares of single orders "
                "would be wrong; set it to false"
            )

    def lengths(self, length):
        yield "orders", self.orders, length - 1
        if self.anchored:
            yield "anchored.size", self.anchored.size, length - 1


class EnumeratedSpectrum(Spectrum):
    """All contexts, in double precision: exact but for the choice of sequences."""

    kind: Literal["enumeration"]

    def misfits(self, path, config):
        yield from super().misfits(path, config)
        yield from self._too_long(f"{path}.kind", config, "enumeration")


AnySpectrum = Annotated[DrawnSpectrum | EnumeratedSpectrum, Field(discriminator="kind")]
