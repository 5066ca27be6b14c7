"""Inputs of figures: one typed key for each file or group of files that a job reads.

The pipeline finds the files of each key; the job of a figure gets them back with `with_files`.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import PrivateAttr

from manybody.io.options import Block


class Key(Block):
    """Names one thing that a figure reads. `KINDS` are the lists of the job's inputs it is in."""

    KINDS: ClassVar[tuple[str, ...]] = ()
    _files: dict[str, str] = PrivateAttr(default_factory=dict)

    def file(self, kind: str | None = None) -> str:
        """The path of its file of a kind, by default of the first; `KeyError` outside of a job."""
        return self._files[kind or self.KINDS[0]]


class Tested(Key):
    """One run of an evaluation: its losses, and the manifest of the run that was tested.

    `targets` are those of the evaluation, as the config has them.
    """

    KINDS = ("losses", "runs")
    evaluation: str
    seed: int
    targets: dict[str, dict]


class Clone(Key):
    """The manifest of a clone."""

    KINDS = ("clones",)
    clone: str


class Trained(Key):
    """The manifest of a trained or adopted run."""

    KINDS = ("models",)
    source: str
    model: str
    seed: int


class Spectrum(Key):
    """Order spectra of one run's checkpoints."""

    KINDS = ("spectra",)
    spectrum: str
    seed: int


class Displacements(Key):
    """How far the weights of all runs of a model that figures follow have moved."""

    KINDS = ("displacements",)
    source: str
    model: str


class Maps(Key):
    """Maps of one run."""

    KINDS = ("maps",)
    source: str
    model: str
    seed: int


class Equations(Key):
    """Losses of one-layer runs (source, model, seed) by their equations, in one file a figure."""

    KINDS = ("equations",)
    runs: list[tuple[str, str, int]]


class Contacts(Key):
    """Scores of the pairs of sites by one run."""

    KINDS = ("contacts",)
    source: str
    model: str
    seed: int


class KnownContacts(Key):
    """Contacts that a file of the user's says, in one file a figure."""

    KINDS = ("known",)
    truth: str


class Hamiltonian(Key):
    """The interactions that a source was sampled from."""

    KINDS = ("hamiltonians",)
    source: str


class Sequences(Key):
    """The validation sequences of a source."""

    KINDS = ("sequences",)
    source: str


class Tokenizer(Key):
    """The tokenizer of a text."""

    KINDS = ("tokenizers",)
    source: str


class ExactLosses(Key):
    """Losses of a source's own conditionals on the targets of an evaluation."""

    KINDS = ("truths",)
    evaluation: str


class Theory(Key):
    """A table of theory."""

    KINDS = ("theory",)
    theory: str


class Curve(Key):
    """A table of many small fits."""

    KINDS = ("curves",)
    curve: str


class Inputs(Block):
    """Base class of what one figure reads: keys, lists and mappings of keys, entries of the config.

    A figure's class has `of(block, config)`, which makes it from the figure's typed block and the
    config as it is written.
    """

    @classmethod
    def of(cls, block: Any, config: dict) -> Self:
        raise NotImplementedError


def keys(value: Any) -> Iterator[Key]:
    """All keys in inputs, lists and mappings, in the order of the fields."""
    if isinstance(value, Key):
        yield value
    elif isinstance(value, Block):
        for name in type(value).model_fields:
            yield from keys(getattr(value, name))
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from keys(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from keys(part)


def distinct(inputs: Inputs) -> list[Key]:
    """The keys of a figure, each once, in their order."""
    found: dict[tuple[type, str], Key] = {}
    for one in keys(inputs):
        found.setdefault(_identity(one), one)
    return list(found.values())


def _identity(one: Key) -> tuple[type, str]:
    """Kind and fields of a key, whatever files it has."""
    return type(one), one.model_dump_json()


def with_files(inputs: Inputs, files: Mapping[str, str | Sequence[str]]) -> Inputs:
    """The same inputs, whose keys know their files.

    files: for each kind the paths of the distinct keys of that kind, in their order.
    """
    lists = {kind: [named] if isinstance(named, str) else named for kind, named in files.items()}
    paths = {kind: iter(named) for kind, named in lists.items()}
    found = {
        _identity(one): {kind: next(paths[kind]) for kind in one.KINDS} for one in distinct(inputs)
    }
    for one in keys(inputs):
        one._files.update(found[_identity(one)])
    return inputs


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
