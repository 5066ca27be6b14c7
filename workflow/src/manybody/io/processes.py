"""Test that a process still runs: number, start time and boot id together name one process."""

from pathlib import Path


def boot() -> str:
    """Id of this boot of the machine; empty where the system has none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def started(process: int | str) -> str:
    """Start time of a process in clock ticks since boot; empty if there is no such process."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return ""
    fields = status.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]
