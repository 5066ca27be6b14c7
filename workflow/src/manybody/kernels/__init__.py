"""Compiled loops, one module a caller, and the vector arithmetic that they share.

numba keeps machine code on disk and makes it anew when the file of a loop changes, but not when a
loop that it calls does, in another file. So this room's code lies in a folder named by the digest
of all its files, below the folder of `NUMBA_CACHE_DIR` or beside them.
"""

import hashlib
import os
from pathlib import Path

from numba import config

_FOLDER = Path(__file__).parent
_DIGEST = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(_FOLDER.glob("*.py"))))

if config.CACHE_DIR or os.access(_FOLDER, os.W_OK):  # else numba has a folder in the home
    _CACHE = Path(config.CACHE_DIR or _FOLDER / "__pycache__")
    config.CACHE_DIR = str(_CACHE / f"loops-{_DIGEST.hexdigest()[:16]}")
