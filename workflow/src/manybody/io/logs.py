"""Sends what a job prints to its log, line by line, warnings and tracebacks included."""

import errno
import sys
import traceback
from pathlib import Path

from manybody.io.refusal import Refusal

FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS}  # a disk that takes no more


def log_to(path: str | Path, entry: str = "", keep: bool = False) -> None:
    """Sends this process's standard output and error to `path` from here on.

    What the file holds is dropped unless `keep`. An uncaught exception is written there too: a full
    disk and a `Refusal` as a sentence, the latter after the path `entry` of the config's entry that
    the job is made of, and others as a traceback. Snakemake shows the log of a failed job.
    """
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    # It stays open until the process ends. Several processes may append to one file.
    log = Path(path).open("a", buffering=1, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    if not keep:
        log.truncate(0)
    sys.stdout = sys.stderr = log

    def report(kind, error, trace):
        if isinstance(error, Refusal):
            print(error.within(entry) if entry else error, file=log)
        elif isinstance(error, OSError) and error.errno in FULL:
            print(f"{error}; make room, then run the same command again: it goes on", file=log)
        else:
            traceback.print_exception(kind, error, trace, file=log)

    sys.excepthook = report


def tell(about: str, said: list[str]) -> None:
    """Prints sentences about a file to the log, and to the terminal too."""
    for place in (sys.stdout, sys.__stdout__):
        print(about, "; ".join(said), sep=": ", file=place, flush=True)
