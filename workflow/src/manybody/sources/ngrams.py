"""n-grams by interpolated Kneser-Ney (Chen and Goodman 1999, section 2.7 and equation 27).

Of the orders k = 1 ... n, each with its own discount D_k, and p_0 = 1 / |V|:

    p_k(w | h) = max(c(h w) - D_k, 0) / c(h .) + D_k N(h .) / c(h .) * p_{k-1}(w | h')

h are the k - 1 tokens before w, h' is h without its first, c(h .) the sum of c(h w) over w and
N(h .) the number of w with c(h w) > 0; p_k = p_{k-1} where c(h .) = 0. For k = n, c counts
occurrences; below it is the number of tokens that were seen before (h w). With n_1 and n_2 the
numbers of k-grams with c = 1 and c = 2, D_k = n_1 / (n_1 + 2 n_2), and 1/2 where n_1 = 0.
"""

import numpy as np

COPIES = 2**22  # windows looked up at once


class KneserNey:
    """p(w | the n - 1 tokens before it), from a text `stream` (T,) of tokens below `vocabulary`."""

    def __init__(self, stream: np.ndarray, vocabulary: int, order: int):
        if order < 1 or float(vocabulary) ** order >= 2**63:
            raise ValueError(
                f"order {order} with |V| = {vocabulary}: expected an order of at least 1 with "
                "|V|^order < 2^63"
            )
        if len(stream) < order:
            raise ValueError(f"a text of {len(stream)} tokens has no run of {order} tokens")
        self.vocabulary, self.order = vocabulary, order
        windows = np.lib.stride_tricks.sliding_window_view(np.asarray(stream, np.int64), order)
        grams, counts = np.unique(_keys(windows, vocabulary), return_counts=True)
        levels = [_Level(grams, counts, vocabulary)]
        for k in range(order - 1, 0, -1):
            # Of each k-gram, how many different (k + 1)-grams end with it.
            if k < order - 1:
                shorter = np.lib.stride_tricks.sliding_window_view(np.asarray(stream), k + 1)
                grams = np.unique(_keys(shorter.astype(np.int64), vocabulary))
            ends, counts = np.unique(grams % vocabulary**k, return_counts=True)
            levels.append(_Level(ends, counts, vocabulary))
        self._levels = levels[::-1]

    def probability(self, windows: np.ndarray) -> np.ndarray:
        """p of the last token of each row of `windows` (..., n), given those before it: (...)."""
        windows = np.asarray(windows, np.int64)
        found = np.full(windows.shape[:-1], 1 / self.vocabulary)
        for k, level in enumerate(self._levels, start=1):
            found = level.interpolated(_keys(windows[..., -k:], self.vocabulary), found)
        return found


class _Level:
    """Counts of k-grams, as sorted keys, and of their contexts."""

    def __init__(self, grams: np.ndarray, counts: np.ndarray, vocabulary: int):
        self._grams, self._counts, self._vocabulary = grams, counts, vocabulary
        once, twice = (int((counts == number).sum()) for number in (1, 2))
        self.discount = once / (once + 2 * twice) if once else 0.5
        self._contexts, start = np.unique(grams // vocabulary, return_index=True)
        self._totals = np.add.reduceat(counts, start)
        self._types = np.diff(np.append(start, len(grams)))

    def interpolated(self, grams: np.ndarray, lower: np.ndarray) -> np.ndarray:
        """p_k from p_{k-1}, for k-grams by their keys."""
        count = _looked_up(self._grams, self._counts, grams)
        context = grams // self._vocabulary
        total = _looked_up(self._contexts, self._totals, context)
        types = _looked_up(self._contexts, self._types, context)
        own = np.maximum(count - self.discount, 0) + self.discount * types * lower
        return np.where(total > 0, own / np.maximum(total, 1), lower)


def _keys(windows: np.ndarray, vocabulary: int) -> np.ndarray:
    """One number for each row of tokens; the first token counts most."""
    keys = np.zeros(windows.shape[:-1], np.int64)
    for place in range(windows.shape[-1]):
        keys = keys * vocabulary + windows[..., place]
    return keys


def _looked_up(known: np.ndarray, values: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """The value of each key, 0 where it is not `known` (sorted)."""
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[place] == keys, values[place], 0)


class NGrams:
    """Sequences of L tokens, each token given the n - 1 before it in its sequence, or all if fewer.

    A token with m < n - 1 tokens before it has p of the model of order m + 1, with counts of its
    own, so that the probabilities of all sequences of L tokens sum to 1.
    """

    def __init__(self, stream: np.ndarray, vocabulary: int, order: int):
        self.vocabulary, self.order = vocabulary, order
        self._models = [KneserNey(stream, vocabulary, k) for k in range(1, order + 1)]

    def next_token(self, rows: np.ndarray) -> np.ndarray:
        """log p of each token given those before it in its row, in nats: (N, L) to (N, L)."""
        length = rows.shape[1]
        found = [self._log(rows, place) for place in range(length)]
        return np.stack(found, axis=1)

    def masked(self, rows: np.ndarray) -> np.ndarray:
        """log p of each token given all others of its row, in nats: (N, L) to (N, L)."""
        count, length = rows.shape
        found = np.empty(rows.shape)
        step = max(1, COPIES // (self.vocabulary * self.order))
        for first in range(0, count, step):
            part = rows[first : first + step].astype(np.int64)
            for place in range(length):
                copies = np.repeat(part[:, None], self.vocabulary, axis=1)
                copies[..., place] = np.arange(self.vocabulary)
                last = min(place + self.order, length)
                scores = sum(self._log(copies, later) for later in range(place, last))
                scores -= np.logaddexp.reduce(scores, axis=1, keepdims=True)
                own = scores[np.arange(len(part)), part[:, place]]
                found[first : first + step, place] = own
        return found

    def _log(self, rows: np.ndarray, place: int) -> np.ndarray:
        """log p of the tokens at `place` of rows (..., L), given those before them: (...)."""
        model = self._models[min(place, self.order - 1)]
        return np.log(model.probability(rows[..., place + 1 - model.order : place + 1]))
