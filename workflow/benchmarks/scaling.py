"""Growth of the cost of each stage with each size, beside the count of its operations.

A stage has a process of its own. Its time is the least processor time of a few repetitions, its
memory the most that the process held while the stage was made and ran. An exponent is the slope of
log time in log size over four sizes, with the standard error of the fit; `counted` is that of the
operations at the same sizes (`scaling_stages`). Where they differ by more than `APART`, `because`
says why, or the table calls it unexplained.
"""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from scipy.stats import linregress

from benchmarks.gibbs import THREADS
from benchmarks.harness import timed, told
from benchmarks.scaling_stages import STAGES, Stage

APART = 0.2
REPEATED, LEAST = 3, 0.3  # repetitions, and seconds in which they are more


def measure(names: tuple[str, ...] = tuple(STAGES)) -> list[dict]:
    """Rows `stage, grows, size, seconds, MiB, operations, exponent, error, counted, because`."""
    alone = {f"{each}_NUM_THREADS": "1" for each in (*THREADS, "RAYON")}
    return [row for name in names for row in told(__name__, name, **alone)]


def grown(name: str, stage: Stage) -> list[dict]:
    """The rows of one stage."""
    _least(stage.made(**(stage.sizes | {key: sizes[0] for key, sizes in stage.grown.items()}))[0])
    rows = []
    for key, sizes in stage.grown.items():
        found = [_point(stage, stage.sizes | {key: size}) for size in sizes]
        slope, error = exponent(sizes, [seconds for seconds, *_ in found])
        counted, _ = exponent(sizes, [operations for *_, operations in found])
        fitted = dict(exponent=round(slope, 3), error=round(error, 3), counted=round(counted, 3))
        why = (stage.because or {}).get(key, "unexplained") if abs(slope - counted) > APART else ""
        for size, (seconds, memory, operations) in zip(sizes, found, strict=True):
            point = dict(stage=name, grows=key, size=size, seconds=float(f"{seconds:.4g}"))
            rows.append(
                {**point, "MiB": memory, "operations": float(operations), **fitted, "because": why}
            )
    return rows


def exponent(sizes, values) -> tuple[float, float]:
    """The slope of log values in log sizes, and its standard error."""
    fit = linregress(np.log(sizes), np.log(values))
    return float(fit.slope), float(fit.stderr)


def _point(stage: Stage, sizes: dict) -> tuple[float, float, float]:
    """Seconds, MiB and operations at these sizes."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here on
    work, operations = stage.made(**sizes)
    seconds = _least(work)
    peak = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return seconds, int(peak[1]) // 1024, operations


def _least(work: Callable[[], object]) -> float:
    """The least processor time of a call, in seconds."""
    spent = []
    while len(spent) < REPEATED or sum(spent) < LEAST:
        spent.append(timed(work)[2])
    return min(spent)


if __name__ == "__main__":  # in a process of its own: prints the rows of a stage
    torch.set_num_threads(1)
    print(json.dumps(grown(sys.argv[1], STAGES[sys.argv[1]])))
