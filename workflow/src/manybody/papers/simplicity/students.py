"""Students, generators and chains as figures read them: blocks, keys, losses and traces."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, NamedTuple, Self

import pandas as pd
from pydantic import Field

from manybody import models
from manybody.io import tables
from manybody.io.options import Block, Reference, key, nested, numbered, refers
from manybody.measure import chains, intervals
from manybody.models import labels
from manybody.papers import claims as records, inputs as needed

Target = refers("targets")  # of the block's own evaluation
Test = refers("targets", of="of_generators")  # of the evaluations of all generators
Kept = numbered("steps", "evaluation")  # a checkpoint of the student
Run = numbered("seeds", "evaluation")  # a run of the student
Targets = list[Target]
Pair = Annotated[list[Target], Field(min_length=2, max_length=2)]
CloneTarget = refers("targets", wanted="a clone", fits=lambda target, _: hasattr(target, "clone"))


class StudentBlock(Block):
    """A student, and the generators of the clones that it is tested on."""

    evaluation: refers("evaluations") = key("Evaluation of the student.")
    control: Target = key("Target of original text.")

    @property
    def of_generators(self) -> list[str]:
        wide = getattr(self, "wide_generator", None)
        return getattr(self, "generators", []) + ([wide] if wide else [])


class StudentInputs(needed.Inputs):
    """Runs of a student and of the generators, all clones that they are tested on, and what
    captions say: entries of the student's model and of its source, chains of a clone."""

    runs: list[needed.Tested]
    generators: list[needed.Tested]
    clones: list[needed.Clone]
    model: dict
    source: dict
    corpus: str
    chains: dict

    @classmethod
    def of(cls, block: StudentBlock, config: dict, **others) -> Self:
        """Runs of the evaluation (its `seeds`, or all), the `chains`, and all targets' clones."""
        evaluation = config["evaluations"][block.evaluation]
        seeds = {block.evaluation: getattr(block, "seeds", None)}
        runs = needed.runs_of([block.evaluation], config, seeds)
        generators = needed.runs_of(block.of_generators, config, seeds)
        source = config["sources"][evaluation["source"]]
        shown = [str(name) for _, name, _ in nested("", block) if isinstance(name, Reference)]
        targets = (evaluation["targets"].get(name, {}) for name in shown)
        clones = (config["clones"][one["clone"]] | one for one in targets if "clone" in one)
        return cls(
            runs=runs,
            generators=generators,
            clones=needed.clones_of([*runs, *generators], *getattr(block, "chains", [])),
            model=config["models"][evaluation["model"]],
            source=source,
            corpus=source.get("corpus", evaluation["source"]),
            chains=next(clones, {}),
            **others,
        )

    def made(self) -> str:
        """Sentences of captions: how the student was trained, and how clones were drawn."""
        recipe, source = self.model.get("training") or {}, needed.sized(self.corpus, self.source)
        runs = records.counted(len(self.runs), "run")
        text = f"{models.about(self.model).label} on {source}, {runs}"
        if "batch" in recipe:
            text += " of {steps} steps at batch {batch}".format(**recipe)
        if self.chains:
            text += ". Clones: {chains} chains, {sweep} sweeps, {energy} score".format(
                **self.chains
            )
        return f"{text}."


@dataclass(frozen=True, eq=False)
class Evaluated:
    """A trained model and its losses on the targets of one evaluation (`tables.read_losses`).

    about and history: of its run, the first one where there are several seeds. targets: what is
    behind each target (`tables.read_targets`).
    """

    about: dict
    losses: pd.DataFrame
    targets: dict
    history: pd.DataFrame | None = None

    @cached_property
    def curves(self) -> pd.DataFrame:
        """Columns target, seed, step, and loss and accuracy with their errors over sequences."""
        return tables.learning_curves(self.losses)

    @cached_property
    def labels(self) -> dict[str, str]:
        return {name: labels.target(document) for name, document in self.targets.items()}

    @property
    def scope(self) -> str:
        """Network, source, |V|, L, and the number of runs."""
        return labels.scale(self.about, self.losses["seed"].nunique())


def read_evaluated(
    runs: Sequence[needed.Tested], clones: Sequence[needed.Clone], **named: str
) -> list[Evaluated]:
    """Each run of evaluations on its own. named: `corpus`, for the scope of their claims."""
    paths, found = {one.clone: one.file() for one in clones}, []
    for run in runs:
        about, history = tables.read_run(run.file("runs"))
        losses = tables.read_losses({run.seed: run.file("losses")})
        targets = tables.read_targets(run.targets, paths)
        found.append(Evaluated(about | named, losses, targets, history))
    return found


def read_student(
    runs: Sequence[needed.Tested], clones: Sequence[needed.Clone], **named: str
) -> Evaluated:
    """The student whose runs these are, all in one table of losses."""
    found = read_evaluated(runs, clones, **named)
    return replace(found[0], losses=pd.concat([run.losses for run in found], ignore_index=True))


DRIFT = 0.01  # of the score's total change, over the last quarter of the sweeps


class Chains(NamedTuple):
    """A clone's chains: `about` of its manifest, and its trace, whose score is -E / L averaged over
    chains, in nats a position."""

    about: dict
    trace: pd.DataFrame

    @property
    def end(self) -> int:
        return int(self.trace["sweep"].max())

    @property
    def label(self) -> str:
        """Its generator's, with the start where that is noise."""
        name = models.about(self.about["generator"]["description"]).generator
        return f"{name}, from noise" if self.about["chain_init"] == "unigram" else name

    def settled(self, sweep: int) -> records.Comparison:
        """The score moves by less than 1 % of its total change in the last quarter of sweeps."""
        label = f"{self.label}, {sweep} sweeps: share of the score's change in the last quarter"
        return records.near(label, *chains.drift(self.trace, sweep), 0.0, DRIFT)

    def forgotten(self, sweep: int) -> records.Comparison:
        """Less than a tenth of the positions hold the token that the chain started from."""
        label = f"{self.label}, {sweep} sweeps: share of the start's tokens"
        share, error = chains.kept(self.trace, sweep, self.about["chains"])
        return records.below(label, share, error, chains.FORGOTTEN)

    def mixed(self) -> records.Comparison:
        """Split R-hat of the score is below 1.05; it has no error."""
        label = f"{self.label}: split R-hat of the score"
        return records.below(label, chains.rhat_of(self.trace), 0.0, chains.RHAT)


def agreement(
    text: Chains, noise: Chains, losses: Sequence[pd.DataFrame], sweep: int
) -> Iterator[records.Comparison]:
    """Scores and their generator's losses of chains from noise, less those of chains from text.

    losses: of chains from text and from noise, as `tables.select` gives them. No difference is
    shown where each lies within its own margin of zero (Student, over chains).
    """
    count = min(one.about["chains"] for one in (text, noise))
    own = [tables.ratio(sums["loss_sum"], sums["predictions"]) for sums in losses]
    found = chains.agreement((text.trace, noise.trace), own, sweep, count)
    for name, (value, error) in (("score", found.score), ("loss of the generator", found.loss)):
        label = f"{noise.label}, {sweep} sweeps: {name} (± {error:.2g}) less that from text"
        margin = intervals.margin(error, count)
        yield records.near(label, value, error, 0.0, margin, deviations=0.0)  # the region has it
