"""How like a training text other sequences are: frequencies of n-grams, and what is copied."""

from collections.abc import Sequence

import numpy as np

from manybody.data import RUN
from manybody.data.ngrams import counted, looked_up, numbered
from manybody.data.overlap import stand_in
from manybody.io.sequences import Sequences

STREAM = 10**7  # training tokens that frequencies are counted in


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
            self._counts[order] = counted(numbered(rows, self.vocabulary, order).ravel())
        known, counts = self._counts[order]
        grams, found = counted(numbered(tokens, self.vocabulary, order).ravel())
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
