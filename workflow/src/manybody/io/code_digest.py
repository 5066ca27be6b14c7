"""A digest of the code that affects a script's numbers.

Snakemake does not see edits of imported modules. The digest, one of a rule's `params`, makes them
visible: it covers the abstract syntax, without docstrings and comments, of the script and of every
module of the package that it imports, directly or not.
"""

import ast
import hashlib
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2]
ROOTS = {"manybody": SOURCES, "benchmarks": SOURCES.parent}  # package -> the folder it lies in
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
# They make no numbers.
SILENT = {"manybody.io.logs", "manybody.io.progress", "manybody.io.store"}


@cache
def code_digest(script: str | Path, modules: tuple[str, ...] = ()) -> str:
    """Digest (16 hexadecimal digits) of `script` and its static import closure in our packages.

    `modules` names modules that are imported by name at run time, such as an architecture's.
    Read once in a process.
    """
    digest = hashlib.sha256(_syntax(Path(script)).encode())
    for module in import_closure(script, modules):
        digest.update(f"\n{module}\n{_syntax(_file(module))}".encode())
    return digest.hexdigest()[:16]


def import_closure(script: str | Path, modules: tuple[str, ...] = ()) -> list[str]:
    """Names of our modules that `script` and `modules` import, sorted."""
    found: set[str] = set()
    queue = [*_imports(Path(script)), *modules]
    while queue:
        module = queue.pop()
        if module in found or module in SILENT:
            continue
        found.add(module)
        queue += _imports(_file(module))
    return sorted(found)


def _file(module: str) -> Path:
    path = ROOTS[module.split(".")[0]].joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _imports(path: Path) -> list[str]:
    return _read(path)[0]


def _syntax(path: Path) -> str:
    return _read(path)[1]


@cache
def _read(path: Path) -> tuple[list[str], str]:
    """Imports of a file from the package, and its syntax without docstrings; parsed once."""
    tree, names = ast.parse(path.read_bytes()), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.append(node.module)
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    ours = [name for name in names if name.split(".")[0] in ROOTS and _file(name).is_file()]
    parents = {
        ".".join(name.split(".")[:depth])
        for name in ours
        for depth in range(1, name.count(".") + 1)
    }
    return sorted({*ours, *parents}), ast.dump(tree)
