"""Corpora: text from docstrings, published data sets or the user's files, cut into three splits.

The split of a document depends only on the seed and on its own text, or that of its group (see
`duplicates`). So equal documents are in one split, and in a longer corpus the old documents stay in
their splits, except where their group has grown.
"""

import codecs
import hashlib
import logging
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import accumulate, chain
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from manybody.data import (
    SHARES,
    SPLITS,
    SourceError,
    Unchanged,
    documents,
    duplicates,
    given,
    published,
    pydocs,
    refuse_bomb,
)
from manybody.data.documents import MARKER, Cutter, Piece, by_document
from manybody.io.atomic import sha256
from manybody.io.parquet import DAMAGE
from manybody.io.progress import Progress

log = logging.getLogger(__name__)

LINE = 2**16  # bytes, and characters in which a longer line is read
# Encodings by the mark at the start of a file
MARKS = {
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
    codecs.BOM_UTF8: "utf-8",
    b"": "utf-8",
}
ENDS = "\n\x85\u2028\u2029\f\v"  # of lines; of them a file has the first that its start has
UNIX = re.compile(r"\r{1,2}\n|\n\r|\r")  # ends that are to be LF
NAMED = 5  # of what is passed over
ALIGNED = re.compile(
    rb"(#.*\s+)?>.*\n(?=[A-Z*.~-]{5})([A-Z*.~-]*\r?\n)*(>|[A-Z*.~-]*\Z)"  # FASTA
    rb"|\s*# STOCKHOLM 1|CLUSTAL\b.*\n\s*\S+[ \t]+[A-Z*.~-]{5,}"
)
HEADING = re.compile(r" = [^=]+ = \n")  # the title of an article in WikiText


def collect(corpus: dict, out: dict[str, str | Path], downloads: str | Path) -> None:
    """Writes the documents of `corpus`, its entry in the config, to `out[split]`, as a stream.

    If absent, `split` is `SHARES`, `seed` 0, and `deduplicate` true for the kinds pydocs and file.
    `downloads`: folder for what has to be fetched. `SourceError`, with nothing left at `out`: a
    corpus that cannot be read, a split that comes out empty, a file that changes while it is read.
    """
    inputs: dict[str, str] = {}
    read = Unchanged()
    kind, seed, shares = corpus["kind"], corpus.get("seed", 0), corpus.get("split", SHARES)
    if shares != "published":
        shares = {split: shares[split] for split in SPLITS}
    about = dict(corpus=corpus, inputs=inputs, versions={"pyarrow": pa.__version__})
    unique = corpus.get("deduplicate", kind in ("pydocs", "file"))
    if unique:
        about["deduplicated"] = counts = {}
    passed, lines = [], 0
    abouts = {split: {**about, "split": split} for split in SPLITS}
    with ExitStack() as stack:
        writers = {
            split: stack.enter_context(documents.writer(out[split], about))
            for split, about in abouts.items()
        }
        parts = list(_parts(corpus, Path(downloads), inputs, read, passed))
        if unique:
            folder = Path(out["train"]).parent / ".deduplicating"
            shutil.rmtree(folder, ignore_errors=True)  # what a killed job left
            folder.mkdir(parents=True)
            stack.callback(shutil.rmtree, folder)
            pieces = chain.from_iterable(pieces for _, pieces, _ in parts)
            kept, of_rules = duplicates.deduplicated(pieces, folder, parts[0][2])
            counts |= of_rules
            found = (("all", key, document) for key, document in kept)
        else:
            found = ((name, None, one) for name, all_, _ in parts for one in by_document(all_))
        for part, key, document in found:
            own = published.SPLITS[kind][part] if shares == "published" else shares
            target = None
            for piece in document:
                if target is None:
                    target = writers[_split_of(key or piece.text.encode(), own, seed)]
                target.add(piece)
                lines += piece.text.count("\n") + piece.last
        read.check()
        for about in abouts.values():
            about |= {"passed_over": passed} if passed else {}
        if empty := [name for name, writer in writers.items() if not writer.documents]:
            found = ", ".join(f"{name} {writer.documents}" for name, writer in writers.items())
            if unique:
                found += (
                    f", of {counts['documents']} with those that repeat and with lines that more "
                    "than 5 have, which `deduplicate: false` keeps"
                )
            raise SourceError(
                f"the {empty[0]} split comes out empty (documents: {found}); expected at least one "
                f"document in each; give it a larger share, another `seed`, or more documents (the "
                f"corpus has {lines} line ends; is `boundary` what separates documents? With "
                f"`line` each line is one, with `marker` a line of {corpus.get('marker', MARKER)} "
                f"alone ends one; of those inside lines sed 's/MARKER/\\n&\\n/g' makes such lines)",
                "split",
            )
    try:
        # Tested again: a file that changed before the splits were written is older than they are.
        read.check()
    except SourceError:
        for path in out.values():
            Path(path).unlink()
        raise


def passed_over(passed: list[str]) -> str:
    """A sentence on what of a corpus was passed over, each with its reason."""
    more = f" and {len(passed) - NAMED} more" if len(passed) > NAMED else ""
    return f"Passed over: {', '.join(passed[:NAMED])}{more}."


def _parts(
    corpus: dict, downloads: Path, inputs: dict[str, str], read: Unchanged, passed: list[str]
) -> Iterator[tuple[str, Iterable[Piece], list[str] | None]]:
    """The named parts of a corpus: their pieces, and the work that each document is from, if known.

    `inputs` gets the sha256 of each file, `read` the files before any is opened, and `passed` what
    is passed over.
    """
    kind = corpus["kind"]
    if kind == "pydocs":
        modules = pydocs.modules(corpus["packages"])
        paragraphs = pydocs.shuffled(modules, corpus.get("seed", 0))
        found = pydocs.digest(paragraphs)
        if corpus.get("sha256") not in (None, found):
            raise SourceError(
                f"the prose has sha256 {found}, the config expects {corpus['sha256']}. "
                "Print the right lines for the config with python -m manybody.data.pydocs "
                f"{' '.join(corpus['packages'])}",
                "sha256",
            )
        inputs.update({"pydocs": found, **corpus["packages"]})
        pieces = (Piece(paragraph, True) for paragraph in paragraphs)
        yield "all", pieces, [modules[paragraph] for paragraph in paragraphs]
    elif kind == "file":
        named = list(given.text_files(corpus["files"], "files", passed))
        files = list({path.resolve(): path for path in named}.values())
        if len(files) < len(named):
            passed.append(f"{len(named) - len(files)} files that are named again")
        read.add(files)
        for path in files:
            _refuse_sequences(path)
        boundary, column = corpus.get("boundary", "blank-line"), corpus.get("column")
        marker = corpus.get("marker", MARKER)
        yield "all", read_files(files, boundary, marker, column, inputs, passed), None
    else:
        for part, files in published.files(kind, corpus, downloads).items():
            boundary = published.BOUNDARIES[kind]
            read.add(files)
            yield part, read_files(files, boundary, MARKER, "text", inputs, []), None


def _refuse_sequences(path: Path) -> None:
    """`SourceError` for sequences of FASTA or an alignment, whose names would be text."""
    with path.open("rb") as opened:
        if ALIGNED.match(opened.read(LINE)):
            raise SourceError(
                f"found {path}, which holds sequences in FASTA, Stockholm or Clustal, whose names "
                "would be read as text; expected a text; take an alignment as a source of kind "
                "`alignment` or by manybody family, ask a language model of them by manybody "
                "spectrum, or write a sequence a line without names, with `boundary: line`",
                "files",
            )


def read_files(
    files: list[Path], boundary: str, marker: str, column: str | None, inputs: dict, passed: list
) -> Iterator[Piece]:
    """The documents of text, Parquet and Arrow files, in order, with a progress bar in bytes.

    `boundary`: "blank-line", "line", "file", "marker" (a line that equals `marker`) or "heading"
    (a WikiText title, which opens a document). A row of a table's `column` is one document, except
    under "heading", where it is a line. `inputs` gets each file's sha256, `passed` blank rows.
    """
    if passed:
        log.warning("%s", passed_over(passed))
    with Progress(sum(path.stat().st_size for path in files), "bytes", "read text") as progress:
        for path in files:
            inputs[str(path)] = sha256(path)
            if not given.table(path) and path.suffix not in given.ENDINGS:
                yield from split_lines(read_lines(path, progress), boundary, marker)
            elif boundary == "heading":
                lines = (row.rstrip("\n") + "\n" for row in read_rows(path, column, progress))
                yield from split_lines(lines, boundary)
            else:
                document, blank = Cutter(), 0
                for row in read_rows(path, column, progress):
                    blank += not row.strip()
                    yield from document.add(row)
                    yield from document.end()
                if blank:
                    passed.append(f"{path} ({blank} blank or null rows)")


def split_lines(lines: Iterable[str], boundary: str, marker: str = MARKER) -> Iterator[Piece]:
    """The documents in `lines` (with their ends), as pieces; `boundary` as in `read_files`."""
    document, start = Cutter(), True
    for line in lines:
        # A later part of a long line is never a boundary.
        first, start = start, line.endswith("\n")
        blank = boundary == "blank-line" and not line.strip()
        marked = boundary == "marker" and line.strip() == marker.strip()
        if first and (blank or marked):
            yield from document.end()
            continue
        if first and boundary == "heading" and HEADING.fullmatch(line):
            yield from document.end()
        yield from document.add(line)
        if boundary == "line" and start:
            yield from document.end()
    yield from document.end()


def read_lines(path: Path, progress: Progress) -> Iterator[str]:
    """The lines of a text file with their ends as "\\n"; very long ones in several parts.

    It is UTF-8, or what the mark at its start says. A line ends with LF, CR LF or CR, with CR CR LF
    or LF CR as copies between systems leave them, or, where the first `LINE` bytes have none, with
    the first of `ENDS` that they have. `SourceError` names file and byte where it is no text.
    """
    with path.open("rb") as opened:
        start = opened.read(4)
        mark = next(mark for mark in MARKS if start.startswith(mark))
        decoder = codecs.getincrementaldecoder(MARKS[mark])()
        offset, rest, end, raw, held = opened.seek(len(mark)), "", "", start, ""
        while raw:
            raw = opened.read(LINE)
            begun = offset - len(decoder.getstate()[0])
            try:
                text = held + decoder.decode(raw, final=not raw)
            except UnicodeDecodeError as error:
                raise SourceError(
                    f"{path} is not {MARKS[mark].upper()} text: {error.reason} at byte "
                    f"{begun + error.start}. Convert it (iconv -f ... -t UTF-8), drop what is not "
                    "UTF-8 (iconv -c -f UTF-8 -t UTF-8), or leave it out"
                ) from error
            if zeros := text.count("\0"):
                what, fix = "no text", "drop them (tr -d '\\000')"
                if zeros > len(text) / 8:
                    what, code = "UTF-16", "UTF-16LE" if start[0] else "UTF-16BE"
                    fix = f"convert it (iconv -f {code} ...)"
                raise SourceError(
                    f"{path} has {zeros} NULs in {len(raw)} bytes from byte {offset} on, as {what} "
                    f"has; expected UTF-8; {fix}, or leave it out"
                )
            # Signs of an end may stand in two reads: the last ones wait for the next.
            kept = text.rstrip("\r\n") if raw else text
            held = text[len(kept) :]
            text = UNIX.sub("\n", kept) if "\r" in kept else kept
            end = end or next((one for one in ENDS if one in text + "\n" * bool(held)), "\n")
            *whole, rest = (rest + text.replace(end, "\n")).split("\n")
            for line in whole:  # where files were joined, the mark of one is inside
                yield line.removeprefix("\ufeff") + "\n"
            if rest and (not raw or len(rest) >= LINE):
                yield rest.removeprefix("\ufeff")
                rest = ""
            offset += len(raw)
            progress.update(len(raw))


def read_rows(path: Path, column: str | None, progress: Progress) -> Iterator[str]:
    """The texts in a column of a Parquet or Arrow file, by default in that which is called `text`,
    null as a blank one; `SourceError` if it holds anything else."""
    kind, named = given.table(path) or "Parquet", column or "text"
    try:
        if kind == "Parquet":
            opened = pq.ParquetFile(path, memory_map=True)
            schema, rows = opened.schema_arrow, opened.metadata.num_rows
        else:
            source = pa.memory_map(str(path))
            opened = pa.ipc.open_file(source) if kind == "Arrow" else pa.ipc.open_stream(source)
            schema, rows = opened.schema, None
        if named not in schema.names:
            raise SourceError(
                f"{'missing' if column is None else f'found {column}'}; expected one of the "
                f"columns of {path}: {', '.join(schema.names)}; name one as `column` in a "
                f"config, or call it text",
                "column",
            )
        holds = schema.field(named).type
        holds = holds.value_type if pa.types.is_dictionary(holds) else holds
        if holds not in (pa.string(), pa.large_string(), pa.string_view()):
            raise SourceError(
                f"found {named}, which holds {holds} in {path}; expected strings; name another "
                "in a config, or write one string a row under text",
                "column",
            )
        if kind == "Parquet":
            _refuse_bombs(path, opened, named)
            batches = opened.iter_batches(batch_size=1000, columns=[named])
        elif kind == "Arrow":
            batches = map(opened.get_batch, range(opened.num_record_batches))
        else:
            batches = opened
        row, size = 0, path.stat().st_size / max(rows or 0, 1)
        for batch in batches:
            batch.validate(full=True)
            row += len(batch)
            yield from (text or "" for text in batch.column(named).to_pylist())
            if rows:
                progress.update(round(row * size) - round((row - len(batch)) * size))
        if rows not in (None, row):
            raise SourceError(
                f"{path} holds {row} rows, its footer says {rows}: it is damaged, fetch it again"
            )
    except SourceError:
        raise
    except DAMAGE as error:
        raise SourceError(f"{path} is not a readable {kind} file: {error}") from error


def _refuse_bombs(path: Path, opened: pq.ParquetFile, column: str) -> None:
    """Refuses a column of which a few bytes would fill the memory."""
    for group in range(opened.num_row_groups):
        chunks = opened.metadata.row_group(group)
        for chunk in map(chunks.column, range(chunks.num_columns)):
            if chunk.path_in_schema == column:
                refuse_bomb(path, chunk.total_compressed_size, chunk.total_uncompressed_size)


def _split_of(start: bytes, shares: dict[str, float], seed: int) -> str:
    """The split of a document, from a uniform number made of its text or key, and the shares."""
    hashed = hashlib.blake2b(start, digest_size=8, salt=seed.to_bytes(16, "little"))
    uniform = int.from_bytes(hashed.digest(), "little") / 2**64
    reached = zip(shares, accumulate(shares.values()), strict=True)
    # Shares sum to 1 up to rounding.
    return next((one for one, end in reached if uniform < end), max(shares, key=shares.get))
