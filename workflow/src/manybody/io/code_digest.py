"""A digest of the code that affects a script's numbers.

Snakemake does not see edits of imported modules. The digest, one of a rule's `params`, makes them
visible: it covers the abstract syntax, without docstrings and comments, of the script and of every
module of the package that it imports, directly or not.
"""

import ast
import hashlib
from functools import cache
from itertools import accumulate
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2]
ROOTS = {"manybody": SOURCES, "benchmarks": SOURCES.parent}  # package -> the folder it lies in
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
# They make no numbers.
SILENT = {"manybody.io.logs", "manybody.io.progress", "manybody.io.store"}


@cache
def code_digest(script: str | Path, modules: tuple[str, ...] = ()) -> str:
    """Digest (16 hexadecimal digits) of `script`, its static import closure in our packages, and
    `modules` that are imported by name at run time, such as an architecture's."""
    digest = hashlib.sha256(_read(Path(script))[1].encode())
    for module in import_closure(script, modules):
        digest.update(f"\n{module}\n{_read(_file(module))[1]}".encode())
    return digest.hexdigest()[:16]


def import_closure(script: str | Path, modules: tuple[str, ...] = ()) -> list[str]:
    """Names of our modules that `script` and `modules` import, sorted."""
    found: set[str] = set()
    queue = [*_read(Path(script))[0], *modules]
    while queue:
        module = queue.pop()
        if module in found or module in SILENT:
            continue
        found.add(module)
        queue += _read(_file(module))[0]
    return sorted(found)


def _file(module: str) -> Path:
    path = ROOTS[module.split(".")[0]].joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _read(path: Path) -> tuple[list[str], str]:
    """Our modules that a file imports, their packages too, and its syntax without docstrings."""
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
    found = {part for name in ours for part in accumulate(name.split("."), "{}.{}".format)}
    return sorted(found), ast.dump(tree)
