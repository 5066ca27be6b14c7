"""The block `evaluations`: a model's runs, and the sequence sets that they are tested on."""

from typing import Annotated, Literal

from pydantic import Field

from manybody.config.corpora import Split
from manybody.config.models import Trained
from manybody.config.sources import sized
from manybody.config.training import Fraction
from manybody.io.options import Block, Seeds, Several, key, nearest_of, numbered, refers


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
    sequences: Several = key("The first so many of the split.")
    source: refers("sources") = key(
        "A source of the same |V| and L, such as a cut or n-grams of the model's; by default that "
        "which the model was trained on.",
        None,
    )

    def misfits_of(self, path, source, config):
        if self.source is not None and _sizes(self.source, config) != _sizes(source, config):
            found, expected = (_shown(_sizes(name, config)) for name in (self.source, source))
            yield (
                f"{path}.source: found {self.source} with {found}; expected {expected}, as those "
                f"of source {source}, which the model is trained on; take another"
            )
        source = self.source or source
        most = config.sources[source].available(self.split)
        if most and self.sequences > most:
            yield (
                f"{path}.sequences: found {self.sequences}; expected at most {most}, the "
                f"{self.split} split of source {source}; lower it"
            )


def _sizes(source, config) -> tuple | None:
    """|V| and L; None where the source's file says them."""
    given = sized(source, config)
    return given.length and (given.vocabulary, given.length)


def _shown(sizes) -> str:
    return "those of its file" if sizes is None else "|V| = {}, L = {}".format(*sizes)


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

    def misfits(self, path, config):
        model = config.models[self.model]
        if model.about.causal and self.positions != "all":
            yield (
                f"{path}.positions: found {self.positions} for {self.model}, which predicts the "
                f"next token; expected all; set it"
            )
        for name, target in self.targets.items():
            if isinstance(target, SplitTarget):
                yield from target.misfits_of(f"{path}.targets.{name}", self.source, config)
