"""Progress of long work: a bar on a terminal, a line now and then in a log."""

import re
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar, copy_context
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from tqdm import tqdm

INTERVAL = 10.0  # seconds between two lines in a log
LINE = re.compile(r": (\S+/\S+ .+ \((\d+)%\)), .+, (?:(\d+):)?(\d+):(\d+) left")
TAIL = 4096  # bytes of a log in which its last lines are looked for
SHOWN = ContextVar("SHOWN", default=True)


def in_notebook() -> bool:
    """True in a kernel of IPython, as Jupyter starts one and a terminal does not."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def only_in_notebooks(function: Callable, *values, **named):
    """Calls a function whose progress is shown in a notebook, and nowhere else."""
    context = copy_context()
    context.run(SHOWN.set, in_notebook())
    return context.run(function, *values, **named)


class Progress(AbstractContextManager):
    """`with Progress(total, "steps", "train n2") as progress: progress.update(1, loss=2.1)`.

    Shows share, rate, time left and the figures of the last update; nothing without a label.
    """

    def __init__(self, total: int, unit: str, label: str, done: int = 0):
        self._bar = None  # tqdm starts a thread even for a bar that is switched off
        self._shown = bool(label) and SHOWN.get()
        if self._shown and (sys.stderr.isatty() or in_notebook()):
            self._bar = tqdm(
                total=total,
                initial=done,
                unit=f" {unit}",
                unit_scale=True,
                desc=label,
                dynamic_ncols=True,
            )
        self._label, self._unit, self._total = label, unit, total
        self._done = self._start = done
        self._begin = self._last = time.monotonic()
        self._figures: dict = {}
        self._left: float | None = None
        self._lock = Lock()  # threads may report together

    def __exit__(self, *_):
        if self._bar is not None:
            self._bar.close()
        elif self._shown and self._done > self._start:
            self._line(time.monotonic())

    def update(self, done: int, left: float | None = None, before: bool = False, **figures) -> None:
        """Counts `done` more units; `figures` (numbers) are shown beside the bar.

        left: seconds to the end, where the units differ in what they take. before: an earlier run
        did them, so that they say nothing of the rate.
        """
        with self._lock:
            self._done += done
            self._start += done * before
            self._figures, self._left = figures, left
            now = time.monotonic()
            if self._bar is not None:
                known = {} if left is None else {"left": tqdm.format_interval(left)}
                self._bar.set_postfix({**known, **figures}, refresh=False)
                self._bar.initial += done * before
                self._bar.update(done)
            elif self._shown and now - self._last >= INTERVAL and self._done != self._total:
                self._line(now)

    def _line(self, now: float) -> None:
        self._last = now
        rate = (self._done - self._start) / max(now - self._begin, 1e-9)
        left = self._left
        if left is None and rate:
            left = max(self._total - self._done, 0) / rate
        left = "?" if left is None else tqdm.format_interval(left)
        figures = "".join(f", {key} {value:.4g}" for key, value in self._figures.items())
        share = self._done / self._total if self._total else 1.0
        print(
            f"{self._label}: {self._done}/{self._total} {self._unit} ({share:.0%}), "
            f"{rate:.3g} {self._unit}/s, {left} left{figures}",
            file=sys.stderr,
            flush=True,
        )


class Report(NamedTuple):
    """The last report in a log: `12/80 steps (15%)`, the share that is done, the seconds left."""

    text: str
    share: float
    left: float


def last_progress(path: str | Path, since: float) -> Report | None:
    """The progress in a job's log; None if there is nothing from the last `since` seconds."""
    try:
        age = time.time() - Path(path).stat().st_mtime
    except OSError:
        return None
    found = [match for line in last_lines(path) if (match := LINE.search(line))]
    if not found or age > since:
        return None
    text, share, hours, minutes, seconds = found[-1].groups()
    left = 3600 * int(hours or 0) + 60 * int(minutes) + int(seconds)
    return Report(text, int(share) / 100, max(left - age, 0.0))


def last_lines(path: str | Path) -> list[str]:
    """The lines at the end of a text file, a few thousand bytes; none if it is not there."""
    try:
        with Path(path).open("rb") as file:
            file.seek(max(file.seek(0, 2) - TAIL, 0))
            return file.read().decode(errors="replace").splitlines()
    except OSError:
        return []
