"""Checks a config: names, types, whether what is named is there, and how choices fit together."""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Annotated, Any

from pydantic import Field, ValidationError, create_model

from manybody import papers
from manybody.config.clones import Clone
from manybody.config.compute import Compute
from manybody.config.corpora import Corpus
from manybody.config.curves import AnyCurve
from manybody.config.evaluations import Evaluation
from manybody.config.models import AnyModel
from manybody.config.sentences import nearest, sentences, shown
from manybody.config.sources import Source
from manybody.config.spectra import AnySpectrum
from manybody.config.theory import Theory
from manybody.io.options import Block, Reference, inside, key

NAME = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9_.-]+")
Taken = Set[tuple[str, str]]
NAMED = ("corpora", "sources", "models", "clones", "evaluations", "spectra", "theory", "curves")


class Config(Block):
    """Names things once; paths are made of these names. What no key here describes is refused."""

    results: Annotated[str, Field(pattern="^[A-Za-z0-9_./-]+$")] = key(
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
    figures: Block = key("What each figure draws, by paper.")


def config_type(named: Mapping[str, Iterable[str]] | None = None) -> type[Config]:
    """The type of a whole config in which these figures are named, by paper; of all, by default.

    The modules of the others are not imported: their blocks may be anything.
    """
    blocks: dict[str, Any] = {}
    for paper, title in papers.PAPERS.items():
        known = papers.figures(paper)
        asked = known if named is None else set(named.get(paper, ())) & set(known)
        fields = {figure: _field(paper, figure) for figure in known if figure in asked}
        fields |= {figure: (Any, None) for figure in known if figure not in asked}
        name = "".join(part.title() for part in paper.split("-")) + "Figures"
        made = create_model(name, __base__=Block, __doc__=title, **fields)
        blocks[paper.replace("-", "_")] = (made, key(title, None, alias=paper))
    figures = create_model(
        "Figures", __base__=Block, __doc__="What each figure draws, by paper.", **blocks
    )
    return create_model(
        "Config",
        __base__=Config,
        __doc__=Config.__doc__,
        figures=(figures, key("What each figure draws, by paper.")),
    )


def _field(paper: str, figure: str) -> tuple:
    """The type of a figure's block, and the key with the first line of its docstring."""
    block = papers.figure_module(paper, figure).Block
    return block, key(inspect.getdoc(block).partition("\n")[0], None)


class ConfigError(ValueError):
    """What is wrong with the config: the key's path, the value, what was expected, the way out."""


def check(config: dict, taken: Taken = frozenset()) -> Config:
    """The config as typed blocks. Raises `ConfigError` with all that is wrong, one line each.

    `taken` is what `take_away` returned: a name that refers to one of these is said to do so.
    """
    # Each needs what the one before has checked.
    _refuse(_name_problems(config))
    kind = config_type(_named_figures(config))
    try:
        checked = kind.model_validate(config)
    except ValidationError as error:
        _refuse(sentences(error, kind, config))
        raise
    found = list(inside("", checked))
    _refuse(
        problem
        for path, name in found
        if isinstance(name, Reference)
        for problem in _reference_problems(path.lstrip("."), name, checked, taken)
    )
    _refuse(
        problem
        for path, block in found
        if isinstance(block, Block)
        for problem in _block_problems(path.lstrip("."), block, checked)
    )
    return checked


def _named_figures(config: dict) -> dict[str, list[str]]:
    """The names of figures that a config gives, by paper."""
    figures = config.get("figures")
    blocks = figures.items() if isinstance(figures, dict) else ()
    return {paper: list(named) for paper, named in blocks if isinstance(named, dict)}


def _refuse(problems: Iterator[str]) -> None:
    if lines := dict.fromkeys(problems):
        listed = "".join(f"\n  {line}" for line in lines)
        raise ConfigError(f"the config cannot be used:{listed}")


def take_away(config: dict) -> Taken:
    """Removes what is null: an entry of a named block, a paper, a figure or a key of a figure.

    Snakemake lays mappings over one another, so an overlay could otherwise only add to the default.
    Inside other entries null is a value. Returns (block, name) of the entries that are gone.
    """
    _drop_nulls(config.get("figures"), deep=True)
    return {(block, name) for block in NAMED for name in _drop_nulls(config.get(block))}


def _drop_nulls(node, deep: bool = False) -> list:
    """Removes the keys of a mapping that are null, and, if `deep`, those of all mappings in it."""
    if not isinstance(node, dict):
        return []
    gone = [name for name, value in node.items() if value is None]
    for name in gone:
        del node[name]
    for value in node.values() if deep else ():
        _drop_nulls(value, deep)
    return gone


def _name_problems(config: dict) -> Iterator[str]:
    """Names that cannot be part of a path, and keys that are no text."""
    yield from _key_problems("", config)
    for block in NAMED:
        entries = config.get(block)
        for name in entries if isinstance(entries, dict) else ():
            if isinstance(name, str) and not NAME.fullmatch(name):
                yield (
                    f"{block}: found the name {shown(name)}; expected letters, digits, '_', '.' "
                    f"and '-', since folders are called so; rename it"
                )


def _key_problems(path: str, node) -> Iterator[str]:
    parts = node.items() if isinstance(node, dict) else enumerate(node)
    for step, value in parts:
        if isinstance(node, dict) and not isinstance(step, str):
            yield (
                f"{path or 'config'}: found the key {shown(step)}, a {type(step).__name__}; "
                f"expected text; put it in quotes, or rename it"
            )
        elif isinstance(value, dict | list):
            below = f".{step}" if path else str(step)
            yield from _key_problems(
                path + (f"[{step}]" if isinstance(step, int) else below), value
            )


def _reference_problems(path: str, name: Reference, config: Config, taken: Taken) -> Iterator[str]:
    """Whether the block that a name refers to has such an entry, of a kind that is asked for."""
    entries = getattr(config, name.block, None)
    if entries is None:
        return
    if name not in entries:
        near = nearest(name, list(entries))
        fix = f"did you mean {near}?" if near else "name one of them, or define it"
        gone = ", which null takes away" if (name.block, name) in taken else ""
        yield (
            f"{path}: found {name}, but there is no {name.block}.{name}{gone}; expected one of "
            f"{', '.join(entries) or 'none'}; {fix}"
        )
    elif name.kinds and entries[name].kind not in name.kinds:
        others = [other for other, entry in entries.items() if entry.kind in name.kinds]
        fix = f"take {' or '.join(others)}" if others else f"define one under {name.block}"
        what = {"sources": "a source", "curves": "a curve", "spectra": "a spectrum"}
        what = what.get(name.block, "a theory")
        yield (
            f"{path}: found {name}, of kind {entries[name].kind}; expected {what} of kind "
            f"{' or '.join(name.kinds)}; {fix}"
        )


def _block_problems(path: str, block: Block, config: Config) -> Iterator[str]:
    for step, said in block.problems():
        yield f"{'.'.join(filter(None, [path, step]))}: {said}"
    yield from block.misfits(path, config)
