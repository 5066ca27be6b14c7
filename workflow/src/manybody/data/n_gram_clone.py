"""Clones from n-grams: generators of a known order that need no training, drawn exactly.

They are by Kneser-Ney (`ngrams`), or of largest entropy with n-gram frequencies and beginnings of
sequences.

Of all distributions of sequences of L tokens with the pooled frequencies f(g) of n-grams g, the
mean over the L - n + 1 places, and with the frequencies pi of the first n - 1 tokens, the one of
largest entropy is a Markov chain whose states are the last n - 1 tokens. Its transitions depend on
the place i, since sequences are finite:

    P_i(g | state) = phi(g) beta_{i+1}(end of g) / beta_i(state),   beta_i = sum_g phi(g) beta_{i+1}

beta_last is 1 where a sequence ends so and else 0, which the frequencies imply: what goes into a
state and does not go out of it again is its end. The factors phi maximise the dual

    D = (L - n + 1) sum_g f(g) log phi(g) - sum_s pi(s) log beta_first(s)

which is concave in log phi. They start at the plain transitions f(g) / f(state), whose chain has
not these frequencies, and are multiplied by (f / its frequencies)^s; s = 1 / (L - n + 1) always
raises D, and s as large as D allows is taken.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

from manybody.data import COPIED, RUN, SPLITS, SourceError
from manybody.data.ngrams import LOOKUPS, Ancestral, NGrams, looked_up, numbered
from manybody.data.ngrams_loops import walked
from manybody.data.overlap import Text
from manybody.data.tree import mean_and_error
from manybody.io import sequences
from manybody.io.refusal import Refusal
from manybody.io.seeds import streams_of
from manybody.io.sequences import Sequences

log = logging.getLogger(__name__)

TOLERANCE = 1e-6  # of the frequencies of n-grams
WANTED = 1e-8  # how near the fit goes if it can
ROUNDS = 3000
ROUNDING = 1e-13
NUMBERS = 2**28  # beta of all states and places: 2 GiB


class MaximumEntropy(Ancestral):
    """The distribution of largest entropy, fitted to `rows` (N, L) of tokens below `vocabulary`.

    `error` is the largest difference between the frequencies of n-grams of the distribution,
    computed from it, and those of `rows`. `ValueError` for an order above L, `Refusal` if the
    distribution has too many states or the fit does not come within `TOLERANCE`.
    """

    def __init__(self, rows: np.ndarray, vocabulary: int, order: int):
        length = rows.shape[1]
        if not 1 <= order <= length or float(vocabulary) ** order >= 2**63:
            raise ValueError(
                f"order {order} with |V| = {vocabulary}, L = {length}: expected 1 to L, with "
                "|V|^order < 2^63"
            )
        self.vocabulary, self.order, self.length = vocabulary, order, length
        self.steps, grams = length - order + 1, numbered(rows, vocabulary, order)
        self._grams, counts = np.unique(grams, return_counts=True)
        self.frequencies = counts / counts.sum()
        shorter = numbered(rows, vocabulary, order - 1)
        self._states = np.unique(shorter)
        if self.steps * len(self._states) > NUMBERS:
            raise Refusal(
                f"the distribution of largest entropy of order {order} has {len(self._states)} "
                f"states at {self.steps} places, expected at most {NUMBERS} in all. Take a lower "
                "order, shorter sequences, or smoothing: kneser-ney"
            )
        first, last = (looked_up(self._states, shorter[:, end])[0] for end in (0, -1))
        self.beginnings = np.bincount(first, minlength=len(self._states)) / len(rows)
        self.ends = (np.bincount(last, minlength=len(self._states)) > 0).astype(float)
        self._sources = looked_up(self._states, self._grams // vocabulary)[0]
        self._targets = looked_up(self._states, self._grams % vocabulary ** (order - 1))[0]
        self._starts = np.searchsorted(self._sources, np.arange(len(self._states) + 1))
        self._fit()

    def _fit(self) -> None:
        plain = np.bincount(self._sources, self.frequencies, len(self._states))
        logs, power = np.log(self.frequencies / plain[self._sources]), 1.0
        dual, step = self._solve(logs)
        for _ in range(ROUNDS):
            if self.error <= WANTED:
                break
            tried, found = self._solve(logs + power * step)
            if tried > dual - ROUNDING * abs(dual) or power <= 1 / self.steps:
                logs, dual, step = logs + power * step, tried, found
                power = min(1.0, 2 * power)
            else:
                power /= 2
        self._solve(logs)
        if self.error > TOLERANCE:
            raise Refusal(
                f"the frequencies of the distribution of order {self.order} differ by up to "
                f"{self.error:.2g} from those of the sequences after {ROUNDS} rounds, expected "
                f"{TOLERANCE:g}. Take a lower order or more sequences"
            )

    def _solve(self, logs: np.ndarray) -> tuple[float, np.ndarray]:
        """D at these log phi, and log f / (the distribution's frequencies)."""
        size, self._logs, self._scales = len(self._states), logs, np.empty(self.steps)
        weights = np.exp(logs)
        moves = csr_array((weights, self._targets, self._starts), shape=(size, size))
        self._after = np.empty((self.steps + 1, size))  # beta, each scaled to a largest of 1
        self._after[-1] = self.ends
        for place in range(self.steps - 1, -1, -1):
            self._after[place] = moves @ self._after[place + 1]
            self._scales[place] = self._after[place].max()
            self._after[place] /= self._scales[place]
        begun = self.beginnings > 0
        before = np.divide(self.beginnings, self._after[0], out=np.zeros(size), where=begun)
        pooled = np.zeros(len(logs))
        for place, scale in enumerate(self._scales):
            before /= scale
            pooled += before[self._sources] * self._after[place + 1][self._targets]
            before = moves.T @ before
        pooled *= weights / self.steps
        self.error = float(np.abs(pooled - self.frequencies).max())
        at_first = self.beginnings[begun] @ np.log(self._after[0][begun])
        dual = self.steps * (self.frequencies @ logs) - at_first - np.log(self._scales).sum()
        return dual, np.log(self.frequencies) - np.log(np.maximum(pooled, 1e-300))

    def draw(self, count: int, length: int, random: np.random.Generator) -> np.ndarray:
        """Sequences (count, L) int64, L that of the rows, drawn exactly."""
        if length != self.length:
            raise ValueError(f"length {length}: expected {self.length}, that of the sequences")
        states = random.choice(len(self._states), count, p=self.beginnings)
        tokens, key = np.empty((count, length), np.int64), self._states[states]
        for place in range(self.order - 2, -1, -1):
            tokens[:, place], key = key % self.vocabulary, key // self.vocabulary
        labels, weights = self._grams % self.vocabulary, np.exp(self._logs)
        uniforms = random.random((count, self.steps))
        graph = self._starts, self._targets, labels, weights, self._after[1:]
        walked(tokens, self.order - 1, states, uniforms, *graph)
        return tokens

    def _log(self, rows: np.ndarray, place: int) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            if place < self.order - 1:
                found = self._begun(rows, place + 1) / self._begun(rows, place)
                return np.where(np.isnan(found), -np.inf, np.log(found))
            step = place + 1 - self.order
            gram = numbered(rows[..., step : place + 1], self.vocabulary, self.order)[..., 0]
            edge, known = looked_up(self._grams, gram)
            found = self._logs[edge] - np.log(self._scales[step])
            found += np.log(self._after[step + 1][self._targets[edge]])
            found -= np.log(self._after[step][self._sources[edge]])
        return np.where(known & ~np.isnan(found), found, -np.inf)

    def _begun(self, rows: np.ndarray, tokens: int) -> np.ndarray:
        """The probability of the first so many tokens of rows, fewer than n."""
        keys, inverse = np.unique(
            self._states // self.vocabulary ** (self.order - 1 - tokens), return_inverse=True
        )
        place, known = looked_up(
            keys, numbered(rows[..., :tokens], self.vocabulary, tokens)[..., 0]
        )
        return np.where(known, np.bincount(inverse, self.beginnings)[place], 0.0)


def fitted(train: Sequences, order: int, smoothing: str) -> Ancestral:
    """The distribution of n-grams of this order, from the training split of a source."""
    if smoothing == "kneser-ney":
        return NGrams(train.tokens, train.vocabulary, order)
    return MaximumEntropy(train.tokens, train.vocabulary, order)


def card(model: Ancestral, clone: np.ndarray, train: Sequences, test: Sequences) -> dict:
    """The card of a clone, tokens (N, L), drawn from `model`, beside the text.

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
    logs = [model.next_token(tokens).mean(axis=1) for tokens in (rows, clone)]
    possible = np.isfinite(logs[0])
    few = max(2, int(LOOKUPS / (rows.shape[1] * model.vocabulary * model.order)))
    loss = dict(
        text=_mean(-logs[0][possible]),
        clone=_mean(-logs[1]),
        masked=_mean(-model.masked(rows[possible][:few]).mean(axis=1)),
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
        error=getattr(model, "error", None),
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
        model = fitted(train, source["order"], source["smoothing"])
    except ValueError as error:
        raise SourceError(f"{source['source']}: {error}", "order") from error
    streams = streams_of(source["seed"], SPLITS)
    drawn = {
        split: model.draw(
            source["sequences"][split], train.length, np.random.default_rng(streams[split])
        )
        for split in SPLITS
    }
    about = {key: source[key] for key in ("order", "smoothing", "seed")}
    about |= dict(source=name, of=source["source"], card=card(model, drawn["test"], train, test))
    log.warning("%s", sentence(about["card"]))
    for split, tokens in drawn.items():
        sequences.write(out[split], tokens, train.vocabulary, {**about, "split": split})


def _mean(values: np.ndarray) -> list[float] | None:
    return mean_and_error(values) if len(values) > 1 else None
