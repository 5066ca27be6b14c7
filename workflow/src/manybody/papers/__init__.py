"""The papers' figures, one module each: its options, numbers, claims, picture and caption.

Modules are found by their file names and imported by name, those that a config names alone.
Importing them loads no torch, scipy, matplotlib or seaborn: what draws and tests imports in the
function.
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
FOLDER = Path(__file__).parent


def module_name(paper: str, figure: str) -> str:
    """The module of a figure, by the names that the config gives to paper and figure."""
    return f"manybody.papers.{paper.replace('-', '_')}.{figure}"


def figure_module(paper: str, figure: str) -> ModuleType:
    """The module of a figure; `ModuleNotFoundError` where there is none."""
    return import_module(module_name(paper, figure))


@cache
def figures(paper: str) -> tuple[str, ...]:
    """The names of a paper's figures, sorted: modules of its folder that have a caption."""
    folder = FOLDER / paper.replace("-", "_")
    return tuple(
        sorted(
            path.stem
            for path in folder.glob("*.py")
            if "caption" in _names(path.read_text(encoding="utf-8"))
        )
    )


def _names(text: str) -> set[str]:
    """Functions that a module's text defines or imports at its top level."""
    import ast

    found: set[str] = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.asname or alias.name for alias in node.names}
    return found
