"""Byte-level BPE and blocks: exact text back, same bytes always, clear refusals."""

import json

import child
import numpy as np
import own_models
import pytest
from tokenizers import ByteLevelBPETokenizer

from benchmarks import sequences as benchmark
from manybody.data import SourceError, documents, own_tokenizer, tokenizer
from manybody.data.documents import Cutter
from manybody.io.sequences import Sequences

TEXTS = [*benchmark.paragraphs(0.05, 0), "Grüße, 世界 🎉", "  spaces   and\n\n\nlines\t.", "x"]


def store(path, texts):
    with documents.writer(path, {}) as writer:
        for text in texts:
            cutter = Cutter()
            for piece in [*cutter.add(text), *cutter.end()]:
                writer.add(piece)
    return path


@pytest.fixture
def stored(tmp_path):
    return store(tmp_path / "train.parquet", TEXTS)


@pytest.fixture
def trained(stored, tmp_path):
    tokenizer.train(stored, 300, tmp_path / "tokenizer.json")
    return tmp_path / "tokenizer.json"


def encode(stored, trained, folder, **changes):
    out = folder / "out.parquet"
    settings = {"length": 16, "about": {"source": "docs", "split": "train", "seed": 0}, **changes}
    tokenizer.encode_split(stored, trained, out=out, **settings)
    return Sequences.open(out)


def test_blocks_hold_the_text_from_its_start_without_padding(stored, trained, tmp_path):
    found = encode(stored, trained, tmp_path)
    joined = "".join(f"{text}\n" for text in TEXTS)
    whole = tokenizer.load(trained).encode(joined).ids
    assert len(found) == len(whole) // 16
    assert found.tokens.reshape(-1).tolist() == whole[: len(found) * 16]
    text = tokenizer.load(trained).decode(found.tokens.reshape(-1).tolist())
    assert joined.startswith(text.rstrip("\N{REPLACEMENT CHARACTER}"))
    assert found.vocabulary == 300


def test_the_library_class_gives_the_same_tokens(stored, trained):
    library = ByteLevelBPETokenizer()
    library.train_from_iterator(
        [f"{text}\n" for text in TEXTS], vocab_size=300, min_frequency=2, show_progress=False
    )
    ours = tokenizer.load(trained)
    for text in TEXTS:
        assert ours.encode(text).tokens == library.encode(text).tokens


def test_a_document_in_pieces_has_the_tokens_of_the_document(tmp_path, trained, monkeypatch):
    monkeypatch.setattr(documents, "PIECE", 50)
    texts = [" \n".join(TEXTS), "a  b\n c\n\n d's 12  3\n\ne " * 40]
    cut = store(tmp_path / "cut.parquet", texts)
    assert sum(1 for _ in documents.Documents(cut)) > 100
    found = encode(cut, trained, tmp_path)
    whole = tokenizer.load(trained).encode("".join(f"{text.rstrip()}\n" for text in texts)).ids
    assert found.tokens.reshape(-1).tolist() == whole[: len(found) * 16]


def test_a_kept_marker_is_one_ordinary_token_after_each_document(tmp_path, stored, monkeypatch):
    path = tmp_path / "kept.json"
    tokenizer.train(stored, 300, path, end_of_document="kept")
    bpe = tokenizer.load(path)
    assert bpe.token_to_id(tokenizer.MARKER) == 0
    assert bpe.get_vocab_size() == 300
    monkeypatch.setattr(documents, "PIECE", 100)
    cut = store(tmp_path / "cut.parquet", TEXTS)
    found = encode(cut, path, tmp_path, length=2, end_of_document="kept")
    expected = [token for text in TEXTS for token in [*bpe.encode(text.rstrip()).ids, 0]]
    assert found.tokens.reshape(-1).tolist() == expected[: 2 * len(found)]
    assert (found.tokens == 0).sum() in (len(TEXTS), len(TEXTS) - 1)  # the tail may hold the last


def test_a_dropped_marker_is_no_token(trained):
    assert tokenizer.load(trained).token_to_id(tokenizer.MARKER) is None


def test_asked_blocks_are_the_first(stored, trained, tmp_path):
    everything = encode(stored, trained, tmp_path).tokens
    few = encode(stored, trained, tmp_path, blocks=7)
    np.testing.assert_array_equal(few.tokens, everything[:7])


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"blocks": 10**6},
            r"length: found 16, .* makes \d+ sequences; expected at least 1000000; .* fewer blocks",
        ),
        ({"length": 10**6}, "length: found 1000000, .* makes 0 sequences; expected at least 1;"),
        ({"end_of_document": "kept"}, "no token that ends a document"),
    ],
)
def test_what_cannot_be_cut_is_refused(stored, trained, tmp_path, changes, reason):
    with pytest.raises(SourceError, match=reason):
        encode(stored, trained, tmp_path, **changes)
    assert not (tmp_path / "out.parquet").exists()


def test_a_vocabulary_that_cannot_be_is_refused(stored, tmp_path):
    for vocabulary in (255, 50_000):
        reason = rf"vocabulary: found {vocabulary}, at which .* yields \d+ tokens; expected at lea"
        with pytest.raises(SourceError, match=reason):
            tokenizer.train(stored, vocabulary, tmp_path / "x.json")
    assert not (tmp_path / "x.json").exists()


def test_the_byte_alphabet_alone_is_a_vocabulary(stored, tmp_path):
    tokenizer.train(stored, 256, tmp_path / "bytes.json")
    found = encode(stored, tmp_path / "bytes.json", tmp_path, length=2)
    assert found.tokens.size == len("".join(f"{text}\n" for text in TEXTS).encode()) // 2 * 2


def test_what_is_no_tokenizer_is_refused(tmp_path, stored):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(SourceError, match=r"tokenizer.json is not a tokenizer"):
        encode(stored, tmp_path / "tokenizer.json", tmp_path)


def test_batches_leave_no_trace(stored, trained, tmp_path, monkeypatch):
    encode(stored, trained, tmp_path)
    first = (tmp_path / "out.parquet").read_bytes()
    monkeypatch.setattr(tokenizer, "BATCH", 3)
    monkeypatch.setattr(tokenizer, "BATCH_CHARACTERS", 500)
    encode(stored, trained, tmp_path)
    assert (tmp_path / "out.parquet").read_bytes() == first


# --- Tokenizers that come with a model, with special tokens ---


@pytest.fixture
def words(tmp_path):
    return store(tmp_path / "documents.parquet", own_models.TEXT)


def own_blocks(made, text, folder, length=10, end="dropped", blocks=None):
    made.save_pretrained(folder / "theirs")
    paths = folder / "tokenizer.json", folder / "special.json"
    own_tokenizer.take(folder / "theirs", "theirs", *paths)
    special = json.loads(paths[1].read_text())
    out = folder / "out.parquet"
    tokenizer.encode_split(text, paths[0], length, out, {}, blocks, end, special)
    return Sequences.open(out), special


def test_blocks_of_word_pieces_stand_between_special_tokens(words, tmp_path):
    made = own_models.word_piece()
    found, special = own_blocks(made, words, tmp_path)
    assert special["mask"] == made.mask_token_id
    assert special["special"] == [0, 1, 2, 3, 4]
    assert found.about["special"] == special
    assert found.vocabulary == len(made)
    assert (found.tokens[:, 0] == made.cls_token_id).all()
    assert (found.tokens[:, -1] == made.sep_token_id).all()
    # Tokens of all documents in a row, without truncation.
    expected = np.concatenate([made.encode(p, add_special_tokens=False) for p in own_models.TEXT])
    inner = found.tokens[:, 1:-1].ravel()
    assert (inner == expected[: len(inner)]).all()
    assert len(expected) - len(inner) < 8


@pytest.mark.parametrize("name", own_tokenizer.FILES[1:])
def test_a_role_that_is_null_in_one_file_is_that_of_the_other(name, tmp_path):
    made = own_models.word_piece()
    made.save_pretrained(tmp_path)
    for file in own_tokenizer.FILES[1:]:
        (tmp_path / file).write_text(json.dumps({"mask_token": None if file == name else "[MASK]"}))
    assert own_tokenizer.described(tmp_path)["mask"] == made.mask_token_id


def test_a_document_ends_with_the_model_s_own_token(words, tmp_path):
    made = own_models.byte_level()
    found, special = own_blocks(made, words, tmp_path, end="kept")
    assert (special["before"], special["after"], special["mask"]) == ([], [], None)
    assert abs((found.tokens == made.eos_token_id).sum() - len(own_models.TEXT)) <= 1
    first = made.decode(found.tokens.ravel().tolist()).split("<|endoftext|>")[0]
    assert first == own_models.TEXT[0]


@pytest.mark.long
def test_the_numbers_of_50_000_tokens_fit(words, tmp_path):
    """|V| beyond 2^16 too: tokens of the smallest type that holds them."""
    made = own_models.byte_level()
    made.add_tokens([f"<{number}>" for number in range(66_000)])
    found, special = own_blocks(made, words, tmp_path)
    assert special["vocabulary"] == len(made) > 2**16
    assert found.tokens.dtype == np.uint32


def test_what_is_no_tokenizer_of_a_model_is_refused(words, tmp_path):
    out = tmp_path / "tokenizer.json", tmp_path / "special.json"
    (tmp_path / "none").mkdir()
    with pytest.raises(SourceError, match=r"found mine, which has no tokenizer.json; expected one"):
        own_tokenizer.take(tmp_path / "none", "mine", *out)
    (tmp_path / "none" / "tokenizer.json").write_text("{}")
    with pytest.raises(SourceError, match=r"tokenizer.json is not a tokenizer .*copy it again"):
        own_tokenizer.take(tmp_path / "none", "mine", *out)
    with pytest.raises(SourceError, match=r"length: found 3, of which .* special tokens take 2"):
        own_blocks(own_models.word_piece(), words, tmp_path, length=3)
    with pytest.raises(SourceError, match=r"length: found 10, .* makes \d+ sequences"):
        own_blocks(own_models.word_piece(), words, tmp_path, blocks=10**6)
    made = own_models.byte_level()
    made.eos_token = None
    with pytest.raises(SourceError, match=r"end_of_document: found kept, but the tokenizer has no"):
        own_blocks(made, words, tmp_path, end="kept")


# --- Processes and sizes ---


WORK = """
import sys
from manybody.data import tokenizer
folder = sys.argv[1]
stored = sys.argv[2]
tokenizer.train(stored, 320, f"{folder}/tokenizer.json")
tokenizer.encode_split(stored, f"{folder}/tokenizer.json", 16, f"{folder}/out.parquet", {})
"""


@pytest.mark.long
def test_same_bytes_in_other_processes_with_other_threads(stored, tmp_path):
    found = set()
    for threads in ("1", "2", "5"):
        folder = tmp_path / threads
        folder.mkdir()
        child.run("-c", WORK, folder, stored, RAYON_NUM_THREADS=threads, PYTHONHASHSEED=threads)
        found.add(tuple((folder / n).read_bytes() for n in ("tokenizer.json", "out.parquet")))
    assert len(found) == 1


TWO_GIGABYTES = """
import sys
from pathlib import Path
from manybody.data import text, tokenizer
folder = Path(sys.argv[1])
out = {split: folder / f"{split}.documents.parquet" for split in text.SPLITS}
corpus = {"kind": "file", "files": [str(folder / "text.txt")], "boundary": sys.argv[2],
          "split": {"train": 0.98, "validation": 0.01, "test": 0.01}}
text.collect(corpus, out, folder)
tokenizer.train(out["train"], 10_000, folder / "tokenizer.json")
tokenizer.encode_split(out["train"], folder / "tokenizer.json", 128, folder / "out.parquet", {})
# Not getrusage's peak, which begins at that of the process that started this one.
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""


@pytest.mark.slow
def test_two_gigabytes_of_text_stay_below_four_of_memory(tmp_path):
    # Every 16 MB bring 20,000 new words, as a growing corpus does.
    size = 0
    with (tmp_path / "text.txt").open("w") as out:
        for seed in range(125):
            size += out.write("\n".join(benchmark.paragraphs(16, seed)) + "\n")
    assert size > 1.98e9
    peak = int(child.run("-c", TWO_GIGABYTES, tmp_path, "line"))
    print(f"\n{peak / 1024:.0f} MiB")
    assert peak < 4 * 2**20  # KiB
    assert len(Sequences.open(tmp_path / "out.parquet")) > 1e6


@pytest.mark.slow
def test_tokenising_keeps_pace_with_the_library():
    (row,) = benchmark.measure(megabytes=64)
    assert row["ratio"] >= 0.8, row
