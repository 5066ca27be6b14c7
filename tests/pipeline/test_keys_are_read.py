"""Every key of the config has a reader: what nothing reads is a promise that nobody keeps."""

import ast
import re
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from manybody.io.options import Block
from manybody.pipeline.check import Config

WORKFLOW = Path(__file__).resolve().parents[2] / "workflow"
PACKAGE = WORKFLOW / "src" / "manybody"
FIGURES = PACKAGE / "config" / "figures"
# Where keys are read, beside rules and scripts, by the module of the config that declares them.
ROOMS = {
    "corpora": ["data"],
    "sources": ["data"],
    "data": ["data"],  # blocks that the options of a source have in them
    "models": ["models", "training"],
    "training": ["training"],
    "clones": ["sampling"],
    "evaluations": ["measure", "config/figures"],
    "curves": ["training"],
    "spectra": ["measure", "config/figures"],
    "figures": ["plotting", "claims", "config/figures"],
}
ASKED = ("paths", "sources", "models", "figures", "jobs")  # by the rules
CHECKS = ("misfits", "problems")


@cache
def reads(path: Path) -> frozenset[str]:
    """Keys that a file reads: by subscripts and `get`, in the figures' blocks by attributes."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".smk":  # Snakemake's own language
        return frozenset(re.findall(r"""[\[("']+([\w-]+)["']""", text))
    tree = ast.parse(text)
    if path.is_relative_to(FIGURES):
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
    module = block.__module__.removeprefix("manybody.").removeprefix("config.").split(".")[0]
    if module == "theory":  # one module computes it
        kind = kind_of(block) if "kind" in block.model_fields else "multi_index_trec"
        path = f"theory/{kind.replace('multi_index_', 'multi_index/')}.py"
        if kind.endswith("_exact"):
            path = f"claims/identities/{kind.removesuffix('_exact')}.py"
        return reads(PACKAGE / path) | {"kind"}
    if block.__name__.endswith("Figures"):  # each key is a figure, which a module draws
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", block.__name__.removesuffix("Figures")).lower()
        drawn = (PACKAGE / "plotting" / name).glob("*.py")
        return frozenset(path.stem for path in drawn)
    found = frozenset()
    if block.__name__.endswith("Theory"):  # tables by their part are parameters of a panel
        figure = re.search(r"fig\d", block.__name__.lower())[0]
        rooms = (PACKAGE / room / "multi_index" / f"{figure}.py" for room in ("plotting", "claims"))
        found = found.union(*map(parameters, filter(Path.is_file, rooms)))
    if "architecture" in block.model_fields:  # options are parameters of the network
        architecture = get_args(block.model_fields["architecture"].annotation)[0]
        found = parameters(PACKAGE / "models" / architecture / "network.py")
    folders = [PACKAGE / room for room in ROOMS.get(module, [])]
    files = shared + [path for folder in folders for path in folder.rglob("*.py")]
    return found.union(*map(reads, files))


# The blocks of the whole: rules read each of them, papers by a name that is not written out.
def blocks_of(block=Config):
    """`block` and all blocks in it, each once."""
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


def test_a_key_that_nothing_reads_is_noticed():
    for block in INNER:
        assert "unread" not in readers(block)
