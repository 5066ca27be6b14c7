"""Plants bugs one by one in a copy of the repository and runs the tests that should notice.

    python tests/planted/run.py BUGS.json [OUT.json]

A bug is `file`, the text `old` that becomes `new` (with `start` and `stop`, bytes of the file,
where `old` stands there more than once), and `tests`, what should fail. Without `tests` those run
that import the module, by name or through others, nearest first. OUT has the first test that
failed as `caught_by`, or null for a bug that got away. Ends with status 1 if one did.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import repository

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path("workflow") / "src"
TIME = 900  # seconds for the tests of one bug
FIRST = 12  # files of tests that a bug is looked for in


@cache
def imports(path: Path) -> frozenset[str]:
    """Modules of the package that a file names in its imports or in strings."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # a module that is imported by a name in a table
    return frozenset(name for name in found if name.startswith("manybody"))


def nearest_tests(file: str) -> list[str]:
    """Files of tests in the order of how many imports lie between them and a file's module."""
    package = ROOT / SOURCES
    modules = {
        ".".join(path.relative_to(package).with_suffix("").parts).removesuffix(".__init__"): path
        for path in package.rglob("*.py")
    }
    own = Path(__file__).parent  # its tests look at the code as it stands, not at what it does
    tests = sorted(path for path in (ROOT / "tests").rglob("test_*.py") if path.parent != own)
    order, seen = [], set()
    wanted = {name for name, path in modules.items() if path == ROOT / file}
    while wanted:
        near = [test for test in tests if imports(test) & wanted and test not in order]
        order += sorted(near, key=lambda test: len(imports(test)))
        seen |= wanted
        wanted = {name for name, path in modules.items() if imports(path) & wanted} - seen
    return [str(test.relative_to(ROOT)) for test in order]


def planted(source: bytes, bug: dict) -> bytes:
    old, new = bug["old"].encode(), bug["new"].encode()
    if "start" in bug:
        assert source[bug["start"] : bug["stop"]] == old, f"{bug['file']}: the file has changed"
        return source[: bug["start"]] + new + source[bug["stop"] :]
    if source.count(old) != 1:
        raise SystemExit(f"{bug['file']}: {source.count(old)} places with {bug['old']!r}, not one")
    return source.replace(old, new)


def caught(folder: Path, tests: list[str], compiled: Path) -> str | None:
    """The first test that fails; a run that takes too long is caught as well.

    `compiled` is where Numba keeps what it compiled.
    """
    options = ["-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    variables = {"PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": str(compiled)}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=TIME,
            env={**os.environ, **variables},
        )
    except subprocess.TimeoutExpired:
        return f"no end within {TIME} s"
    if done.returncode == 0:
        return None
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return failed[1] if failed else f"pytest ended with {done.returncode}: {done.stdout[-300:]}"


def main(bugs_file: str, out: str | None = None) -> int:
    bugs = json.loads(Path(bugs_file).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "repository"
        repository.copy(folder)
        subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
        for number, bug in enumerate(bugs, 1):
            path = folder / bug["file"]
            source = path.read_bytes()
            tests = bug.get("tests") or nearest_tests(bug["file"])[:FIRST]
            # Functions of other files that inline a compiled loop are compiled anew with it.
            compiled = Path(name) / (f"compiled-{number}" if b"njit" in source else "compiled")
            path.write_bytes(planted(source, bug))
            bug["caught_by"] = caught(folder, tests, compiled) if tests else None
            path.write_bytes(source)
            print(f"{number}/{len(bugs)} {bug['file']}: {bug['caught_by']}", flush=True)
            if out:
                Path(out).write_text(json.dumps(bugs, indent=1) + "\n", encoding="utf-8")
    return int(any(bug["caught_by"] is None for bug in bugs))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
