"""A pair model of a family by maximum pseudo-likelihood with L2, as GREMLIN and plmc have it.

    objective = -sum_n w_n sum_i log P(s_i | others) + c_J sum_{i<j} |J_ij|^2 + c_h sum_i |h_i|^2

J is symmetric: a pair has one block, which both its conditionals use. The objective is convex.
docs/science/potts.md, section 5, has what each of its parts is worth.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

import numpy as np

from manybody.data.pair_model import PairModel, of_pairs
from manybody.data.vector_loops import LANES
from manybody.io.compiled import each
from manybody.io.progress import Progress
from manybody.training import pair_fit_loops as loops
from manybody.training.descent import minimise

STRENGTH = 0.01  # c_h; c_J is this times (L - 1)(q - 1), or times the weighted number of sequences
SCALES = ("gremlin", "plmdca")
ITERATIONS = 100
TOLERANCE = 1e-7  # share of the objective that an iteration must bring
HISTORY, LEAST_HISTORY = 5, 2  # steps that L-BFGS remembers
MOST = 8 * 2**30  # bytes of all its vectors above which it remembers the fewer
LONGEST = 8  # sites of a word
CACHE = 2**20  # bytes of a core's own cache, of the usual size
START = 3  # iterations of full couplings that heads start from


class Words(NamedTuple):
    """Sequences as words of k neighbouring sites, as `pair_fit_loops.conditional` takes them."""

    offsets: np.ndarray
    rows: np.ndarray
    colours: np.ndarray
    places: np.ndarray
    common: np.ndarray


class Family:
    """Sequences (N, L) of `vocabulary` colours, whose gap, if any, is neither input nor target.

    The U unique sequences have `weights` (U,) and q colours `own` (L, U), without the gap, which is
    -1. `means` (L, q) are the weighted shares of all sequences, `frequencies` (L, q) of those
    without a gap there, `varied` their variances, `present` (L,) their weights.
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
                f"sequence_weights: shape {weights.shape}, expected {tokens.shape[:1]}, none below "
                "0 and not all 0"
            )
        unique, place = np.unique(tokens.astype(np.int32), axis=0, return_inverse=True)
        self.weights = np.bincount(place.reshape(-1), weights, len(unique))
        self.length, self.vocabulary, self.gap = tokens.shape[1], vocabulary, gap
        if gap is not None:
            self.vocabulary -= 1
            unique = np.where(unique == gap, -1, unique - (unique > gap)).astype(np.int32)
        self.own = np.ascontiguousarray(unique.T)
        counts = counted(self.own, self.weights, self.vocabulary)
        self.present = counts.sum(axis=1)
        self.means = counts / self.weights.sum()
        self.frequencies = counts / np.maximum(self.present, 1e-300)[:, None]
        self.varied = self.frequencies * (1 - self.frequencies)
        self.words = _words(unique, self.vocabulary)


def counted(own: np.ndarray, weights: np.ndarray, vocabulary: int) -> np.ndarray:
    """Weights (L, q) of the colours own (L, N) of each site, of which -1 does not count."""
    return np.array([np.bincount(site + 1, weights, vocabulary + 1)[1:] for site in own])


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
        values, inverses, counts = zip(*found, strict=True)
        sizes = list(map(len, values))
        starts = np.cumsum([0, *sizes])
        common = starts[:-1] + list(map(np.argmax, counts))
        numbers = np.stack(inverses, axis=1) + starts[:-1]
        visited = numbers != common
        cost = _cost(visited.sum() * _slowdown(starts[-1], vocabulary), starts[-1], size)
        if cost >= least:
            break
        digits = np.concatenate(values)[:, None] // scale % (vocabulary + 1)
        colours = (digits - 1).astype(np.int32)
        offsets = np.concatenate([[0], visited.sum(axis=1).cumsum()])
        places = np.repeat(np.arange(groups), sizes)
        best = Words(offsets, numbers[visited].astype(np.int32), colours, places, common)
        least = cost
    return best


def _cost(visits: float, rows: int, size: int) -> float:
    """Rows read and written for a site: a visit reads one and later adds to it; a row of the table
    is made of those of its sites and later added to theirs."""
    return 2 * visits + (2 * size + 6) * rows


def _slowdown(rows: int, vocabulary: int) -> float:
    """How much longer a visit takes where both tables are larger than the cache; measured with 60
    to 300 sites."""
    row = 2 * 4 * LANES * -(-vocabulary // LANES)
    return max(1.0, rows * row / CACHE) ** (2 / 3)


class Pairs:
    """A vector of the couplings of the pairs i < j, a of i and then b of j, and of the logits h_i +
    sum_j J_ij m_j of the mean sequence m (`Family.means`): a coupling then does no field's work,
    and the descent takes a fifth of the steps."""

    def __init__(self, family: Family):
        self.family = family
        self.length, self.vocabulary = family.length, family.vocabulary
        self.couplings = self.length * (self.length - 1) // 2 * self.vocabulary**2
        self.size = self.couplings + self.length * self.vocabulary

    def start(self, kind: type = np.float32) -> np.ndarray:
        """No couplings, and the logits, of mean 0, of frequencies with one more sequence of each
        colour."""
        vector = np.zeros(self.size, kind)
        logits = np.log(self.family.frequencies * self.family.present[:, None] + 1)
        self.logits(vector)[:] = logits - logits.mean(axis=1, keepdims=True)
        return vector

    def scale(self, vector: np.ndarray, strengths: tuple[float, float]) -> np.ndarray:
        """Inverse second derivatives of each number alone, if sites do not interact."""
        varied, present = self.family.varied, self.family.present[:, None]
        found = np.empty_like(vector)
        blocks = found[: self.couplings].reshape(-1, self.vocabulary, self.vocabulary)
        ends = np.arange(self.length - 1, 0, -1).cumsum()
        for site, part in enumerate(np.split(blocks, ends)):
            others = np.sqrt(present[site] * present[site + 1 :])[:, :, None]
            block = 2 * varied[site][:, None] * varied[site + 1 :, None]
            part[:] = 1 / (others * block + 2 * strengths[0])
        self.logits(found)[:] = _of_logits(self.family, strengths[1])
        return found

    def logits(self, vector: np.ndarray) -> np.ndarray:
        """Those of the mean sequence (L, q), a view."""
        return vector[self.couplings :].reshape(self.length, self.vocabulary)

    def take(self, vector: np.ndarray, site: int, couplings: np.ndarray) -> None:
        """couplings (L q, at least q), [j, b, a]: what colour b of j adds to colour a of `site`."""
        loops.take(vector, site, self.length, self.vocabulary, couplings)

    def give(
        self, couplings: np.ndarray, logits: np.ndarray, site: int, vector: np.ndarray,
        gradient: np.ndarray, lock: Lock,
    ) -> None:  # fmt: skip
        """Adds the gradients of one site, as `take` has them, to those of the vector."""
        # Two sites add to a block of the gradient: one after the other, in any order.
        with lock:
            loops.give(couplings, logits, site, self.length, self.vocabulary, gradient)

    def blocks(self, vector: np.ndarray) -> np.ndarray:
        """Couplings (L, L, q, q)."""
        blocks = vector[: self.couplings].reshape(-1, self.vocabulary, self.vocabulary)
        return of_pairs(blocks, self.length)


class Heads:
    """A vector of A (H, L, L) and V (H, q, q), whose couplings are symmetrised,

        J_ij(a, b) = sum_h (A^h_ij V^h_ab + A^h_ji V^h_ba) / 2,

    and of the logits of the mean sequence, as of `Pairs`. The penalty is on J, as there. If not
    `symmetric`, J_ij is the sum of A^h_ij V^h alone, and each conditional has its own.
    """

    def __init__(self, family: Family, heads: int, symmetric: bool = True):
        heads = min(heads, family.vocabulary**2)  # more have no other couplings
        self.family, self.heads, self.symmetric = family, heads, symmetric
        self.length, self.vocabulary = family.length, family.vocabulary
        self.couplings = heads * (self.length**2 + self.vocabulary**2)
        self.size = self.couplings + self.length * self.vocabulary

    def start(self, full: PairModel, kind: type = np.float32) -> np.ndarray:
        """The couplings of rank H nearest to those of `full`, as a matrix of L^2 rows and q^2
        columns, and its fields."""
        vector, family = np.empty(self.size, kind), self.family
        matrix = full.couplings.reshape(self.length**2, -1)
        squares, columns = np.linalg.eigh((matrix.T @ matrix).astype(np.float64))
        columns = columns[:, ::-1][:, : self.heads]
        # Half of each singular value goes to A and half to V.
        root = np.maximum(squares[::-1][: self.heads], 1e-12) ** 0.25
        attention, values = self.parts(vector)
        attention[:] = (matrix @ (columns / root)).T.reshape(attention.shape)
        values[:] = (columns * root).T.reshape(values.shape)
        means = np.einsum("ijab,jb->ia", full.couplings, family.means.astype(kind))
        self.logits(vector)[:] = full.fields + means
        return vector

    def scale(self, vector: np.ndarray, strengths: tuple[float, float]) -> np.ndarray:
        """Inverse second derivatives, of A and V one number each: the mean if all colours vary as
        they do on average."""
        found, family = np.empty_like(vector), self.family
        varied = family.present[:, None] * family.frequencies * (1 - family.frequencies)
        curvature = varied.mean() ** 2 / family.weights.sum() + strengths[0]
        for part, other in zip(self.parts(found), self.parts(vector)[::-1], strict=True):
            part[:] = (1 + self.symmetric) * self.heads / max(curvature * (other**2).sum(), 1e-12)
        self.logits(found)[:] = _of_logits(family, strengths[1])
        return found

    logits = Pairs.logits

    def parts(self, vector: np.ndarray) -> list[np.ndarray]:
        """A and V, views."""
        attention, values = np.split(vector[: self.couplings], [self.heads * self.length**2])
        return [
            attention.reshape(self.heads, self.length, -1),
            values.reshape(self.heads, self.vocabulary, -1),
        ]

    def take(self, vector: np.ndarray, site: int, couplings: np.ndarray) -> None:
        attention, values = self.parts(vector)
        found = attention[:, site].T @ values.transpose(0, 2, 1).reshape(self.heads, -1)
        if self.symmetric:
            found += attention[:, :, site].T @ values.reshape(self.heads, -1)
            found /= 2
        found[site] = 0
        couplings[:, : self.vocabulary] = found.reshape(-1, self.vocabulary)

    def give(
        self, couplings: np.ndarray, logits: np.ndarray, site: int, vector: np.ndarray,
        gradient: np.ndarray, lock: Lock,
    ) -> None:  # fmt: skip
        (attention, values), own = self.parts(vector), self.parts(gradient)
        given = couplings[:, : self.vocabulary].reshape(self.length, -1) / (1 + self.symmetric)
        given[site] = 0  # by j, then b, a
        of_rows = values.transpose(0, 2, 1).reshape(self.heads, -1) @ given.T
        of_values = (attention[:, site] @ given).reshape(values.shape).transpose(0, 2, 1)
        of_columns = 0
        if self.symmetric:
            of_columns = values.reshape(self.heads, -1) @ given.T
            of_values = of_values + (attention[:, :, site] @ given).reshape(values.shape)
        with lock:
            own[0][:, site] += of_rows
            own[0][:, :, site] += of_columns
            own[1][:] += of_values
            self.logits(gradient)[site] += logits

    def blocks(self, vector: np.ndarray) -> np.ndarray:
        attention, values = self.parts(vector)
        found = np.einsum("hij,hab->ijab", attention, values, optimize=True)
        if self.symmetric:
            found = (found + found.transpose(1, 0, 3, 2)) / 2
        found[np.diag_indices(self.length)] = 0
        return found


def _of_logits(family: Family, strength: float) -> np.ndarray:
    """Inverse second derivatives of the logits (L, q) if sites do not interact."""
    return 1 / (family.present[:, None] * family.varied + 2 * strength)


class Objective:
    """The objective of a vector of `form`, with its gradient; `strengths` are c_J and c_h.

    `loss` is that of the last vector without the penalty, in nats, of so many `passes`.
    """

    def __init__(self, form: Pairs | Heads, strengths: tuple[float, float], threads: int = 1):
        self.form, self.strengths, self.threads = form, strengths, threads
        self.loss, self.passes = math.nan, 0

    def __call__(self, vector: np.ndarray, gradient: np.ndarray) -> float:
        form, family, lock, kind = self.form, self.form.family, Lock(), vector.dtype
        rows, words = family.length * family.vocabulary, family.words
        width, means = -(-family.vocabulary // LANES), family.means.astype(kind).ravel()
        parts, logits = np.empty((family.length, 2)), form.logits(vector)
        gradient[:] = 0

        def run(sites: Iterator[int]) -> None:
            couplings, of_couplings = np.zeros((2, rows, width, LANES), kind)
            tables = np.empty((2, len(words.places), width, LANES), kind)
            of_logits = np.empty(family.vocabulary, kind)
            for site in sites:
                form.take(vector, site, couplings.reshape(rows, -1))
                parts[site] = loops.conditional(
                    family.own[site], family.weights, *words, couplings, means, logits[site],
                    self.strengths, of_couplings, of_logits, *tables,
                )  # fmt: skip
                form.give(of_couplings.reshape(rows, -1), of_logits, site, vector, gradient, lock)

        # One iterator for all threads: whoever is free takes the next site.
        each(self.threads, run, [iter(range(family.length))] * self.threads)
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
    heads: int | None = None,
    scale: str = "gremlin",
    threads: int = 1,
    iterations: int = ITERATIONS,
    label: str = "",
) -> PairModel:
    """The pair model of tokens (N, L), `weights` (N,) their weights, all ones if None.

    `gap` is the number of a colour that is neither input nor target: it adds nothing to logits, and
    sites that have it do not count. By default there is none, so that gaps count like residues;
    leave them out of the norm (`PairModel.norms`): contacts of real families come out better so.
    With H `heads` the couplings are those of factored attention, see `Heads`.
    With the scale "gremlin" c_J is .01 (L - 1)(q - 1), as of GREMLIN and plmc, with "plmdca" .01
    times the sum of the weights; q does not count the gap. Progress is shown under `label`, if one
    is given. `ValueError` for tokens, weights or a scale that do not fit.
    """
    family = Family(tokens, vocabulary, weights, gap)
    return solve(
        family, (penalty(family, scale), STRENGTH), threads, iterations, heads=heads, label=label
    ).model


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
    heads: int | None = None,
    tolerance: float = TOLERANCE,
    kind: type = np.float32,
    label: str = "",
) -> Fit:
    """The least objective of a family with these c_J and c_h, see `fit`; numbers are of `kind`.

    That of H heads, which is not convex, is looked for from the full couplings.
    """
    form = Pairs(family)
    with Progress(iterations * (2 if heads else 1), "iterations", label) as progress:
        settings = dict(
            history=HISTORY if _bytes(form.size, HISTORY) <= MOST else LEAST_HISTORY,
            tolerance=tolerance,
            threads=threads,
            callback=lambda value: progress.update(1, objective=value),
        )
        objective, vector = Objective(form, strengths, threads), form.start(kind)
        scale = form.scale(vector, strengths)
        value, done = minimise(objective, vector, scale, iterations, **settings)
        if heads:
            form, full = Heads(family, heads), _model(form, vector, counted=False)
            objective, vector = Objective(form, strengths, threads), form.start(full, kind)
            scale = form.scale(vector, strengths)
            value, done = minimise(objective, vector, scale, iterations, **settings)
    return Fit(_model(form, vector), value, objective.loss, done, objective.passes)


def solve_free(
    family: Family, heads: int, ridge: float, iterations: int
) -> tuple[list[np.ndarray], np.ndarray, float, int]:
    """The least loss plus ridge / 2 times the squared A, V and h of heads that are not symmetric,
    from where `START` iterations of full couplings lead.

    A and V, at most q^2 heads; h (L, q); the loss there (nats); and the iterations.
    """
    pairs = Pairs(family)
    vector = pairs.start()
    minimise(Objective(pairs, (0, 0)), vector, pairs.scale(vector, (1, 1)), START, history=HISTORY)
    form = Heads(family, heads, symmetric=False)
    vector = form.start(_model(pairs, vector, counted=False))
    own, conditionals = form.couplings, Objective(form, (0, ridge / 2))

    def objective(vector: np.ndarray, gradient: np.ndarray) -> float:
        found = conditionals(vector, gradient)
        gradient[:own] += vector.dtype.type(ridge) * vector[:own]
        return found + 0.5 * ridge * float(vector[:own] @ vector[:own])

    scale = form.scale(vector, (0, ridge / 2))
    value, done = minimise(objective, vector, scale, iterations, history=2 * HISTORY)
    fields = _model(form, vector, counted=False).fields
    penalty = vector[:own] @ vector[:own] + (fields**2).sum()
    return form.parts(vector), fields, value - 0.5 * ridge * float(penalty), done


def memory(length: int, vocabulary: int) -> int:
    """Bytes that a fit takes at most, of `vocabulary` colours of which all count."""
    size = length * (length - 1) // 2 * vocabulary**2
    return _bytes(size, HISTORY if _bytes(size, HISTORY) <= MOST else LEAST_HISTORY)


def _bytes(size: int, history: int) -> int:
    """Bytes of the vectors of L-BFGS: numbers, gradient, scale, and two a step."""
    return 4 * size * (3 + 2 * (history + 1))


def _model(form: Pairs | Heads, vector: np.ndarray, counted: bool = True) -> PairModel:
    """The pair model of a vector. A gap that did not count has no couplings, and the field that
    makes it as frequent as in the family, to first order in the couplings, if sites did not
    interact; it is left out if not `counted`."""
    family, couplings = form.family, form.blocks(vector)
    means = family.means.astype(vector.dtype)
    fields = form.logits(vector) - np.einsum("ijab,jb->ia", couplings, means)
    if counted and family.gap is not None:
        gaps, logits = family.weights.sum() - family.present, form.logits(vector)
        own = np.log((gaps + 0.5) / (family.present + 0.5)) + np.log(np.exp(logits).sum(axis=1))
        own -= np.einsum("ijab,ia,jb->i", couplings, family.frequencies, means)
        fields = np.insert(fields, family.gap, own, axis=1)
        couplings = np.insert(np.insert(couplings, family.gap, 0, axis=2), family.gap, 0, axis=3)
    return PairModel(fields, couplings, {})
