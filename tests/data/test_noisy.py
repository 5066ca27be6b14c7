"""Text with noise: how much is replaced, by what, and what it is made from."""

import numpy as np
import pytest

from manybody.data import SourceError, noisy
from manybody.io import sequences
from manybody.io.sequences import Sequences

SPLITS = ("train", "validation", "test")


def test_a_share_of_the_tokens_is_drawn_from_the_law():
    law = np.array([0.5, 0.3, 0.2, 0.0])
    tokens = np.full((4000, 10), 3)
    found = noisy.replaced(tokens, 0.3, law, np.random.default_rng(0))
    kept = found == 3
    assert kept.mean() == pytest.approx(0.7, abs=4 * np.sqrt(0.21 / 40000))
    counts = np.bincount(found[~kept], minlength=4) / (~kept).sum()
    assert counts == pytest.approx(law, abs=0.02)
    # Every position alike.
    assert np.ptp(kept.mean(axis=0)) < 0.05


def made(folder, **changed):
    rng = np.random.default_rng(1)
    given = [folder / f"{split}.parquet" for split in SPLITS]
    for path, count in zip(given, (300, 40, 50), strict=True):
        sequences.write(path, rng.choice(6, (count, 8), p=[0.5, 0.3, 0.1, 0.1, 0, 0]), 6, {})
    counts = {"train": 20, "validation": 10, "test": 50}
    source = dict(source="docs", share=0.4, sequences=counts, seed=3) | changed
    out = {split: folder / f"noisy-{split}.parquet" for split in SPLITS}
    noisy.make(source, "noise", given, out)
    return [Sequences.open(path) for path in given], [Sequences.open(out[s]) for s in SPLITS]


def test_it_is_the_beginning_of_each_split_with_tokens_replaced(tmp_path):
    text, found = made(tmp_path)
    assert [len(part) for part in found] == [20, 10, 50]
    for clean, part in zip(text, found, strict=True):
        same = (clean[: len(part)] == part.tokens).mean()
        assert 0.6 < same < 0.85  # 0.6, and the draws that are the token itself
        assert part.tokens.max() < 4  # the law is that of the training tokens
        assert part.about["share"] == 0.4
        assert part.vocabulary == 6
    again = made(tmp_path, seed=4)[1]
    assert (again[2].tokens != found[2].tokens).any()


def test_more_than_a_split_has_is_refused(tmp_path):
    with pytest.raises(SourceError, match="found 51; expected at most the 50 sequences"):
        made(tmp_path, sequences={"train": 20, "validation": 10, "test": 51})
