"""The papers' figures, one module each: its options, numbers, claims, picture and caption.

Modules are imported by name, those that a config names alone. Importing them loads no torch, scipy
or matplotlib: what draws and tests imports in the function.
"""

from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

# paper: what its block in the config is of
PAPERS = {
    "simplicity": "Figures of arXiv 2410.19637. Targets are those of the figure's evaluation.",
    "potts": "Figures of arXiv 2304.07235.",
    "multi-index": "Figures of the paper on sequence multi-index models.",
    "your-model": "Figures of models that were trained elsewhere.",
}


def module_name(paper: str, figure: str) -> str:
    """The module of a figure, by the names that the config gives to paper and figure."""
    return f"manybody.papers.{paper.replace('-', '_')}.{figure}"


def figure_module(paper: str, figure: str) -> ModuleType:
    """The module of a figure; `ModuleNotFoundError` where there is none."""
    return import_module(module_name(paper, figure))


@cache
def figures(paper: str) -> tuple[str, ...]:
    """The names of a paper's figures, sorted: modules of its folder that have a caption."""
    paths = Path(__file__).with_name(paper.replace("-", "_")).glob("*.py")
    return tuple(sorted(path.stem for path in paths if "\ndef caption(" in path.read_text("utf-8")))
