"""Corpora of a test's own lines and sources of its own, and what comes out in each split."""

from manybody.data import text
from manybody.data.documents import Documents
from manybody.io.sequences import Sequences

SHARES = {"train": 0.8, "validation": 0.1, "test": 0.1}


def lines_corpus(folder, lines, **changes) -> dict:
    """The config's entry of a corpus whose documents are `lines`."""
    path = folder / "lines.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    corpus = {"kind": "file", "files": [str(path)], "boundary": "line", "split": SHARES}
    return {**corpus, **changes}


def joined(pieces) -> list[str]:
    """Documents as whole strings."""
    *documents, rest = "".join(piece.text + "\0" * piece.last for piece in pieces).split("\0")
    assert not rest, "the last document has no end"
    return documents


def drawn(module, source, folder, given=()) -> dict[str, Sequences]:
    """The splits of a source that `module` draws, in a folder of their own."""
    folder.mkdir(exist_ok=True)
    out = {split: folder / f"{split}.parquet" for split in text.SPLITS}
    module.make(source, "toy", [*given], out)
    return {split: Sequences.open(path) for split, path in out.items()}


def collected(folder, corpus) -> dict[str, list[str]]:
    """The documents of each split of a corpus, for which `folder` has nothing but the files."""
    out = {name: folder / "out" / f"{name}.parquet" for name in text.SPLITS}
    text.collect(corpus, out, folder / "downloads")
    assert sorted((folder / "out").iterdir()) == sorted(out.values())
    return {name: joined(Documents(path)) for name, path in out.items()}
