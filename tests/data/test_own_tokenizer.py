"""A model's own tokenizer makes the sequences, its special tokens among them."""

import json

import numpy as np
import own_models
import pytest

from manybody.data import SourceError, documents, own_tokenizer, tokenizer
from manybody.data.documents import Piece
from manybody.io.sequences import Sequences


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "documents.parquet"
    with documents.writer(path, {}) as writer:
        for part in own_models.TEXT:
            writer.add(Piece(part, True))
    return path


def encoded(made, text, folder, length=10, end="dropped", blocks=None):
    made.save_pretrained(folder / "theirs")
    paths = folder / "tokenizer.json", folder / "special.json"
    own_tokenizer.take(folder / "theirs", "theirs", *paths)
    special = json.loads(paths[1].read_text())
    out = folder / "out.parquet"
    tokenizer.encode_split(text, paths[0], length, out, {}, blocks, end, special)
    return Sequences.open(out), special


def test_blocks_of_word_pieces_stand_between_special_tokens(text, tmp_path):
    made = own_models.word_piece()
    found, special = encoded(made, text, tmp_path)
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


def test_a_document_ends_with_the_model_s_own_token(text, tmp_path):
    made = own_models.byte_level()
    found, special = encoded(made, text, tmp_path, end="kept")
    assert (special["before"], special["after"], special["mask"]) == ([], [], None)
    ends = (found.tokens == made.eos_token_id).sum()
    assert abs(ends - len(own_models.TEXT)) <= 1
    first = made.decode(found.tokens.ravel().tolist()).split("<|endoftext|>")[0]
    assert first == own_models.TEXT[0]


def test_the_numbers_of_50_000_tokens_fit(text, tmp_path):
    """|V| beyond 2^16 too: tokens of the smallest type that holds them."""
    made = own_models.byte_level()
    made.add_tokens([f"<{number}>" for number in range(66_000)])
    found, special = encoded(made, text, tmp_path)
    assert special["vocabulary"] == len(made) > 2**16
    assert found.tokens.dtype == np.uint32


def test_what_is_no_tokenizer_is_refused(text, tmp_path):
    out = tmp_path / "tokenizer.json", tmp_path / "special.json"
    (tmp_path / "none").mkdir()
    with pytest.raises(SourceError, match=r"found mine, which has no tokenizer.json; expected one"):
        own_tokenizer.take(tmp_path / "none", "mine", *out)
    (tmp_path / "none" / "tokenizer.json").write_text("{}")
    with pytest.raises(SourceError, match=r"whose tokenizer.json is no tokenizer"):
        own_tokenizer.take(tmp_path / "none", "mine", *out)
    with pytest.raises(SourceError, match=r"length: found 3, of which .* special tokens take 2"):
        encoded(own_models.word_piece(), text, tmp_path, length=3)
    with pytest.raises(SourceError, match=r"length: found 10, .* makes \d+ sequences"):
        encoded(own_models.word_piece(), text, tmp_path, blocks=10**6)
    made = own_models.byte_level()
    made.eos_token = None
    with pytest.raises(SourceError, match=r"end_of_document: found kept, but the tokenizer has no"):
        encoded(made, text, tmp_path, end="kept")
