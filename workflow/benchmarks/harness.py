"""Helpers of all measurements: rows, medians of alternating blocks, and processes of their own."""

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any


def row(what: str, ours: float, baseline: float, unit: str, threads: int = 1) -> dict:
    """A row of a table of speeds; ours is the faster one where `ratio` is above 1."""
    return dict(
        what=what, ours=ours, baseline=baseline, ratio=ours / baseline, unit=unit, threads=threads
    )


def timed(call: Callable, *given) -> tuple[Any, float, float]:
    """Result of a call, its seconds, and those of processors."""
    begin, busy = time.perf_counter(), time.process_time()
    found = call(*given)
    return found, time.perf_counter() - begin, time.process_time() - busy


def seconds(call: Callable, *given) -> float:
    """Seconds of a call."""
    return timed(call, *given)[1]


def memory() -> float:
    """The most memory that this process has had, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def medians(sides: Sequence[Callable[[], float]], blocks: int, warm: int = 0) -> list[float]:
    """The median of what each side measures, in blocks that it takes its turn in, so that a busy
    machine slows all alike; the first `warm` blocks, which compile, do not count."""
    found = [[side() for side in sides] for _ in range(warm + blocks)]
    return [statistics.median(rates) for rates in zip(*found[warm:], strict=True)]


def peak_flops(size: int = 1024, trials: int = 20) -> float:
    """Operations a second that one thread reaches in a product of square matrices in single
    precision, as chains take them."""
    import torch

    from manybody.models.linear import linear

    rows = torch.ones(size, size)
    return 2.0 * size**3 / min(seconds(linear, rows, rows) for _ in range(trials))


def said(module: str, *arguments: str, first: tuple[str, ...] = (), **environment: str) -> str:
    """Output of `python -m module arguments`, whose memory and libraries are its own.

    It finds what lies in the folders `first`, and every module that this process finds.
    """
    found = os.pathsep.join(filter(None, [*first, *sys.path]))
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": found} | environment,
    ).stdout


def told(module: str, *arguments: str, **environment: str) -> list[dict]:
    """The rows that such a process prints as JSON on its last line."""
    return json.loads(said(module, *arguments, **environment).splitlines()[-1])
