"""Lists what still runs: `python -m manybody.io.running FOLDER`, before a folder is unlocked.

Snakemake leaves its lock behind when it is killed, and jobs may outlive it. The lock may go when
no writer under FOLDER holds a lease and no other Snakemake works in the current folder.
"""

import sys
from pathlib import Path

from manybody.io.lease import holders


def running(folder: str | Path) -> list[str]:
    """Snakemake and its jobs that work in `folder` on this host, a sentence for each."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            here = (process / "cwd").resolve(strict=True) == Path(folder).resolve()
        except OSError:  # it has ended, or belongs to another user
            continue
        snakemake = any(Path(word).name == "snakemake" for word in words[:3])
        job = any("/.snakemake/scripts/" in word for word in words[:3])
        if here and (snakemake or job):
            found.append(
                f"{'snakemake' if snakemake else 'a job'} runs in {folder} as process "
                f"{process.name}. Wait for it or end it, then run again."
            )
    return found


def main(results: str) -> int:
    """Prints who holds what under `results`; 1 if anybody does."""
    found = running(Path.cwd()) + (holders(results) if Path(results).is_dir() else [])
    for sentence in found:
        print(sentence, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m manybody.io.running FOLDER")
    sys.exit(main(sys.argv[1]))
