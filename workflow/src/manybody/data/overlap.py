"""A training text beside other sequences: what of them stands in it, counted exactly and in bounded
memory, and how far apart the frequencies of n-grams are.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np

from manybody.data import RUN
from manybody.data.ngrams import looked_up, numbered
from manybody.io.sequences import Sequences

PART = 8  # one token in so many may differ in a near-duplicate
PAIRS = 2**16  # blocks and places in the text that are compared at once
SHARED = 12  # length of a run of tokens that counts as shared
BLOCK = 2**20  # training tokens in memory at once
STREAM = 10**7  # training tokens that frequencies are counted in


def overlap(train: Sequences, blocks: np.ndarray) -> dict:
    """Counts the test blocks, tokens (N, L), that stand in a row anywhere in the training text.

    The training text is the sequences of `train` one after another, as they were cut from it.
    Returns `blocks` (test blocks), `verbatim` (the rows of those that stand there whole), `near`
    (how many do but for at most `changed` tokens, L / `PART`), `run` (`SHARED`, or L where that is
    less) and `runs` (how many share that many tokens in a row).
    Memory: the test blocks and `BLOCK` training tokens.
    """
    run = min(SHARED, blocks.shape[1])
    whole, changed = stand_in(train, blocks), blocks.shape[1] // PART
    parts = np.lib.stride_tricks.sliding_window_view(blocks, run, axis=1)
    shared = stand_in(train, parts.reshape(-1, run)).reshape(parts.shape[:2]).any(axis=1)
    return {
        "blocks": len(blocks),
        "verbatim": np.flatnonzero(whole).tolist(),
        "near": int(stand_in(train, blocks, changed).sum()),
        "changed": changed,
        "run": run,
        "runs": int(shared.sum()),
    }


def repeated(train: np.ndarray, rows: np.ndarray) -> float:
    """The share of `rows` (N, L) that equal a row of `train` (M, L)."""
    both = np.ascontiguousarray(np.concatenate([train, rows]))
    whole = both.view(np.dtype((np.void, both.itemsize * both.shape[1]))).ravel()
    return float(np.isin(whole[len(train) :], whole[: len(train)]).mean())


def shares(path: str | Path, initial: Iterable[int] | None = None) -> dict:
    """Reads the counts of `overlap` in the file `path`, as shares of the test blocks.

    `verbatim`, `near` (but for `changed` tokens), `runs` (of `run` tokens), and `initial`: the
    share of the test blocks with these row numbers that stand whole in the training text, where
    there are any.
    """
    counts = json.loads(Path(path).read_text(encoding="utf-8"))
    found = {
        "verbatim": len(counts["verbatim"]) / counts["blocks"],
        "near": counts["near"] / counts["blocks"],
        "changed": counts["changed"],
        "run": counts["run"],
        "runs": counts["runs"] / counts["blocks"],
    }
    if initial is not None:
        found["initial"] = float(np.isin(list(initial), counts["verbatim"]).mean())
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

    Cut into one part more, such a row has a part as it is in the text: rows and places that share
    one are compared token by token, so that the count is exact.
    """
    width = wanted.shape[1]
    rows, inverse = np.unique(wanted, axis=0, return_inverse=True)
    found, edges = np.zeros(len(rows), bool), np.linspace(0, width, changed + 2).astype(int)
    for tokens in _stretches(train, width):
        windows = np.lib.stride_tricks.sliding_window_view(tokens, width)
        for low, high in pairwise(edges):
            left = np.flatnonzero(~found)
            hashes = _hashes(rows[left, low:high], high - low)[:, 0]
            left, ordered = left[np.argsort(hashes)], np.sort(hashes)
            hashed = _hashes(tokens[None, low : len(tokens) - width + high], high - low)[0]
            at = np.flatnonzero(np.isin(hashed, ordered))
            place, end = (np.searchsorted(ordered, hashed[at], side) for side in ("left", "right"))
            while len(at):
                for part in np.array_split(np.arange(len(at)), -(-len(at) // PAIRS)):
                    mine = left[place[part]]
                    found[mine[(windows[at[part]] != rows[mine]).sum(axis=1) <= changed]] = True
                more = place + 1 < end
                at, place, end = at[more], place[more] + 1, end[more]
    return found[inverse.reshape(-1)]


def _hashes(tokens: np.ndarray, width: int) -> np.ndarray:
    """A polynomial modulo 2^64 of each `width` tokens in a row of each row."""
    count = tokens.shape[1] - width + 1
    hashed = np.zeros((len(tokens), count), np.uint64)
    for start in range(width):
        hashed *= np.uint64(6364136223846793005)
        hashed += tokens[:, start : start + count].astype(np.uint64) + np.uint64(1)
    return hashed


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
        """Total variation between the n-grams of tokens (N, L) and of the text, each pooled over
        places within sequences; of the text's first `STREAM` tokens."""
        if order not in self._counts:
            rows = self._train[: max(1, STREAM // self._train.length)]
            self._counts[order] = np.unique(
                numbered(rows, self.vocabulary, order), return_counts=True
            )
        known, counts = self._counts[order]
        grams, found = np.unique(numbered(tokens, self.vocabulary, order), return_counts=True)
        place, there = looked_up(known, grams)
        of_text = np.where(there, counts[place], 0) / counts.sum()
        return float(np.maximum(found / found.sum() - of_text, 0).sum())

    def copied(self, sets: Sequence[np.ndarray]) -> list[float | None]:
        """The share of runs of `RUN` tokens of each of `sets`, tokens (N, L), that stand in the
        text; None for shorter sequences. The text is read once for all."""
        runs = [
            np.lib.stride_tricks.sliding_window_view(tokens, RUN, axis=1).reshape(-1, RUN)
            for tokens in sets
            if tokens.shape[1] >= RUN
        ]
        if not runs:
            return [None] * len(sets)
        there = stand_in(self._train, np.concatenate(runs))
        ends = np.cumsum([len(part) for part in runs])[:-1]
        shares = iter(float(part.mean()) for part in np.split(there, ends))
        return [next(shares) if tokens.shape[1] >= RUN else None for tokens in sets]
