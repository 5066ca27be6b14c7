"""Lists what still runs, before a folder is unlocked.

    python -m manybody.io.running RESULTS [arguments for snakemake]

Snakemake leaves its lock behind when it is killed, and jobs may outlive it. The lock may go when
no writer under RESULTS, or what the arguments' config names, holds a lease and no process that
works for it runs in the current folder. One folder of results may lie in another.
"""

import os
import re
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from manybody.io.lease import held, holder, lease

RUNS = ".runs"  # of a folder of results: a folder with a lease for each snakemake that makes some
OPEN = re.compile(rf"(.+?)/(?:{re.escape(RUNS)}|logs)/")  # what such a process has open


@contextmanager
def run_into(results: str | Path) -> Iterator[None]:
    """Says in a folder of results that this process makes some of them."""
    runs = Path(results) / RUNS
    mine = runs / f"{socket.gethostname()}.{os.getpid()}"
    with lease(mine), (mine / "open").open("w"):
        for dead in held(runs, alive=False):
            shutil.rmtree(dead, ignore_errors=True)
        yield
    shutil.rmtree(mine, ignore_errors=True)


def running(folder: str | Path, results: str | Path) -> dict[str, str]:
    """Snakemake and its jobs that work in `folder` for `results` here, a sentence of each."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
            here = (process / "cwd").resolve(strict=True) == Path(folder).resolve()
            links = [os.readlink(link) for link in (process / "fd").iterdir()] if here else []
        except OSError:  # it has ended, or belongs to another user
            continue
        snakemake = any(Path(word).name == "snakemake" for word in words[:3])
        job = "/.snakemake/scripts/" in " ".join(words[:3])
        owners = {match[1] for match in map(OPEN.match, links) if match}
        # One that has nothing open has only begun.
        ours = not owners or str(Path(folder, results).resolve()) in owners
        asks = int(process.name) in (os.getpid(), os.getppid())  # the latter as in `timeout 9 ...`
        if here and (snakemake or job) and ours and not asks:
            what = "snakemake" if snakemake else "a job"
            found[process.name] = f"{what} runs in {folder} as process {process.name}."
    return found


def alive(results: str | Path) -> list[str]:
    """Who works for `results`, a sentence for each."""
    here, results = running(Path.cwd(), results), Path(results)
    if not results.is_dir():
        return list(here.values())
    inner = {runs.parent for runs in results.rglob(RUNS)} - {results}
    writers = [path for path in held(results) if not inner & {path, *path.parents}]
    return [*here.values(), *(holder(p) for p in writers if p.suffix[1:] not in here)]


def explained(results: str | Path) -> str:
    """Why snakemake finds `results` locked, and what to do."""
    again = f"`make resume RESULTS={results}`, with the same ARGS, goes on"
    runs = Path(results) / RUNS
    if living := alive(results):
        return (
            f"{results} is locked: {' '.join(living)} Wait for it or end it; after a kill {again}"
        )
    dead = held(runs, alive=False) if runs.is_dir() else []
    said = " ".join(f"{holder(path)} That process is dead." for path in dead)
    return (
        f"{results} is locked, but nothing that works for it lives here. {said} {again} (without "
        "make: --unlock, then the same command)"
    )


def asked(results: str, arguments: list[str]) -> str:
    """The folder of results that snakemake's arguments name; else `results`."""
    for word in arguments:
        if word.endswith((".yaml", ".yml")) and Path(word).is_file():
            config = yaml.safe_load(Path(word).read_text(encoding="utf-8"))
            results = config.get("results", results) if isinstance(config, dict) else results
        elif word.startswith("results="):
            results = word.removeprefix("results=")
    return results


def main(results: str, *arguments: str) -> int:
    """Prints who works for the results of a call of snakemake; 1 if anybody does."""
    found = alive(asked(results, list(arguments)))
    for sentence in found:
        print(f"{sentence} Wait for it or end it, then run again.", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
