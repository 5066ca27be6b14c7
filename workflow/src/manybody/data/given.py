"""The files that a config names, looked at by the Snakefile before any job reads them, so that the
standard library has to be enough.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from manybody.data import SourceError

LEAVE = "leave it out"
PLAIN = f"take its text (pandoc -t plain), or {LEAVE}"
# How files begin that are often found among texts, what they are, and what makes text of them
STARTS = {
    b"\x89PNG": ("a PNG image", LEAVE),
    b"\xff\xd8\xff": ("a JPEG image", LEAVE),
    b"GIF8": ("a GIF image", LEAVE),
    b"%PDF-": ("a PDF document", "take its text (pdftotext), or leave it out"),
    b"PK\x03\x04": ("a zip archive or an office document", "unpack it (unzip), or save it as text"),
    b"\x1f\x8b": ("a gzip archive", "unpack it (gunzip), or leave it out"),
    b"BZh91AY": ("a bzip2 archive", "unpack it (bunzip2), or leave it out"),
    b"\xfd7zXZ": ("an xz archive", "unpack it (unxz), or leave it out"),
    b"\x28\xb5\x2f\xfd": ("a zstd archive", "unpack it (unzstd), or leave it out"),
    b"Obj\x01": ("an Avro file", "write it as Parquet"),
    b"FEA1": ("a Feather file of version 1", "save it as Parquet"),
    b"\x93NUMPY": ("an array of NumPy", "write it as text (numpy.savetxt)"),
    b"\x89HDF": ("an HDF5 file", "write what it holds as text"),
    b"SQLite f": ("a database", "write its texts to a file"),
    b"\xd0\xcf\x11\xe0": ("an office document", "save it as text"),
    b"7z\xbc\xaf": ("a 7z archive", "unpack it (7z x), or leave it out"),
    b"\x04\x22\x4d\x18": ("an lz4 archive", "unpack it (unlz4), or leave it out"),
    b"\x1f\x9d": ("an archive of compress", "unpack it (uncompress), or leave it out"),
    b"Rar!\x1a": ("a RAR archive", "unpack it (unrar x), or leave it out"),
    b"\x80\x04\x95": ("a pickle", "write its texts to a file"),
    b"\x80\x05\x95": ("a pickle", "write its texts to a file"),
    b"<!doctype html": ("an HTML document", PLAIN),
    b"<html": ("an HTML document", PLAIN),
    b"<!-- saved from url": ("an HTML document", PLAIN),
    b"<?xml": ("an XML document", PLAIN),
    b"<error>": ("an XML document", PLAIN),
    b"<mediawiki": ("a dump of MediaWiki", "take its text (wikiextractor)"),
    b"<doc id=": (
        "the output of wikiextractor, with a line <doc ...> before each article",
        r"drop these (sed 's/^<\/doc>$/<|endoftext|>/; /^<doc id=/d') and say `boundary: marker`",
    ),
    b"warc/1.": ("a web archive (WARC)", "write the texts in it to a file of their own"),
    b"{\\rtf": ("a document in RTF", PLAIN),
    b"version https://git-lfs": ("a pointer of Git LFS", "fetch the file itself (git lfs pull)"),
}
LINES = 100_000  # of JSON, at most, among which one that is broken is looked for
# Tables that are read by column: how they begin, and how their names end
TABLES = {b"PAR1": "Parquet", b"ARROW1": "Arrow", b"\xff\xff\xff\xff": "Arrow stream"}
ENDINGS = {".parquet": ["Parquet"], ".feather": ["Arrow"], ".arrow": ["Arrow", "Arrow stream"]}
# Tables that are written as text
JSON_LINES = (".jsonl", ".jsonlines", ".ndjson")  # a document a line
WRITTEN = (".json", *JSON_LINES, ".csv", ".tsv", ".tab")
HIDDEN = (".", "Thumbs.db", "desktop.ini", "~$")  # names, or their starts, that systems hide
# What stands beside the tables of a data set and holds none of its texts
BOOKS = ("README*", "state.json", "dataset_*.json", "cache-*.arrow", "_*metadata", "_SUCCESS")


def named_file(name: str, key: str, expected: str) -> Path:
    """The file that is called `name` under a key of the config's entry, `expected` in words.

    `SourceError` if it does not exist, is a folder, is empty or may not be read.
    """
    path = Path(os.path.expanduser(name))
    if path.is_dir():
        _refuse(key, name, "which is a folder", expected, "name a file in it")
    _check(path, key, name, expected)
    return path


def text_files(names: Iterable[str], key: str, passed: list[str] | None = None) -> Iterator[Path]:
    """The text, Parquet and Arrow files that are named under a key of a corpus, and those in the
    folders that are named (recursively, sorted); of a folder with tables these alone.

    `passed` gets what is passed over in a folder, with the reason. `SourceError` if a file does not
    exist, is empty, may not be read or begins as no text, or if a folder holds none.
    """
    expected = "a UTF-8 text file, a Parquet or Arrow file or a folder of them"
    for number, name in enumerate(names):
        place = f"{key}[{number}]"
        path = Path(os.path.expanduser(name))
        inside = [path]
        if path.is_dir():
            found = _inside(path)
            inside = [one for one, reason in found.items() if not reason]
            others = [f"{one} ({reason})" for one, reason in found.items() if reason]
            delta = [one.parent.parent for one in found if one.parent.name == "_delta_log"]
            if delta:
                what = f"which holds a Delta table, {delta[0]}, perhaps with old versions"
                fix = (
                    'export the current one (pip install deltalake, python -c "import deltalake '
                    f"as d; d.DeltaTable({str(delta[0])!r}).to_pandas()"
                    ".to_parquet('texts.parquet')\") and name that file"
                )
                _refuse(place, name, what, expected, fix)
            if not inside:
                what = ", ".join(["a folder without any text", *others])
                fix = "put texts there, or name what a link leads to"
                _refuse(place, name, what, expected, fix)
            if passed is not None:
                passed += others
        for one in inside:
            _check(one, place, str(one) if path.is_dir() else name, expected)
            _check_start(one, place)
            yield one


def _inside(folder: Path) -> dict[Path, str]:
    """Entries of a folder, each with the reason for which it is passed over, if there is one."""
    found = {}
    for path in sorted(folder.rglob("*")):
        *above, hidden = (
            part.startswith(HIDDEN) or part.endswith((":Zone.Identifier", "~"))
            for part in path.relative_to(folder).parts
        )
        if not any(above) and (hidden or path.is_symlink() or not path.is_dir()):
            found[path] = "hidden" if hidden else _no_text(path)
            if path.name.endswith("~"):
                found[path] = "an editor's copy"
    tables = {
        one
        for one, reason in found.items()
        if not reason and (table(one) or one.suffix.lower() in (*ENDINGS, *JSON_LINES))
    }
    if tables:  # what else is there describes the data set
        found |= {
            path: reason or "no table of the data set"
            for path, reason in found.items()
            if path not in tables or any(map(path.match, BOOKS))
        }
    return found


def _no_text(path: Path) -> str:
    if not path.is_file():
        return "a link to a folder" if path.is_dir() else "no file, or a link to none"
    if path.stat().st_size == 0:
        return "empty"
    what, fix = binary(_start(path))
    return what if fix == LEAVE else ""


def encoding(start: bytes) -> str:
    """How a text is encoded by its first bytes: UTF-16 has a mark there, UTF-8 may have one."""
    return "utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def binary(start: bytes) -> tuple[str, str]:
    """Name of the format that begins so and is no text, and the way out, if it is known."""
    plain = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    other = ("a tar archive", "unpack it (tar -xf)") if start[257:262] == b"ustar" else ("", "")
    known = (STARTS[sign] for sign in STARTS if start.startswith(sign) or plain.startswith(sign))
    return next(known, other)


def table(path: Path) -> str | None:
    """The format of a table that is read by column; None for text."""
    return next((name for sign, name in TABLES.items() if _start(path).startswith(sign)), None)


def _start(path: Path, size: int = 512) -> bytes:
    if not os.access(path, os.R_OK):
        return b""
    with path.open("rb") as opened:
        return opened.read(size)


def _check(path: Path, key: str, name: str, expected: str) -> None:
    if not path.exists():
        beside = sorted({*os.listdir(path.parent)} - {path.name}) if path.parent.is_dir() else []
        near = get_close_matches(path.name, beside, 1)
        start = "" if path.is_absolute() else f" (relative paths start at {Path.cwd()})"
        fix = f"did you mean {path.with_name(near[0])}?" if near else "correct the path"
        if re.search(r"[*?$]|://", name):
            fix += "; patterns, variables and addresses are not filled in: name a file or a folder"
        what = "which links to no file" if path.is_symlink() else "which does not exist"
        _refuse(key, name, what, expected + start, fix)
    if not path.is_file():
        _refuse(key, name, "which is no regular file", expected, "copy what it gives to a file")
    if not os.access(path, os.R_OK):
        _refuse(key, name, "which may not be read", expected, f"allow it: chmod u+r {name}")
    if path.stat().st_size == 0:
        _refuse(key, name, "which is empty", expected, "fill it, or name another one")


def _check_start(path: Path, key: str) -> None:
    expected, ending = "UTF-8 text, Parquet or Arrow", path.suffix.lower()
    kind, (what, fix) = table(path), binary(_start(path))
    if not what and kind not in ENDINGS.get(ending, [kind]):
        what, fix = f"no {ENDINGS[ending][0]} file", "rename it"
        expected = f"the ending {ending} for such a file alone"
    if not what and ending in WRITTEN and kind is None:
        what, fix = _written(path, ending)
    if what:
        _refuse(key, str(path), what, expected, fix)


def _written(path: Path, ending: str) -> tuple[str, str]:
    """What a table that is written as text is called, and the command that makes Parquet of it."""
    # Spreadsheets write a mark, or the bytes of Windows, of which pandas has to know.
    start = _start(path, 2**20)
    whole = start[: start.rfind(b"\n") if len(start) == 2**20 else None]
    code = encoding(start)
    if code != "utf-16" and whole.decode(errors="ignore").encode() != whole:
        code = "cp1252"
    head = start.decode(code, errors="replace")
    broken = ""
    if "j" in ending:
        # A list, or an object over several lines, is one document; else each line is one.
        lines = not re.match(r"\s*(\[|\{\s*\n)", head)
        how = f"json({str(path)!r}, lines={lines}, dtype=False"
        if lines and ending in JSON_LINES:
            broken = _broken(path, code)
    else:
        signs = "\t,;|" if ending in (".tsv", ".tab") else ",;\t|"
        between = max(signs, key=head.partition("\n")[0].count)
        how = f"csv({str(path)!r}, sep={between!r}, dtype=str"  # as texts may be numbers
        if between == "\t" and len({line.count("\t") for line in head.split("\n")[:-1]}) < 2:
            how += ", quoting=3"  # where tabs part one row a line, quotes are of the texts
    mend = "mend or delete that line, then " if broken else ""
    return f"a table as {ending[1:]}{broken}", (
        f'{mend}write its texts (python -c "import pandas as p; p.read_{how}, encoding={code!r})'
        "[['COLUMN']].dropna().set_axis(['text'], axis=1).to_parquet('texts.parquet')\") and name "
        "that file, or rename it to .txt if its lines as they are should be the text, or leave it "
        "out"
    )


def _broken(path: Path, code: str) -> str:
    """What is wrong with the first line that is no JSON, if one of the first `LINES` is none."""
    with path.open(encoding=code, errors="replace") as opened:
        for number, line in enumerate(islice(opened, LINES), start=1):
            try:
                json.loads(line.strip() or "{}")
            except ValueError as error:
                return f", whose line {number}, {line.strip()[:40]!r}, is no JSON ({error})"
    return ""


def _refuse(key: str, name: str, what: str, expected: str, fix: str) -> None:
    raise SourceError(f"found {name}, {what}; expected {expected}; {fix}", key)
