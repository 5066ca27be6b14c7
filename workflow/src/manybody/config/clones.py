"""The block `clones`: Metropolis-Hastings chains of a trained model."""

from typing import Literal

from manybody import models
from manybody.config.block import Block, Seed, Several, different, refers
from manybody.models.block import Count, key


class SeededRun(Block):
    """One run of a model."""

    model: refers("models") = key("Name of the model.")
    seed: Seed = key("Seed of that run.")


class LossOf(Block):
    """The checkpoint whose validation loss is nearest to another model's final one."""

    loss_of: SeededRun = key("The run whose final validation loss is the target.")

    def misfits(self, path, config):
        name = self.loss_of.model
        if not config.models[name].evaluated:
            yield (
                f"{path}.loss_of.model: found {name}, which is not trained; expected a model with "
                f"a training; name one"
            )


class Clone(Block):
    """Metropolis-Hastings chains of a trained model."""

    source: refers("sources") = key("Name of the source that the model was trained on.")
    model: refers("models") = key("Name of the model that is sampled.")
    seed: Seed = key("Seed of the run that is sampled.")
    step: Literal["last"] | Seed | LossOf = key(
        "Checkpoint that is sampled: last, a step, or the one whose validation loss is nearest to "
        "another model's final one ({loss_of: {model, seed}})."
    )
    energy: Literal["raw", "norm"] = key(
        "raw is the sum of the masked logits of the tokens (the paper's); norm of their log "
        "probabilities."
    )
    gauge: Literal["none", "mean"] = key(
        "mean subtracts from each masked logit vector its mean over the vocabulary; none is the "
        "paper's reading."
    )
    chain_init: Literal["test", "unigram"] = key(
        "test sequences, or noise with the training text's token frequencies."
    )
    chains: Several = key("Number of chains.")
    sweeps: different(Count) = key("Sweeps whose states are saved.")
    order: Literal["left-to-right", "permuted"] = key("Order of the positions in a sweep.")
    chain_seed: Seed = key(
        "Draws the initial states, which all clones with this seed share, and, together with the "
        "clone's name, proposals, acceptance and permutations."
    )
    precision: Literal["float32", "bfloat16"] = key(
        "bfloat16 (bert only) computes the acceptance ratios in bfloat16, and in float32 again "
        "those that its error could decide."
    )
    threads: Count = key("CPU threads of torch.")

    def misfits(self, path, config):
        model, source = config.models[self.model], config.sources[self.source]
        if model.about.causal or not model.evaluated:
            kind = "a causal model" if model.evaluated else "which is not trained"
            yield (
                f"{path}.model: found {self.model}, {kind}; expected a trained model with masked "
                f"logits, as chains need them; take a factored or bert model"
            )
            return
        available = source.available("test")
        if self.chain_init == "test" and available and self.chains > available:
            yield (
                f"{path}.chains: found {self.chains} that start at test sequences; expected at "
                f"most the {available} of source {self.source}; lower it, or make more of them"
            )
        if self.precision == "bfloat16" and not model.about.bfloat16_chains:
            coarse = models.architectures_with("bfloat16_chains")
            yield (
                f"{path}.precision: found bfloat16 for {self.model}, of the architecture "
                f"{model.architecture}; expected float32, in which the loops of all but "
                f"{' and '.join(coarse)} are written; set it"
            )
        if self.step != "last" and model.fitted:
            step = self.model_dump(include={"step"})["step"]
            yield (
                f"{path}.step: found {step}, but {self.model} is fitted and keeps its "
                f"end only; expected last; set it"
            )
        elif isinstance(self.step, int) and model.training and not model.training.keeps(self.step):
            yield (
                f"{path}.step: found {self.step}; expected one of the checkpoints of "
                f"{self.model}, up to {model.training.steps}, or last; take one, or list it under "
                f"models.{self.model}.training.checkpoints"
            )
        yield from model.misfits_of(path, self.model, self.source, config)
