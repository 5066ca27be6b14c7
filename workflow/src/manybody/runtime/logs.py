"""What a job prints goes to its log, line by line, warnings and tracebacks included."""

import sys
import traceback
from pathlib import Path


def log_to(path: str | Path, keep: bool = False) -> None:
    """Sends this process's standard output and error to `path` from here on.

    What the file holds is kept if `keep`, else dropped. An uncaught exception is written there
    and, as it stands, to the terminal as well.
    """
    terminal = sys.stderr
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    # Open until the process ends, and for appending: several processes may write to one file.
    log = Path(path).open("a", buffering=1, encoding="utf-8", errors="backslashreplace")  # noqa: SIM115
    if not keep:
        log.truncate(0)
    sys.stdout = sys.stderr = log

    def report(kind, error, trace):
        traceback.print_exception(kind, error, trace, file=log)
        traceback.print_exception(kind, error, trace, file=terminal)

    sys.excepthook = report
