"""The store of what jobs made, by what it was made from: going back to old settings finds it.

A version of an artifact lies in `{results}/store/{path of the artifact}/{digest}/`. The digest is
that of the job's parameters, which hold that of its code, and of the contents of its inputs. The
files are hard links to those that the job wrote, or copies where the file system has no links.
`made.json` beside them has their sha256, by which a version that was altered under its other name
is refused, the seconds that the job took, its `stage` (the folder of its log) and its `counts`.

    python -m manybody.io.store RESULTS [--remove]

lists the versions that are not what lies under RESULTS now, with their sizes.
"""

import atexit
import gc
import hashlib
import os
import shutil
import sys
import time
from contextlib import nullcontext
from pathlib import Path

from manybody.io.atomic import ArtifactError, read_json, sha256, to_json, write_json
from manybody.io.lease import lease
from manybody.io.logs import log_to

MADE, MANIFEST = "made.json", "manifest.json"
FETCHED = "taken from "  # how a job's log starts if it found its results here
VERSIONS = 3  # of an artifact, the latest, that stay
COUNTS = ("steps", "batch", "chains", "sweeps", "sequences", "forwards")  # keys of `counts`
# A job is that of the first of these that its files are named after: wildcard and config block.
BLOCKS = {
    "clone": "clones",
    "evaluation": "evaluations",
    "spectrum": "spectra",
    "model": "models",
    "curve": "curves",
    "theory": "theory",
    "source": "sources",
}


class Job:
    """The job of a script, which Snakemake gives as `snakemake`. Its outputs are in one folder."""

    def __init__(self, snakemake):
        self.begin = time.monotonic()
        self.outputs = [Path(path) for path in snakemake.output]
        self._listed = self.outputs[0].name == MANIFEST
        parameters = dict(snakemake.params.items())
        contents = {
            name: list(map(sha256, paths)) for name, paths in named_inputs(snakemake.input).items()
        }
        results = Path(snakemake.config["results"])
        stage = Path(snakemake.log[0]).relative_to(results / "logs").parts[0]
        self.about = {"stage": Path(stage).stem, "counts": counts(parameters)}
        self.version = version(results, self.outputs[0], parameters, contents)

    def fetch(self) -> bool:
        """Puts what the same job made before under its names; False if there is no such version."""
        try:
            files = read_json(self.version / MADE)["files"]
            whole = all(sha256(self.version / name) == found for name, found in files.items())
        except (ArtifactError, OSError):
            whole = False
        if not whole:
            return False
        folder = self.outputs[0].parent
        with lease(folder) if self._listed else nullcontext():
            for path in self._files():
                path.unlink(missing_ok=True)
            for name in sorted(files, key=MANIFEST.__eq__):
                _link(self.version / name, folder / name)
        for path in [*self.outputs, self.version / MADE]:
            os.utime(path)  # newer than what it was made from; and the latest version
        print(f"{FETCHED}{self.version}: parameters, inputs and code are the same as then")
        return True

    def keep(self) -> None:
        """Keeps what the job has made, and of older versions the latest."""
        part = self.version.with_name(f".{self.version.name}")
        for leftover in (part, self.version):
            shutil.rmtree(leftover, ignore_errors=True)
        part.mkdir(parents=True)
        for path in self._files():
            _link(path, part / path.name)
        files = {path.name: sha256(path) for path in sorted(part.iterdir())}
        write_json(
            part / MADE,
            {"files": files, "seconds": round(time.monotonic() - self.begin, 1), **self.about},
        )
        part.replace(self.version)
        for old in versions(self.version.parent)[VERSIONS:]:
            shutil.rmtree(old)

    def _files(self) -> list[Path]:
        """The files of the job: its outputs; of a folder with a manifest all that lies there."""
        if not self._listed:
            return self.outputs
        return [path for path in self.outputs[0].parent.glob("[!.]*") if path.is_file()]


def begin(snakemake) -> Job:
    """Sends what the script prints to its log, and ends it here if the job was done before; called
    before a script imports what takes time."""
    # Imports make few cycles; searches at Python's usual rate take a tenth of their time, and those
    # at its end, with what they free, take a process with torch a second.
    gc.set_threshold(50_000, 50)
    atexit.register(gc.freeze)
    log_to(snakemake.log[0], entry(snakemake.wildcards))
    job = Job(snakemake)
    if job.fetch():
        sys.exit()
    return job


def entry(wildcards) -> str:
    """The path of the config's entry that a job with these wildcards is made of, if any."""
    named = dict(wildcards.items())
    return next((f"{BLOCKS[name]}.{named[name]}" for name in BLOCKS if name in named), "")


def named_inputs(given) -> dict[str, list[str]]:
    """The paths of the named inputs of Snakemake's job, one or several of each name."""
    return {
        name: [paths] if isinstance(paths, str) else list(paths) for name, paths in given.items()
    }


def counts(parameters: dict) -> dict[str, int]:
    """The counts in a job's entries, such as steps and batch; of a list the largest. Seconds of
    jobs of one stage and model are about proportional to the product of their counts."""
    found: dict[str, int] = {}
    for entry in parameters.values():
        for key in COUNTS if isinstance(entry, dict) else ():
            count = entry.get(key)
            count = max(count, default=1) if isinstance(count, list) else count
            if isinstance(count, int):
                found[key] = max(count, 1) * found.get(key, 1)
    return found


def artifact(results: Path, output: Path) -> Path:
    """The folder of the versions of a job's result, of which `output` is the first file."""
    return results / "store" / output.relative_to(results)


def version(results: Path, output: Path, parameters: dict, contents: dict[str, list]) -> Path:
    """The folder of what a job makes of `parameters` and of inputs with these sha256, by name."""
    made_from = to_json({"parameters": parameters, "inputs": contents})
    return artifact(results, output) / hashlib.sha256(made_from.encode()).hexdigest()[:32]


def versions(artifact: Path) -> list[Path]:
    """The versions of an artifact, its folder in the store, the latest first."""
    made = sorted(artifact.glob(f"*/{MADE}"), key=lambda path: path.stat().st_mtime, reverse=True)
    return [path.parent for path in made]


def unused(results: Path) -> list[Path]:
    """The versions that are not what lies under `results` now."""
    found = []
    for made in sorted((results / "store").rglob(MADE)):
        artifact = results / made.parent.parent.relative_to(results / "store")
        if not artifact.is_file() or sha256(artifact) != sha256(made.parent / artifact.name):
            found.append(made.parent)
    return found


def main(results: str, remove: str = "") -> None:
    """Lists the unused versions, or removes them."""
    total = 0
    for version in unused(Path(results)):
        size = sum(path.stat().st_size for path in version.iterdir())
        total += size
        print(f"{size / 1e6:8.1f} MB  {version}")
        if remove:
            shutil.rmtree(version)
    print(f"{total / 1e6:8.1f} MB  {'removed' if remove else 'in all; --remove removes them'}")


def _link(stored: Path, path: Path) -> None:
    path.unlink(missing_ok=True)
    try:
        os.link(stored, path)
    except OSError:  # another file system, or one without links
        shutil.copy2(stored, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
