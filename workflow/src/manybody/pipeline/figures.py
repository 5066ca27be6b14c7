"""Figures: what each is drawn from and judged by, and what pages, cards and advice show of them."""

import hashlib
from functools import cached_property
from pathlib import Path

from manybody.io.atomic import sha256, to_json
from manybody.pipeline.check import Config, ConfigError
from manybody.pipeline.paths import Paths
from manybody.pipeline.sources import Sources

CHECKOUT = Path(__file__).resolve().parents[4]
CLAIMS = CHECKOUT / "workflow/src/manybody/claims"
ENDINGS = ("pdf", "png", "csv")
OWN = (("simplicity", "headline"), ("simplicity", "controls"))  # with a config of their own

Name = tuple[str, str]  # paper, figure


class Figures:
    """The config's figures, by (paper, figure)."""

    def __init__(self, paths: Paths, sources: Sources, checked: Config):
        self.paths, self.sources, self.checked = paths, sources, checked
        self.config, self.entry = paths.config, paths.entry

    def names(self, paper: str | None = None) -> list[Name]:
        """All figures of the config, or of one paper."""
        figures = self.config["figures"]
        papers = figures if paper is None else [paper]
        return [(name, figure) for name in papers for figure in figures.get(name, {})]

    def judged(self) -> list[Name]:
        """Figures of which a paper says something."""
        return [name for name in self.names() if self.is_judged(*name)]

    def is_judged(self, paper: str, figure: str) -> bool:
        """Says that a figure has a module of claims."""
        return (CLAIMS / f"{paper}/{figure}".replace("-", "_")).with_suffix(".py").is_file()

    def own(self) -> list[Name]:
        """Figures that have targets and a page of their own."""
        return [name for name in OWN if name in self.names()]

    def files(self, paper: str | None = None) -> list[str]:
        """What is drawn of all figures, or of one paper's."""
        return [path for name in self.names(paper) for path in self.files_of(*name)]

    def files_of(self, paper: str, figure: str) -> list[str]:
        """What is drawn of a figure."""
        return [f"{self.paths.results}/figures/{paper}/{figure}.{ending}" for ending in ENDINGS]

    def claims_of(self, names: list[Name]) -> list[str]:
        """The claims of those figures that are judged."""
        judged = [name for name in names if self.is_judged(*name)]
        return [f"{self.paths.results}/claims/{paper}/{figure}.csv" for paper, figure in judged]

    def entry_of(self, paper: str, figure: str) -> dict:
        """A figure's block."""
        return self.config["figures"][paper][figure]

    def block(self, paper: str, figure: str, drawn: bool) -> dict:
        """A figure's block without what is judged alone, if it is to be drawn, or drawn alone."""
        hidden = "exact" if drawn else "palette"
        return {key: value for key, value in self.entry_of(paper, figure).items() if key != hidden}

    def needs(self, paper: str, figure: str, drawn: bool) -> dict:
        """What a figure is drawn from, as its block declares it, or else is judged by."""
        found = self._checked(paper, figure).inputs(self.config)
        if drawn:
            exact = self.entry_of(paper, figure).get("exact")
            found["theory"] = [name for name in found["theory"] if name != exact]
        return found

    def shown_clones(self, paper: str, figure: str):
        """The states of clones that a figure shows, as its block names them."""
        return self._checked(paper, figure).states(self.config)

    def _checked(self, paper: str, figure: str):
        return getattr(getattr(self.checked.figures, paper.replace("-", "_")), figure)

    def parts(self, kind: str, names: list[Name] | None = None) -> list:
        """What figures, by default all of the config, need of one kind (see `needs`), each once."""
        names = names or self.names()
        named = [part for name in names for part in self.needs(*name, drawn=False)[kind]]
        return [part for number, part in enumerate(named) if part not in named[:number]]

    def inputs(self, paper: str, figure: str, drawn: bool = False) -> dict[str, list[str]]:
        """Named inputs of a figure: tables of losses, manifests of runs and clones, a tokenizer.

        Of the job that draws it, or else of the one that judges its claims.
        """
        paths, needed = self.paths, self.needs(paper, figure, drawn)
        # A figure of contacts names its source for the setting, and for what was planted there.
        sampled = needed["planted"] if needed["contacts"] else [*needed["sources"]]
        planted = self.sources.with_file("hamiltonian.safetensors")
        named = {"paper": paper, "figure": figure}
        inputs = {
            "losses": [
                paths.losses.format(evaluation=run, seed=seed) for run, seed in needed["runs"]
            ],
            "runs": [paths.evaluated_model(*run) for run in needed["runs"]],
            "clones": [paths.clone_path(name) for name in needed["clones"]],
            "models": [paths.model_path(*run) for run in needed["models"]],
            "spectra": [
                paths.spectrum.format(spectrum=name, seed=seed) for name, seed in needed["spectra"]
            ],
            "displacements": [
                paths.displacements.format(source=source, model=model)
                for source, model, *_ in needed["displacements"]
            ],
            "sequences": [
                paths.split_path(name, "validation") for name in sampled if not needed["contacts"]
            ],
            "hamiltonians": [paths.hamiltonian_path(name) for name in sampled if name in planted],
            "truths": [paths.truth.format(evaluation=name) for name in needed["truths"]],
            "theory": [paths.theory.format(theory=name) for name in needed["theory"]],
            "curves": [paths.curve.format(curve=name) for name in needed["curves"]],
            "maps": [paths.run_path(paths.maps, run) for run in needed["maps"]],
            "equations": [paths.equations.format(**named)] if needed["equations"] else [],
            "contacts": [paths.run_path(paths.contacts, run) for run in needed["contacts"]],
            "known": [paths.known.format(**named)] if needed["known"] else [],
        }
        if "passages" in self.entry_of(paper, figure):
            source = self.entry("clones", needed["clones"][0])["source"]
            inputs["tokenizer"] = self.sources.file_beside(source, "tokenizer.json")
        return inputs

    def equation_inputs(self, paper: str, figure: str) -> dict[str, str | list[str]]:
        """Manifests of a figure's runs whose loss equations tell, and files of their one source."""
        runs = self.needs(paper, figure, drawn=False)["equations"]
        source = runs[0][0]
        return {
            "models": [self.paths.model_path(*run) for run in runs],
            "validation": self.paths.split_path(source, "validation"),
            "hamiltonian": self.paths.hamiltonian_path(source),
        }

    def truth_file(self, paper: str, figure: str) -> str:
        """The user's file of known contacts of a figure."""
        truth = self.entry_of(paper, figure)["truth"]
        expected = "a list of contacts, a table of distances or a structure (PDB, mmCIF)"
        return self.sources.own_file("figures", f"{paper}.{figure}", "truth", truth, expected)

    def followed_runs(self, source: str, model: str) -> list[str]:
        """Manifests of a model's runs of all seeds that figures draw."""
        followed = self.parts("displacements")
        if [source, model] not in followed:
            known = ", ".join("{}/{}".format(*run) for run in followed)
            raise ConfigError(f"no figure follows {source}/{model}; figures follow: {known}")
        runs = self.parts("models")
        return [self.paths.model_path(*run) for run in runs if run[:2] == [source, model]]

    @cached_property
    def generators(self) -> set[str]:
        """Manifests of the models that clones are sampled from."""
        return set(map(self.paths.clone_model, self.parts("clones")))

    @cached_property
    def carded(self) -> dict[str, tuple[str, list, list]]:
        """Source, chains and n-grams of each file of cards: of all figures, or of an own one's."""
        found = {}
        grams = [name for name, source in self.checked.sources.items() if source.carded]
        own = {".".join(name) + ".": [name] for name in self.own()}
        for prefix, names in {"": self.names(), **own}.items():
            runs = [self.entry("evaluations", run) for run, _ in self.parts("runs", names)]
            targets = [target for run in runs for target in run["targets"].values()]
            tested = {target.get("source") for target in targets}
            for name in self.parts("clones", names):
                source = self.entry("clones", name)["source"]
                found.setdefault(prefix + source, (source, [], []))[1].append(name)
            for name in tested.intersection(grams):
                source = self.checked.sources[name].made_from
                found.setdefault(prefix + source, (source, [], []))[2].append(name)
        return {
            key: (source, chains, sorted(grams)) for key, (source, chains, grams) in found.items()
        }

    def page_inputs(self, names: list[Name], prefix: str = "") -> dict[str, list[str]]:
        """What a page of figures shows; `prefix` is that of its files of cards."""
        cards = [key for key, (source, *_) in self.carded.items() if key == prefix + source]
        return {
            "figures": [path for name in names for path in self.files_of(*name)],
            "claims": self.claims_of(names),
            "clones": [self.paths.clone_path(clone) for clone in self.parts("clones", names)],
            "cards": [self.paths.cards.format(cards=key) for key in cards],
            "losses": self.tested_generators(names),
            "ngrams": self.counted_sources(names),
        }

    def page_texts(self, names: list[Name]) -> dict[str, str]:
        """sha256 of what a page's job reads of the checkout: template, captions, default config."""
        pages = ("page.html", "workflow.rst", "scorecard.rst")
        captions = [f"{paper}/{figure}.rst" for paper, figure in names]
        texts = [f"workflow/report/{name}" for name in (*pages, *captions)]
        return {name: sha256(CHECKOUT / name) for name in ("config/config.yaml", *texts)}

    def config_digest(self) -> str:
        """A digest of the config, for a job that reads all of it."""
        return hashlib.sha256(to_json(self.config).encode()).hexdigest()[:16]

    def tested_generators(self, names: list[Name] | None = None) -> list[str]:
        """Losses of the clones' generators, from the figures' evaluations with the test split."""
        clones = [self.entry("clones", clone) for clone in self.parts("clones", names)]
        generators = [(clone["source"], clone["model"], clone["seed"]) for clone in clones]
        found = []
        for name, seed in self.parts("runs", names):
            run = self.entry("evaluations", name)
            test = any(target.get("split") == "test" for target in run["targets"].values())
            if test and (run["source"], run["model"], seed) in generators:
                found.append(self.paths.losses.format(evaluation=name, seed=seed))
        return found

    def counted_sources(self, names: list[Name] | None = None) -> list[str]:
        """Losses of n-grams of the texts that clones are made of."""
        cloned = {self.entry("clones", clone)["source"] for clone in self.parts("clones", names)}
        counted = [name for name in self.sources.with_file("ngrams.json") if name in cloned]
        return [self.sources.file_beside(name, "ngrams.json") for name in counted]

    def trial_files(self) -> dict[str, list[str]]:
        """Files that say which orders matter in a text; none without the spectrum `trial`.

        Tables and manifests of the runs of that spectrum, and the n-grams of its text.
        """
        paths, trial = self.paths, self.config["spectra"].get("trial", {})
        if not trial.get("anchored"):
            return {}
        ngrams, seeds = self.sources.file_beside(trial["source"], "ngrams.json"), trial["seeds"]
        if not ngrams:
            return {}
        return {
            "spectra": [paths.spectrum.format(spectrum="trial", seed=seed) for seed in seeds],
            "manifests": [paths.spectrum_model("trial", seed) for seed in seeds],
            "ngrams": [ngrams],
        }

    def needed_trial(self) -> list[str]:
        """These files; `ConfigError` where the config asks for none."""
        if not self.trial_files():
            raise ConfigError(
                "spectra.trial: expected a spectrum of a text with `anchored`, as the default has "
                "one; leave it in, or take `advise`"
            )
        return [path for paths in self.trial_files().values() for path in paths]

    def advised_sources(self) -> list[str]:
        """Sources of text that the figures' models are trained on, or all where none is."""
        text = self.sources.trained_tokenizers()
        used = {self.entry("evaluations", name)["source"] for name, _ in self.parts("runs")}
        return [source for source in text if source in used] or text

    def advised(self, kind: str, block: str) -> dict[str, list]:
        """The figures' runs of evaluations (name, seed), or clones, of each of these sources."""

        def source_of(part):
            return self.entry(block, part[0] if kind == "runs" else part)["source"]

        parts = self.parts(kind)
        return {
            source: [part for part in parts if source_of(part) == source]
            for source in self.advised_sources()
        }
