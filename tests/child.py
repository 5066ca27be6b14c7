"""Python in a process of its own, which finds the modules that this one finds."""

import os
import subprocess
import sys


def start(*given, **environment) -> subprocess.Popen:
    """`python given...`, with pipes from its output and its errors."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    command = [sys.executable, *map(str, given)]
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(*given, **environment) -> str:
    """What `python given...` prints; fails with its errors if it ends with one."""
    with start(*given, **environment) as process:
        printed, errors = process.communicate()
    assert process.returncode == 0, errors
    return printed
