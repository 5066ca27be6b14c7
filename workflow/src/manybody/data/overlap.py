"""What of other sequences stands in a training text, counted exactly and in bounded memory, and
how far apart the frequencies of n-grams are.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from manybody.data import RUN
from manybody.data.ngrams import looked_up, numbered
from manybody.io.atomic import read_json
from manybody.io.sequences import Sequences

PART = 8  # one token in so many may differ in a near-duplicate
PAIRS = 2**16  # blocks and places in the text that are compared at once
HASHED = 6364136223846793005  # in place of |V|, numbers of long runs are hashes, modulo 2^64
SHARED = 12  # length of a run of tokens that counts as shared
BLOCK = 2**20  # training tokens in memory at once
STREAM = 10**7  # training tokens that frequencies are counted in


def overlap(train: Sequences, blocks: np.ndarray) -> dict:
    """Counts the test blocks, tokens (N, L), that stand in a row anywhere in the training text.

    The training text is the sequences of `train` in a row, as they were cut from it. Returns
    `blocks` (N), `verbatim` (rows that stand there whole), `near` (how many do but for at most
    `changed` tokens, L / `PART`), `run` (`SHARED`, or L where that is less) and `runs` (how many
    share that many tokens in a row). Memory: the test blocks and `BLOCK` training tokens.
    """
    count, length = blocks.shape
    run, changed = min(SHARED, length), length // PART
    parts = sliding_window_view(blocks, run, axis=1).reshape(count * (length - run + 1), run)
    shared = stand_in(train, parts).reshape(count, length - run + 1).any(axis=1)
    return {
        "blocks": count,
        "verbatim": np.flatnonzero(stand_in(train, blocks)).tolist(),
        "near": int(stand_in(train, blocks, changed).sum()),
        "changed": changed,
        "run": run,
        "runs": int(shared.sum()),
    }


def repeated(train: np.ndarray, rows: np.ndarray) -> float:
    """The share of `rows` (N, L) that equal a row of `train` (M, L)."""
    both = np.ascontiguousarray(np.concatenate([train, rows]))
    whole = both.view(f"V{both[0].nbytes}").ravel()
    return float(np.isin(whole[len(train) :], whole[: len(train)]).mean())


def shares(path: str | Path, initial: Iterable[int] | None = None) -> dict:
    """Reads the counts of `overlap` in the file `path`, as shares of the test blocks: `verbatim`,
    `near` (but for `changed` tokens) and `runs` (of `run` tokens). `initial`, where it is given:
    the share of the blocks with these row numbers that stand whole in the training text.
    """
    found = read_json(path)
    blocks, rows = found.pop("blocks"), found["verbatim"]
    found |= {key: found[key] / blocks for key in ("near", "runs")}
    found["verbatim"] = len(rows) / blocks
    if initial is not None:
        found["initial"] = float(np.isin(list(initial), rows).mean())
    return found


def sentence(shares: dict) -> str:
    """The result of `shares` as a sentence."""
    text = (
        f"Of the test blocks {shares['verbatim']:.2%} stand verbatim in the training text, "
        f"{shares['near']:.2%} but for at most {shares['changed']} tokens, "
        f"{shares['runs']:.2%} share {shares['run']} tokens in a row with it"
    )
    if "initial" in shares:
        text += f"; of the chains' starts {shares['initial']:.2%} stand there whole"
    return f"{text}."


def stand_in(train: Sequences, wanted: np.ndarray, changed: int = 0) -> np.ndarray:
    """True for rows of `wanted` (n, w) that are w tokens in a row of the training text, but for at
    most `changed` of them: (n,).

    Cut into `changed` + 1 parts, such a row has one as it is in the text: rows and places that
    share a part are compared token by token, so that the count is exact.
    """
    width = wanted.shape[1]
    rows, inverse = np.unique(wanted, axis=0, return_inverse=True)
    found = np.zeros(len(rows), bool)
    edges = np.linspace(0, width, changed + 2).astype(int)
    for tokens in _stretches(train, width):
        windows = sliding_window_view(tokens, width)
        for low, high in pairwise(edges):
            left = np.flatnonzero(~found)
            hashes = numbered(rows[left, low:high], HASHED, high - low)[:, 0]
            left, ordered = left[np.argsort(hashes)], np.sort(hashes)
            hashed = numbered(tokens[low : len(tokens) - width + high], HASHED, high - low)
            at = np.flatnonzero(np.isin(hashed, ordered))
            place, end = (np.searchsorted(ordered, hashed[at], side) for side in ("left", "right"))
            while len(at):
                for part in np.array_split(np.arange(len(at)), -(-len(at) // PAIRS)):
                    mine = left[place[part]]
                    found[mine[(windows[at[part]] != rows[mine]).sum(axis=1) <= changed]] = True
                more = place + 1 < end
                at, place, end = at[more], place[more] + 1, end[more]
    return found[inverse.reshape(-1)]


def _stretches(train: Sequences, width: int) -> Iterator[np.ndarray]:
    """The training tokens, in stretches that overlap by width - 1 tokens."""
    rows = max(1, BLOCK // train.length)
    rest = np.empty(0, np.int64)
    for start in range(0, len(train), rows):
        tokens = np.concatenate([rest, train[start : start + rows].reshape(-1)])
        if len(tokens) >= width:
            yield tokens
        rest = tokens[max(len(tokens) - width + 1, 0) :]


class Text:
    """A training text, to which others are compared."""

    def __init__(self, train: Sequences):
        self._train, self.vocabulary = train, train.vocabulary
        self._counts: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def distance(self, tokens: np.ndarray, order: int) -> float:
        """Total variation between the n-grams of tokens (N, L) and of the text's first `STREAM`
        tokens, each pooled over places within sequences."""
        if order not in self._counts:
            rows = self._train[: max(1, STREAM // self._train.length)]
            grams = numbered(rows, self.vocabulary, order)
            self._counts[order] = np.unique(grams, return_counts=True)
        known, counts = self._counts[order]
        grams, found = np.unique(numbered(tokens, self.vocabulary, order), return_counts=True)
        place, there = looked_up(known, grams)
        of_text = np.where(there, counts[place], 0) / counts.sum()
        return float(np.maximum(found / found.sum() - of_text, 0).sum())

    def copied(self, sets: Sequence[np.ndarray]) -> list[float | None]:
        """The share of runs of `RUN` tokens of each of `sets`, tokens (N, L) of one L, that stand
        in the text; None where L is less. The text is read once for all."""
        if sets[0].shape[1] < RUN:
            return [None] * len(sets)
        runs = [sliding_window_view(tokens, RUN, axis=1).reshape(-1, RUN) for tokens in sets]
        there = stand_in(self._train, np.concatenate(runs))
        ends = np.cumsum([len(part) for part in runs])[:-1]
        return [float(part.mean()) for part in np.split(there, ends)]
