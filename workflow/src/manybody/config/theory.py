"""The block `theory`: what is computed without data."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from manybody.config.training import Decay, Fraction
from manybody.io.options import (
    Block,
    Condition,
    Count,
    Digest,
    Inside,
    NotNegative,
    Positive,
    Seed,
    Several,
    different,
    given,
    key,
    number,
    other_than,
)

Length = Annotated[int, Field(ge=3)]
Activation = Literal["softmax", "linear"]


def _power_of_2(points: int) -> int:
    if points & (points - 1):
        raise ValueError("no power of 2")
    return points


def power_of_2(least: int):
    """The type of powers of 2 from `least` on; 0 is taken for one."""
    return Annotated[int, Field(ge=least), AfterValidator(_power_of_2)]


class Seeded(Block):
    """Keys of all theory that draws random numbers."""

    seed: Seed = key("Draws what is random: points, cases, teachers, data and starts.")


class Threaded(Seeded):
    """Keys of theory that runs on several threads."""

    threads: Count = key("Threads, or runs at once; numbers do not depend on it.")


class Quadrature(Threaded):
    """Integrals over scrambled points."""

    # Sobol sequences are balanced from there on.
    points: power_of_2(64) = key("Points of each scrambling, a power of 2.")
    scrambles: Several = key("Independent scramblings of the points; their spread is the error.")


def _no_sample(name: str, alpha: float, dimension: int):
    if round(alpha * dimension) < 1:
        yield (
            name,
            f"found {alpha}, no sample at dimension {dimension}; expected at least "
            f"{1 / dimension:g}; raise either",
        )


class GradientFlow(Seeded):
    """Gradient flow of two layers of factored attention in one dimension."""

    kind: Literal["gradient-flow"]
    length: Several = key("Tokens x_1..x_L that predict x_0.")
    time: Positive = key("End of the flows, in units of 1 / learning rate.")
    scales: different(Positive) = key("Standard deviations of the entries of B(0), Gaussian data.")
    decay: Positive = key("Weight decay of the flows that have one.")
    skewness: number() = key(
        "s in x_0 += s (x_1 x_2 - mean) and in the cases of squares; 0 turns it off."
    )
    samples: int = key("Samples of the Gaussian control.", ge=100)


class Replica(Threaded):
    """Ridge regression on Gaussian data with a GOE precision matrix, by replicas and simulation."""

    kind: Literal["replica"]
    gamma: number(gt=2) = key(
        "The precision matrix is gamma - G, G from the GOE with spectrum [-2, 2]."
    )
    ridge: Positive = key("Penalty lambda on the squared weights.")
    length: Length = key("Sites L of the simulation.")
    alphas: different(Positive) = key("Samples per site M / L.")
    realisations: Several = key("Draws of G and of the samples.")


class TwoLayers(Quadrature):
    """Keys of two layers of attention."""

    activation: Activation = key("Of both layers.")
    regulariser: NotNegative = key("Variance added to V in channel and data; 0 for none.")


class Informed(TwoLayers):
    """Keys of fixed points at one c, among others from an informed start."""

    skip: Positive = key("c, the strength of the skip connection; without one layer 1 is singular.")
    side_information: Positive = key(
        "s, strength of the side information that the informed start has."
    )


class StateEvolution(Informed):
    """Overlaps and errors of two layers of attention against alpha."""

    kind: Literal["multi-index-state-evolution"]
    alphas: different(Positive) = key("Samples per dimension N / D.")


class FixedOverlap(Informed):
    """Overlap of layer 1 while layer 2 is held at an overlap."""

    kind: Literal["multi-index-fixed-overlap"]
    alpha: Positive = key("Samples per dimension N / D.")
    overlaps: different(Inside) = key("Q22 that are held.")


class Thresholds(TwoLayers):
    """Thresholds of two layers of attention against the skip connection."""

    kind: Literal["multi-index-thresholds"]
    skips: different(number(gt=0, le=10)) = key(
        "Values of c; the grids of layer 1 grow as c^4 or so."
    )
    tolerance_1: Inside = key(
        "Relative standard error of the threshold of the layer that is learned second up to which "
        "it counts as converged."
    )


class Deep(Quadrature):
    """Overlaps of three layers of attention against alpha, and their thresholds."""

    kind: Literal["multi-index-deep"]
    skip: Positive = key("c, the strength of the skip connection.")
    alphas: different(Positive) = key("Samples per dimension N / D.")
    skips: different(Positive, 0) = key("Values of c in the phase diagram.")
    regulariser: NotNegative = key("Variance added to V in channel and data; 0 for none.")


class Gamp(Threaded):
    """Approximate message passing on two layers of attention."""

    kind: Literal["multi-index-gamp"]
    skip: NotNegative = key("c, the strength of the skip connection.")
    activation: Activation = key("Of both layers.", "softmax")
    dimension: Several = key("D.")
    alphas: different(Positive) = key("Samples per dimension N / D.")
    runs: Count = key("Teachers with data of their own at each alpha.")
    iterations: Count = key("At most.")
    damping: Fraction = key("Weight of the new values; 1 for no damping.")
    regulariser: NotNegative = key("Number added to V in the channel.")
    noise: NotNegative = key(
        "Variance of the noise on the indices of the data, the regulariser for a channel that "
        "knows it."
    )
    init: Literal["informed", "random"] = key(
        "informed: a noisy teacher with the overlaps given; random: normal numbers."
    )
    overlaps: Annotated[list[Decay], Field(min_length=2, max_length=2)] | None = key(
        "Of the two layers at an informed start, else null."
    )
    side_information: NotNegative = key("s, strength of the side information; 0 for none.")
    points: power_of_2(0) = key(
        "Points of each of eight sets for the same iteration at infinite dimension, a power of 2; "
        "0 for none."
    )

    conditions = (
        Condition("skip", other_than(0), {"activation": "linear"}, "which needs it", "c > 0"),
        Condition("overlaps", given, {"init": "informed"}, expected="two overlaps"),
        Condition("overlaps", None, {"init": "random"}, expected="null"),
        # The iteration at infinite dimension.
        Condition("points", 0, {"damping": other_than(1)}, "but that iteration is without damping"),
        Condition(
            "points",
            0,
            {"init": "random", "side_information": 0},
            "from which that iteration learns nothing by itself",
        ),
    )

    def problems(self):
        yield from _no_sample("alphas", min(self.alphas), self.dimension)
        if len({f"{alpha:g}" for alpha in self.alphas}) < len(self.alphas):
            yield self.refused(
                "alphas",
                "numbers that differ in six digits, by which the series are named",
                "change some",
            )


class GradientDescent(Threaded):
    """Gradient descent on two layers of attention."""

    kind: Literal["multi-index-sgd"]
    skip: NotNegative = key("c, the strength of the skip connection.")
    dimension: Several = key("D.")
    alpha: Positive = key("Samples per dimension.")
    batch: Count = key("Samples; the last of an epoch may be smaller.")
    repeats: Count = key("Updates in a row on one batch.")
    learning_rate: Positive = key("Of the loss summed over batch and entries and divided by D.")
    weight_decay: NotNegative = key("Times D.")
    init_scale: Positive = key("Standard deviation of the student's weights at first.")
    epochs: Count = key("Passes over the data.")
    runs: Count = key("How many.")
    same_teacher: bool = key(
        "true: runs differ in their data only; false: also in teacher and start."
    )

    def problems(self):
        yield from _no_sample("alpha", self.alpha, self.dimension)


class Sentences(Block):
    """Sentences of docstrings, classified by their package."""

    packages: dict[str, Digest] = key(
        "Installed distributions, the classes, each with the sha256 of its prose.", min_length=2
    )
    of_each: Several = key("Sentences of each.")


class Trec(Threaded):
    """A two-layer attention classifier of questions, or of sentences."""

    kind: Literal["multi-index-trec"]
    questions: str | Sentences | None = key(
        "A file of questions in the TREC label format, one a line, or sentences of docstrings; "
        "null: nothing is run."
    )
    tokenizer: str | None = key(
        "vocab.txt or tokenizer.json of a BERT; null: one is trained on the questions."
    )
    vocabulary: Several = key("Tokens of the tokenizer that is trained.", None)
    length: Length = key("Tokens of a question, two of them marks; longer ones are cut.")
    width: Count = key("Of the embeddings.")
    hidden: Count = key("Of the keys.")
    init_scale: Positive = key("Standard deviation of W at first.")
    held_out: Inside = key("Share of the questions that a run is tested on, drawn anew for each.")
    batch: Count = key("Questions.")
    learning_rate: Positive = key("Of AdamW.")
    epsilon: Positive = key("Of AdamW.")
    epochs: Count = key("Passes over the questions.")
    runs: Count = key("How many.")

    conditions = (
        Condition(
            "vocabulary",
            given,
            {"tokenizer": (None, "")},
            expected="the tokens of the tokenizer that is trained",
        ),
    )


Theory = Annotated[
    GradientFlow
    | Replica
    | StateEvolution
    | FixedOverlap
    | Thresholds
    | Deep
    | Gamp
    | GradientDescent
    | Trec,
    Field(discriminator="kind"),
]
