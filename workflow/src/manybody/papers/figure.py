"""The base class of figures' blocks, and how a figure is made from its module.

A figure is one module `papers/{paper}/{figure}.py`, which holds in this order

    Block(Figure)             its keys in the config
    Inputs(inputs.Inputs)     the files that it reads, with the key of each run: `of(block, config)`
    tables(inputs, block)     all numbers that are drawn or judged; `drawn` of what it returns is
                              the table of the CSV
    claims(tables)            records (`claims.Claim`); it never raises
    draw(tables)              the picture; it computes nothing
    caption(inputs, block)    reStructuredText: what is shown, what the eye sees, how it was made
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from manybody.io.options import Block, Reference, nested, refers

Adopting = refers("models", wanted="with parameters: source", fits=lambda model, _: model.adopts)
FILES = 3  # that are named of a corpus of many


class Figure(Block):
    """Base class of the block of a figure."""

    def states(self, config: dict) -> list[list]:
        """The clones that the figure shows, [clone, sweep]: those that the block names, after its
        `sweep` or their last; of its evaluations the targets that it names, or all."""
        names = [name for _, name, _ in nested("", self) if isinstance(name, Reference)]
        found = [
            (str(name), getattr(self, "sweep", max(config["clones"][name]["sweeps"])))
            for name in names
            if name.block == "clones"
        ]
        picked = {name for name in names if name.block == "targets"}
        for evaluation in (name for name in names if name.block == "evaluations"):
            for name, target in config["evaluations"][evaluation]["targets"].items():
                if "clone" in target and (name in picked or not picked):
                    found.append((target["clone"], target["sweep"]))
        return [list(state) for state in dict.fromkeys(found)]


def make(
    module: ModuleType,
    block: dict,
    inputs: dict,
    files: Mapping[str, Sequence[str]],
    caption: str,
    stem: str | Path,
) -> None:
    """Writes `stem`.pdf, .png, .csv (what is drawn), .claims.csv and .caption.rst.

    module: the figure's. block: as the config has it. inputs: `Inputs` as plain values. files: the
    job's inputs by kind (`inputs.with_files`).
    """
    from manybody.io import tables as files_of_tables
    from manybody.io.atomic import write_text
    from manybody.papers import claims, style
    from manybody.papers.inputs import with_files

    stem = Path(stem)
    given = with_files(module.Inputs.model_validate(inputs), files)
    found = module.tables(given, module.Block.model_validate(block))
    style.save(module.draw(found), stem)
    files_of_tables.write_csv(found.drawn, stem.with_name(f"{stem.name}.csv"))
    claims.write(module.claims(found), stem.with_name(f"{stem.name}.claims.csv"))
    write_text(stem.with_name(f"{stem.name}.caption.rst"), caption)


def own_texts(config: dict) -> dict[str, str]:
    """The files of each corpus of one's own files that a source is made of, in words."""
    used = {source.get("corpus") for source in config.get("sources", {}).values()}
    found = {}
    for name, corpus in config.get("corpora", {}).items():
        if corpus["kind"] == "file" and name in used:
            shown, more = corpus["files"][:FILES], corpus["files"][FILES:]
            found[name] = ", ".join(shown) + (f" and {len(more)} more" if more else "")
    return found
