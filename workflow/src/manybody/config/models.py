"""The block `models`: an architecture's options, as its module declares them, with a training."""

from functools import cached_property, reduce
from operator import or_
from typing import Annotated, Literal

from pydantic import Field, create_model

from manybody import models
from manybody.config.corpora import sized
from manybody.config.training import Recipe, training_of
from manybody.io.options import Block, Seed, key, refers
from manybody.training import kept_steps

INIT_SEED = (
    "Draws the initial weights, which all runs of the model share; each where the run's seed "
    "draws them in its stream."
)


class Model(Block):
    """Keys of all models beside the options of their architecture."""

    @cached_property
    def about(self):
        """The description of the architecture, a `models.description.About`."""
        return models.about(self.model_dump(exclude={"init_seed", "training"}, exclude_unset=True))

    @property
    def adopts(self) -> bool:
        """True if the weights are the source's own, so that nothing is trained."""
        return getattr(self, "parameters", None) is not None

    @property
    def given(self) -> str | None:
        """The key that says where the weights are from where nothing is trained."""
        return next(
            (name for name in ("parameters", "weights") if getattr(self, name, None) is not None),
            None,
        )

    @property
    def evaluated(self) -> bool:
        """True if it has runs to sample and to test: its own, or those of a training elsewhere."""
        return self.training is not None or self.about.read

    @property
    def fitted(self) -> bool:
        """True if it is fitted to all sequences at once."""
        return self.training is not None and self.training.optimizer.name == "lbfgs"

    def keeps(self, step: int) -> bool:
        """True of steps that it keeps checkpoints of: none is named of a fit, which keeps its end;
        nothing is known of a training elsewhere."""
        if isinstance(self.training, Recipe):
            return step <= self.training.steps and step in kept_steps(self.training.model_dump())
        return self.about.read

    def problems(self):
        yield from super().problems()
        for name in ("init_seed", "training"):
            value = getattr(self, name)
            if self.given and value is not None:
                yield (
                    name,
                    f"found a value beside {self.given} {getattr(self, self.given)}, which are not "
                    f"trained; expected one of the two; leave one out",
                )
            if not self.given and value is None:
                yield (
                    name,
                    "missing; expected it for a model that is trained; give it, or take "
                    "parameters: source",
                )
        recipe, about = self.training, self.about
        if recipe and recipe.objective != about.objective:
            yield self.refused(
                "training.objective",
                f"{about.objective}, as a {self.architecture} model is trained",
                "set it",
            )
        if recipe and about.full != bool(getattr(recipe.optimizer, "couplings", None)):
            yield self.refused(
                "training.optimizer.couplings",
                "gremlin or plmdca for heads full, and nothing for other models",
                "set it" if about.full else "leave it out, or take heads full",
            )

    def misfits_of(self, source: str, config):
        """Why the model cannot be built for a source or trained on it, as `problems`."""
        recipe, given, sizes = self.training, config.sources[source], sized(source, config)
        if sizes.length is None:
            return  # |V| and L are in the source's file
        weighted = getattr(recipe, "sequence_weights", None) is not None
        if weighted and "weights.parquet" not in given.beside:
            yield self.refused(
                "training.sequence_weights",
                "an alignment, whose sequences alone have weights",
                "leave it out",
                f", but {source} is a {given.kind} source",
            )
        for split, counted in (("train", "subset"), ("validation", "validation")):
            most = given.available(split)
            if most and (getattr(recipe, counted, None) or 0) > most:
                yield self.refused(
                    f"training.{counted}",
                    f"at most {most}, the sequences of the {split} split of source {source}",
                    "lower it",
                )
        rank, order = getattr(self, "rank", None), getattr(self, "order", None)
        if rank and sizes.vocabulary and rank > sizes.vocabulary:
            yield self.refused(
                "rank",
                f"at most the |V| = {sizes.vocabulary} of source {source}",
                f"take rank <= {sizes.vocabulary}, or null for full values",
            )
        if order and order > sizes.length:
            yield self.refused(
                "order", f"at most the L = {sizes.length} of source {source}", "lower it"
            )
        if self.adopts and order != given.hamiltonian_order:
            yield self.refused(
                "order",
                "the same",
                "change one",
                f", but source {source}, whose weights it takes, is of order "
                f"{given.hamiltonian_order or 'none: it has no Hamiltonian'}",
            )
        if isinstance(recipe, Recipe):
            yield from recipe.batch_misfits(source, sizes.length)


def _entry(architecture: str) -> type[Model]:
    """The block of a model of an architecture: its options, its trainings, and what all have."""
    options = models.options(architecture)
    default = None if {"parameters", "weights"} & set(options.model_fields) else ...
    training = training_of(*models.about({"architecture": architecture}).recipes)
    return create_model(
        architecture.title(),
        __base__=(Model, options),
        __doc__=options.__doc__,
        architecture=(Literal[architecture], key("The architecture.")),
        init_seed=(Seed | Literal["each"], key(INIT_SEED, default)),
        training=(training, key("How it is trained.", default)),
    )


AnyModel = Annotated[
    reduce(or_, map(_entry, models.ARCHITECTURES)), Field(discriminator="architecture")
]
Trained = refers("models", wanted="that is trained", fits=lambda model, _: model.evaluated)
