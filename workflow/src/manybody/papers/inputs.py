"""Inputs of figures: one typed key for each file or group of files that a job reads.

The pipeline finds the files of each key; the job of a figure gets them back with `with_files`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import PrivateAttr

from manybody.io.options import Block, inside


class Key(Block):
    """Names one thing that a figure reads. `KINDS` are the lists of the job's inputs it is in."""

    KINDS: ClassVar[tuple[str, ...]] = ()
    _files: dict[str, str] = PrivateAttr(default_factory=dict)

    def __init_subclass__(cls, kinds: str = "", **options):
        super().__init_subclass__(**options)
        cls.KINDS = tuple(kinds.split())

    def file(self, kind: str | None = None) -> str:
        """The path of its file of a kind, by default of the first; `KeyError` outside of a job."""
        return self._files[kind or self.KINDS[0]]


class OfSource(Key):
    """Base class of what a source has."""

    source: str


class OfModel(OfSource):
    """Base class of what all runs of a model have."""

    model: str


class OfRun(OfModel):
    """Base class of what one run of a model has."""

    seed: int


class Hamiltonian(OfSource, kinds="hamiltonians"):
    """The interactions that a source was sampled from."""


class Sequences(OfSource, kinds="sequences"):
    """The validation sequences of a source."""


class Tokenizer(OfSource, kinds="tokenizers"):
    """The tokenizer of a text."""


class Displacements(OfModel, kinds="displacements"):
    """How far the weights of all runs of a model that figures follow have moved."""


class Trained(OfRun, kinds="models"):
    """The manifest of a trained or adopted run."""


class Maps(OfRun, kinds="maps"):
    """Maps of one run."""


class Contacts(OfRun, kinds="contacts"):
    """Scores of the pairs of sites by one run."""


class Tested(Key, kinds="losses runs"):
    """One run of an evaluation: its losses, and the manifest of the run that was tested.

    `targets` are those of the evaluation, as the config has them.
    """

    evaluation: str
    seed: int
    targets: dict[str, dict]


class ExactLosses(Key, kinds="truths"):
    """Losses of a source's own conditionals on the targets of an evaluation."""

    evaluation: str


class Clone(Key, kinds="clones"):
    """The manifest of a clone."""

    clone: str


class Spectrum(Key, kinds="spectra"):
    """Order spectra of one run's checkpoints."""

    spectrum: str
    seed: int


class Equations(Key, kinds="equations"):
    """Losses of one-layer runs (source, model, seed) by their equations, in one file a figure."""

    runs: list[tuple[str, str, int]]


class KnownContacts(Key, kinds="known"):
    """Contacts that a file of the user's says, in one file a figure."""

    truth: str


class Theory(Key, kinds="theory"):
    """A table of theory."""

    theory: str


class Curve(Key, kinds="curves"):
    """A table of many small fits."""

    curve: str


class Inputs(Block):
    """Base class of what one figure reads: keys, lists and mappings of keys, entries of the config.

    A figure's class has `of(block, config)`, which makes it from the figure's typed block and the
    config as it is written.
    """

    @classmethod
    def of(cls, block: Any, config: dict) -> Self:
        raise NotImplementedError


def distinct(inputs: Inputs) -> list[Key]:
    """The keys of a figure, each once, in their order."""
    return list({repr(one): one for one in _keys(inputs)}.values())


def with_files(inputs: Inputs, files: Mapping[str, str | Sequence[str]]) -> Inputs:
    """The same inputs, whose keys know their files.

    files: for each kind the paths of the distinct keys of that kind, in their order.
    """
    lists = {kind: [named] if isinstance(named, str) else named for kind, named in files.items()}
    paths = {kind: iter(named) for kind, named in lists.items()}
    found = {repr(one): {kind: next(paths[kind]) for kind in one.KINDS} for one in distinct(inputs)}
    for one in _keys(inputs):
        one._files.update(found[repr(one)])
    return inputs


def _keys(inputs: Inputs) -> list[Key]:
    """All keys in inputs, lists and mappings, in the order of the fields."""
    return [part for _, part in inside("", inputs) if isinstance(part, Key)]


# --- Lists of keys that figures have in common ----------------------------------------------------


def runs_of(
    evaluations: Sequence[str], config: dict, seeds: Mapping[str, Any] | None = None
) -> list[Tested]:
    """Runs of evaluations, each evaluation once; of those in `seeds` these seeds, else its own."""
    return [
        Tested(evaluation=name, seed=seed, targets=config["evaluations"][name]["targets"])
        for name in dict.fromkeys(evaluations)
        for seed in (seeds or {}).get(name) or config["evaluations"][name]["seeds"]
    ]


def clones_of(runs: Sequence[Tested], *others: str) -> list[Clone]:
    """The clones that runs are tested on, and others, sorted by name."""
    targets = [target for run in runs for target in run.targets.values()]
    names = {*others, *(target["clone"] for target in targets if "clone" in target)}
    return [Clone(clone=name) for name in sorted(names)]


def spectra_of(names: Sequence[str], config: dict) -> list[Spectrum]:
    """Runs of all seeds of these spectra."""
    return [
        Spectrum(spectrum=name, seed=seed)
        for name in names
        for seed in config["spectra"][name]["seeds"]
    ]


def sized(name: str, source: dict) -> str:
    """The sequences in captions: `name`, with |V| and L where the source's entry says them."""
    symbols = {"\\|V\\|": "vocabulary", "L": "length"}
    sizes = [f"{symbol} = {source[key]}" for symbol, key in symbols.items() if source.get(key)]
    return f"{name} ({', '.join(sizes)})" if sizes else name
