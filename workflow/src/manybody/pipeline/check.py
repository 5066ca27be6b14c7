"""Checks a config: names, types, whether what is named is there, and how choices fit together."""

import inspect
import re
from collections.abc import Iterable, Iterator, Set
from functools import cache
from itertools import chain
from typing import Annotated, Any

from pydantic import Field, ValidationError, create_model

from manybody import models, papers
from manybody.config.clones import Clone
from manybody.config.corpora import Corpus, Source
from manybody.config.curves import AnyCurve
from manybody.config.evaluations import Evaluation
from manybody.config.families import Families
from manybody.config.models import AnyModel
from manybody.config.sentences import nearest, sentences, shown, take_back
from manybody.config.spectra import AnySpectrum
from manybody.config.theory import Theory
from manybody.config.training import Compute, Recipe
from manybody.io.options import PARTS, Block, PartNumber, Reference, key, nested

NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.-]+")
LEAVE_OUT = re.compile(r"\bleave \w+ out\b(?! of)")  # where messages say it
Taken = Set[tuple[str, str]]
ONE_OF = {  # entries of a block, in messages
    "sources": "a source",
    "curves": "a curve",
    "spectra": "a spectrum",
    "theory": "a theory",
    "models": "a model",
    "evaluations": "an evaluation",
}
NAMED = (
    "corpora", "sources", "models", "clones", "evaluations", "spectra", "theory", "curves",
    "families",
)  # fmt: skip


class Config(Block):
    """Names things once; paths are made of these names. What no key here describes is refused."""

    results: Annotated[str, Field(pattern="^/?[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+)*$")] = key(
        "Folder that everything goes to, relative to the working directory. One for each scale."
    )
    compute: Compute = key("Where training and sampling run.")
    corpora: dict[str, Corpus] = key("Text, where it comes from and how it is split, by name.")
    sources: dict[str, Source] = key(
        "What yields sequences, a corpus with a vocabulary and a length or a many-body model, by "
        "name."
    )
    models: dict[str, AnyModel] = key("Architectures with their training recipes, by name.")
    clones: dict[str, Clone] = key("Sequences drawn from a trained model, by name.")
    evaluations: dict[str, Evaluation] = key(
        "A model's runs and the sequence sets that each checkpoint is tested on, by name."
    )
    spectra: dict[str, AnySpectrum] = key(
        "Which orders of interaction a model's checkpoints use, by name."
    )
    theory: dict[str, Theory] = key("What is computed without data, by name.")
    curves: dict[str, AnyCurve] = key(
        "Many small fits of factored attention to subsets of a source, by name."
    )
    families: dict[str, Families] = key(
        "Lists of alignments that a pair model each is fitted to, by name."
    )
    figures: Block = key("What each figure draws, by paper.")

    def problems(self):
        read = {getattr(source, "corpus", None) for source in self.sources.values()}
        own = {name for name, corpus in self.corpora.items() if corpus.kind == "file"}
        for name in sorted(own - read):
            yield (
                f"corpora.{name}",
                f"found files of your own that no source is made of, so that nothing reads them; "
                f"expected a source with `corpus: {name}`; add it, such as sources: "
                f"{{docs: {{corpus: {name}}}}}, or leave {name} out",
            )


@cache
def config_type(named: Set[tuple[str, str]] | None = None) -> type[Config]:
    """The type of a whole config in which these (paper, figure) are named, by default all; the
    modules of others are not imported, and their blocks may be anything."""
    blocks: dict[str, Any] = {}
    for paper, title in papers.PAPERS.items():
        fields = {figure: _field(paper, figure, named) for figure in papers.figures(paper)}
        name = "".join(part.title() for part in paper.split("-")) + "Figures"
        made = create_model(name, __base__=Block, __doc__=title, **fields)
        blocks[paper.replace("-", "_")] = (made, key(title, None, alias=paper))
    said = Config.model_fields["figures"].description
    figures = (create_model("Figures", __base__=Block, __doc__=said, **blocks), key(said))
    return create_model("Config", __base__=Config, __doc__=Config.__doc__, figures=figures)


def _field(paper: str, figure: str, named: Set[tuple[str, str]] | None) -> tuple:
    """The type of a figure's block, named for paper and figure, and its key in the config."""
    if named is not None and (paper, figure) not in named:
        return Any, None
    block = papers.figure_module(paper, figure).Block
    name = "".join(part.title() for part in f"{paper}-{figure}".replace("_", "-").split("-"))
    made = create_model(name, __base__=block, __doc__=block.__doc__)
    return made, key(inspect.getdoc(block).partition("\n")[0], None)


class ConfigError(ValueError):
    """Mistakes of the config: the key's path, the value, what was expected, the way out."""


def check(config: dict, taken: Taken = frozenset()) -> Config:
    """The config as typed blocks. Raises `ConfigError` with all that is wrong, one line each.

    A key that is null and may be left out is removed from `config`, where null is no value.
    `taken` is what `take_away` returned: a name that refers to one of these is said to do so.
    """
    # Each needs what the one before has checked.
    _refuse(_name_problems(config))
    kind = config_type(_named_figures(config))
    try:
        checked = kind.model_validate(config)
    except ValidationError as error:
        if take_back(error, kind, config):
            return check(config, taken)
        _refuse(sentences(error, kind, config))
        raise
    found = [(path.lstrip("."), value, around) for path, value, around in nested("", checked)]
    _refuse(
        problem
        for path, value, _ in found
        for problem in _reference_problems(path, value, checked, taken)
    )
    parts = {path: list(_part_problems(path, one, around, checked)) for path, one, around in found}
    wrong = tuple(path for path, problems in parts.items() if problems)
    problems = list(chain.from_iterable(parts.values()))
    for path, value, around in found:
        # A block with a wrong part is not asked for more, which may rest on that part.
        if not any(part.startswith(path) for part in wrong):
            problems += _whole_problems(path, value, around, checked)
    _refuse(problems)
    return checked


def _named_figures(config: dict) -> frozenset[tuple[str, str]]:
    figures = _mapping(config.get("figures"))
    return frozenset((paper, figure) for paper in figures for figure in _mapping(figures[paper]))


def _mapping(value) -> dict:
    """The value where it is a mapping; what is wrong otherwise is said by the types."""
    return value if isinstance(value, dict) else {}


def _refuse(problems: Iterable[str]) -> None:
    if lines := dict.fromkeys(problems):
        said = r"\g<0> (null takes back what another file gives)"
        listed = "".join(f"\n  {LEAVE_OUT.sub(said, line)}" for line in lines)
        raise ConfigError(f"the config cannot be used:{listed}")


def take_away(config: dict) -> Taken:
    """Removes what is null: an entry of a named block, a paper, a figure or a key of a figure.

    Snakemake lays mappings over one another, so an overlay could otherwise only add to the default.
    Returns (block, name) of those that are gone. Writes out short forms of models as well.
    """
    _drop_nulls(config.get("figures"), deep=True)
    for model in _mapping(config.get("models")).values():
        _write_out_heads(model)
    return {(block, name) for block in NAMED for name in _drop_nulls(config.get(block))}


def _write_out_heads(model) -> None:
    """Expands `heads: N` of a one-layer model that is fitted with `couplings`: full couplings of
    N heads, if it can have them."""
    try:
        optimizer, heads = model["training"]["optimizer"], model["heads"]
        short = optimizer["couplings"] and model["layers"] == 1
        short = short and models.about({**model, "heads": "full"}).full
    except (KeyError, TypeError, ValueError):
        return
    if short and isinstance(heads, int) and optimizer.get("heads") in (None, heads):
        # New mappings: YAML's anchors share theirs with other models.
        given = {**optimizer, "heads": heads}
        model |= {"heads": "full", "training": {**model["training"], "optimizer": given}}


def _drop_nulls(node, deep: bool = False) -> list:
    """Removes the keys of a mapping that are null, and, if `deep`, those of all mappings in it."""
    gone = [name for name, value in _mapping(node).items() if value is None]
    for name in gone:
        del node[name]
    for value in _mapping(node).values() if deep else ():
        _drop_nulls(value, deep)
    return gone


def _name_problems(config: dict) -> Iterator[str]:
    """Names that cannot be part of a path, and keys that are no text."""
    yield from _key_problems("", config)
    for block in NAMED:
        for name in _mapping(config.get(block)):
            if isinstance(name, str) and not NAME.fullmatch(name):
                yield (
                    f"{block}: found the name {shown(name)}; expected letters, digits, '_', '.' "
                    f"and '-', since folders are called so; rename it"
                )


def _key_problems(path: str, node) -> Iterator[str]:
    where = path.removeprefix(".") or "config"
    for step, value in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(node, dict) and not isinstance(step, str):
            yield (
                f"{where}: found the key {shown(step)}, a {type(step).__name__}; "
                f"expected text; put it in quotes, or rename it"
            )
        elif isinstance(value, dict | list):
            below = f"[{step}]" if isinstance(node, list) else f".{step}"
            yield from _key_problems(f"{path}{below}", value)


def _reference_problems(path: str, name, config: Config, taken: Taken) -> Iterator[str]:
    """Names of entries that a block of the config does not have."""
    if not isinstance(name, Reference) or name.block in PARTS:
        return
    entries = getattr(config, name.block)
    if name not in entries:
        near = nearest(name, list(entries))
        fix = f"did you mean {near}?" if near else "name one of them, or define it"
        gone = ", which null takes away" if (name.block, name) in taken else ""
        yield (
            f"{path}: found {name}, but there is no {name.block}.{name}{gone}; expected one of "
            f"{', '.join(entries) or 'none'}; {fix}"
        )


def _part_problems(path: str, part, around, config: Config) -> Iterator[str]:
    """Entries that do not fit a reference, and parts that the entries of one do not have."""
    if not isinstance(part, Reference | PartNumber):
        return
    if part.block not in PARTS:
        yield from _entry_problems(path, part, around, config)
        return
    named = _named(around, part.of)
    for name in named if isinstance(named, list) else [named] if named else []:
        entry, where = getattr(config, name.block)[name], f"{name.block}.{name}"
        if part.block == "steps":
            model = name if name.block == "models" else entry.model
            yield from _step_problems(path, part, model, config)
        elif part.block.startswith("sequences of "):
            split = part.block.removeprefix("sequences of ")
            split = around[0].split if split == "its split" else split
            most = entry.available(split)
            if most and part > most:
                yield (
                    f"{path}: found {part}; expected at most {most}, the {split} split of {where}; "
                    f"lower it"
                )
        else:
            known = getattr(entry, part.block)
            if isinstance(known, dict):
                known = [name for name, one in known.items() if part.fits(one, config)]
            if part not in known:
                yield (
                    f"{path}: found {part}; expected one of the {part.block} of {where}"
                    f"{f' ({part.wanted})' if part.wanted else ''}: "
                    f"{', '.join(map(str, known)) or 'none'}; take one of them or add it there"
                )


def _named(around: tuple[Block, ...], key: str):
    """The value of a key in the innermost of the blocks around that has it; None where none has."""
    return next((found for block in around if (found := getattr(block, key, None))), None)


def _step_problems(path: str, step: int, name: str, config: Config) -> Iterator[str]:
    model = config.models[name]
    if not model.keeps(step):
        fix = "which keeps its end only; take last"
        if isinstance(model.training, Recipe):
            listed = f"models.{name}.training.checkpoints.listed"
            fix = f"up to {model.training.steps}; take others, or list it under {listed}"
        yield f"{path}: found {step}; expected checkpoints of {name}, {fix}"


def _entry_problems(path: str, name: Reference, around, config: Config) -> Iterator[str]:
    """Entries that do not fit, and keys that differ from those of what an entry goes with."""
    entries = getattr(config, name.block)
    entry = entries[name]
    if not name.fits(entry, config):
        others = [other for other, one in entries.items() if name.fits(one, config)]
        fix = f"take {' or '.join(others[:5])}" if others else f"define one under {name.block}"
        kind = "architecture" if name.block == "models" else "kind"
        own = f", of {kind} {getattr(entry, kind)}" if hasattr(entry, kind) else ""
        yield f"{path}: found {name}{own}; expected {ONE_OF[name.block]} {name.wanted}; {fix}"
    elif name.same:
        other = _named(around, name.like) if name.like else None
        other = other[0] if isinstance(other, list) else other
        if other:
            expected, where = getattr(config, other.block)[other], f"{other.block}.{other}"
        else:
            expected = next(block for block in around if hasattr(block, name.same[0]))
            where = f"the {type(expected).__name__.lower()}"
        differ = [key for key in name.same if getattr(entry, key, None) != getattr(expected, key)]
        own, others = (
            ", ".join(f"{key} {getattr(one, key, None)}" for key in differ)
            for one in (entry, expected)
        )
        if differ:
            yield f"{path}: found {name}, of {own}; expected {others}, as {where} has; change one"


def _whole_problems(path: str, value, around, config: Config) -> Iterator[str]:
    """Values of a block that do not fit together, and a model that does not fit its source."""
    if isinstance(value, Block):
        for step, said in [*value.conflicts(), *value.misfits(config)]:
            yield f"{'.'.join(filter(None, [path, step]))}: {said}"
    source = _named(around, "source")
    if isinstance(value, Reference) and value.block == "models" and isinstance(source, Reference):
        for step, said in config.models[value].misfits_of(source, config):
            yield f"models.{value}.{step}: {said} ({path} uses it on {source})"
