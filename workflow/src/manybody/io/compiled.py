"""The folder in which numba keeps machine code, and the threads that run its loops.

Every module of compiled loops imports this one first. numba compiles a loop anew when its own file
changes, but not when a loop that it calls changes in another file. So the folder is named by the
digest of all modules of loops, and lies below `NUMBA_CACHE_DIR` or beside this package.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType

from numba import config, njit as njit

_PACKAGE = Path(__file__).resolve().parents[1]
_LOOPS = sorted(_PACKAGE.rglob("*loops.py"))
_DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in _LOOPS))

if config.CACHE_DIR or os.access(_PACKAGE, os.W_OK):  # else numba has a folder in the home
    _CACHE = Path(config.CACHE_DIR or _PACKAGE / "__pycache__")
    config.CACHE_DIR = str(_CACHE / f"loops-{_DIGEST.hexdigest()[:16]}")

# numba imports scipy's BLAS as it starts, slowly; a loop that calls BLAS would import it again.
if (_BLAS := "scipy.linalg.cython_blas") not in sys.modules:
    sys.modules[_BLAS] = ModuleType(_BLAS)
    import_module("numba.np.arraymath")
    del sys.modules[_BLAS]

# Threads are kept: a new one starts on the core that made it, which costs a tenth of a short pass.
_pool = cache(ThreadPoolExecutor)
os.register_at_fork(after_in_child=_pool.cache_clear)  # a fork has none of its parent's threads


def each(threads: int, function: Callable, parts: Iterable) -> list:
    """Results of function(part), in the order of the parts, by so many threads.

    The function does not call `each`, for whose threads it would wait for ever.
    """
    if threads == 1:
        return [function(part) for part in parts]
    return list(_pool(threads).map(function, parts))
