"""Manifests: the list of files that a job has made, each with its size and sha256.

A job whose files depend on its settings declares one output, its manifest, written last.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from manybody.io.atomic import ArtifactError, read_json, sha256, to_json, write_json


def write_manifest(path: str | Path, kind: str, payload: Iterable[str], about: dict) -> None:
    """Writes the manifest of the files named in `payload`, relative to its folder."""
    folder = Path(path).parent
    files = {
        name: {"bytes": (folder / name).stat().st_size, "sha256": sha256(folder / name)}
        for name in sorted(payload)
    }
    document = {"kind": kind, "about": about, "files": files}
    write_json(path, {**document, "sha256": _seal(document)})


def missing(path: Path) -> list[Path]:
    """The files of a manifest that are gone or of another size; itself if it cannot be read."""
    try:
        sizes = {
            path.parent / name: entry["bytes"] for name, entry in read_json(path)["files"].items()
        }
    except (ArtifactError, LookupError, TypeError, AttributeError):
        return [path]
    return [
        file for file, size in sizes.items() if not file.is_file() or file.stat().st_size != size
    ]


def _seal(document: dict) -> str:
    return hashlib.sha256(to_json(document).encode()).hexdigest()


class Manifest:
    """A job's list of payload files. `file` gives the path of one, if the file is unaltered."""

    def __init__(self, path: Path, kind: str, about: dict, files: dict):
        self.path, self.kind, self.about, self._files = path, kind, about, files
        self._checked: set[str] = set()

    @classmethod
    def read(cls, path: str | Path, kind: str) -> "Manifest":
        """The manifest at `path`; `ArtifactError` if it is missing or not of this `kind`."""
        document = read_json(path)
        if not isinstance(document, dict) or document.keys() != {
            "kind",
            "about",
            "files",
            "sha256",
        }:
            raise ArtifactError(
                f"{path} is not a manifest: it should hold kind, about, files and sha256"
                + "; give manifest.json of its folder"
                * Path(path).with_name("manifest.json").is_file()
            )
        if document.pop("sha256") != _seal(document):
            raise ArtifactError(
                f"{path} was altered after it was written. Delete it and run the same snakemake "
                "command again to remake it."
            )
        if document["kind"] != kind:
            raise ArtifactError(
                f"{path} lists files of kind {document['kind']!r}, expected {kind!r}"
            )
        return cls(Path(path), kind, document["about"], document["files"])

    def names(self) -> list[str]:
        """Names of the payload files, sorted."""
        return sorted(self._files)

    def file(self, name: str) -> Path:
        """Path of a payload file, its size and sha256 compared with the manifest's once."""
        if name not in self._files:
            raise ArtifactError(
                f"{self.path} lists no file {name!r}; it lists {', '.join(self.names())}"
            )
        path = self.path.parent / name
        if name not in self._checked:
            expected = self._files[name]
            if not path.is_file():
                raise ArtifactError(f"{path} is missing. {self._remake()}")
            size = path.stat().st_size
            if size != expected["bytes"] or sha256(path) != expected["sha256"]:
                raise ArtifactError(
                    f"{path} is not the file that was written: {size} bytes, expected "
                    f"{expected['bytes']} with sha256 {expected['sha256']}. {self._remake()}"
                )
            self._checked.add(name)
        return path

    def _remake(self) -> str:
        return f"Delete {self.path} and run the same snakemake command again to remake it."
