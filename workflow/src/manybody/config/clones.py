"""The block `clones`: sequences drawn from a trained model."""

from typing import Literal

from manybody import models
from manybody.config.models import Trained
from manybody.io.options import (
    Block,
    Count,
    Inside,
    Positive,
    Seed,
    Several,
    different,
    key,
    numbered,
    refers,
)
from manybody.models import samplers

Ladder = different(Positive, 2)


class SeededRun(Block):
    """One run of a model."""

    model: Trained = key("Name of the model.")
    seed: Seed = key("Seed of that run.")


class LossOf(Block):
    """The checkpoint whose validation loss is nearest to another model's final one."""

    loss_of: SeededRun = key("The run whose final validation loss is the target.")


class Annealing(Block):
    """Sweeps at a rising inverse temperature, before those at 1."""

    start: Inside = key("Inverse temperature of the first sweep; it rises linearly.")
    sweeps: Count = key("Sweeps until it is 1; they count as sweeps of the clone.")


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
        "probabilities; reference the energy that has no factor k, with the unigram law of the "
        "training tokens for what is left out; brook the same along frozen paths from validation "
        "sequences. Of gibbs and ancestral it is what the trace records."
    )
    sampler: Literal[tuple(samplers.NEEDS)] = key(
        "mh proposes tokens and accepts by the energy; heat-bath draws a position from the "
        "energy's own conditional (raw or reference, of exact factored attention of up to two "
        "layers); gibbs from the model's masked conditional, which belongs to no energy; ancestral "
        "draws a causal model's tokens one after another.",
        "mh",
    )
    paths: Count | None = key(
        "Frozen paths that brook, and reference where it has no closed form, are the mean of; "
        "clones with one chain_seed share them.",
        None,
    )
    annealing: Annealing | None = key("Sweeps at a rising inverse temperature first.", None)
    inverse_temperatures: Ladder | None = key(
        "Parallel tempering: replicas at 1 and at falling inverse temperatures, which swap; the "
        "clone is those at 1.",
        None,
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
        energies, needed = samplers.NEEDS[self.sampler]
        if not samplers.suits(self.sampler, model.about):
            kind = "a causal model" if model.about.causal else f"of {model.architecture}"
            fitting = [
                sampler for sampler in samplers.NEEDS if samplers.suits(sampler, model.about)
            ]
            yield (
                f"{path}.model: found {self.model}, {kind}; expected {needed}, as the sampler "
                f"{self.sampler} needs it; take another model, or sampler: {' or '.join(fitting)}"
            )
            return
        yield from self._energy_misfits(path, model.about, energies)
        available = source.available("test")
        if self.chain_init == "test" and available and self.chains > available:
            yield (
                f"{path}.chains: found {self.chains} that start at test sequences; expected at "
                f"most the {available} of source {self.source}; lower it, or make more of them"
            )
        plain = self.sampler == "mh" and self.energy in ("raw", "norm") and not self._tempered
        if self.precision == "bfloat16" and not (plain and model.about.bfloat16_chains):
            coarse = models.architectures_with("bfloat16_chains")
            yield (
                f"{path}.precision: found bfloat16 for {self.model} of architecture "
                f"{model.architecture}, sampler {self.sampler} and energy {self.energy}; expected "
                f"float32, in which all is computed but the ratios of mh under raw and norm at one "
                f"temperature of {' and '.join(coarse)}; set it"
            )
        if isinstance(self.step, LossOf) and model.fitted:
            yield (
                f"{path}.step: found loss_of {self.step.loss_of.model}, but {self.model} is fitted "
                f"and keeps its end only; expected last; set it"
            )

    @property
    def _tempered(self) -> str | None:
        given = [name for name in ("annealing", "inverse_temperatures") if getattr(self, name)]
        return given[0] if given else None

    def _energy_misfits(self, path, about, energies):
        """Energy, sampler, paths and temperatures that do not fit together."""
        if self.energy not in energies:
            yield (
                f"{path}.energy: found {self.energy} with sampler {self.sampler}; expected "
                f"{' or '.join(energies)}; take it, or another sampler"
            )
        paths = samplers.takes_paths(self.energy, about)
        if paths != (self.paths is not None):
            form = "a mean over frozen paths" if paths else "none of frozen paths"
            way = "give a number, such as 4" if paths else "leave it out"
            yield (
                f"{path}.paths: found {self.paths}, but energy {self.energy} of {self.model} is "
                f"{form}; expected {'a number' if paths else 'nothing'}; {way}"
            )
        if self.gauge != "none" and self.energy in ("reference", "brook"):
            yield (
                f"{path}.gauge: found {self.gauge} with energy {self.energy}, which is free of the "
                f"gauge; expected none; set it"
            )
        if self._tempered and self.sampler not in samplers.TEMPERED:
            yield (
                f"{path}.{self._tempered}: found one with sampler {self.sampler}, which draws from "
                f"no energy; expected sampler {' or '.join(samplers.TEMPERED)}; take one, or "
                f"leave it out"
            )
        if self.sampler == "ancestral" and self.sweeps != [1]:
            yield (
                f"{path}.sweeps: found {self.sweeps} with sampler ancestral; expected [1], as each "
                f"draw is independent of the one before; set it"
            )
        if self.sampler == "ancestral" and self.order != "left-to-right":
            yield (
                f"{path}.order: found {self.order} with sampler ancestral; expected left-to-right, "
                f"the order that a causal model predicts in; set it"
            )

    def problems(self):
        if self.annealing and self.inverse_temperatures:
            yield (
                "annealing",
                "found one beside inverse_temperatures; expected one of them; leave one out",
            )
        if self.annealing and min(self.sweeps) <= self.annealing.sweeps:
            yield (
                "sweeps",
                f"found {min(self.sweeps)}, a sweep of the annealing; expected sweeps after "
                f"{self.annealing.sweeps}; take later ones",
            )
        ladder = self.inverse_temperatures
        if ladder and (ladder[0] != 1 or sorted(set(ladder), reverse=True) != ladder):
            yield (
                "inverse_temperatures",
                f"found {ladder}; expected 1 and then falling numbers, such as [1, 0.8, 0.6]; "
                f"order them",
            )
