"""Compiled loops that may regroup sums have one copy each.

A function that another one calls is optimised by itself, and again inside its caller. A process
that compiled both uses the first copy, one that read the caller from the cache the second: sums
that may be regrouped must have one copy only, inlined. The smoke pipeline is run with gaps in the
cache in `system/pipeline/test_pipeline.py`.
"""

from importlib import import_module

from numba.core.dispatcher import Dispatcher
from repository import ROOT

SOURCES = ROOT / "workflow" / "src"


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
