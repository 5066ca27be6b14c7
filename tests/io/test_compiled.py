"""Compiled loops give the same bits just compiled, from the cache, and from a cache with gaps.

A function that another one calls is optimised by itself, and again inside its caller. A process
that compiled both uses the first copy, one that read the caller from the cache the second: sums
that may be regrouped must have one copy only, inlined.
"""

import json
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from compiled_parts import PARTS
from numba.core.dispatcher import Dispatcher

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


def compiled():
    """Every compiled function of the package."""
    for path in SOURCES.rglob("*.py"):
        if "@njit" in path.read_text(encoding="utf-8"):
            module = import_module(".".join(path.relative_to(SOURCES).with_suffix("").parts))
            yield from (value for value in vars(module).values() if isinstance(value, Dispatcher))


def test_called_functions_that_may_regroup_sums_are_inlined():
    """Else whichever copy of one a process has loaded first does the sums."""
    functions = list(compiled())
    called = {name for function in functions for name in function.py_func.__code__.co_names}
    inlined = [found for found in functions if found.targetoptions.get("forceinline")]
    assert len(inlined) > 10
    for function in functions:
        if function.targetoptions.get("fastmath") and function.py_func.__name__ in called:
            assert function in inlined, f"{function} lacks forceinline"
