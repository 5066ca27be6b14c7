"""Clones from n-grams: generators of a known order that need no training, drawn exactly."""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from manybody.data import COPIED, RUN, SPLITS, SourceError
from manybody.data.likeness import Text
from manybody.data.maximum_entropy import MaximumEntropy
from manybody.data.ngrams import LOOKUPS, Ancestral, NGrams
from manybody.data.tree import mean_and_error
from manybody.io import sequences
from manybody.io.seeds import streams_of
from manybody.io.sequences import Sequences

log = logging.getLogger(__name__)


def fitted(train: Sequences, order: int, smoothing: str) -> Ancestral:
    """The distribution of n-grams of this order, from the training split of a source."""
    if smoothing == "kneser-ney":
        return NGrams(train.tokens.reshape(-1), train.vocabulary, order)
    return MaximumEntropy(train.tokens, train.vocabulary, order)


def card(law: Ancestral, clone: np.ndarray, train: Sequences, test: Sequences) -> dict:
    """The card of a clone, tokens (N, L), drawn from `law`, beside the text.

    `loss`: the distribution's on text (test sequences) and on the clone, in nats a token given
    those before it, each with its standard error over sequences; of text without the share
    `impossible`, test sequences that the distribution gives no probability. `ratio`: clone to text.
    `masked`: of each token given all others of its sequence, on as many of the same test sequences
    as take few seconds. `distance`: total variation of unigrams and bigrams to the training text,
    of the clone and of as many test sequences, which says what is sampling noise. `copied`: the
    share of the runs of `RUN` tokens that stand in the training text, likewise; None for shorter
    sequences. `error`: what the frequencies of a distribution of largest entropy are off.
    """
    rows = test.tokens[: len(clone)]
    logs = [law.next_token(tokens).mean(axis=1) for tokens in (rows, clone)]
    possible = np.isfinite(logs[0])
    few = max(2, int(LOOKUPS / (rows.shape[1] * law.vocabulary * law.order)))
    loss = dict(
        text=_mean(-logs[0][possible]),
        clone=_mean(-logs[1]),
        masked=_mean(-law.masked(rows[possible][:few]).mean(axis=1)),
        impossible=float(1 - possible.mean()),
    )
    text, given = loss["text"], Text(train)
    both = {"clone": clone, "text": rows}
    return dict(
        loss=loss,
        ratio=loss["clone"][0] / text[0] if text else None,
        distance={
            order: {key: given.distance(tokens, number) for key, tokens in both.items()}
            for number, order in enumerate(("unigram", "bigram"), start=1)
        },
        copied=dict(zip(both, given.copied(list(both.values())), strict=True)),
        error=getattr(law, "error", None),
        state="a sample",
    )


def sentence(card: dict) -> str:
    """A sentence on the copying that a card reports."""
    share = card["copied"]["clone"]
    if share is None:
        return f"The sequences are shorter than the {RUN} tokens that would count as copied."
    text = f"{share:.1%} of the runs of {RUN} tokens stand in the training text"
    text += f" (of test text {card['copied']['text']:.1%})"
    return f"{text}: the clone copies it." if share > COPIED else f"{text}."


def make(source: dict, name: str, given: Sequence[str | Path], out: dict) -> None:
    """Writes the splits of the source called `name`, of n-grams of another source.

    given: the training and the test sequences of that one. The document of each split has the
    `card` of the test split.
    """
    train, test = map(Sequences.open, given)
    try:
        law = fitted(train, source["order"], source["smoothing"])
    except ValueError as error:
        raise SourceError(f"{source['source']}: {error}", "order") from error
    streams = streams_of(source["seed"], SPLITS)
    drawn = {
        split: law.draw(
            source["sequences"][split], train.length, np.random.default_rng(streams[split])
        )
        for split in SPLITS
    }
    about = {key: source[key] for key in ("order", "smoothing", "seed")}
    about |= dict(source=name, of=source["source"], card=card(law, drawn["test"], train, test))
    log.warning("%s", sentence(about["card"]))
    for split, tokens in drawn.items():
        sequences.write(out[split], tokens, train.vocabulary, {**about, "split": split})


def _mean(values: np.ndarray) -> list[float] | None:
    return mean_and_error(values) if len(values) > 1 else None
