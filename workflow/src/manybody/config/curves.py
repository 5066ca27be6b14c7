"""The block `curves`: many small fits of factored attention to subsets of a source."""

from typing import Annotated, Literal

from pydantic import Field

from manybody.io.options import (
    Block,
    Count,
    Positive,
    Seed,
    Several,
    different,
    key,
    numbered,
    refers,
)


class InitScale(Block):
    """Standard deviations of the normal numbers that A and V start from."""

    attention: Positive = key("Of A.")
    values: Positive = key("Of V.")


class Curve(Block):
    """Keys of all curves."""

    source: refers(
        "sources",
        wanted="with a Hamiltonian of order 2",
        fits=lambda source, _: source.hamiltonian_order == 2,
    ) = key("A source with a Hamiltonian of order 2.")
    sizes: different(Count) = key("Sequences M in a training set.")
    realisations: Several = key("Disjoint training sets at each size.")
    test: numbered("sequences of validation", "source", 2) = key(
        "The first so many validation sequences."
    )
    iterations: Count = key("Iterations of L-BFGS at most.")
    init_scale: InitScale = key(
        "Standard deviations of the normal numbers that A and V start from."
    )
    seed: Seed = key("Draws the starts.")

    def misfits(self, config):
        available = config.sources[self.source].sequences.train
        if self.realisations * max(self.sizes) > available:
            yield self.refused(
                "sizes",
                f"at most the {available} training sequences of source {self.source} in all",
                "lower either, or sample more",
                f" with {self.realisations} realisations of their own",
            )


class SeparabilityCurve(Curve):
    """Losses around the point where training sets cease to be separable."""

    kind: Literal["separability"]
    ridges: different(Positive) = key(
        "Penalties on half the squared weights beside the summed loss."
    )


class RecoveryCurve(Curve):
    """Errors of the couplings against the number of sequences."""

    kind: Literal["recovery"]
    sizes: different(Count, 2) = key("Sequences M in a training set.")
    ridge: Positive = key("Penalty on half the squared weights beside the mean loss.")


AnyCurve = Annotated[SeparabilityCurve | RecoveryCurve, Field(discriminator="kind")]
