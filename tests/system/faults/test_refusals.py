"""Twenty ways to spoil an artifact: whoever reads it next refuses it by name."""

import json
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pipeline import RESULTS

from manybody.data import SourceError
from manybody.data.documents import Documents
from manybody.data.hamiltonian import Hamiltonian
from manybody.data.tokenizer import load
from manybody.io import checkpoints, tables
from manybody.io.atomic import ArtifactError
from manybody.io.manifest import Manifest
from manybody.io.sequences import Sequences
from manybody.models import stored
from manybody.papers import claims

MODEL, CLONE = "models/text/tiny/seed-0", "clones/text/tiny"


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def behead(path: Path) -> None:
    """Takes the first line, which names the columns."""
    path.write_text(path.read_text().partition("\n")[2])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def flip(path: Path) -> None:
    """One bit in the middle of the data, which is where the file's own marks are not.

    Of a Parquet, in the last page of its largest column: what the headers of pages say besides,
    their statistics, is not part of the data and has no checksum.
    """
    data = bytearray(path.read_bytes())
    place = len(data) // 3
    if path.suffix == ".parquet" and data[-4:] == b"PAR1":
        groups = pq.ParquetFile(path).metadata
        columns = [groups.row_group(0).column(k) for k in range(groups.num_columns)]
        largest = max(columns, key=lambda column: column.total_compressed_size)
        first = largest.dictionary_page_offset or largest.data_page_offset
        place = first + largest.total_compressed_size - 2
    data[place] ^= 1
    path.write_bytes(data)


def flip_document(path: Path) -> None:
    """One bit of the JSON document in a Parquet's footer."""
    data = bytearray(path.read_bytes())
    data[data.rindex(b'"kind"') + 2] ^= 1
    path.write_bytes(data)


def huge_header(path: Path) -> None:
    path.write_bytes((2**62).to_bytes(8, "little") + path.read_bytes()[8:])


def reseed(path: Path) -> None:
    document = json.loads(path.read_text())
    document["about"]["seed"] = 1
    path.write_text(json.dumps(document))


def swap_tokens(path: Path) -> None:
    """Exchanges two tokens: still a tokenizer, but another one."""
    document = json.loads(path.read_text())
    words = document["model"]["vocab"]
    words["a"], words["b"] = words["b"], words["a"]
    path.write_text(json.dumps(document))


def as_another(name: str):
    """Puts another artifact of the same run in the place of the file."""
    return lambda path: shutil.copy(path.parent / name, path)


def documents(path):
    return list(Documents(path))


def losses(path):
    return tables.read_losses({0: path})


def checkpoint(path):
    return stored.load_model(path.parent / "manifest.json", int(path.stem.partition("-")[2]))


def history(path):
    return checkpoints.history(path.parent / "manifest.json")


def run(path):
    return stored.load_model(path)


def tokens(path):
    return Sequences.open(path).tokens


def clone(path):
    return tokens(Manifest.read(path.parent / "manifest.json", "clones").file(path.name))


CASES = [
    ("corpora/tiny/train.parquet", truncate, documents),
    ("corpora/tiny/train.parquet", flip, documents),
    ("corpora/tiny/train.parquet", flip_document, documents),
    ("corpora/tiny/test.parquet", as_another("../../sequences/text/test.parquet"), documents),
    ("sequences/text/tokenizer.json", truncate, load),
    ("sequences/text/tokenizer.json", swap_tokens, load),
    ("sequences/text/train.parquet", empty, tokens),
    ("sequences/text/train.parquet", truncate, tokens),
    ("sequences/text/train.parquet", flip, tokens),
    ("sequences/text/train.parquet", flip_document, tokens),
    ("sequences/spins/hamiltonian.safetensors", truncate, Hamiltonian.load),
    ("sequences/spins/hamiltonian.safetensors", flip, Hamiltonian.load),
    ("sequences/spins/hamiltonian.safetensors", huge_header, Hamiltonian.load),
    (f"{MODEL}/step-80.safetensors", truncate, checkpoint),
    (f"{MODEL}/step-80.safetensors", flip, checkpoint),
    (f"{MODEL}/step-40.safetensors", as_another("step-20.safetensors"), checkpoint),
    (f"{MODEL}/step-20.safetensors", Path.unlink, checkpoint),
    (f"{MODEL}/history.parquet", flip, history),
    (f"{MODEL}/manifest.json", truncate, run),
    (f"{MODEL}/manifest.json", reseed, run),
    (f"{MODEL}/manifest.json", as_another(f"../../../../{CLONE}/manifest.json"), run),
    (f"{CLONE}/sweep-6.parquet", flip, clone),
    (f"{CLONE}/sweep-6.parquet", as_another("sweep-2.parquet"), clone),
    ("losses/tiny/seed-0.parquet", truncate, losses),
    ("losses/tiny/seed-0.parquet", flip, losses),
    ("curves/tiny.parquet", flip, tables.THEORY.read),
    ("figures/simplicity/gradient_flow.claims.csv", truncate, claims.read),
    ("figures/simplicity/gradient_flow.claims.csv", behead, claims.read),
]
"""(artifact, what is done to it, who reads it)"""


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}-{case[1].__name__}")
def test_a_spoilt_artifact_is_refused_by_name(whole, tmp_path, case):
    name, spoil, read = case
    shutil.copytree(whole.results, tmp_path / RESULTS)
    path = tmp_path / RESULTS / name
    read(path)  # what is whole is read
    spoil(path)
    with pytest.raises((ArtifactError, SourceError)) as refused:
        read(path)
    assert path.name in str(refused.value)
    assert str(path.parent) in str(refused.value)
