"""Compiled loops give the same bits just compiled, from the cache, and from a cache with gaps.

A function that another one calls is optimised by itself, and again inside its caller. A process
that compiled both uses the first copy, one that read the caller from the cache the second: sums
that may be regrouped must have one copy only, inlined.
"""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from compiled_parts import PARTS

CHILD = Path(__file__).with_name("compiled_parts.py")
SOURCES = Path(__file__).resolve().parents[2] / "workflow" / "src"
GAPS = 2  # caches of which a random half is gone


def functions(cache: Path) -> set[str]:
    """Names of the files that index the functions of a cache."""
    return {str(path.relative_to(cache)) for path in cache.rglob("*.nbi")}


def forget_half(cache: Path, seed: int) -> None:
    names = sorted(functions(cache))
    for name in np.random.default_rng(seed).choice(names, len(names) // 2, replace=False):
        index = cache / name
        for path in index.parent.glob(f"{index.stem}.*"):
            path.unlink()


def run(cache: Path) -> dict[str, str]:
    done = subprocess.run(
        [sys.executable, CHILD, *PARTS],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def digests(tmp_path_factory) -> dict[str, dict[str, str]]:
    """Digests of all parts, by the state of the cache."""
    cache = tmp_path_factory.mktemp("numba")
    found = {"nothing": run(cache)}
    compiled = functions(cache)
    assert len(compiled) > 40
    found["everything"] = run(cache)
    assert functions(cache) == compiled
    for seed in range(GAPS):
        forget_half(cache, seed)
        kept = functions(cache)
        found[f"half, {seed}"] = run(cache)
        # Functions that only cached ones call are not missed.
        assert kept < functions(cache) <= compiled
    return found


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_the_cache_changes_no_bit(digests, part):
    assert len({found[part] for found in digests.values()}) == 1, {
        cached: found[part] for cached, found in digests.items()
    }


def test_called_functions_that_may_regroup_sums_are_inlined():
    """Else whichever copy of one a process has loaded first does the sums."""
    jitted, calls = {}, {}
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef) and (options := njit_options(node)) is not None:
                jitted.setdefault(node.name, []).append((path.name, options))
                inner = {called_name(call) for call in ast.walk(node) if isinstance(call, ast.Call)}
                calls[path.name, node.name] = inner - {node.name}
    called = set().union(*calls.values())
    loose = [
        (file, name)
        for name, found in jitted.items()
        for file, options in found
        if name in called and "fastmath" in options and "forceinline" not in options
    ]
    assert loose == []
    inlined = [name for name, found in jitted.items() for _, o in found if "forceinline" in o]
    assert len(inlined) > 10


def njit_options(function: ast.FunctionDef) -> set[str] | None:
    """Names of the options of `@njit(...)`, or None for a function that is not compiled."""
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and called_name(decorator) == "njit":
            return {keyword.arg for keyword in decorator.keywords}
    return None


def called_name(call: ast.Call) -> str:
    """Of a function of ours: those of numpy have names as well."""
    if getattr(getattr(call.func, "value", None), "id", "") == "np":
        return ""
    return getattr(call.func, "id", getattr(call.func, "attr", ""))
