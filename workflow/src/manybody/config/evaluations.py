"""The block `evaluations`: a model's runs, and the sequence sets that they are tested on."""

from typing import Annotated, Literal

from pydantic import Field

from manybody.config.corpora import Split, sized
from manybody.config.models import Trained
from manybody.config.training import Fraction
from manybody.io.options import Block, Seeds, key, nearest_of, numbered, refers


class CloneTarget(Block):
    """The states of a clone's chains at one sweep."""

    clone: refers("clones", same=("source",)) = key("Name of the clone.")
    sweep: numbered("sweeps", "clone", 1) = key("One of its saved sweeps.")


class InitialTarget(Block):
    """The sequences that a clone's chains started from."""

    initial: refers("clones", same=("source",)) = key("Name of the clone.")


class SplitTarget(Block):
    """Sequences of a split of the source, or of another one."""

    split: Split = key("The split.")
    sequences: numbered("sequences of its split", "source", 2) = key(
        "The first so many of the split."
    )
    source: refers("sources") = key(
        "A source of the same |V| and L, such as a cut of the model's; by default that "
        "which the model was trained on.",
        None,
    )


def _sizes(source, config) -> str:
    """|V| and L of a source in words."""
    given = sized(source, config)
    if given.length is None:
        return "those of its file"
    return f"|V| = {given.vocabulary}, L = {given.length}"


Target = nearest_of(CloneTarget, InitialTarget, SplitTarget)


class Evaluation(Block):
    """A model's runs and the sequence sets that each checkpoint is tested on."""

    source: refers("sources") = key("Name of the source that the model was trained on.")
    model: Trained = key("Name of the model that is tested.")
    seeds: Seeds = key("Runs that are tested.")
    positions: Fraction | Literal["all"] = key(
        "Masked positions; all, or a share drawn once and kept. Next-token models take all."
    )
    steps: Literal["all", "last"] = key("all checkpoints or the last.")
    targets: Annotated[dict[str, Target], Field(min_length=1)] = key("Sequence sets, by name.")

    def misfits(self, config):
        if config.models[self.model].about.causal and self.positions != "all":
            yield self.refused(
                "positions", "all", "set it", f" for {self.model}, which predicts the next token"
            )
        expected = _sizes(self.source, config)
        for name, target in self.targets.items():
            other = getattr(target, "source", None) or self.source
            if _sizes(other, config) != expected:
                yield (
                    f"targets.{name}.source",
                    f"found {other} with {_sizes(other, config)}; expected {expected}, as those of "
                    f"source {self.source}, which the model is trained on; take another",
                )
