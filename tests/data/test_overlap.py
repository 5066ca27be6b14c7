"""Test blocks that stand in the training text, against strings searched in strings."""

import json

import numpy as np
import pytest

from manybody.data import overlap
from manybody.io import sequences
from manybody.io.sequences import Sequences


def stored(path, tokens, vocabulary):
    sequences.write(path, tokens, vocabulary, {})
    return Sequences.open(path)


def as_text(tokens):
    return "".join(map(chr, tokens))


@pytest.fixture
def splits(tmp_path):
    """Training and test blocks of 16 tokens; some test blocks are copied, from anywhere."""
    random = np.random.default_rng(0)
    train = random.integers(0, 40, (300, 16))
    test = random.integers(0, 40, (100, 16))
    text = train.reshape(-1)
    for row in range(0, 30, 2):  # whole, at any offset, so that no block of training equals them
        start = random.integers(0, len(text) - 16)
        test[row] = text[start : start + 16]
    test[0], test[2] = text[:16], text[-16:]
    for row in range(1, 30, 2):  # but for one to four tokens, anywhere
        start, places = random.integers(0, len(text) - 16), random.permutation(16)[: row % 4 + 1]
        test[row] = text[start : start + 16]
        test[row, places] = (test[row, places] + 1) % 40
    for row in range(31, 60, 3):  # in part
        start, count = random.integers(0, len(text) - 16), random.integers(8, 16)
        place = random.integers(0, 17 - count)
        test[row, place : place + count] = text[start : start + count]
    return stored(tmp_path / "train", train, 40), stored(tmp_path / "test", test, 40)


@pytest.mark.parametrize(("block", "pairs"), [(2**20, 2**16), (64, 3), (16, 1)])
def test_counts_are_those_of_a_search_in_the_text(splits, monkeypatch, block, pairs):
    monkeypatch.setattr(overlap, "BLOCK", block)
    monkeypatch.setattr(overlap, "PAIRS", pairs)
    train, test = splits
    text = as_text(train.tokens.reshape(-1))
    blocks = [as_text(row) for row in test.tokens]
    found = overlap.overlap(train, test.tokens)
    assert found["verbatim"] == [i for i, whole in enumerate(blocks) if whole in text]
    assert found["runs"] == sum(
        any(whole[i : i + 12] in text for i in range(5)) for whole in blocks
    )
    assert 15 <= len(found["verbatim"]) < found["runs"] < 30
    windows = np.lib.stride_tricks.sliding_window_view(train.tokens.reshape(-1), 16)
    least = np.array([(windows != row).sum(axis=1).min() for row in test.tokens])
    assert found["near"] == (least <= 2).sum() > len(found["verbatim"])
    assert (least == 2).any()
    assert (least == 3).any()
    assert (found["blocks"], found["run"], found["changed"]) == (100, 12, 2)


def test_equal_hashes_of_other_tokens_are_not_counted(splits, monkeypatch):
    train, test = splits
    expected = overlap.overlap(train, test.tokens)
    hashes = overlap.numbered
    monkeypatch.setattr(overlap, "numbered", lambda *given: hashes(*given) % 5)
    assert overlap.overlap(train, test.tokens) == expected


def test_short_blocks_share_what_they_have(tmp_path):
    train = stored(tmp_path / "train", np.array([[0, 1, 2], [3, 4, 5]]), 9)
    test = stored(tmp_path / "test", np.array([[2, 3, 4], [4, 3, 2]]), 9)
    found = {"blocks": 2, "verbatim": [0], "near": 1, "changed": 0, "run": 3, "runs": 1}
    assert overlap.overlap(train, test.tokens) == found


def test_a_training_text_of_one_block_is_looked_through(tmp_path):
    assert overlap.stand_in(
        stored(tmp_path / "train", np.array([[0, 1, 2]]), 9), np.array([[0, 1, 2], [1, 2, 0]])
    ).tolist() == [True, False]


def test_shares_and_what_is_said_of_them(tmp_path):
    path = tmp_path / "overlap.json"
    counts = {"blocks": 50, "verbatim": [3, 7], "near": 4, "changed": 2, "run": 12, "runs": 5}
    path.write_text(json.dumps(counts))
    shares = {"verbatim": 0.04, "near": 0.08, "changed": 2, "run": 12, "runs": 0.1}
    assert overlap.shares(path) == shares
    found = overlap.shares(path, [1, 3, 5, 8])
    assert found["initial"] == 0.25
    assert overlap.sentence(found) == (
        "Of the test blocks 4.00% stand verbatim in the training text, 8.00% but for at most 2 "
        "tokens, 10.00% share 12 tokens in a row with it; of the chains' starts 25.00% stand "
        "there whole."
    )


def test_sequences_that_training_has_are_told_by_their_rows():
    train = np.array([[0, 1], [1, 2], [0, 1]], np.uint8)
    assert overlap.repeated(train, np.array([[0, 1], [1, 0], [2, 1], [1, 2]], np.uint8)) == 0.5
