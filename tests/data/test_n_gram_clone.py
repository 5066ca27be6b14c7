"""Clones from n-grams: what is written, and what their cards say."""

import numpy as np
import pytest

from manybody.data import SPLITS, SourceError
from manybody.data.n_gram_clone import card, fitted, make, sentence
from manybody.data.ngrams import numbered
from manybody.io import sequences
from manybody.io.sequences import Sequences

VOCABULARY, LENGTH = 5, 10


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """A first-order chain as training and test sequences."""
    folder, random = tmp_path_factory.mktemp("text"), np.random.default_rng(0)
    step = random.dirichlet(0.5 * np.ones(VOCABULARY), VOCABULARY)
    for split, count in (("train", 2000), ("test", 500)):
        rows = random.integers(VOCABULARY, size=(count, LENGTH))
        for place in range(1, LENGTH):
            sums = step[rows[:, place - 1]].cumsum(axis=1)
            rows[:, place] = (sums < random.random(count)[:, None]).sum(axis=1)
        sequences.write(folder / f"{split}.parquet", rows, VOCABULARY, {"split": split})
    return [folder / f"{split}.parquet" for split in ("train", "test")]


def source(**changes):
    made = dict(source="text", order=2, smoothing="kneser-ney", seed=3)
    return {**made, "sequences": dict(train=600, validation=100, test=400), **changes}


@pytest.mark.parametrize("smoothing", ["kneser-ney", "maximum-entropy"])
def test_splits_and_their_card(text, tmp_path, smoothing):
    out = {split: tmp_path / f"{split}.parquet" for split in SPLITS}
    make(source(smoothing=smoothing), "pairs", text, out)
    found = {split: Sequences.open(path) for split, path in out.items()}
    assert [len(found[split]) for split in SPLITS] == [600, 100, 400]
    assert {(one.vocabulary, one.length) for one in found.values()} == {(VOCABULARY, LENGTH)}
    about = found["train"].about
    assert (about["of"], about["order"], about["smoothing"]) == ("text", 2, smoothing)
    said = about["card"]
    # The text is of this order, so the clone is as probable as the text is.
    error = np.hypot(said["loss"]["text"][1], said["loss"]["clone"][1])
    assert abs(said["loss"]["text"][0] - said["loss"]["clone"][0]) < 4 * error
    assert said["ratio"] == pytest.approx(1, abs=0.05)
    assert said["loss"]["masked"][0] < said["loss"]["text"][0]
    for distance in said["distance"].values():
        assert distance["clone"] < distance["text"] + 0.05
    assert said["copied"]["clone"] > 0.05
    assert (said["error"] is None) == (smoothing == "kneser-ney")


def test_copies_and_lower_orders_are_told_from_the_text(text):
    train, test = map(Sequences.open, text)
    law = fitted(train, 1, "kneser-ney")
    clone = law.draw(400, LENGTH, np.random.default_rng(0))
    said = card(law, clone, train, test)
    assert said["distance"]["bigram"]["clone"] > said["distance"]["bigram"]["text"] + 0.1
    copied = card(law, train.tokens[:400].astype(int), train, test)
    assert copied["copied"]["clone"] == 1
    assert "100.0% of the runs of 8 tokens" in sentence(copied)
    assert sentence(copied).endswith("the clone copies it.")
    rare = {"copied": {"clone": 0.04, "text": 0.01}}
    assert sentence(rare).endswith("(of test text 1.0%).")


def stored(path, rows):
    sequences.write(path, rows, VOCABULARY, {})
    return Sequences.open(path)


def test_what_a_law_gives_no_probability_is_counted(text, tmp_path):
    train = stored(tmp_path / "few.parquet", Sequences.open(text[0]).tokens[:100])
    test = Sequences.open(text[1])
    law = fitted(train, 3, "maximum-entropy")
    grams = [numbered(part.tokens, VOCABULARY, 3) for part in (train, test)]
    lacking = ~np.isin(grams[1], grams[0]).all(axis=1)
    said = card(law, law.draw(500, LENGTH, np.random.default_rng(0)), train, test)
    assert 1 > said["loss"]["impossible"] >= lacking.mean() > 0
    assert np.isfinite(said["loss"]["text"]).all()


def test_short_sequences_cannot_copy(tmp_path):
    short = stored(tmp_path / "short.parquet", np.random.default_rng(0).integers(3, size=(50, 5)))
    law = fitted(short, 2, "kneser-ney")
    said = card(law, law.draw(50, 5, np.random.default_rng(0)), short, short)
    assert said["copied"]["clone"] is None
    assert "shorter than the 8 tokens" in sentence(said)


def test_an_order_above_the_block_is_refused(text):
    given = source(order=11, smoothing="maximum-entropy")
    with pytest.raises(SourceError, match=r"order: text: order 11 .* expected 1 to L"):
        make(given, "toy", text, {})
