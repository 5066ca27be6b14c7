"""Reading corpora: boundaries, encodings, files, Parquet columns and the cut into splits."""

import hashlib
import os
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpora import SHARES, collected, joined, lines_corpus
from hypothesis import example, given, settings, strategies as st

from manybody.data import SourceError, Unchanged, documents, text
from manybody.data.documents import PIECE, Cutter, Documents
from manybody.data.given import STARTS, text_files
from manybody.io.progress import Progress


@pytest.mark.parametrize(
    ("content", "boundary", "expected"),
    [
        ("\n\none\n two\n \t\nthree\n\n\n\nfour", "blank-line", ["one\n two", "three", "four"]),
        ("one\n\n two \nthree", "line", ["one", " two", "three"]),
        ("one\n\ntwo\n\n\nthree\n\n", "file", ["one\n\ntwo\n\n\nthree"]),
        ("one\n\ntwo ## two\n##\n \nthree\n ## \n##\n", "marker", ["one\n\ntwo ## two", "three"]),
        (
            " \n = First = \n \n text a = b = \n = = Section = = \n more\n \n = Second = \n end\n",
            "heading",
            [" = First = \n \n text a = b = \n = = Section = = \n more", " = Second = \n end"],
        ),
    ],
)
def test_documents_are_parted_at_their_boundary(content, boundary, expected):
    assert joined(text.split_lines(content.splitlines(keepends=True), boundary, "## ")) == expected


@settings(max_examples=50, deadline=None)
@example(["       a"])  # more space than a piece holds
@given(st.lists(st.text("ab \n", max_size=30), max_size=8))
def test_pieces_hold_every_character_of_a_document(parts):
    limit, documents.PIECE = documents.PIECE, 7
    try:
        cutter = Cutter()
        found = [piece for part in parts for piece in cutter.add(part)] + cutter.end()
    finally:
        documents.PIECE = limit
    # Only parts that are blank before anything else are dropped, and the white space at the end.
    while parts and not parts[0].strip():
        parts = parts[1:]
    assert "".join(piece.text for piece in found).rstrip() == "".join(parts).rstrip()
    assert [piece.last for piece in found] == [False] * (len(found) - 1) + [True] * bool(found)
    assert all(len(piece.text) <= 7 for piece in found[:-1])


def test_a_line_longer_than_memory_should_hold_comes_in_pieces(tmp_path):
    path = tmp_path / "long.txt"
    content = "wörter " * 40_000
    path.write_text(f"{content}\n##\nshort\n", encoding="utf-8")
    with Progress(0, "bytes", "test") as progress:
        lines = list(text.read_lines(path, progress))
    assert max(map(len, lines)) < 2 * text.LINE
    found = list(text.split_lines(lines, "marker", "##"))
    assert max(len(piece.text) for piece in found) <= PIECE
    assert joined(found) == [content.rstrip(), "short"]


def read(path):
    with Progress(0, "bytes", "test") as progress:
        return "".join(text.read_lines(path, progress))


@pytest.mark.parametrize("prefix", [0, 10, text.LINE - 1, text.LINE + 5, 3 * text.LINE])
@pytest.mark.parametrize("bad", ["é".encode("latin-1") + b" et\n", "é".encode()[:1]])
def test_text_that_is_not_utf8_is_refused_with_file_and_byte(tmp_path, prefix, bad):
    """Another encoding, or a character that is cut off at the end."""
    path = tmp_path / "latin.txt"
    path.write_bytes(b"a" * prefix + "é".encode() + b"\n" + bad)
    with pytest.raises(SourceError, match=rf"latin.txt is not UTF-8 .* byte {prefix + 3}\."):
        read(path)


LINES = "één\r\n\r\ntwo\r\n"


READ = "één\n\ntwo\nthree"
FEEDS = "one\x85 \u2028two\n\fthree"  # where there are line feeds nothing else ends a line


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"\xef\xbb\xbf" + LINES.encode() + b"\xef\xbb\xbfthree", READ),
        (LINES.replace("two", "\ufefftwo").encode() + b"three", READ),
        *(
            (f"\ufeff{LINES}three".encode(f"utf-{n}-{order}"), READ)
            for n in (16, 32)
            for order in ("le", "be")
        ),
        (LINES.replace("\r\n", "\r").encode() + b"three", READ),
        (LINES.replace("\r\n", "\r\r\n").encode() + b"three", READ),
        *((LINES.replace("\r\n", end).encode() + b"three", READ) for end in text.ENDS),
        (FEEDS.encode(), FEEDS),
        (b"one\x0ctwo\r", "one\x0ctwo\n"),
    ],
)
def test_marks_and_line_ends_as_programs_write_them(tmp_path, content, expected):
    path = tmp_path / "mine.txt"
    path.write_bytes(content)
    assert read(path) == expected


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("ends", [b"\r\n", b"\r", b"\r\r\n", b"\n\r"])
def test_a_line_end_that_two_reads_share_is_one(tmp_path, monkeypatch, size, ends):
    monkeypatch.setattr(text, "LINE", size)
    path = tmp_path / "mine.txt"
    path.write_bytes(ends.join([b"four", b"four", b"ab", b"x"]) + b"\n\r\nc")
    assert read(path) == "four\nfour\nab\nx\n\nc"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("no mark".encode("utf-16-le"), r"7 NULs in 14 bytes from byte 0.*UTF-16 .*f UTF-16LE"),
        ("no mark".encode("utf-16-be"), "7 NULs in 14 bytes .*iconv -f UTF-16BE"),
        (
            b"\xef\xbb\xbfa record that is padded\0\n",
            r"1 NULs in 25 bytes from byte 3.*tr -d '\\000'",
        ),
        ("\ufeffcut".encode("utf-16-le")[:-1], "is not UTF-16-LE text: truncated data at byte 6"),
    ],
)
def test_bytes_that_are_no_text_are_refused_with_the_way_out(tmp_path, content, said):
    path = tmp_path / "mine.txt"
    path.write_bytes(content)
    with pytest.raises(SourceError, match=said):
        read(path)


def test_folders_are_read_recursively_in_order_without_hidden_files(tmp_path):
    for name in (
        *("b.txt", "b.txt~", "a/z.txt", "a/y.txt", ".hidden", ".git/config"),
        "a.txt:Zone.Identifier",
    ):
        path = tmp_path / "texts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "texts/a/void").touch()
    (tmp_path / "texts/a.png").write_bytes(b"\x89PNG\r\n")
    (tmp_path / "texts/gone").symlink_to("nowhere")
    (tmp_path / "texts/linked").symlink_to(tmp_path / "texts/a")
    (tmp_path / "texts/README.md").write_text("a text among texts")
    passed = []
    found = text_files([str(tmp_path / "texts")], "files", passed)
    inside = [str(path.relative_to(tmp_path / "texts")) for path in found]
    assert inside == ["README.md", "a/y.txt", "a/z.txt", "b.txt"]
    assert [one.removeprefix(f"{tmp_path}/texts/") for one in passed] == [
        ".git (hidden)",
        ".hidden (hidden)",
        "a/void (empty)",
        "a.png (a PNG image)",
        "a.txt:Zone.Identifier (hidden)",
        "b.txt~ (an editor's copy)",
        "gone (no file, or a link to none)",
        "linked (a link to a folder)",
    ]
    assert text.passed_over(passed[:1]) == f"Passed over: {tmp_path}/texts/.git (hidden)."
    assert text.passed_over(passed).endswith("Zone.Identifier (hidden) and 3 more.")


def written(path, table):
    """A table as Parquet, Arrow file or stream, by what its name begins with."""
    if path.name.startswith("parquet"):
        pq.write_table(table, path)
        return
    new = pa.ipc.new_stream if path.name.startswith("stream") else pa.ipc.new_file
    with new(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=70)


@pytest.mark.parametrize("name", ["parquet.parquet", "parquet", "file.feather", "stream.arrow"])
@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.dictionary(pa.int16(), pa.large_string())],
    ids=["plain", "large", "categorical"],
)
def test_rows_of_a_column_are_documents(tmp_path, name, kind):
    stories = [f"story {i}\n\nwith a blank line\n" for i in range(200)] + [" \n", "", None]
    path = tmp_path / "texts" / name
    path.parent.mkdir()
    written(path, pa.table({"text": pa.array(stories).cast(kind), "id": range(203)}))
    corpus = {"kind": "file", "files": [str(path)], "split": SHARES, "deduplicate": False}
    found = collected(tmp_path, corpus)
    everything = [story for stories in found.values() for story in stories]
    assert sorted(everything) == sorted(story.rstrip() for story in stories[:-3])
    assert Documents(tmp_path / "out" / "test.parquet").about["passed_over"] == [
        f"{path} (3 blank or null rows)"
    ]


@pytest.mark.parametrize("start", STARTS, ids=repr)
def test_files_that_are_no_text_are_named_by_how_they_begin(start, tmp_path):
    (tmp_path / "file").write_bytes(start + b" and more\n")
    with pytest.raises(SourceError) as refused:
        list(text_files([str(tmp_path / "file")], "files"))
    what, fix = STARTS[start]
    assert f"file, {what}; expected" in str(refused.value)
    assert str(refused.value).endswith(fix)


def test_a_folder_that_datasets_has_saved(tmp_path):
    folder = tmp_path / "saved"
    for split in ("train", "test"):
        (folder / split).mkdir(parents=True)
        written(
            folder / split / f"stream{'.arrow' * (split == 'test')}",
            pa.table({"text": [f"of {split}"]}),
        )
        written(folder / split / "cache-1a.arrow", pa.table({"text": ["a copy"]}))
        for name in ("state.json", "dataset_info.json", "LICENSE", "load.py"):
            (folder / split / name).write_text("{}")
    (folder / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    (folder / "README.md").write_text("what it is")
    (folder / "test" / "state.json").write_text("")
    passed = []
    found = list(text_files([str(folder)], "files", passed))
    assert found == [folder / "test/stream.arrow", folder / "train/stream"]
    assert len(passed) == 12
    assert f"{folder}/test/state.json (empty)" in passed
    assert {
        f"{folder}/{name} (no table of the data set)" for name in ("README.md", "test/LICENSE")
    } <= {*passed}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        (
            "a.jsonl",
            '{"id": 1, "story": "one"}\n{"id": 2, "story": null}\n{"id": [3], "story": "two"}\n',
        ),
        ("a.json", '[{"story": "one", "meta": {"x": 1}}, {"story": "two"}]'),
        ("a.json", '{\n  "id": [1, 2],\n  "story": ["one", "two"]\n}\n'),
        ("a.csv", 'id,story\n1,one\n2,"two"\n'),
        ("a.csv", "id;story\n1;one\n2;two\n"),
        ("a.csv", "id|story\n1|one\n2|two\n"),
        ("a.tab", 'id, of a\tstory\n"1\n"\tone\n2\t"two"\n'),
        ("a.tsv", 'id\tstory\n"1\tone\n2\ttwo\n'),
        ("cp1252.csv", "id,story\n\u201c1\u201d,one\n2,two\n"),
        ("marked.jsonl", '\ufeff{"story": "one"}\n{"story": "two"}\n'),
        ("marked.json", '\ufeff[{"story": "one"}, {"story": "two"}]'),
        ("utf16.csv", "id\tstory\n1\tone\n2\ttwo\n"),
        ("utf16.jsonl", '{"story": "one"}\n{"story": "two"}\n'),
    ],
)
def test_a_table_that_is_written_as_text_is_refused_with_what_makes_parquet_of_it(
    tmp_path, monkeypatch, name, content
):
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(
        content.encode({"utf16": "utf-16", "cp125": "cp1252"}.get(name[:5], "utf-8"))
    )
    with pytest.raises(SourceError, match=rf"found {name}, a table as \w+; expected") as refused:
        list(text_files([name], "files"))
    exec(str(refused.value).split('python -c "')[1].split('"')[0].replace("COLUMN", "story"), {})
    with Progress(0, "bytes", "test") as progress:
        assert list(text.read_rows(Path("texts.parquet"), None, progress)) == ["one", "two"]


@pytest.mark.parametrize(
    ("looked", "said"),
    [
        (3, r", whose line 3, '{\"story\": \"two', is no JSON .*; mend or delete "),
        (2, "; expected"),
    ],
)
def test_the_line_of_a_table_that_is_no_json_is_named(looked, said, tmp_path, monkeypatch):
    monkeypatch.setattr("manybody.data.given.LINES", looked)
    (tmp_path / "a.jsonl").write_text('{"story": "one"}\n\n{"story": "two\n{}\n')
    with pytest.raises(SourceError, match=f"a table as jsonl{said}"):
        list(text_files([str(tmp_path / "a.jsonl")], "files"))


FILE = {"kind": "file", "boundary": "line", "column": "story", "split": SHARES}
STORIES = {"kind": "tinystories", "split": SHARES}
COLUMNS = {"words": ["a"], "numbers": [1, 2], "lists": [["a"]]}
REFUSED = {
    "no file": (
        FILE | {"files": ["nowhere.txt"]},
        r"files\[0\]: found nowhere\.txt, which does not exist",
    ),
    "a pattern": (
        FILE | {"files": ["*.txt"]},
        r"found \*\.txt, which .*patterns, variables and addresses are not filled in: name a file",
    ),
    "no file in the folder": (
        FILE | {"files": ["empty"]},
        r"found empty, a folder without any text, empty/a \(a link to a folder\); expected",
    ),
    "a Delta table": (
        FILE | {"files": ["delta"]},
        r"found delta, which holds a Delta table, delta, .*DeltaTable\('delta'\).*name that file",
    ),
    "too few documents": (
        FILE | {"files": ["one.txt"]},
        r"split: the (train|validation) split comes out empty .*, of 1 with those .*`deduplicate: "
        r"false` keeps\).* has 1 line ends; is `boundary`.*a line of <\|endoftext\|> alone",
    ),
    "lists": (FILE | {"files": ["lists.parquet"]}, "holds list<.*; expected strings; .*one string"),
    "numbers": (FILE | {"files": ["numbers.parquet"]}, "which holds int64 in .*; expected strings"),
    "other columns": (
        FILE | {"files": ["words.parquet"], "column": "text"},
        "column: found text; expected one of the columns of .*: story, id",
    ),
    "no column": (
        FILE | {"files": ["words.parquet"], "column": None},
        "column: missing; expected one of the columns",
    ),
    "half an Arrow file": (FILE | {"files": ["half.arrow"]}, "not a readable Arrow file"),
    "no Parquet": (FILE | {"files": ["no.parquet"]}, "not a readable Parquet file"),
    **{
        name: (FILE | {"files": [name]}, rf"files: found {name}, .* in FASTA, .*by manybody")
        for name in ("a.fasta", "a.sto", "a.aln")
    },
    "an archive": (FILE | {"files": ["a.tar"]}, r"a tar archive; .*unpack it \(tar -xf\)"),
    "another checksum": (
        STORIES | {"files": {"train": ["one.txt"]}, "sha256": {"one.txt": "0" * 64}},
        r"one.txt has sha256 \w+, the config's `sha256`",
    ),
    "no file of stories": (
        STORIES | {"files": {"train": ["nowhere.txt"]}},
        r"files: found nowhere.txt, which does not exist",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_corpus_is_refused_and_leaves_nothing(case, tmp_path, monkeypatch):
    corpus, reason = REFUSED[case]
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("empty/a").symlink_to("..")
    for name, content in {
        "one.txt": "only one document\n",
        "a.fasta": ">one/3-9 x\nMKTV-LXJ\n>two\nMKV.L\n",
        "a.sto": "# STOCKHOLM 1.0\n\none MKTV-LXJ\n//\n",
        "a.aln": "CLUSTAL W\n\none  MKTV-LXJ\n",
        "delta/_delta_log/0.json": "{}",
        "delta/a.txt": "of an old version\n",
    }.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(content)
    Path("a.tar").write_bytes(b"a.txt".ljust(257, b"\0") + b"ustar")
    Path("no.parquet").write_bytes(b"PAR1 or not")
    Path("half.arrow").write_bytes(b"ARROW1\0\0 and not")
    for name, column in COLUMNS.items():
        pq.write_table(pa.table({"story": column, "id": range(len(column))}), f"{name}.parquet")
    with pytest.raises(SourceError, match=reason):
        collected(tmp_path, corpus)
    assert not list(Path("out").glob("*"))


def test_the_cut_keeps_shares_and_order_and_never_parts_equal_documents(tmp_path):
    lines = [f"document {i % 3000}" for i in range(4000)]
    found = collected(tmp_path, lines_corpus(tmp_path, lines))
    assert sum(map(len, found.values())) == len(lines)
    sets = {name: set(stories) for name, stories in found.items()}
    assert not sets["train"] & sets["test"]
    assert not sets["train"] & sets["validation"]
    assert not sets["validation"] & sets["test"]
    for name, share in SHARES.items():
        # 5 standard deviations of a binomial over the 3000 distinct documents
        assert abs(len(sets[name]) / 3000 - share) < 5 * (share * (1 - share) / 3000) ** 0.5
        assert found[name] == [line for line in lines if line in sets[name]]


def test_a_tenth_is_held_out_of_a_corpus_that_gives_no_shares(tmp_path):
    corpus = lines_corpus(tmp_path, [f"document {i}" for i in range(1000)])
    del corpus["split"]
    shares = [len(collected(tmp_path, corpus)[name]) / 1000 for name in text.SPLITS]
    # at least 4 standard deviations of a binomial
    assert shares == pytest.approx([0.9, 0.05, 0.05], abs=0.04)
    assert sum(text.SHARES.values()) == pytest.approx(1)


def test_a_document_s_split_depends_on_the_seed_and_on_no_other_document(tmp_path):
    lines = [f"document {i}" for i in range(300)]
    short = collected(tmp_path / "a", lines_corpus(tmp_path, lines[:200]))
    long = collected(tmp_path / "b", lines_corpus(tmp_path, lines))
    assert all(long[name][: len(short[name])] == short[name] for name in text.SPLITS)
    assert collected(tmp_path / "c", lines_corpus(tmp_path, lines, seed=1))["test"] != long["test"]


def replace(path):
    """Another file under the name, with the size and times of the old one."""
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    new = path.with_name("new.txt")
    new.write_text(path.read_text().swapcase())
    os.utime(new, ns=times)
    new.replace(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_text(path.read_text() + "one more document\n"),
        lambda path: path.write_text(path.read_text().swapcase()),  # as many letters as before
        replace,
        Path.unlink,
    ],
    ids=["append", "rewrite", "replace", "unlink"],
)
@pytest.mark.parametrize("moment", ["while it is read", "when it was read", "when all is written"])
def test_a_file_that_changes_is_refused_and_leaves_nothing(tmp_path, monkeypatch, change, moment):
    corpus = lines_corpus(tmp_path, [f"document {i}" for i in range(300)])
    first = Path(corpus["files"][0])
    os.utime(first, (0, 0))
    second = tmp_path / "second.txt"
    second.write_text("".join(f"another {i}\n" for i in range(300)))
    corpus["files"].append(str(second))
    if moment == "when all is written":
        check = Unchanged.check

        def once(self):
            check(self)
            monkeypatch.undo()
            change(first)

        monkeypatch.setattr(Unchanged, "check", once)
    else:
        changing = first if moment == "while it is read" else second
        lines = text.read_lines

        def read(path, progress):
            for number, line in enumerate(lines(path, progress)):
                if number == 100 and path == changing:
                    change(first)
                yield line

        monkeypatch.setattr(text, "read_lines", read)
    with pytest.raises(SourceError, match=r"changed while it was read.*run the same") as refused:
        collected(tmp_path, corpus)
    assert str(first) in str(refused.value)
    assert list((tmp_path / "out").iterdir()) == []
    monkeypatch.undo()
    if first.exists():
        assert sum(map(len, collected(tmp_path, corpus).values())) >= 600


def test_documents_carry_their_source_and_a_file_counts_once(tmp_path):
    corpus = lines_corpus(tmp_path, [f"document {i}" for i in range(100)])
    corpus["files"].append(f"{tmp_path}/../{tmp_path.name}/lines.txt")
    found = collected(tmp_path, corpus)
    stored = Documents(tmp_path / "out" / "test.parquet")
    assert stored.about["corpus"] == corpus
    assert stored.about["split"] == "test"
    assert stored.about["passed_over"] == ["1 files that are named again"]
    assert stored.about["inputs"] == {
        corpus["files"][-1]: hashlib.sha256((tmp_path / "lines.txt").read_bytes()).hexdigest()
    }
    content = "".join(f"{line}\n" for line in found["test"]).encode()
    assert stored.bytes == len(content) - stored.documents
    assert stored.sha256 == hashlib.sha256(content).hexdigest()


def test_local_files_of_tinystories_with_the_published_split(tmp_path):
    stories = [f"Story {i}.\n\nThe end.\n<|endoftext|>\n" for i in range(60)]
    (tmp_path / "train.txt").write_text("".join(stories[:30]))
    (tmp_path / "valid.txt").write_text("".join(stories[30:]))
    files = {part: [str(tmp_path / f"{part[:5]}.txt")] for part in ("train", "validation")}
    found = collected(tmp_path, {"kind": "tinystories", "files": files, "split": "published"})
    assert found["train"] == [f"Story {i}.\n\nThe end." for i in range(30)]
    assert sorted(found["validation"] + found["test"]) == [
        f"Story {i}.\n\nThe end." for i in range(30, 60)
    ]


def test_wikitext_from_parquet_equals_wikitext_from_text(tmp_path):
    rows = []
    for i in range(80):
        # As on the hub: a row is a line with its end, and a blank line is an empty string.
        rows += ["", f" = Article {i} = \n", "", f" Some <unk> text {i} . \n", ""]
    (tmp_path / "wiki.tokens").write_text("".join(row or "\n" for row in rows))
    pq.write_table(pa.table({"text": rows}), tmp_path / "wiki.parquet")
    first, second = (
        collected(
            tmp_path / kind,
            {
                "kind": "wikitext103",
                "files": {"train": [str(tmp_path / f"wiki.{kind}")]},
                "split": SHARES,
            },
        )
        for kind in ("tokens", "parquet")
    )
    assert first == second
    assert sum(map(len, first.values())) == 80


def test_real_stories(data_folder, tmp_path):
    path = data_folder / "tinystories" / "tinystories_train_sample_2MiB.txt"
    corpus = {"kind": "tinystories", "files": {"train": [str(path)]}, "split": SHARES}
    found = collected(tmp_path, corpus)
    expected = [story.strip() for story in path.read_text(encoding="utf-8").split("<|endoftext|>")]
    stories = [story.strip() for stories in found.values() for story in stories]
    assert sorted(stories) == sorted(story for story in expected if story)


def test_real_articles(data_folder, tmp_path):
    files = {
        "train": [str(data_folder / "wikitext" / "wiki.test.tokens")],
        "validation": [str(data_folder / "wikitext" / "wiki.valid.tokens")],
    }
    found = collected(tmp_path, {"kind": "wikitext103", "files": files, "split": SHARES})
    articles = [article for articles in found.values() for article in articles]
    assert len(articles) > 100  # 60 in each file, by the data set's own count
    assert all(article.startswith(" = ") for article in articles)


def test_progress_of_reading_ends_with_the_size_of_the_file(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"text": ["some words"] * 2500}), path)
    told = []
    assert len(list(text.read_rows(path, "text", SimpleNamespace(update=told.append)))) == 2500
    assert sum(told) == path.stat().st_size
    assert max(told) < 0.5 * sum(told)
