"""Figures of arXiv 2410.19637."""

from typing import Annotated

from pydantic import Field

from manybody.config.figures.base import TRUE, Figure, SeededModel, inputs
from manybody.io.options import (
    Block,
    Count,
    Name,
    Reference,
    Seed,
    Text,
    different,
    inside,
    key,
    refers,
)

Evaluation = refers("evaluations")
Target = refers("targets")  # of the block's own evaluation
Clone = refers("clone targets")  # those of them that are clones
Targets = list[Target]
Pair = Annotated[list[Target], Field(min_length=2, max_length=2)]
Kinds = different(Clone)


class Student(Block):
    """A student, and the generators of the clones that it is tested on."""

    evaluation: Evaluation = key("Evaluation of the student.")
    control: Target = key("Target of original text.")

    @property
    def tested(self) -> list[str]:
        """Evaluations of all generators."""
        wide = getattr(self, "wide_generator", None)
        return [*getattr(self, "generators", []), *([wide] if wide else [])]

    def misfits(self, path, config):
        """Whether the evaluations have the targets, seeds and checkpoints that are drawn."""
        evaluation = config.evaluations[self.evaluation]
        yield from self._target_problems(path, evaluation)
        for number, seed in enumerate(getattr(self, "seeds", None) or []):
            if seed not in evaluation.seeds:
                yield (
                    f"{path}.seeds[{number}]: found {seed}; expected seeds that "
                    f"evaluations.{self.evaluation} runs, {evaluation.seeds}; take some of them or "
                    f"add it there"
                )
        for name in getattr(self, "palette", ()):
            if name not in evaluation.targets:
                yield (
                    f"{path}.palette.{name}: found a colour for no target; expected targets of "
                    f"evaluations.{self.evaluation}: {', '.join(evaluation.targets)}; remove it"
                )
        test = getattr(self, "test", None)
        if self.tested and test is None:
            yield (
                f"{path}.test: missing; expected the target of test text in the evaluations of "
                f"generators; name it, or leave generators out"
            )
            return
        for name in self.tested:
            targets = config.evaluations[name].targets
            if test not in targets:
                yield (
                    f"{path}.test: found {test}; expected a target of evaluations.{name}, "
                    f"which are {', '.join(targets)}; take one of them or add it there"
                )

    def _target_problems(self, path, evaluation):
        """Whether what names a target names one of the evaluation's."""
        clones = [name for name, target in evaluation.targets.items() if hasattr(target, "clone")]
        known = {"targets": list(evaluation.targets), "clone targets": clones}
        for where, name in inside(path, self):
            if isinstance(name, Reference) and name not in known.get(name.block, [name]):
                what = "a clone among" if name.block == "clone targets" else "one of"
                yield (
                    f"{where}: found {name}; expected {what} the targets of "
                    f"evaluations.{self.evaluation}: {', '.join(known[name.block])}; take one of "
                    f"them or add it there"
                )


def runs(students: list[Student], config: dict) -> list[tuple[str, int]]:
    """(evaluation, seed) of the students and of all their generators.

    A student's are its block's `seeds`, all of the evaluation by default.
    """
    names = [part.evaluation for part in students]
    names += [name for part in students for name in part.tested]
    own = {part.evaluation: getattr(part, "seeds", None) for part in students}
    return [
        (name, seed)
        for name in dict.fromkeys(names)
        for seed in own.get(name) or config["evaluations"][name]["seeds"]
    ]


class Drawn(Student, Figure):
    """What figures of one student have."""

    seeds: list[Seed] = key(
        "Runs that are drawn; all of the evaluation by default.", None, min_length=1
    )
    palette: dict[str, str] = key("Colours of targets that differ from the palette's.", {})

    def inputs(self, config):
        return inputs(config, runs=runs([self], config))


class SimplicityFig1(Drawn):
    """Losses on the clones against the epoch."""

    ladder: Targets = key("Targets from low to high order.", min_length=2)

    def inputs(self, config):
        figures = config.get("figures", {}).get("simplicity", {})
        same = [
            name
            for name, block in figures.items()
            if "late_steps" in block and block["evaluation"] == self.evaluation
        ]
        return inputs(config, runs=runs([self], config), elsewhere=next(iter(same), None))


class Twins(Block):
    """Clones of one generator from text and from noise, which agree if they are its samples."""

    evaluation: Evaluation = key("Evaluation of the generator, one of the figure's.")
    text: Name = key("Its target of chains from test sequences.")
    noise: Name = key("Its target of chains from unigram noise.")

    def misfits(self, path, config):
        evaluation = config.evaluations[self.evaluation]
        own = {
            name: target.sweep
            for name, target in evaluation.targets.items()
            if hasattr(target, "clone") and config.clones[target.clone].model == evaluation.model
        }
        found = [self.text, self.noise]
        for name in found:
            if name not in own:
                yield (
                    f"{path}: found {name}; expected targets of evaluations.{self.evaluation} that "
                    f"are clones of its own model: {', '.join(own) or 'none'}; take two of them or "
                    f"add them there"
                )
        if set(found) <= set(own) and own[self.text] != own[self.noise]:
            yield (
                f"{path}: found {' and '.join(found)} at different sweeps; expected the same; "
                f"change one of them in evaluations.{self.evaluation}"
            )


class SimplicityFig3(Drawn):
    """The generators' quality, their chains' scores, two sweeps compared."""

    evaluation: Evaluation = key("Evaluation of the student of panel c.")
    seeds: list[Seed] = key("Runs that are read; panel c draws the first.", None, min_length=1)
    generators: list[Evaluation] = key("Evaluations of the generators from low to high order.")
    wide_generator: Evaluation = key("Evaluation of a low-order generator of high quality.", None)
    test: Name = key("Target of test text in the generators' evaluations.")
    chains: list[refers("clones")] = key("Clones whose scores panel b draws.")
    twins: list[Twins] = key(
        "Clones of one generator from text and from noise, which agree if they are samples of it.",
        [],
    )
    pairs: list[Pair] = key("Pairs of targets, the same chains at two sweeps, for panel c.")

    def inputs(self, config):
        return inputs(config, runs=runs([self], config), clones=self.chains)

    def misfits(self, path, config):
        yield from super().misfits(path, config)
        for number, twins in enumerate(self.twins):
            if twins.evaluation not in self.generators:
                yield (
                    f"{path}.twins[{number}].evaluation: found {twins.evaluation}; expected one of "
                    f"{path}.generators: {', '.join(self.generators)}; take one of them or add it "
                    f"there"
                )


class SimplicityFig4(Drawn):
    """Losses on the clones against the step, accuracy, and late losses."""

    ladder: Targets = key("Targets from low to high order.", min_length=2)
    early_stopped: Target = key(
        "Target whose generator was stopped at the lowest order's loss.", None
    )
    wide: Target = key("Target whose low-order generator is as good as the highest's.", None)
    norm: Targets = key("The ladder by the norm score.", [])
    chain_inits: Pair = key(
        "Two targets of one generator, from test sequences and from unigram noise.", None
    )
    generators: list[Evaluation] = key(
        "Evaluations of the generators, whose losses must be equal where orders are compared.", []
    )
    test: Name = key("Target of test text in the generators' evaluations.", None)
    late_steps: list[Seed] = key("Checkpoints of the right panel.", min_length=2)

    def misfits(self, path, config):
        yield from super().misfits(path, config)
        student = config.evaluations[self.evaluation].model
        yield from _kept(f"{path}.late_steps", self.late_steps, student, config.models[student])


def _kept(path, steps, name, model):
    """Whether a model keeps checkpoints of these steps."""
    for step in steps if model.training and not model.fitted else ():
        if not model.training.keeps(step):
            yield (
                f"{path}: found {step}; expected checkpoints of {name}, up to "
                f"{model.training.steps}; take others, or list it under "
                f"models.{name}.training.checkpoints"
            )


class Comparison(Block):
    """Clones that saturate later if the order sets the time, and the others."""

    late: Kinds = key("Targets of the higher order, one for each run of the generator.")
    early: Kinds = key("Targets of the lower order, one for each run of the generator.")


class HeadlineCorpus(Student):
    """A student of one corpus."""

    generators: list[Evaluation] = key(
        "Evaluations of the generators, whose losses must be equal where orders are compared."
    )
    test: Name = key("Target of test text in the generators' evaluations.")
    comparisons: list[Comparison] = key(
        "Pairs of kinds of clones: the one that saturates later if the order sets the time, and "
        "the other.",
        min_length=1,
    )


class Headline(Figure):
    """Does the order of interaction set the time? Clones of generators of equal loss and different
    order, with intervals."""

    corpora: list[HeadlineCorpus] = key("A student of each corpus.", min_length=1)

    def inputs(self, config):
        return inputs(config, runs=runs(self.corpora, config))


class Series(Block):
    """Clones of several generators that are drawn in one way."""

    label: Text = key("What they are called.")
    targets: different(Target) = key("Targets, each of a generator of its own.")


class Controls(Student, Figure):
    """Is a time set by the order of a generator, or by its quality? Clones of many generators."""

    generators: list[Evaluation] = key("Evaluations of the generators at all their checkpoints.")
    test: Name = key("Target of test text in the generators' evaluations.")
    series: list[Series] = key(
        "Clones by the way they are drawn: each is a regression of its own.", min_length=1
    )
    twins: list[Pair] = key("Pairs of targets of one generator, from text and from noise.", [])
    noise: Targets = key("Targets of text with noise.", [])
    spectrum: refers("spectra", "draws") = key("Spectrum of the student along its training.")
    late: Annotated[list[Seed], Field(min_length=2, max_length=2)] = key(
        "Two checkpoints of the student, between which a loss rises or falls late."
    )

    def inputs(self, config):
        targets = config["evaluations"][self.evaluation]["targets"].values()
        drawn = dict.fromkeys(target["source"] for target in targets if "source" in target)
        return inputs(
            config,
            runs=runs([self], config),
            spectra=of_seeds([self.spectrum], config),
            sources=drawn,
        )

    def misfits(self, path, config):
        yield from super().misfits(path, config)
        evaluation = config.evaluations[self.evaluation]
        model, spectrum = config.models[evaluation.model], config.spectra[self.spectrum]
        if (spectrum.source, spectrum.model) != (evaluation.source, evaluation.model):
            yield (
                f"{path}.spectrum: found {self.spectrum}, of {spectrum.model}; expected one of the "
                f"student, {evaluation.model}; take another"
            )
        yield from _kept(f"{path}.late", self.late, evaluation.model, model)
        found = [config.evaluations[name] for name in self.generators]
        tested = {(one.model, seed) for one in found if one.steps == "all" for seed in one.seeds}
        targets = evaluation.targets
        known = {getattr(targets.get(n), "clone", None) for one in self.series for n in one.targets}
        for where, names in (
            ("noise", self.noise),
            ("series", [name for one in self.series for name in one.targets]),
            ("twins", [text for text, _ in self.twins]),
        ):
            for name in names:
                yield from self._unfit(f"{path}.{where}", where, name, known, tested, config)

    def _unfit(self, path, where, name, known, tested, config):
        """Whether a target is what it is named for."""
        target = config.evaluations[self.evaluation].targets.get(name)
        if target is None:
            return  # said already
        kind = config.sources[target.source].kind if getattr(target, "source", None) else None
        clone = config.clones[target.clone] if hasattr(target, "clone") else None
        if where == "noise" and kind != "noisy":
            yield f"{path}: found {name}; expected targets of a source of kind noisy; take others"
        if where == "twins" and (clone is None or target.clone not in known):
            yield (
                f"{path}: found {name}; expected first a target of a clone that one of the series "
                f"has; take another, or add it there"
            )
        if where == "series" and clone is None and kind != "n-gram-clone":
            yield (
                f"{path}: found {name}; expected clones, or targets of a source of kind "
                f"n-gram-clone, whose order is known; take others"
            )
        if where == "series" and clone and (clone.model, clone.seed) not in tested:
            yield (
                f"{path}: found {name}, a clone of run {clone.seed} of {clone.model}, of which "
                f"{path[:-7]}.generators has no evaluation of all steps; add one there"
            )


class Staircase(Figure):
    """Networks of growing depth on samples of a known Hamiltonian."""

    source: refers("sources", "many-body", "potts") = key("A many-body source.")
    networks: list[SeededModel] = key("Factored attention, from low to high depth.")
    protocols: list[SeededModel] = key(
        "The deepest network by other recipes, shown beside the first.", []
    )
    lines: list[refers("models")] = key("Energy models, from low to high order.")
    truth: refers("models") = key("The energy model with the source's own weights.")
    exact: refers("theory", "many-body-exact") = key("Theory of kind many-body-exact.", None)

    def trained(self) -> list[tuple[str, str, int]]:
        """(source, model, seed) of the runs that are followed: networks and other protocols."""
        networks = [*self.networks, *self.protocols]
        return [(self.source, entry.model, seed) for entry in networks for seed in entry.seeds]

    def models(self) -> list[tuple[str, str, int]]:
        """The same with what they are compared with: lines and truth."""
        return self.trained() + [(self.source, name, 0) for name in [*self.lines, self.truth]]

    def inputs(self, config):
        deepest = self.networks[-1].model_dump() if self.networks else None
        same = [
            name
            for name, block in config.get("figures", {}).get("simplicity", {}).items()
            if self.protocols
            and "networks" in block
            and "protocols" not in block
            and (block["source"], block["networks"][-1]) == (self.source, deepest)
        ]
        return inputs(
            config,
            models=self.models(),
            displacements=self.trained(),
            sources=[self.source],
            theory=[self.exact] if self.exact else [],
            elsewhere=next(iter(same), None),
        )

    def misfits(self, path, config):
        if not config.models[self.truth].adopts:
            yield f"{path}.truth: found {self.truth}; {TRUE}"
        entries = {"networks": self.networks, "protocols": self.protocols}
        named = [(key_, entry.model) for key_, part in entries.items() for entry in part]
        named += [("lines", name) for name in self.lines]
        for key_, name in named:
            about = config.models[name].about
            layered = about.depth is not None
            expected = (
                "of a set order (energy)" if key_ == "lines" else "whose depth sets it (factored)"
            )
            if layered == (key_ == "lines") or about.order is None:
                yield (
                    f"{path}.{key_}: found {name}, {about.display_name}; expected models "
                    f"{expected}; take others"
                )
        for key_, name in [*named, ("truth", self.truth)]:
            yield from config.models[name].misfits_of(f"{path}.{key_}", name, self.source, config)


class Fig2Literal(Figure):
    """As fig2, for the paper's literal recipe in each of its readings."""

    parts: list[Staircase] = key("One staircase each.", min_length=1)

    def inputs(self, config):
        return inputs(
            config,
            models=[run for part in self.parts for run in part.models()],
            displacements=[run for part in self.parts for run in part.trained()],
            sources=[part.source for part in self.parts],
            theory=[],
        )


class GradientFlowFigure(Figure):
    """Section 3.1, the flow of two layers on Gaussian and on skewed data."""

    theory: refers("theory", "gradient-flow") = key("Theory of kind gradient-flow.")


class Table1(Figure):
    """One passage, and what each generator makes of it."""

    clones: list[refers("clones")] = key("Clones from low to high order.")
    sweep: Count = key("A saved sweep of all of them.")
    passages: list[Seed] = key(
        "Chains that are shown; so many successive ones as make 128 tokens are one passage.",
        min_length=1,
    )

    def inputs(self, config):
        return inputs(config, clones=self.clones)

    def misfits(self, path, config):
        for name in self.clones:
            clone = config.clones[name]
            if self.sweep not in clone.sweeps:
                yield (
                    f"{path}.sweep: found {self.sweep}; expected one of the sweeps that "
                    f"clones.{name} saves, {clone.sweeps}; take one of them or add it there"
                )
            if max(self.passages) >= clone.chains:
                yield (
                    f"{path}.passages: found {max(self.passages)}; expected numbers below the "
                    f"{clone.chains} chains of clones.{name}; lower it, or sample more"
                )


def of_seeds(names: list[str], config: dict) -> list[tuple[str, int]]:
    """(spectrum, seed) of all runs of these spectra."""
    return [(name, seed) for name in names for seed in config["spectra"][name]["seeds"]]


class SpectrumFigure(Figure):
    """Which orders generators and students use along training."""

    generators: list[refers("spectra", "draws")] = key(
        "Spectra of generators, from low to high order.", []
    )
    students: list[refers("spectra", "draws")] = key("Spectra of students.", min_length=1)
    laws: list[refers("spectra", "draws")] = key(
        "Spectra of the first student by other reference laws.", []
    )

    def inputs(self, config):
        names = [*self.generators, *self.students, *self.laws]
        return inputs(config, spectra=of_seeds(names, config))

    def misfits(self, path, config):
        """What is compared has the same orders, and the same student the same model."""
        first = config.spectra[self.students[0]]
        parts = {"generators": self.generators, "students": self.students, "laws": self.laws}
        for name, found in [(part, one) for part, names in parts.items() for one in names]:
            entry = config.spectra[found]
            if entry.orders != first.orders:
                yield (
                    f"{path}.{name}: found {found}, orders {entry.orders}; expected those of "
                    f"{self.students[0]}, {first.orders}; change spectra.{found}.orders"
                )
            if name == "laws" and (entry.source, entry.model) != (first.source, first.model):
                yield (
                    f"{path}.laws: found {found}, of {entry.model}; expected a spectrum of "
                    f"{first.model}, as {self.students[0]}; take another"
                )


class SpectrumTruth(Figure):
    """The spectrum of known conditionals, what the estimator says of it, and trained models."""

    truth: refers("spectra", "enumeration") = key("Spectrum of the source's own conditionals.")
    estimate: refers("spectra", "draws") = key("The same from draws.")
    student: refers("spectra", "enumeration") = key("Spectrum of a model trained on the samples.")
    pairs: refers("spectra", "enumeration") = key("Spectrum of a model of pairs alone.")

    @property
    def named(self) -> list[str]:
        """All spectra, by their roles in this order."""
        return [self.truth, self.estimate, self.student, self.pairs]

    def inputs(self, config):
        entries = {name: config["spectra"][name] for name in self.named}
        runs = [
            (one["source"], one["model"], seed) for one in entries.values() for seed in one["seeds"]
        ]
        sources = [entries[self.truth]["source"]]
        return inputs(config, spectra=of_seeds(self.named, config), models=runs, sources=sources)

    def misfits(self, path, config):
        truth = config.spectra[self.truth]
        if not config.models[truth.model].adopts:
            yield f"{path}.truth: found {self.truth}, of {truth.model}; {TRUE}"
        for name in self.named[1:]:
            entry = config.spectra[name]
            if (entry.source, entry.sequences) != (truth.source, truth.sequences):
                yield (
                    f"{path}: found {name}, {entry.sequences} sequences of {entry.source}; "
                    f"expected those of {self.truth}, {truth.sequences} of {truth.source}; "
                    f"change one"
                )


class Ladder(Block):
    """Sets of sequences that hold more and more of a law."""

    label: Text = key("What they are called.")
    targets: different(Target, 2) = key("Targets from low to high order.")


class KnownTruth(Student):
    """A student of a source whose conditionals are known."""

    spectrum: refers("spectra", "draws", "enumeration") = key("Order spectrum of the student.")
    exact: list[Ladder] = key(
        "Cuts of the source, or levels of a tree, each ladder with the source itself at its end.",
        min_length=1,
    )
    clones: list[Ladder] = key(
        "Clones of generators that were trained on the source, as many as a ladder of cuts has.", []
    )

    def misfits(self, path, config):
        yield from super().misfits(path, config)
        evaluation, spectrum = config.evaluations[self.evaluation], config.spectra[self.spectrum]
        if config.sources[evaluation.source].conditionals is None:
            yield (
                f"{path}.evaluation: found {self.evaluation}, of source {evaluation.source}; "
                f"expected a Hamiltonian or a tree, whose conditionals are known; take one"
            )
        if evaluation.positions != "all" or config.models[evaluation.model].about.causal:
            yield (
                f"{path}.evaluation: found {self.evaluation}, of some positions or of the next "
                f"token; expected every position masked in turn; set positions to all"
            )
        first = evaluation.source, evaluation.model, evaluation.seeds
        if (spectrum.source, spectrum.model, spectrum.seeds) != first:
            yield (
                f"{path}.spectrum: found {self.spectrum}, of {spectrum.model} on "
                f"{spectrum.source}, runs {spectrum.seeds}; expected {evaluation.model} on "
                f"{evaluation.source}, runs {evaluation.seeds}, of evaluations.{self.evaluation}; "
                f"change one"
            )
        rungs = len(self.exact[0].targets)
        for number, one in enumerate([*self.exact, *self.clones]):
            if len(one.targets) != rungs:
                part, place = divmod(number, len(self.exact))
                name = f"clones[{number - len(self.exact)}]" if part else f"exact[{place}]"
                yield (
                    f"{path}.{name}.targets: found {len(one.targets)}; expected {rungs}, as "
                    f"{path}.exact[0] has, since rung is compared with rung; add or take away some"
                )


class Truths(Figure):
    """Students of known laws on cuts of these, against the exact conditionals and clones."""

    students: list[KnownTruth] = key("Students, one a row of the figure.", min_length=1)

    def inputs(self, config):
        return inputs(
            config,
            runs=runs(self.students, config),
            spectra=of_seeds([one.spectrum for one in self.students], config),
            truths=[one.evaluation for one in self.students],
        )


class SimplicityFigures(Block):
    """Figures of arXiv 2410.19637. Targets are those of the figure's evaluation."""

    fig1: SimplicityFig1 = key("Losses on the clones against the epoch.", None)
    fig2: Staircase = key("Networks of growing depth on samples of a known Hamiltonian.", None)
    fig2_seeds: Staircase = key("As fig2, with more seeds.", None)
    fig2_literal: Fig2Literal = key(
        "As fig2, for the paper's literal recipe in each of its readings.", None
    )
    fig3: SimplicityFig3 = key(
        "The generators' quality, their chains' scores, two sweeps compared.", None
    )
    fig4: SimplicityFig4 = key(
        "Losses on the clones against the step, accuracy, and late losses.", None
    )
    fig4_paper: SimplicityFig4 = key("As fig4, for clones of generators of variant paper.", None)
    fig5: SimplicityFig4 = key("As fig4, for a causal student.", None)
    headline: Headline = key("Does the order of interaction set the time?", None)
    controls: Controls = key("Order or quality of the generator, in clones of many kinds?", None)
    gradient_flow: GradientFlowFigure = key("Section 3.1, the flow of two layers.", None)
    spectrum: SpectrumFigure = key("Which orders a model uses along training.", None)
    spectrum_truth: SpectrumTruth = key("The order spectrum against exact truth.", None)
    truths: Truths = key("Cuts of known laws, their exact losses, and clones.", None)
    table1: Table1 = key("One passage, and what each generator makes of it.", None)
