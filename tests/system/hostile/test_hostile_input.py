"""Input that was made to break things: refused by name, with bounded memory, and never executed."""

import gzip
import json
import os
import re
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from manybody import models
from manybody.data import documents, text, tokenizer
from manybody.io import checkpoints, parquet, sequences
from manybody.io.atomic import write_json
from manybody.io.manifest import write_manifest

SOURCE = Path(__file__).resolve().parents[3] / "workflow" / "src"
MIB = 2**20
CORPUS = {"kind": "file", "split": {"train": 0.5, "validation": 0.25, "test": 0.25}}

# What a child process does with a path, once everything it needs is imported.
READ = {
    "lines": "for piece in text.read_files([path], 'line', '', None, {}, []): pass",
    "blank-line": "for piece in text.read_files([path], 'blank-line', '', None, {}, []): pass",
    "rows": "for piece in text.read_files([path], 'line', '', 'text', {}, []): pass",
    "alignment": "alignment.read(path, 'fasta')",
    "documents": "for piece in documents.Documents(path): pass",
    "sequences": "sequences.Sequences.open(path).tokens",
    "tensors": "checkpoints.read_tensors(path)",
    "hamiltonian": "Hamiltonian.load(path)",
    "model": "stored.load_model(path)",
    "tokenizer": "tokenizer.load(path)",
}
CHILD = """
import faulthandler, json, sys
from pathlib import Path
from manybody.io import checkpoints, sequences
from manybody.models import stored
from manybody.io.atomic import ArtifactError
from manybody.data.hamiltonian import Hamiltonian
from manybody.models.factored import network as factored
from manybody.data import SourceError, alignment, documents, text, tokenizer

def peak():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])

for line in sys.stdin:
    code, path = json.loads(line)
    path = Path(path)
    faulthandler.dump_traceback_later(60, exit=True)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before, message = peak(), ""
    try:
        exec(code)
    except (ArtifactError, SourceError) as error:
        message = str(error)
    print(json.dumps([message, peak() - before]), flush=True)
    faulthandler.cancel_dump_traceback_later()
"""


class Reader:
    """A child process that reads one file after another and says how much memory that took."""

    def __init__(self):
        self.child = subprocess.Popen(
            [sys.executable, "-c", CHILD],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def read(self, how, path):
        print(json.dumps([READ[how], str(path)]), file=self.child.stdin, flush=True)
        answer = self.child.stdout.readline()
        assert answer, self.child.stderr.read()[-3000:]
        message, kibibytes = json.loads(answer)
        return message, kibibytes / 1024


@cache
def reader() -> Reader:
    """One child for all files, which ends when its input does: with this process."""
    return Reader()


def read(how, path):
    """(message of the refusal or "", MiB of memory that reading took) in a child process."""
    return reader().read(how, path)


def refused(how, path, reason="", most=100):
    """Refuses the file by name, in less than `most` MiB."""
    message, taken = read(how, path)
    assert str(path) in message, message
    assert re.search(reason, message), message
    assert taken < most, f"{taken:.0f} MiB"


# --- Text ----------------------------------------------------------------------------------------


def collected(tmp_path, *files):
    """The text of all documents of a corpus, each followed by a newline."""
    out = {split: tmp_path / "out" / f"{split}.parquet" for split in text.SPLITS}
    corpus = {**CORPUS, "files": [str(file) for file in files], "boundary": "line"}
    corpus["deduplicate"] = False  # what is read, not what is kept of it
    text.collect(corpus, out, tmp_path / "downloads")
    pieces = (piece for path in out.values() for piece in documents.Documents(path))
    return "".join(piece.text + "\n" * piece.last for piece in pieces)


def test_control_characters_go_through_as_they_are(tmp_path):
    controls = "".join(map(chr, [*range(1, 10), 11, 12, *range(14, 32), 127, 0x85, 0x2028, 0xFFFE]))
    lines = [f"{i} a{controls}b \x1b[31m\x1b]0;title\x07 end" for i in range(40)]
    file = tmp_path / "controls.txt"
    file.write_bytes("".join(line + "\n" for line in lines).encode())
    assert sorted(collected(tmp_path, file).split("\n")[:-1]) == sorted(lines)


def test_every_character_is_tokenised_and_comes_back(tmp_path):
    texts = ["".join(map(chr, range(start, start + 256))) for start in (0, 0x2000, 0xFF00, 0x1F600)]
    path = tmp_path / "train.parquet"
    with documents.writer(path, {}) as writer:
        for text in texts * 4:
            writer.add(documents.Piece(text, True))
    made, out = tmp_path / "tokenizer.json", tmp_path / "sequences.parquet"
    tokenizer.train(path, 260, made)
    tokenizer.encode_split(path, made, 2, out, {})
    tokens = sequences.Sequences.open(out).tokens.ravel().tolist()
    assert tokenizer.load(made).decode(tokens).startswith(texts[0] + "\n" + texts[1])


@pytest.mark.parametrize(
    "surrogate", [b"\xed\xa0\x80", b"\xed\xb0\x80", b"\xed\xa0\xbd\xed\xb8\x80"]
)
def test_lone_surrogates_are_refused_with_file_and_byte(tmp_path, surrogate):
    file = tmp_path / "surrogates.txt"
    file.write_bytes(b"fine\n" * 100 + surrogate + b"\n")
    refused("lines", file, "not UTF-8 text: .* at byte 500")


def test_lone_surrogates_in_a_parquet_column_are_refused(tmp_path):
    file = tmp_path / "surrogates.parquet"
    pq.write_table(pa.table({"text": pa.array([b"fine", b"\xed\xa0\x80"]).view(pa.string())}), file)
    refused("rows", file, "not a readable Parquet file.*(?i:utf-?8)")


@pytest.mark.parametrize("boundary", ["lines", "blank-line"])
@pytest.mark.parametrize("unit", [b"a", b"token "])
def test_100_mb_on_one_line_are_read_in_bounded_memory(tmp_path, boundary, unit):
    file = tmp_path / "line.txt"
    file.write_bytes(unit * (100 * 10**6 // len(unit)))
    message, taken = read(boundary, file)
    assert not message
    assert taken < 20


def test_30_mb_in_one_row_are_read_in_bounded_memory(tmp_path):
    file = tmp_path / "row.parquet"
    row = np.random.default_rng(0).integers(97, 123, 30 * 10**6, np.uint8).tobytes().decode()
    pq.write_table(pa.table({"text": [row]}), file)
    message, taken = read("rows", file)
    assert not message
    assert taken < 300  # the row itself, packed, unpacked, as Arrow's and as Python's text


@pytest.mark.slow
def test_100_mb_on_one_line_are_tokenised_in_bounded_memory(tmp_path):
    file = tmp_path / "line.txt"
    # Words as often as in a language: the tokenizer's trainer keeps every distinct word.
    rng = np.random.default_rng(0)
    words = [bytes(rng.integers(97, 123, size, np.uint8)) for size in rng.integers(1, 12, 50_000)]
    chosen = np.minimum(rng.zipf(1.3, 16 * 10**6), len(words)) - 1
    file.write_bytes(b" ".join(words[n] for n in chosen)[: 100 * 10**6])
    assert file.stat().st_size == 100 * 10**6
    code = f"""
from pathlib import Path
from manybody.data import documents, text, tokenizer
path = Path({str(tmp_path)!r})
with documents.writer(path / "train.parquet", {{}}) as writer:
    for piece in text.read_files([path / "line.txt"], "line", "", None, {{}}, []):
        writer.add(piece)
tokenizer.train(path / "train.parquet", 300, path / "tokenizer.json")
tokenizer.encode_split(path / "train.parquet", path / "tokenizer.json", 16, path / "out", {{}})
# Not getrusage's peak, which begins at that of the process that started this one.
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "RAYON_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True, text=True
    )
    print(f"\n{int(done.stdout) / 1024:.0f} MiB")
    assert int(done.stdout) < 2**19  # KiB


def test_a_gzip_bomb_is_refused_before_it_grows(tmp_path):
    file = tmp_path / "bomb.fasta.gz"
    with gzip.open(file, "wb", compresslevel=9) as packed:
        packed.write(b">bomb\n")
        for _ in range(60):
            packed.write(b"A" * 5 * 10**6)
    assert file.stat().st_size < MIB
    refused("alignment", file, "grows from .* bytes .* Unpack it yourself", most=200)


def test_a_parquet_bomb_is_refused_before_it_grows(tmp_path):
    file = tmp_path / "bomb.parquet"
    table = pa.table({"text": pa.array(["token " * 10**7] * 2, pa.large_string())})
    pq.write_table(table, file, compression="zstd", use_dictionary=False)
    assert file.stat().st_size < MIB
    refused("rows", file, "grows from .* bytes")


def test_the_same_row_200_000_times_is_read_in_bounded_memory(tmp_path):
    file = tmp_path / "repeated.parquet"
    rows = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2 * 10**5, np.int32)), ["token " * 100])
    pq.write_table(pa.table({"text": rows.cast(pa.string())}), file)
    assert file.stat().st_size < MIB
    message, taken = read("rows", file)
    assert not message
    assert taken < 150


@pytest.mark.parametrize(
    "name",
    [
        "with spaces.txt",
        'it\'s "quoted".txt',
        "$(touch pwned).txt",
        "`touch pwned`; touch pwned #.txt",
        "{wildcard} {0} %s \\n.txt",
        "-rf.txt",
        "new\nline.txt",
        "\x1b[31m.txt",
        "not\udcffutf8.txt",
    ],
)
def test_file_names_are_only_names(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "a folder; $(touch pwned)"
    folder.mkdir()
    (folder / name).write_text("".join(f"document {i}\n" for i in range(40)))
    assert collected(tmp_path, folder / name).count("document") == 40
    assert collected(tmp_path, folder).count("document") == 40
    assert not [found for found in tmp_path.rglob("*") if found.name == "pwned"]


def test_a_refusal_names_a_file_that_no_terminal_can_show(tmp_path):
    file = tmp_path / "not\udcffutf8.txt"
    file.write_bytes(b"\xff")
    log = tmp_path / "log"
    code = (
        "import os, sys; from pathlib import Path; from manybody.io.logs import log_to; "
        "from manybody.data import text; log_to(sys.argv[1]); "
        "path = Path(os.fsdecode(os.fsencode(sys.argv[2]))); "
        "list(text.read_files([path], 'line', '', None, {}, []))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, log, file],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert "\\udcffutf8.txt is not UTF-8 text" in log.read_text()


# --- Safetensors and models ----------------------------------------------------------------------


def header(document, data=b""):
    text = document if isinstance(document, bytes) else json.dumps(document).encode()
    return struct.pack("<Q", len(text)) + text + data


BIG = {"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}
TENSORS = {
    "a header of 4 EiB": struct.pack("<Q", 2**62) + b"{}",
    "a header of 2^64 - 1 bytes": b"\xff" * 64,
    "a header longer than the file": struct.pack("<Q", 90 * 10**6) + b"{}",
    "a tensor of 4 TiB": header(BIG, b"\0" * 64),
    "a shape that overflows": header(
        {"a": {"dtype": "F32", "shape": [2**33, 2**33], "data_offsets": [0, 0]}}
    ),
    "overlapping tensors": header(
        {name: {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]} for name in "ab"},
        b"\0" * 16,
    ),
    "a header of brackets": header(b"[" * 10**6),
    "metadata of brackets": header({"__metadata__": {"manybody": "[" * 10**6}}),
    "nothing": b"",
}


@pytest.mark.parametrize("how", ["tensors", "hamiltonian"])
@pytest.mark.parametrize("kind", TENSORS)
def test_bad_safetensors_are_refused_by_name(tmp_path, kind, how):
    file = tmp_path / "bad.safetensors"
    file.write_bytes(TENSORS[kind])
    refused(how, file)


LIES = {
    "vocabulary": 10**9,
    "length": 10**8,
    "layers": 10**9,
    "rank": 10**7,
    "heads": 10**8,
    "one more": 6,
    "no number": "many",
    "unknown": 3,
    "architecture": "trojan",
}


@pytest.mark.parametrize("lie", LIES)
def test_a_model_that_lies_about_its_shapes_is_refused(tmp_path, lie):
    key = {"one more": "vocabulary", "no number": "vocabulary"}.get(lie, lie)
    assert forge_run(tmp_path, lambda told: {**told, key: LIES[lie]})[key] == LIES[lie]
    refused("model", tmp_path / "manifest.json", "model", most=60)


@pytest.mark.parametrize("order", [2, 3, 4])
def test_an_energy_model_that_lies_about_its_length_is_refused(tmp_path, order):
    """One tensor is really that long; the model would need all sets of order - 1 sites."""
    long = {"couplings": torch.zeros(10**6, 1), "colours": torch.zeros(5, 15)}
    checkpoints.write_tensors(tmp_path / "step-0.safetensors", long, {})
    told = dict(architecture="energy", vocabulary=5, length=10**6, order=order)
    about = {"description": told, "steps": [0]}
    write_manifest(tmp_path / "manifest.json", "model", ["step-0.safetensors"], about)
    refused("model", tmp_path / "manifest.json", "model", most=60)


@pytest.mark.parametrize("told", [None, [], "factored", 3, {}])
def test_a_model_without_description_is_refused(tmp_path, told):
    forge_run(tmp_path, lambda _: told)
    refused("model", tmp_path / "manifest.json", "describes no model", most=60)


def test_a_model_json_that_differs_from_its_manifest_is_refused(tmp_path):
    description = forge_run(tmp_path, lambda told: told)
    assert read("model", tmp_path / "manifest.json")[0] == ""
    write_json(tmp_path / "model.json", {**description, "rank": 2})
    about = {"description": description, "steps": [0]}
    write_manifest(tmp_path / "manifest.json", "model", ["model.json", "step-0.safetensors"], about)
    refused("model", tmp_path / "manifest.json", "model.json beside it describes another model")


def forge_run(folder, change):
    """A run's folder, whose manifest and model.json say `change(description)`; what they say."""
    description = dict(
        architecture="factored", vocabulary=5, length=4, layers=1, rank=3, bias=True,
        variant="exact", heads=1,
    )  # fmt: skip
    torch.manual_seed(0)
    checkpoints.save(folder / "step-0.safetensors", models.build(description), {})
    told = change(description)
    write_json(folder / "model.json", told)
    about = {"description": told, "steps": [0]}
    write_manifest(folder / "manifest.json", "model", ["model.json", "step-0.safetensors"], about)
    return told


@pytest.mark.parametrize("content", [b"[" * 10**6, b'{"a":' * 10**5, b"\xff\xfe", b"1" * 10**6])
def test_json_that_is_none_is_refused_by_name(tmp_path, content):
    file = tmp_path / "manifest.json"
    file.write_bytes(content)
    refused("model", file)
    refused("tokenizer", file)


# --- Parquet -------------------------------------------------------------------------------------


ROWS = 12345


def write_rows(path, how):
    if how == "sequences":
        sequences.write(path, np.zeros((ROWS, 4), np.uint8), 5, {})
    elif how == "documents":
        with documents.writer(path, {}) as writer:
            for number in range(ROWS):
                writer.add(documents.Piece(str(number), True))
    else:
        pq.write_table(pa.table({"text": list(map(str, range(ROWS)))}), path)


def varint(number):
    """An integer as the file's footer holds it: zigzag, seven bits a byte."""
    number, out = 2 * number, bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


@pytest.mark.parametrize("how", ["sequences", "documents", "rows"])
@pytest.mark.parametrize("claimed", [2**31 - 1, 2**40, 2**62])
def test_a_parquet_with_a_huge_declared_length_is_refused(tmp_path, how, claimed):
    file = tmp_path / "huge.parquet"
    write_rows(file, how)
    whole = file.read_bytes()
    length = struct.unpack("<I", whole[-8:-4])[0]
    data, footer = whole[: -8 - length], whole[-8 - length : -8]
    assert varint(ROWS) in footer
    footer = footer.replace(varint(ROWS), varint(claimed))
    file.write_bytes(data + footer + struct.pack("<I", len(footer)) + b"PAR1")
    refused(how, file, most=300)


@pytest.mark.parametrize(
    "lie",
    [
        {"sequences": 10**18},
        {"length": 10**18},
        {"length": 2**31},
        {"vocabulary": 10**30},
        {"vocabulary": 2**40},
        {"about": None},
    ],
)
def test_a_document_that_lies_about_its_sequences_is_refused(tmp_path, lie):
    file = tmp_path / "lie.parquet"
    write_rows(file, "sequences")
    opened, document = parquet.open_document(file, "sequences")
    with parquet.writing(file, opened.schema_arrow.remove_metadata()) as writer:
        writer.write_table(opened.read().replace_schema_metadata())
        parquet.set_document(writer, {**document, **lie})
    refused("sequences", file, "its document|do not make 1000000000000000000 sequences")
