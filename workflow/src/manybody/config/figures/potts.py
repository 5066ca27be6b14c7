"""Figures of arXiv 2304.07235."""

import re
from typing import Annotated

from pydantic import Field

from manybody.config.figures.base import TRUE, Figure, inputs
from manybody.io.options import Block, Count, NotNegative, Seed, Seeds, Text, key, refers

STRUCTURE = re.compile(r"\.(pdb|ent|cif|mmcif)(\.gz)?$")
Candidates = Annotated[list[refers("models")], Field(min_length=1)]
CANDIDATES = "Models that differ by their recipe; the one with the lowest held-out loss is drawn."


class Choice(Block):
    """Runs among which the best learning rate is chosen."""

    candidates: Candidates = key(CANDIDATES)
    seeds: Seeds = key("Runs of each.")

    def runs(self, source: str) -> list[tuple[str, str, int]]:
        """(source, model, seed) of all candidates."""
        return [(source, model, seed) for model in self.candidates for seed in self.seeds]


class Architecture(Choice):
    """One architecture of panels a to c."""

    label: Text = key("Name in the legend.")
    longer: refers("models") = key(
        "One of the candidates with more steps, for a check that they were enough.", None
    )


class Interpolation(Choice):
    """Interpolated models of one parameter a, for panel d."""

    a: NotNegative = key("Their parameter.")

    def misfits(self, path, config):
        for number, name in enumerate(self.candidates):
            a = getattr(config.models[name], "a", "none")
            if a != self.a:
                yield (
                    f"{path}.candidates[{number}]: found {name} at a = {self.a}, but its a is {a}; "
                    f"expected the same; change one"
                )


class PottsFig2(Figure):
    """Architectures on one sample of the generalised Potts model."""

    source: refers("sources") = key("A Potts source.")
    optimum: refers("models") = key("The energy model with the source's own weights.")
    runs: list[Architecture] = key("Architectures of panels a to c.", min_length=1)
    interpolation: list[Interpolation] = key("Interpolated models of panel d.", [])
    exact: refers("theory", "potts-exact") = key("Theory of kind potts-exact.", None)

    def inputs(self, config):
        maps = [run for entry in self.runs for run in entry.runs(self.source)]
        models = [run for entry in self.interpolation for run in entry.runs(self.source)]
        longer = [
            (self.source, entry.longer, seed)
            for entry in self.runs
            for seed in entry.seeds
            if entry.longer
        ]
        return inputs(
            config,
            maps=maps,
            equations=[*maps, *models],
            models=[*maps, *models, (self.source, self.optimum, 0), *longer],
            sources=[self.source],
            theory=[self.exact] if self.exact else [],
        )

    def misfits(self, path, config):
        if not config.models[self.optimum].adopts:
            yield f"{path}.optimum: found {self.optimum}; {TRUE}"
        named = {"optimum": [self.optimum]}
        for key_, entries in (("runs", self.runs), ("interpolation", self.interpolation)):
            for number, entry in enumerate(entries):
                longer = [entry.longer] if getattr(entry, "longer", None) else []
                named[f"{key_}[{number}]"] = [*entry.candidates, *longer]
        for where, names in named.items():
            for name in names:
                model = config.models[name]
                yield from model.misfits_of(f"{path}.{where}", name, self.source, config)


class PottsFig3(Figure):
    """Generalisation: replica theory of the square loss, and the logistic curve."""

    theory: refers("theory", "replica") = key("Theory of kind replica.")
    curve: refers("curves", "separability") = key("Curve of kind separability.")


class RecoveryFigure(Figure):
    """Errors of the couplings against the number of sequences."""

    curve: refers("curves", "recovery") = key("Curve of kind recovery.")


class ContactsFigure(Figure):
    """Scores of pairs of sites, and how many of the best are contacts."""

    source: refers("sources") = key("An alignment, or a Potts source.")
    model: refers("models") = key("A one-layer factored model.")
    seed: Seed = key("Its run.")
    truth: Text = key(
        "A file of known contacts: a list of pairs, a table of distances, or a structure (PDB or "
        "mmCIF, by its ending). Without one, the couplings of a Potts source; of an alignment the "
        "scores alone are drawn.",
        None,
    )
    chain: Text = key(
        "Chain of the structure; the one that agrees best with the alignment's reference record by "
        "default.",
        None,
    )
    separation: Count = key("Least distance j - i of a pair that counts.", 1)

    def inputs(self, config):
        planted = self.truth is None and config["sources"][self.source].get("kind") == "potts"
        return inputs(
            config,
            contacts=[(self.source, self.model, self.seed)],
            sources=[self.source],
            known=[] if self.truth is None else [self.truth],
            planted=[self.source] if planted else [],
        )

    def misfits(self, path, config):
        structure = self.truth is not None and STRUCTURE.search(self.truth.lower())
        if self.chain is not None and not structure:
            yield (
                f"{path}.chain: found {self.chain} with truth {self.truth or 'left out'}; expected "
                f"a structure, PDB or mmCIF, that has chains; give one, or leave `chain` out"
            )
        kind = config.sources[self.source].kind
        if structure and kind != "alignment":
            yield (
                f"{path}.truth: found {self.truth}, a structure, for {self.source}, of kind "
                f"{kind}; expected a list of pairs or a table of distances; its chain is aligned "
                f"with a record, which an alignment alone has"
            )
        model = config.models[self.model]
        if not model.about.pairwise:
            yield (
                f"{path}.model: found {self.model}; expected factored attention of one layer, "
                f"whose weights score pairs; take such a model"
            )
        yield from model.misfits_of(f"{path}.model", self.model, self.source, config)


class PottsFigures(Block):
    """Figures of arXiv 2304.07235."""

    fig2: PottsFig2 = key("Architectures on one sample of the generalised Potts model.", None)
    fig3: PottsFig3 = key("Generalisation, replica theory and the logistic curve.", None)
    recovery: RecoveryFigure = key("Errors of the couplings against the number of sequences.", None)
    contacts: ContactsFigure = key("Scores of pairs of sites, and how many are contacts.", None)
