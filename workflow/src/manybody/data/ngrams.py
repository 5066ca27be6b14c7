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
LOOKUPS = 10**7  # windows that the losses of masked tokens may take


class KneserNey:
    """p(w | the n - 1 tokens before it), from sequences (N, L) or a text (T,) of tokens below
    `vocabulary`. No run of tokens goes from one sequence into the next."""

    def __init__(self, text: np.ndarray, vocabulary: int, order: int):
        if order < 1 or float(vocabulary) ** order >= 2**63:
            raise ValueError(
                f"order {order} with |V| = {vocabulary}: expected an order of at least 1 with "
                "|V|^order < 2^63"
            )
        length = text.shape[-1]
        if length < order:
            raise ValueError(f"a text of {length} tokens in a row has no run of {order} tokens")
        self.vocabulary, self.order = vocabulary, order
        # Counted below the order too, since unique values alone take ten times longer.
        lengths = range(min(2, order), order + 1)
        counted = [np.unique(numbered(text, vocabulary, k), return_counts=True) for k in lengths]
        # Of each k-gram, how many different (k + 1)-grams end with it.
        endings = [
            np.unique(grams % vocabulary**k, return_counts=True)
            for k, (grams, _) in zip(range(1, order), counted, strict=False)
        ]
        self._levels = [_Level(*found, vocabulary) for found in (*endings, counted[-1])]

    def probability(self, windows: np.ndarray) -> np.ndarray:
        """p of the last token of each row of `windows` (..., n), given those before it: (...)."""
        found = np.full(windows.shape[:-1], 1 / self.vocabulary)
        for k, level in enumerate(self._levels, start=1):
            keys = numbered(windows[..., -k:], self.vocabulary, k)[..., 0]
            found = level.interpolated(keys, found)
        return found


class _Level:
    """Counts of k-grams, as sorted keys, and of their contexts."""

    def __init__(self, grams: np.ndarray, counts: np.ndarray, vocabulary: int):
        self._vocabulary = vocabulary
        once, twice = (int((counts == number).sum()) for number in (1, 2))
        self._discount = once / (once + 2 * twice) if once else 0.5
        sums = np.cumulative_sum(counts, include_initial=True)
        contexts, starts = np.unique(grams // vocabulary, return_index=True)
        self._arrays = grams, sums, contexts, np.append(starts, len(grams))

    def interpolated(self, keys: np.ndarray, lower: np.ndarray) -> np.ndarray:
        """p_k from p_{k-1}, for k-grams by their keys."""
        grams, sums, contexts, starts = self._arrays
        place, known = looked_up(grams, keys)
        count = np.where(known, sums[place + 1] - sums[place], 0)
        place, known = looked_up(contexts, keys // self._vocabulary)
        low, high = starts[place], starts[place + 1]
        total = sums[high] - sums[low]
        own = np.maximum(count - self._discount, 0) + self._discount * (high - low) * lower
        return np.where(known, own / total, lower)


def numbered(tokens: np.ndarray, vocabulary: int, order: int) -> np.ndarray:
    """One number for each run of `order` tokens, of which the first counts most.

    tokens: (..., T). Returns (..., T - order + 1).
    """
    count = tokens.shape[-1] - order + 1
    keys = np.zeros((*tokens.shape[:-1], count), np.int64)
    for place in range(order):
        keys *= vocabulary
        keys += tokens[..., place : place + count]
    return keys


def looked_up(ordered: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The place of each key among sorted ones, and whether it is there."""
    place = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return place, ordered[place] == keys


class NGrams:
    """Sequences of L tokens, each given the n - 1 before it, or all if fewer, by Kneser-Ney.

    A token with m < n - 1 tokens before it has p of the model of order m + 1, with counts of its
    own, so that the probabilities of all sequences of L tokens sum to 1.
    """

    def __init__(self, text: np.ndarray, vocabulary: int, order: int):
        self.vocabulary, self.order = vocabulary, order
        self._models = [KneserNey(text, vocabulary, k) for k in range(1, order + 1)]

    def next_token(self, rows: np.ndarray) -> np.ndarray:
        """log p of each token given those before it in its row, in nats: (N, L) to (N, L)."""
        return np.stack([self._log(rows, place) for place in range(rows.shape[1])], axis=1)

    def masked(self, rows: np.ndarray) -> np.ndarray:
        """log p of each token given all others of its row, in nats: (N, L) to (N, L)."""
        length = rows.shape[1]
        found = np.empty(rows.shape)
        step = max(1, COPIES // (self.vocabulary * self.order))
        for first in range(0, len(rows), step):
            part = rows[first : first + step].astype(np.int64)
            for place in range(length):
                copies = np.repeat(part[:, None], self.vocabulary, axis=1)
                copies[..., place] = np.arange(self.vocabulary)
                last = min(place + self.order, length)
                scores = sum(self._log(copies, later) for later in range(place, last))
                scores -= np.logaddexp.reduce(scores, axis=1, keepdims=True)
                found[first : first + step, place] = scores[np.arange(len(part)), part[:, place]]
        return found

    def _log(self, rows: np.ndarray, place: int) -> np.ndarray:
        """log p of the tokens at a place of rows (..., L), given those before them: (...)."""
        model = self._models[min(place, self.order - 1)]
        return np.log(model.probability(rows[..., place + 1 - model.order : place + 1]))
