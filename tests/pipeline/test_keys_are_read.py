"""Every key of the config has a reader: what nothing reads is a promise that nobody keeps."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from manybody import papers
from manybody.io.options import Block
from manybody.pipeline.check import config_type

WORKFLOW = Path(__file__).resolve().parents[2] / "workflow"
PACKAGE = WORKFLOW / "src" / "manybody"
PAPERS = PACKAGE / "papers"  # modules of figures, which hold their blocks
# Where keys are read, beside rules and scripts, by the module of the config that declares them.
ROOMS = {
    "corpora": ["data"],
    "sources": ["data"],
    "data": ["data"],  # blocks that the options of a source have in them
    "models": ["models", "training"],
    "training": ["training"],
    "clones": ["sampling"],
    "evaluations": ["measure", "papers"],
    "curves": ["training"],
    "spectra": ["measure", "papers"],
    "papers": ["papers"],
}
OF_FAMILIES = ("pipeline/families.py", "config/families.py")
ASKED = ("paths", "sources", "models", "figures", "jobs", "price")  # by the rules
CHECKS = ("misfits", "problems")


@cache
def reads(path: Path) -> frozenset[str]:
    """Keys that a file reads: by subscripts and `get`, in modules of figures by attributes too."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".smk":  # Snakemake's own language
        return frozenset(re.findall(r"""[\[("']+([\w-]+)["']""", text))
    tree = ast.parse(text)
    if path.is_relative_to(PAPERS):
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        bodies = [node for node in functions if node.name not in CHECKS]
        nodes = [node for body in bodies for node in ast.walk(body)]
        return frozenset(
            node.attr for node in nodes if isinstance(node, ast.Attribute)
        ) | constants(nodes)
    return constants(ast.walk(tree))


def constants(nodes) -> frozenset[str]:
    """Keys in subscripts and in calls of `get`."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.Subscript):
            found |= {part.value for part in [node.slice] if isinstance(part, ast.Constant)}
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("get", "pop"):
            found |= {part.value for part in node.args[:1] if isinstance(part, ast.Constant)}
    return frozenset(found)


@cache
def parameters(path: Path) -> frozenset[str]:
    """Names of the parameters of a module's functions."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return frozenset(node.arg for node in nodes if isinstance(node, ast.arg))


def kind_of(block: type[Block]) -> str:
    return get_args(block.model_fields["kind"].annotation)[0].replace("-", "_")


def readers(block: type[Block]) -> frozenset[str]:
    """All keys that are read where those of a block may be."""
    shared = [*(WORKFLOW / "rules").glob("*.smk"), *(WORKFLOW / "scripts").glob("*.py")]
    shared += [PACKAGE / "pipeline" / f"{name}.py" for name in ASKED]
    # A block that was made anew under another name is declared where its base is.
    declared = next(one for one in block.__mro__ if "pipeline" not in one.__module__)
    module = declared.__module__.removeprefix("manybody.").removeprefix("config.").split(".")[0]
    if module == "theory":  # one module computes it
        kind = kind_of(block) if "kind" in block.model_fields else "multi_index_trec"
        path = f"theory/{kind.replace('multi_index_', 'multi_index/')}.py"
        return reads(PACKAGE / path) | {"kind"}
    if block.__name__.endswith("Figures"):  # each key is a figure, which a module makes
        return frozenset(name for paper in papers.PAPERS for name in papers.figures(paper))
    if module == "families":  # the rules read attributes, `options` names those of the job
        trees = [ast.parse((PACKAGE / place).read_text(encoding="utf-8")) for place in OF_FAMILIES]
        nodes = [node for tree in trees for node in ast.walk(tree)]
        found = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        parts = [part for node in nodes if isinstance(node, ast.Tuple) for part in node.elts]
        return frozenset(found | {part.value for part in parts if isinstance(part, ast.Constant)})
    found = frozenset()
    if "architecture" in block.model_fields:  # options are parameters of the network
        architecture = get_args(block.model_fields["architecture"].annotation)[0]
        found = parameters(PACKAGE / "models" / architecture / "network.py")
    rooms = [PACKAGE / room for room in ROOMS.get(module, [])]
    files = shared + [path for room in rooms for path in (room, *room.rglob("*.py"))]
    files = [path for path in files if path.is_file()]
    return found.union(*map(reads, files))


# The blocks of the whole: rules read each of them, papers by a name that is not written out.
def blocks_of(block=None):
    """`block` and all blocks in it, each once."""
    block = block or config_type()
    found = [block]
    parts = [field.annotation for field in block.model_fields.values()]
    while parts:
        part = parts.pop(0)
        parts += get_args(part)
        if isinstance(part, type) and issubclass(part, Block):
            found += [inner for inner in blocks_of(part) if inner not in found]
    return found


INNER = [block for block in blocks_of() if block.__name__ != "Figures"]


@pytest.mark.parametrize("block", INNER, ids=lambda block: block.__name__)
def test_every_key_is_read(block):
    unread = [name for name in block.model_fields if name not in readers(block)]
    assert not unread, f"{block.__name__}: nothing reads {', '.join(unread)}; delete these keys"
