"""Published data sets: which files, at which revision, and their published splits.

TinyStories (Eldan and Li, arXiv 2305.07759): the validation file is halved for validation and test.
WikiText-103 (Merity et al. 2016, arXiv 1609.07843): word-tokenised, with <unk>, in three splits.
"""

from pathlib import Path

from manybody.data import SourceError, download, given
from manybody.io.atomic import sha256

URL = "https://huggingface.co/datasets/{repository}/resolve/{revision}/{name}"
REPOSITORIES = {"tinystories": "roneneldan/TinyStories", "wikitext103": "Salesforce/wikitext"}
FILES = {
    "tinystories": {"train": ["TinyStories-train.txt"], "validation": ["TinyStories-valid.txt"]},
    "wikitext103": {
        "train": [
            "wikitext-103-v1/train-00000-of-00002.parquet",
            "wikitext-103-v1/train-00001-of-00002.parquet",
        ],
        "validation": ["wikitext-103-v1/validation-00000-of-00001.parquet"],
        "test": ["wikitext-103-v1/test-00000-of-00001.parquet"],
    },
}
SPLITS = {
    "tinystories": {
        "train": {"train": 1.0},
        "validation": {"validation": 0.5, "test": 0.5},
        "test": {"test": 1.0},
    },
    "wikitext103": {name: {name: 1.0} for name in ("train", "validation", "test")},
}
BOUNDARIES = {"tinystories": "marker", "wikitext103": "heading"}


def files(kind: str, corpus: dict, downloads: Path) -> dict[str, list[Path]]:
    """The files of each published part: local ones if the config gives any, else downloaded.

    `corpus`: `revision` (a commit), optionally `files` ({part: [paths]}) and `sha256` ({file name:
    digest}). Without a known digest the first download records one beside the file; a file that
    differs from either is refused.
    """
    known = corpus.get("sha256") or {}
    if corpus.get("files"):
        return {
            part: [_local(name, known) for name in names] for part, names in corpus["files"].items()
        }
    revision = corpus["revision"]

    def fetched(name: str) -> Path:
        path = downloads / kind / revision / Path(name).name
        url = URL.format(repository=REPOSITORIES[kind], revision=revision, name=name)
        return download.fetch(url, path, known.get(path.name))

    return {part: list(map(fetched, names)) for part, names in FILES[kind].items()}


def _local(name: str, known: dict[str, str]) -> Path:
    path = given.named_file(name, "files", "a file of it")
    expected = known.get(path.name)
    if expected and sha256(path) != expected:
        raise SourceError(
            f"{path} has sha256 {sha256(path)}, the config's `sha256` expects {expected}: "
            "give the right file, or correct the config"
        )
    return path
