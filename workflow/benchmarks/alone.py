"""A measurement in a process of its own, so that its memory is its own."""

import os
import subprocess
import sys


def said(module: str, *arguments: str) -> str:
    """What `python -m module arguments` prints; it finds every module that this process finds."""
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    ).stdout
