"""Counts of a text: words, look-alikes of boundaries, tokens, losses of n-grams, leaks."""

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models

from manybody.data import documents, inspection
from manybody.data.documents import Piece
from manybody.data.ngrams import NGrams
from manybody.data.overlap import overlap
from manybody.io import sequences
from manybody.io.sequences import Sequences


def written(path, texts):
    with documents.writer(path, {}) as writer:
        for text in texts:
            writer.add(Piece(text, True))
    return path


@pytest.fixture
def blocks(tmp_path):
    """Training and test sequences of L = 4; some test blocks stand in the training text."""
    train = np.random.default_rng(0).choice(5, (300, 4), p=[0.5, 0.3, 0.15, 0.05, 0.0])
    test = np.random.default_rng(1).choice(5, (40, 4), p=[0.4, 0.3, 0.2, 0.0, 0.1])
    for name, tokens in (("train", train), ("test", test)):
        sequences.write(tmp_path / f"{name}.parquet", tokens, 5, {})
    return [Sequences.open(tmp_path / f"{name}.parquet") for name in ("train", "test")]


def test_words_and_lines_that_look_like_boundaries(tmp_path):
    train = written(
        tmp_path / "train", ["The cat sat.\n<|endoftext|>\nThe dog", " = Cats =", "a = b"]
    )
    test = written(tmp_path / "test", ["the bird and the cat"])
    found = inspection.words({"train": train, "test": test})
    assert found["train"] == {
        "documents": 3,
        "characters": 48,
        "words": 9,  # the marker's is one
        "types": 8,
        "new": 0.0,
        "markers": 1,
        "headings": 1,
    }
    assert found["test"]["new"] == pytest.approx(2 / 5)


def test_tokens_that_are_rare_not_there_or_parts_of_a_character(blocks, tmp_path):
    train, _ = blocks
    counts = np.bincount(train.tokens.reshape(-1), minlength=5)
    # In byte-level BPE a byte that is no character of its own is shown as a letter: here two of
    # the three bytes of a Chinese sign, and the whole of another.
    bpe = Tokenizer(models.BPE({"a": 0, "æ": 1, "ł": 2, "b": 3, "æĸĩ": 4}, []))
    bpe.decoder = decoders.ByteLevel()
    bpe.save(str(tmp_path / "tokenizer.json"))
    found = inspection.tokens(train, tmp_path / "tokenizer.json")
    assert (found["unseen"], counts[4]) == (1, 0)
    assert counts[3] <= found["rare"] <= counts[2]
    assert found["fragments"] == (counts[1] + counts[2]) / counts.sum()


def test_losses_are_those_of_the_n_grams(blocks):
    train, test = blocks
    found = inspection.ngram_losses(train, test)
    assert [one["order"] for one in found] == [1, 2, 3]
    model = NGrams(train.tokens, 5, 2)
    assert found[1]["next"] == pytest.approx(-model.next_token(test.tokens)[:, 1:].mean())
    assert found[1]["masked"] == pytest.approx(-model.masked(test.tokens).mean())
    assert found[1]["sequences"] == len(test)


def test_leaks_at_another_length(blocks):
    train, test = blocks
    counts = overlap(train, test.tokens)
    assert inspection.verbatim(train, test, 4) == len(counts["verbatim"]) / len(test) > 0
    assert inspection.verbatim(train, test, 8) < inspection.verbatim(train, test, 4)
