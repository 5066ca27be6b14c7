"""Clones from n-grams: what is written, what their cards say, and distributions of largest entropy
by enumeration."""

import numpy as np
import pytest
from enumerated import all_states

from manybody.data import SPLITS, SourceError
from manybody.data.enumeration import chi_square, numbers
from manybody.data.n_gram_clone import MaximumEntropy, card, fitted, make, sentence
from manybody.data.ngrams import numbered
from manybody.io import sequences
from manybody.io.refusal import Refusal
from manybody.io.sequences import Sequences

VOCABULARY, LENGTH = 5, 10  # of the text of the clones
COLOURS, SITES = 3, 5  # of distributions that are enumerated
EVERY = all_states(COLOURS, SITES)


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


# --- Largest entropy ---


def sample(count=300, seed=0):
    """Rows that no chain has made: the first tokens are not as the others are, some runs lack."""
    random = np.random.default_rng(seed)
    rows = random.choice(COLOURS, (count, SITES), p=[0.6, 0.3, 0.1])
    rows[:, 0] = random.choice(COLOURS, count, p=[0.1, 0.2, 0.7])
    rows[rows[:, 1] == 2, 2] = 1
    rows[:, 3] = np.where(rows[:, 0] == rows[:, 2], 0, rows[:, 3])
    return rows


def frequencies(rows, order, weights=None):
    """Pooled frequencies of n-grams, by counting them: (|V|^n,)."""
    grams = numbered(rows, COLOURS, order)
    weights = np.repeat(np.ones(len(rows)) if weights is None else weights, grams.shape[1])
    counts = np.bincount(grams.ravel(), weights, COLOURS**order)
    return counts / counts.sum()


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_law_has_the_frequencies_and_the_beginnings_of_the_rows(order):
    rows, states = sample(), EVERY
    law = MaximumEntropy(rows, COLOURS, order)
    p = np.exp(law.next_token(states).sum(axis=1))
    assert p.sum() == pytest.approx(1, abs=1e-12)
    off = np.abs(frequencies(states, order, p) - frequencies(rows, order)).max()
    assert off == pytest.approx(law.error, abs=1e-14)
    assert off < 1e-7
    if order > 1:
        begun = numbered(states, COLOURS, order - 1)[:, 0]
        there = np.bincount(numbered(rows, COLOURS, order - 1)[:, 0]) / len(rows)
        np.testing.assert_allclose(np.bincount(begun, p)[: len(there)], there, atol=1e-12)


def test_the_plain_transitions_have_other_frequencies():
    """So that the test above tells the fit from the chain that it starts from."""
    rows, states = sample(), EVERY
    pairs = frequencies(rows, 2).reshape(COLOURS, -1)
    step = pairs / pairs.sum(axis=1, keepdims=True)
    begun = np.bincount(rows[:, 0], minlength=COLOURS) / len(rows)
    p = begun[states[:, 0]] * step[states[:, :-1], states[:, 1:]].prod(axis=1)
    assert np.abs(frequencies(states, 2, p) - pairs.ravel()).max() > 5e-3


def test_no_law_with_these_frequencies_has_more_entropy():
    """log p is a sum of a function of the beginning and of one of n-grams: any change that keeps
    both frequencies is orthogonal to it."""
    states = EVERY
    law = MaximumEntropy(sample(), COLOURS, 2)
    logs = law.next_token(states).sum(axis=1)
    there = np.isfinite(logs)
    grams = numbered(states[there], COLOURS, 2)
    features = np.concatenate(
        [(grams == gram).sum(axis=1)[:, None] for gram in range(COLOURS**2)]
        + [states[there][:, :1] == token for token in range(COLOURS)],
        axis=1,
    ).astype(float)
    left = logs[there] - features @ np.linalg.lstsq(features, logs[there], rcond=None)[0]
    assert np.abs(left).max() < 1e-9


def test_masked_conditionals_are_those_of_the_law():
    law, states = MaximumEntropy(sample(), COLOURS, 3), EVERY
    table = np.exp(law.next_token(states).sum(axis=1)).reshape((COLOURS,) * SITES)
    masked = np.exp(law.masked(states))
    for place in range(SITES):
        total = np.broadcast_to(table.sum(axis=place, keepdims=True), table.shape).ravel()
        there = total > 0
        found = masked[there, place]
        np.testing.assert_allclose(
            found, (table.ravel() / np.maximum(total, 1e-300))[there], atol=1e-12
        )


@pytest.mark.parametrize("order", [1, 2, 3])
def test_draws_are_from_the_law(order):
    law = MaximumEntropy(sample(), COLOURS, order)
    drawn = law.draw(40000, SITES, np.random.default_rng(1))
    p = np.exp(law.next_token(EVERY).sum(axis=1))
    found = chi_square(p, numbers(drawn, COLOURS))
    assert found["chance"] > 1e-3
    assert p[numbers(drawn, COLOURS)].min() > 0


def test_a_token_that_never_ends_a_block_is_met_in_the_limit():
    """1 has one neighbour on each side, so the only laws with these frequencies have no 1 at the
    end, which no finite factors would say."""
    rows = np.array([[0, 0, 1, 0], [0, 0, 0, 0], [0, 2, 0, 2]])
    law = MaximumEntropy(rows, 3, 2)
    assert law.error < 1e-7


def test_an_order_above_the_length_and_a_law_too_large_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="expected 1 to L"):
        MaximumEntropy(sample(), COLOURS, SITES + 1)
    monkeypatch.setattr("manybody.data.n_gram_clone.NUMBERS", 5)
    with pytest.raises(Refusal, match="has 3 states at 4 places, expected at most 5"):
        MaximumEntropy(sample(), COLOURS, 2)
