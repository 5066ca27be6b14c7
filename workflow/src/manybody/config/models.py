"""The block `models`: an architecture's options, as its module declares them, with a training."""

from functools import cached_property, reduce
from operator import or_
from typing import Annotated, Literal

from pydantic import Field, create_model

from manybody import models
from manybody.config.sources import sized
from manybody.config.training import training_of
from manybody.io.options import Block, Seed, key, refers

INIT_SEED = (
    "Draws the initial weights, which all runs of the model share; each where the run's seed "
    "draws them in its stream."
)


class Model(Block):
    """Keys of all models beside the options of their architecture."""

    @cached_property
    def about(self):
        """The description of the architecture, a `models.description.About`."""
        given = self.model_fields_set - {"init_seed", "training"}
        return models.about({name: getattr(self, name) for name in given})

    @property
    def adopts(self) -> bool:
        """True if the weights are the source's own, so that nothing is trained."""
        return getattr(self, "parameters", None) is not None

    @property
    def given(self) -> str | None:
        """The key that says where the weights are from where nothing is trained."""
        keys = ("parameters", "weights")
        return next((name for name in keys if getattr(self, name, None) is not None), None)

    @property
    def evaluated(self) -> bool:
        """True if it has runs to sample and to test: its own, or those of a training elsewhere."""
        return self.training is not None or self.about.read

    @property
    def fitted(self) -> bool:
        """True if it is fitted to all sequences at once."""
        return self.training is not None and self.training.optimizer.name == "lbfgs"

    def keeps(self, step: int) -> bool:
        """True of steps that it keeps checkpoints of; nothing is known of a training elsewhere."""
        return self.training.keeps(step) if self.training else self.about.read

    def problems(self):
        yield from super().problems()
        for name in ("init_seed", "training"):
            given = getattr(self, name)
            if self.given and given is not None:
                yield (
                    name,
                    f"found a value beside {self.given} {getattr(self, self.given)}, which are not "
                    f"trained; expected one of the two; leave one out",
                )
            if not self.given and given is None:
                yield (
                    name,
                    "missing; expected it for a model that is trained; give it, or take "
                    "parameters: source",
                )
        if self.training is None:
            return
        recipe = self.training
        if recipe.objective != self.about.objective:
            yield (
                "training.objective",
                f"found {recipe.objective}; expected {self.about.objective}, as a "
                f"{self.architecture} model is trained; set it",
            )
        sparsity = getattr(recipe.optimizer, "sparsity", None)
        if sparsity is not None and self.about.penalised is None:
            yield (
                "training.optimizer.sparsity",
                f"found {sparsity}; expected it for one layer of factored attention with free maps "
                f"only; leave it out",
            )

    def misfits_of(self, path: str, name: str, source: str, config):
        """True if the model `name` can be built for a source, on which `path` uses it."""
        recipe, given, sizes = self.training, config.sources[source], sized(source, config)
        if sizes.length is None:
            return  # |V| and L are in the source's file
        weighted = getattr(recipe, "sequence_weights", None) is not None
        if weighted and "weights.parquet" not in given.beside:
            yield (
                f"models.{name}.training.sequence_weights: found {recipe.sequence_weights}, "
                f"but {path} trains it on {source}, a {given.kind} source; expected an "
                f"alignment, whose sequences alone have weights; leave it out"
            )
        most = given.available("train")
        if most and recipe and (recipe.subset or 0) > most:
            yield (
                f"models.{name}.training.subset: found {recipe.subset}; expected at most the "
                f"{most} training sequences of source {source}, on which {path} "
                f"uses it; lower it or leave it out"
            )
        rank, order = getattr(self, "rank", None), getattr(self, "order", None)
        if rank and sizes.vocabulary and rank > sizes.vocabulary:
            yield (
                f"models.{name}.rank: found {rank}; expected at most the |V| = {sizes.vocabulary} "
                f"of source {source}, on which {path} uses it; take rank <= {sizes.vocabulary}, or "
                f"null for full values"
            )
        if order and order > sizes.length:
            yield (
                f"models.{name}.order: found {order}; expected at most the L = {sizes.length} of "
                f"source {source}, on which {path} uses it; lower it"
            )
        if self.adopts and order != given.hamiltonian_order:
            yield (
                f"models.{name}.order: found {order}, but source {source}, whose weights {path} "
                f"takes, is of order {given.hamiltonian_order or 'none: it has no Hamiltonian'}; "
                f"expected the same; change one"
            )
        if recipe:
            for what, said in recipe.batch_problems(source, sizes.length):
                yield f"models.{name}.training.{what}: {said}"


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
Trained = refers("models", wanted="that is trained", fits=lambda model: model.evaluated)
