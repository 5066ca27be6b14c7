"""A pair model of a family by maximum pseudo-likelihood with L2, as GREMLIN and plmc have it.

    objective = -sum_n w_n sum_i log P(s_i | others) + c_J sum_{i<j} |J_ij|^2 + c_h sum_i |h_i|^2

J is symmetric: a pair has one block, which both its conditionals use. The objective is convex.
docs/science/potts.md, section 5, has what each of its parts is worth.
"""

import math
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

import numpy as np

from manybody.data.pair_model import PairModel, of_pairs
from manybody.data.vector_loops import LANES
from manybody.io.progress import Progress
from manybody.training import pair_fit_loops as loops
from manybody.training.descent import each, minimise

STRENGTH = 0.01  # c_h; c_J is this times (L - 1)(q - 1), or times the weighted number of sequences
SCALES = ("gremlin", "plmdca")
ITERATIONS = 100
TOLERANCE = 1e-7  # share of the objective that an iteration must bring
HISTORY, LEAST_HISTORY = 5, 2  # steps that L-BFGS remembers
MOST = 8 * 2**30  # bytes of all its vectors above which it remembers the fewer
LONGEST = 8  # sites of a word


class Words(NamedTuple):
    """Sequences as words of k neighbouring sites, as `pair_fit_loops.conditional` takes them."""

    offsets: np.ndarray
    rows: np.ndarray
    colours: np.ndarray
    places: np.ndarray
    common: np.ndarray


class Family:
    """Sequences (N, L) of `vocabulary` colours, whose gap, if any, is neither input nor target.

    The U unique sequences have `weights` (U,) and colours `own` (L, U), from 0 without the gap,
    which is -1; `vocabulary` is the number q of those colours. `means` (L, q) are the weighted
    shares of all sequences, `frequencies` (L, q) of those without a gap there, `present` (L,) their
    weights.
    """

    def __init__(self, tokens, vocabulary: int, weights=None, gap: int | None = None):
        tokens = np.asarray(tokens)
        weights = np.asarray(np.ones(len(tokens)) if weights is None else weights, np.float64)
        if tokens.ndim != 2 or not tokens.size or tokens.min() < 0 or tokens.max() >= vocabulary:
            raise ValueError(
                f"tokens: shape {tokens.shape}, expected (N, L) numbers from 0 to {vocabulary - 1}"
            )
        if weights.shape != tokens.shape[:1] or not (weights >= 0).all() or not weights.any():
            raise ValueError(
                f"weights: shape {weights.shape}, expected {tokens.shape[:1]}, none below 0 and "
                "not all 0"
            )
        unique, place = np.unique(tokens.astype(np.int32), axis=0, return_inverse=True)
        self.weights = np.bincount(place.reshape(-1), weights, len(unique))
        self.length, self.vocabulary, self.gap = tokens.shape[1], vocabulary, gap
        if gap is not None:
            self.vocabulary -= 1
            unique = np.where(unique == gap, -1, unique - (unique > gap)).astype(np.int32)
        self.own = np.ascontiguousarray(unique.T)
        counts = [
            np.bincount(own[own >= 0], self.weights[own >= 0], self.vocabulary) for own in self.own
        ]
        self.present = np.sum(counts, axis=1)
        self.means = np.array(counts) / self.weights.sum()
        self.frequencies = np.array(counts) / np.maximum(self.present, 1e-300)[:, None]
        self.words = _words(unique, self.vocabulary)


def _words(unique: np.ndarray, vocabulary: int) -> Words:
    """Words of the length that costs least: longer ones are fewer, but of more kinds."""
    best, least = None, math.inf
    for size in range(1, LONGEST + 1):
        if (vocabulary + 1) ** size >= 2**62:
            break
        count, length = unique.shape
        groups = -(-length // size)
        digits = np.zeros((count, groups * size), np.int64)
        digits[:, :length] = unique + 1
        scale = (vocabulary + 1) ** np.arange(size)
        codes = digits.reshape(count, groups, size) @ scale
        found = [np.unique(part, return_inverse=True, return_counts=True) for part in codes.T]
        sizes = [len(values) for values, _, _ in found]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        common = starts[:-1] + [counts.argmax() for _, _, counts in found]
        numbers = np.stack([inverse for _, inverse, _ in found], axis=1) + starts[:-1]
        visited = numbers != common
        cost = _cost(visited.sum(), starts[-1], size)
        if cost >= least:
            break
        values = np.concatenate([values for values, _, _ in found])
        colours = (values[:, None] // scale % (vocabulary + 1) - 1).astype(np.int32)
        offsets = np.concatenate([[0], visited.sum(axis=1).cumsum()])
        places = np.repeat(np.arange(groups), sizes)
        best = Words(offsets, numbers[visited].astype(np.int32), colours, places, common)
        least = cost
    return best


def _cost(visits: int, rows: int, size: int) -> int:
    """Rows read and written for a site: a visit reads one and later adds to it; a row of the table
    is made of those of its sites and later added to theirs."""
    return 2 * visits + (2 * size + 6) * rows


class Pairs:
    """A vector of the couplings of the pairs i < j, a of i and then b of j, and of the logits h_i +
    sum_j J_ij m_j of the mean sequence m (`Family.means`).

    Other sites count from their means so that a coupling does not do a field's work: the descent
    takes a fifth of the steps.
    """

    def __init__(self, family: Family):
        self.family = family
        self.length, self.vocabulary = family.length, family.vocabulary
        self.couplings = self.length * (self.length - 1) // 2 * self.vocabulary**2
        self.size = self.couplings + self.length * self.vocabulary

    def start(self, kind: type = np.float32) -> np.ndarray:
        """No couplings, and the logits of frequencies with one more sequence of each colour."""
        vector, family = np.zeros(self.size, kind), self.family
        logits = np.log(family.frequencies * family.present[:, None] + 1)
        self.logits(vector)[:] = logits - logits.mean(axis=1, keepdims=True)
        return vector

    def scale(self, strengths: tuple[float, float], kind: type = np.float32) -> np.ndarray:
        """Inverse second derivatives of each number alone, if sites do not interact."""
        shares, present = self.family.frequencies, self.family.present[:, None]
        varied = shares * (1 - shares)
        found = np.empty(self.size, kind)
        blocks = found[: self.couplings].reshape(-1, self.vocabulary, self.vocabulary)
        start = 0
        for site in range(self.length):
            others = np.sqrt(present[site] * present[site + 1 :])[:, :, None]
            block = 2 * varied[site][:, None] * varied[site + 1 :, None]
            stop = start + len(block)
            blocks[start:stop] = 1 / (others * block + 2 * strengths[0])
            start = stop
        self.logits(found)[:] = 1 / (present * varied + 2 * strengths[1])
        return found

    def logits(self, vector: np.ndarray) -> np.ndarray:
        """Those of the mean sequence (L, q), a view."""
        return vector[self.couplings :].reshape(self.length, self.vocabulary)

    def take(self, vector: np.ndarray, site: int, couplings: np.ndarray) -> None:
        """couplings (L q, at least q), [j, b, a]: what colour b of j adds to colour a of `site`."""
        loops.take(vector, site, self.length, self.vocabulary, couplings)

    def give(self, couplings: np.ndarray, logits: np.ndarray, site: int, gradient: np.ndarray):
        """Adds the gradients of one site, as `take` has them, to those of the vector."""
        loops.give(couplings, logits, site, self.length, self.vocabulary, gradient)


class Objective:
    """The objective of a vector of `form`, with its gradient, by so many threads.

    `strengths` are c_J and c_h. `loss` is that of the last vector without the penalty, in nats, and
    `passes` how many there were.
    """

    def __init__(self, form: Pairs, strengths: tuple[float, float], threads: int = 1):
        self.form, self.strengths, self.threads = form, strengths, threads
        self.loss, self.passes = math.nan, 0

    def __call__(self, vector: np.ndarray, gradient: np.ndarray) -> float:
        form, family, lock, kind = self.form, self.form.family, Lock(), vector.dtype
        rows, words = family.length * family.vocabulary, family.words
        width, means = -(-family.vocabulary // LANES), family.means.astype(kind).ravel()
        parts, logits = np.empty((family.length, 2)), form.logits(vector)
        gradient[:] = 0

        def run(first: int) -> None:
            couplings, of_couplings = np.zeros((2, rows, width, LANES), kind)
            tables = np.empty((2, len(words.places), width, LANES), kind)
            of_logits = np.empty(family.vocabulary, kind)
            for site in range(first, family.length, self.threads):
                form.take(vector, site, couplings.reshape(rows, -1))
                parts[site] = loops.conditional(
                    family.own[site], family.weights, *words, couplings, means, logits[site],
                    self.strengths, of_couplings, of_logits, *tables,
                )  # fmt: skip
                # Two sites add to a block of the gradient: one after the other, in any order.
                with lock:
                    form.give(of_couplings.reshape(rows, -1), of_logits, site, gradient)

        each(self.threads, run, range(self.threads))
        self.loss, penalty = parts.sum(axis=0).tolist()
        self.passes += 1
        return self.loss + penalty


@dataclass
class Fit:
    """A fitted model, the objective and the loss there (nats), and what it took."""

    model: PairModel
    objective: float
    loss: float
    iterations: int
    passes: int


def fit(
    tokens: np.ndarray,
    vocabulary: int,
    weights: np.ndarray | None = None,
    *,
    gap: int | None = None,
    scale: str = "gremlin",
    threads: int = 1,
    iterations: int = ITERATIONS,
    label: str = "",
) -> PairModel:
    """The pair model of tokens (N, L), `weights` (N,) their weights, all ones if None.

    `gap` is the number of a colour that is neither input nor target: it adds nothing to the logits
    of other sites, and a site that has it does not count. By default there is none, so that gaps
    count like residues; leave them out of the norm (`PairModel.norms`). The contacts of real
    families come out better so.
    With the scale "gremlin" c_J is .01 (L - 1)(q - 1), as of GREMLIN and plmc, with "plmdca" .01
    times the sum of the weights; q does not count the gap. Progress is shown under `label`, if one
    is given. `ValueError` for tokens, weights or a scale that do not fit.
    """
    family = Family(tokens, vocabulary, weights, gap)
    strengths = (penalty(family, scale), STRENGTH)
    return solve(family, strengths, threads, iterations, label=label).model


def penalty(family: Family, scale: str = "gremlin") -> float:
    """c_J by its name, see `fit`."""
    if scale not in SCALES:
        raise ValueError(f"scale: found {scale!r}, expected {' or '.join(SCALES)}")
    if scale == "plmdca":
        return STRENGTH * float(family.weights.sum())
    return STRENGTH * (family.length - 1) * (family.vocabulary - 1)


def solve(
    family: Family,
    strengths: tuple[float, float],
    threads: int = 1,
    iterations: int = ITERATIONS,
    *,
    tolerance: float = TOLERANCE,
    kind: type = np.float32,
    label: str = "",
) -> Fit:
    """The least objective of a family with these c_J and c_h, see `fit`; numbers are of `kind`."""
    form = Pairs(family)
    objective, vector = Objective(form, strengths, threads), form.start(kind)
    history = HISTORY if _bytes(form.size, HISTORY) <= MOST else LEAST_HISTORY
    with Progress(iterations, "iterations", label) as progress:
        value, done = minimise(
            objective, vector, form.scale(strengths, kind), iterations,
            history=history, tolerance=tolerance, threads=threads,
            callback=(lambda value: progress.update(1, objective=value)) if label else None,
        )  # fmt: skip
    return Fit(_model(form, vector), value, objective.loss, done, objective.passes)


def memory(length: int, vocabulary: int) -> int:
    """Bytes that a fit takes at most, of `vocabulary` colours of which all count."""
    size = length * (length - 1) // 2 * vocabulary**2
    history = HISTORY if _bytes(size, HISTORY) <= MOST else LEAST_HISTORY
    return _bytes(size, history)


def _bytes(size: int, history: int) -> int:
    """Bytes of the vectors of L-BFGS: numbers, gradient, scale, and two a step."""
    return 4 * size * (3 + 2 * (history + 1))


def _model(form: Pairs, vector: np.ndarray) -> PairModel:
    """The pair model of a vector. A gap that did not count has no couplings, and the field with
    which it were as frequent as in the family if sites did not interact."""
    family, size = form.family, form.vocabulary
    couplings = of_pairs(vector[: form.couplings].reshape(-1, size, size), form.length)
    means = family.means.astype(vector.dtype)
    fields = form.logits(vector) - np.einsum("ijab,jb->ia", couplings, means)
    if family.gap is not None:
        gaps, logits = family.weights.sum() - family.present, form.logits(vector)
        own = np.log((gaps + 0.5) / (family.present + 0.5)) + np.log(np.exp(logits).sum(axis=1))
        own -= np.einsum("ijab,ia,jb->i", couplings, family.frequencies, means)
        fields = np.insert(fields, family.gap, own, axis=1)
        couplings = np.insert(np.insert(couplings, family.gap, 0, axis=2), family.gap, 0, axis=3)
    return PairModel(fields, couplings, {})
