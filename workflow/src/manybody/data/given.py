"""The files that a config names, looked at before any job reads them.

The Snakefile asks here, so that this needs the standard library only.
"""

import os
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path

from manybody.data import SourceError

# How files begin that are often found among texts, what they are, and what makes text of them
STARTS = {
    b"\x89PNG": ("a PNG image", "leave it out"),
    b"\xff\xd8\xff": ("a JPEG image", "leave it out"),
    b"%PDF-": ("a PDF document", "take its text (pdftotext), or leave it out"),
    b"PK\x03\x04": ("a zip archive, as office documents are", "save it as text, or leave it out"),
    b"\x1f\x8b": ("a gzip archive", "unpack it (gunzip), or leave it out"),
    b"BZh91AY": ("a bzip2 archive", "unpack it (bunzip2), or leave it out"),
    b"\xfd7zXZ": ("an xz archive", "unpack it (unxz), or leave it out"),
    b"\x28\xb5\x2f\xfd": ("a zstd archive", "unpack it (unzstd), or leave it out"),
    b"\xff\xfe": ("text in UTF-16", "convert it (iconv -f UTF-16 -t UTF-8), or leave it out"),
    b"\xfe\xff": ("text in UTF-16", "convert it (iconv -f UTF-16 -t UTF-8), or leave it out"),
}
PARQUET = b"PAR1"


def named_file(name: str, key: str, expected: str) -> Path:
    """The file that is called `name` under a key of the config's entry.

    `SourceError` if it does not exist, is a folder, is empty or may not be read; `expected` says in
    words what should be there.
    """
    path = Path(name).expanduser()
    if path.is_dir():
        _refuse(key, name, "which is a folder", expected, "name a file in it")
    _check(path, key, name, expected)
    return path


def text_files(names: Iterable[str], key: str) -> Iterator[Path]:
    """The text and Parquet files that are named under a key of a corpus, and those in the folders
    that are named (recursively, sorted, hidden and empty ones left out).

    `SourceError` if one that is named does not exist, is empty, may not be read or is seen at its
    start to be no text, or if a folder holds no file.
    """
    expected = "a UTF-8 text file, a Parquet file or a folder of them"
    for number, name in enumerate(names):
        place = f"{key}[{number}]"
        path = Path(name).expanduser()
        if not path.is_dir():
            _check(path, place, name, expected)
            _check_start(path, place)
            yield path
            continue
        inside = sorted(found for found in path.rglob("*") if _counts(found, path))
        if not inside:
            _refuse(place, name, "a folder without any text", expected, "put texts there")
        for found in inside:
            _check(found, place, str(found), expected)
            _check_start(found, place)
            yield found


def _counts(found: Path, folder: Path) -> bool:
    hidden = any(part.startswith(".") for part in found.relative_to(folder).parts)
    return not hidden and found.is_file() and found.stat().st_size > 0


def _check(path: Path, key: str, name: str, expected: str) -> None:
    if not path.exists():
        beside = sorted(os.listdir(path.parent)) if path.parent.is_dir() else []
        near = get_close_matches(path.name, beside, 1)
        start = "" if path.is_absolute() else f" (relative paths start at {Path.cwd()})"
        fix = f"did you mean {path.with_name(near[0])}?" if near else "correct the path"
        _refuse(key, name, "which does not exist", expected + start, fix)
    if not path.is_file():
        _refuse(key, name, "which is no regular file", expected, "copy what it gives to a file")
    if not os.access(path, os.R_OK):
        _refuse(key, name, "which may not be read", expected, f"allow it: chmod u+r {name}")
    if path.stat().st_size == 0:
        _refuse(key, name, "which is empty", expected, "fill it, or name another one")


def _check_start(path: Path, key: str) -> None:
    with path.open("rb") as opened:
        start = opened.read(8)
    for sign, (what, fix) in STARTS.items():
        if start.startswith(sign):
            _refuse(key, str(path), what, "UTF-8 text or Parquet", fix)
    if start.startswith(PARQUET) != (path.suffix == ".parquet"):
        what = "a Parquet file" if start.startswith(PARQUET) else "no Parquet file"
        _refuse(key, str(path), what, "the ending .parquet for such a file alone", "rename it")


def _refuse(key: str, name: str, what: str, expected: str, fix: str) -> None:
    raise SourceError(f"found {name}, {what}; expected {expected}; {fix}", key)
