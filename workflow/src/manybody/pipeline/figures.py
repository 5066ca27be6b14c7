"""Figures: the files that each is made of and makes, and files of pages, cards and advice."""

import hashlib
from functools import cache, cached_property
from pathlib import Path

from manybody.io.atomic import sha256, to_json
from manybody.io.options import nested
from manybody.papers import figure_module, inputs as needed
from manybody.papers.figure import own_texts
from manybody.papers.inputs import Inputs, Key, distinct
from manybody.pipeline.check import Config, ConfigError
from manybody.pipeline.paths import Paths
from manybody.pipeline.sources import Sources

CHECKOUT = Path(__file__).resolve().parents[4]
ENDINGS = ("pdf", "png", "csv", "claims.csv", "caption.rst")

Name = tuple[str, str]  # paper, figure


class Figures:
    """The config's figures, by (paper, figure)."""

    def __init__(self, paths: Paths, sources: Sources, checked: Config):
        self.paths, self.sources, self.checked = paths, sources, checked
        self.config, self.entry = paths.config, paths.entry
        self.asked = cache(self._asked)  # the typed inputs of a figure

    def names(self, paper: str | None = None) -> list[Name]:
        figures = self.config["figures"]
        papers = figures if paper is None else [paper]
        return [(name, figure) for name in papers for figure in figures.get(name, {})]

    def short(self) -> list[Name]:
        """Figures whose name alone tells them."""
        named = [figure for _, figure in self.names()]
        return [name for name in self.names() if named.count(name[1]) == 1]

    def files(self, paper: str | None = None) -> list[str]:
        return [path for name in self.names(paper) for path in self.files_of(*name)]

    def files_of(self, paper: str, figure: str) -> list[str]:
        stem = self.paths.figure.format(paper=paper, figure=figure)
        return [f"{stem}.{ending}" for ending in ENDINGS]

    def claims(self) -> list[str]:
        return [path for path in self.files() if path.endswith(".claims.csv")]

    def entry_of(self, paper: str, figure: str) -> dict:
        """A figure's block as the config has it. `ConfigError` names those that there are."""
        if (paper, figure) not in self.names():
            known = ", ".join(map("/".join, self.names()))
            raise ConfigError(f"config has no figure {paper}/{figure}; it has {known or 'none'}")
        return self.config["figures"][paper][figure]

    def _block(self, paper: str, figure: str):
        self.entry_of(paper, figure)
        return getattr(getattr(self.checked.figures, paper.replace("-", "_")), figure)

    def _asked(self, paper: str, figure: str) -> Inputs:
        block = self._block(paper, figure)  # refuses a figure that is not there
        return figure_module(paper, figure).Inputs.of(block, self.config)

    def keys(self, kind, names: list[Name] | None = None) -> list[Key]:
        """Keys of a class, or of several, that figures, by default all, ask for, each once."""
        found = [one for name in names or self.names() for one in distinct(self.asked(*name))]
        return list({one.model_dump_json(): one for one in found if isinstance(one, kind)}.values())

    def clones(self, names: list[Name] | None = None) -> list[str]:
        return [one.clone for one in self.keys(needed.Clone, names)]

    def runs(self) -> list[tuple[str, int]]:
        """Runs (evaluation, seed) whose losses figures ask for."""
        return [(one.evaluation, one.seed) for one in self.keys(needed.Tested)]

    def inputs(self, paper: str, figure: str) -> dict[str, list[str]]:
        """Paths of a figure's inputs by kind, in the order of its distinct keys."""
        found: dict[str, list[str]] = {}
        for one in distinct(self.asked(paper, figure)):
            for kind in one.KINDS:
                found.setdefault(kind, []).append(self._file(kind, one, paper, figure))
        return found

    def plain_inputs(self, paper: str, figure: str) -> dict:
        """The typed inputs of a figure as plain values, without files."""
        return self.asked(paper, figure).model_dump()

    def caption(self, paper: str, figure: str) -> str:
        """The caption of a figure, in reStructuredText, with the user's files it is made from."""
        module = figure_module(paper, figure)
        parts = nested("", self.plain_inputs(paper, figure))
        corpora = [value for path, value, _ in parts if path.endswith(".corpus")]
        said = "".join(
            f"\nText {name}: ``{files}``.\n"
            for name, files in own_texts(self.config).items()
            if name in corpora
        )
        return module.caption(self.asked(paper, figure), self._block(paper, figure)) + said

    def _file(self, kind: str, key: Key, paper: str, figure: str) -> str:
        paths = self.paths
        own = {
            "runs": lambda: paths.model_of("evaluations", key.evaluation, key.seed),
            "clones": lambda: paths.clone_path(key.clone),
            "sequences": lambda: paths.split_path(key.source, "validation"),
            "drawn": lambda: paths.split_path(key.source, "test"),
            "tokenizers": lambda: self.sources.file_beside(key.source, "tokenizer.json"),
        }
        if kind in own:
            return own[kind]()
        return getattr(paths, kind).format(**key.model_dump(), paper=paper, figure=figure)

    def shown_clones(self, paper: str, figure: str):
        """The states of clones that a figure shows, as its block names them."""
        return self._block(paper, figure).states(self.config)

    def equation_runs(self, paper: str, figure: str) -> list[tuple[str, str, int]]:
        """A figure's runs (source, model, seed) whose loss equations tell."""
        (asked,) = self.keys(needed.Equations, [(paper, figure)])
        return asked.runs

    def equation_inputs(self, paper: str, figure: str) -> dict[str, str | list[str]]:
        """Manifests of `equation_runs`, and files of their one source."""
        runs = self.equation_runs(paper, figure)
        source = runs[0][0]
        return {
            "models": [self.paths.model_path(*run) for run in runs],
            "validation": self.paths.split_path(source, "validation"),
            "hamiltonian": self.paths.hamiltonians.format(source=source),
        }

    def truth_file(self, paper: str, figure: str) -> str:
        """The user's file of known contacts of a figure."""
        truth = self.entry_of(paper, figure)["truth"]
        expected = "a list of contacts, a table of distances or a structure (PDB, mmCIF)"
        return self.sources.own_file("figures", f"{paper}.{figure}", "truth", truth, expected)

    def followed_runs(self, source: str, model: str) -> list[str]:
        """Manifests of a model's runs of all seeds that figures draw."""
        followed = [(one.source, one.model) for one in self.keys(needed.Displacements)]
        if (source, model) not in followed:
            known = ", ".join("{}/{}".format(*run) for run in followed)
            raise ConfigError(f"no figure follows {source}/{model}; figures follow: {known}")
        runs = [(one.source, one.model, one.seed) for one in self.keys(needed.Trained)]
        return [self.paths.model_path(*run) for run in runs if run[:2] == (source, model)]

    @cached_property
    def generators(self) -> set[str]:
        """Manifests of the models that clones are sampled from."""
        return {self.paths.model_of("clones", clone) for clone in self.clones()}

    @cached_property
    def carded(self) -> dict[str, list[str]]:
        """The clones of each source, in whose file of cards they are."""
        found = {}
        for name in self.clones():
            found.setdefault(self.entry("clones", name)["source"], []).append(name)
        return found

    def page_inputs(self) -> dict[str, list[str]]:
        return {
            "figures": self.files(),
            "claims": self.claims(),
            "clones": [self.paths.clone_path(clone) for clone in self.clones()],
            "cards": [self.paths.cards.format(source=source) for source in self.carded],
            "losses": self.tested_generators(),
            "ngrams": self.counted_sources(),
        }

    def page_texts(self) -> dict[str, str]:
        """sha256 of what a page's job reads of the checkout: template and default config."""
        style = "workflow/src/manybody/report/house.css"
        texts = ("config/config.yaml", "workflow/report/page.html", style)
        return {name: sha256(CHECKOUT / name) for name in texts}

    def config_digest(self) -> str:
        """A digest of the config, for a job that reads all of it."""
        return hashlib.sha256(to_json(self.config).encode()).hexdigest()[:16]

    def tested_generators(self) -> list[str]:
        """Losses of the clones' generators, from the figures' evaluations with the test split."""
        found = []
        for name, seed in self.runs():
            targets = self.entry("evaluations", name)["targets"].values()
            tested = any(target.get("split") == "test" for target in targets)
            if tested and self.paths.model_of("evaluations", name, seed) in self.generators:
                found.append(self.paths.losses.format(evaluation=name, seed=seed))
        return found

    def counted_sources(self) -> list[str]:
        """Losses of n-grams of the texts that clones are made of."""
        text = [name for name in self.sources.sources_with("ngrams.json") if name in self.carded]
        return [self.sources.file_beside(name, "ngrams.json") for name in text]

    def advised_sources(self) -> list[str]:
        """Sources of text that the figures' models are trained on, or all where none is."""
        text = self.sources.trained_tokenizers()
        used = {self.entry("evaluations", name)["source"] for name, _ in self.runs()}
        return [source for source in text if source in used] or text

    def advised_runs(self) -> dict[str, list[tuple[str, int]]]:
        """The figures' runs of evaluations (name, seed) of each of these sources."""
        runs = [(self.entry("evaluations", run[0])["source"], run) for run in self.runs()]
        return {name: [run for of, run in runs if of == name] for name in self.advised_sources()}

    def advised_clones(self) -> dict[str, list[str]]:
        return {source: self.carded.get(source, []) for source in self.advised_sources()}
