"""Inputs of figures: one typed key for each file or group of files that a job reads.

The pipeline finds the files of each key; the job of a figure gets them back with `with_files`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import PrivateAttr, create_model

from manybody.io.options import Block, nested


class Key(Block):
    """Names one thing that a figure reads. `KINDS` are the lists of the job's inputs it is in."""

    KINDS: ClassVar[tuple[str, ...]] = ()
    _files: dict[str, str] = PrivateAttr(default_factory=dict)

    def file(self, kind: str | None = None) -> str:
        """The path of its file of a kind, by default of the first; `KeyError` outside of a job."""
        return self._files[kind or self.KINDS[0]]


def _key(name: str, kinds: str, doc: str, **fields: Any) -> type[Key]:
    """A class of keys with these fields, in the lists `kinds` of the job's inputs."""
    typed = {field: (kind, ...) for field, kind in fields.items()}
    made = create_model(name, __base__=Key, __module__=__name__, __doc__=doc, **typed)
    made.KINDS = tuple(kinds.split())
    return made


# `targets` are those of the evaluation, as the config has them.
Tested = _key(
    "Tested",
    "losses runs",
    "One run of an evaluation: its losses, and the manifest of the run that was tested.",
    evaluation=str,
    seed=int,
    targets=dict[str, dict],
)
ExactLosses = _key(
    "ExactLosses", "truths", "Losses of a source's own conditionals on targets.", evaluation=str
)
Clone = _key("Clone", "clones", "The manifest of a clone.", clone=str)
Spectrum = _key("Spectrum", "spectra", "Spectra of one run's checkpoints.", spectrum=str, seed=int)
MODEL = {"source": str, "model": str}
RUN = MODEL | {"seed": int}
Displacements = _key(
    "Displacements", "displacements", "Moves of a model's weights in all runs.", **MODEL
)
Trained = _key("Trained", "models", "The manifest of a trained or adopted run.", **RUN)
Maps = _key("Maps", "maps", "Maps of one run.", **RUN)
Clock = _key("Clock", "clocks", "What one run lacks of each term of its code law.", **RUN)
Contacts = _key("Contacts", "contacts", "Scores of the pairs of sites by one run.", **RUN)
Equations = _key(
    "Equations",
    "equations",
    "Losses of one-layer runs (source, model, seed) by their equations, in one file a figure.",
    runs=list[tuple[str, str, int]],
)
KnownContacts = _key("KnownContacts", "known", "Contacts in a file of the user's.", truth=str)
Hamiltonian = _key("Hamiltonian", "hamiltonians", "Interactions of a source.", source=str)
Sequences = _key("Sequences", "sequences", "The validation sequences of a source.", source=str)
Drawn = _key("Drawn", "drawn", "The test sequences of a source.", source=str)
Tokenizer = _key("Tokenizer", "tokenizers", "The tokenizer of a text.", source=str)
Theory = _key("Theory", "theory", "A table of theory.", theory=str)
Curve = _key("Curve", "curves", "A table of many small fits.", curve=str)


class Inputs(Block):
    """Base class of what one figure reads: keys, lists and mappings of keys, entries of the config.
    `of(block, config)` of a figure makes it from its typed block and the config as it is written.
    """


def distinct(inputs: Inputs) -> list[Key]:
    """The keys of a figure, each once, in their order."""
    return list({repr(one): one for one in _keys(inputs)}.values())


def with_files(inputs: Inputs, files: Mapping[str, str | Sequence[str]]) -> Inputs:
    """The same inputs, whose keys know their files.

    files: for each kind the paths of the distinct keys of that kind, in their order.
    """
    paths = {
        kind: iter([named] if isinstance(named, str) else named) for kind, named in files.items()
    }
    found = {repr(one): {kind: next(paths[kind]) for kind in one.KINDS} for one in distinct(inputs)}
    for one in _keys(inputs):
        one._files.update(found[repr(one)])
    return inputs


def _keys(inputs: Inputs) -> list[Key]:
    return [part for _, part, _ in nested("", inputs) if isinstance(part, Key)]


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
    tested = {target.get("clone") for run in runs for target in run.targets.values()} - {None}
    return [Clone(clone=name) for name in sorted({*others, *tested})]


def spectra_of(names: Sequence[str], config: dict) -> list[Spectrum]:
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
