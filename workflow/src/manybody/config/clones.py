"""The block `clones`: sequences drawn from a trained model."""

import math
from typing import Literal

from manybody import models
from manybody.config.corpora import sized
from manybody.config.models import Trained
from manybody.io.options import (
    Block,
    Condition,
    Count,
    Seed,
    Several,
    different,
    key,
    numbered,
    refers,
)
from manybody.models import samplers


class SeededRun(Block):
    """One run of a model."""

    model: Trained = key("Name of the model.")
    seed: Seed = key("Seed of that run.")


class LossOf(Block):
    """The checkpoint whose validation loss is nearest to another model's final one."""

    loss_of: SeededRun = key("The run whose final validation loss is the target.")


class Clone(Block):
    """Sequences drawn from a trained model."""

    source: refers("sources") = key("Name of the source that the model was trained on.")
    model: Trained = key("Name of the model that is sampled.")
    seed: Seed = key("Seed of the run that is sampled.")
    step: Literal["last"] | numbered("steps", "model") | LossOf = key(
        "Checkpoint that is sampled: last, a step, or the one whose validation loss is nearest to "
        "another model's final one ({loss_of: {model, seed}})."
    )
    energy: Literal[samplers.ENERGIES] = key(
        "raw is the sum of the masked logits of the tokens (the paper's); norm of their log "
        "probabilities; reference the energy without the factor k (exact factored attention of "
        "up to two layers only), with the unigram law of the training tokens for what is left "
        "out. Of gibbs, enumerated and ancestral it is what the trace records."
    )
    sampler: Literal[tuple(samplers.NEEDS)] = key(
        "mh proposes tokens and accepts by the energy; heat-bath draws a position from the "
        "energy's own conditional (raw or reference, of exact factored attention of up to two "
        "layers); gibbs from the model's masked conditional, which belongs to no energy; "
        "enumerated from the stationary distribution of gibbs sweeps, found over all of at most "
        "65,536 states, whatever the start; ancestral draws a causal model's tokens one after "
        "another.",
        "mh",
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
    precision: Literal["float32", "float16", "bfloat16"] = key(
        "float16, bfloat16 (bert only): acceptance ratios are computed so, and in float32 again "
        "those that its error could decide."
    )
    threads: Count = key("CPU threads of torch.")

    conditions = (
        *(
            Condition("energy", energies, {"sampler": sampler})
            for sampler, (energies, _) in samplers.NEEDS.items()
        ),
        Condition("gauge", "none", {"energy": "reference"}, "which is free of the gauge"),
        Condition("sweeps", [1], {"sampler": samplers.INDEPENDENT}, "whose draws are independent"),
        Condition(
            "order", "left-to-right", {"sampler": samplers.INDEPENDENT}, "which draws in that order"
        ),
    )

    def misfits(self, config):
        model, source = config.models[self.model], config.sources[self.source]
        about = model.about
        if not samplers.suits(self.sampler, about):
            kind = "a causal model" if about.causal else f"of {model.architecture}"
            fitting = [sampler for sampler in samplers.NEEDS if samplers.suits(sampler, about)]
            yield self.refused(
                "model",
                f"{samplers.NEEDS[self.sampler][1]}, as the sampler {self.sampler} needs it",
                f"take another model, or sampler: {' or '.join(fitting)}",
                f", {kind}",
            )
            return
        if self.energy == "reference" and not samplers.closed(about):
            yield self.refused(
                "energy",
                f"raw or norm; reference needs {samplers.CLOSED}",
                "take one of them",
                f" of {self.model}",
            )
        of = sized(self.source, config)
        bits = (of.length or 1) * math.log2(of.vocabulary or 1)  # |V|^L of a wrong L takes minutes
        if self.sampler == "enumerated" and round(bits, 6) > math.log2(samplers.STATES):
            yield self.refused(
                "sampler",
                f"another for more than {samplers.STATES} states, as it enumerates all",
                "take gibbs",
                f" of |V|^L = {of.vocabulary}^{of.length}",
            )
        available = source.available("test")
        if self.chain_init == "test" and available and self.chains > available:
            yield self.refused(
                "chains",
                f"at most the {available} of source {self.source}",
                "lower it, or make more of them",
                " that start at test sequences",
            )
        plain = self.sampler == "mh" and self.energy in ("raw", "norm")
        if self.precision != "float32" and not (plain and about.coarse_chains):
            coarse = models.architectures_with("coarse_chains")
            yield self.refused(
                "precision",
                f"float32, in which all is computed but the ratios of mh under raw and norm of "
                f"{' and '.join(coarse)}",
                "set it",
                f" for {self.model} of architecture {model.architecture}, sampler {self.sampler} "
                f"and energy {self.energy}",
            )
        if isinstance(self.step, LossOf) and model.fitted:
            yield self.refused(
                "step.loss_of.model",
                "step: last",
                "set it",
                f", but {self.model} is fitted and keeps its end only",
            )
