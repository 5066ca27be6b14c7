"""Test of three-body terms in a family: what they add to the pairs, on held-out sequences.

    logits_i(a) = h_i(a) + sum_j J_ij(a, s_j) + sum_{j < k} T_ijk(a, s_j, s_k)

The pairs are fitted first (`pair_fit`) and stay as they are. T has one of two forms, since neither
finds what the other does:

- tables of the K triples of sites of the highest score: by how far the errors of the pair model's
  conditionals at one site depend on the colours of two others together. The fit is convex; it finds
  laws of few triples, whatever their tables.
- heads, T_ijk = sum_h v^h_i v^h_j v^h_k U^h with U symmetric: factored attention of order 3. It
  finds laws of very many weak triples that share their tables, none of which can be seen alone.

Colours count less their frequencies at the site: so T holds nothing that pairs and fields of sites
that are nearly independent have.

Whole clusters are held out to the end, for the gain. Others, inside the rest, choose how strongly
the pairs are penalised, then the form of T, its size and penalty. So no choice knows of the
sequences on which it is judged, and too strong a penalty of the pairs is no gain of T.
"""

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import stdtrit

from manybody.data.pair_model import PairModel
from manybody.io.compiled import each
from manybody.io.progress import Progress
from manybody.training import three_body_loops as loops
from manybody.training.pair_fit import STRENGTH, Family, counted, penalty, solve
from manybody.training.pseudolikelihood import options

HELD_OUT = 0.2  # share of the weight that is held out, and of the rest that chooses
FEWEST = 10  # clusters that are needed in either
MATTERS = 0.01  # nats a site
FACTORS = (64.0, 16.0, 4.0, 1.0)  # of the usual penalty of pairs, from which one is chosen
NUMBERS = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # of triples
PENALTIES = (0.5, 1.0, 2.0, 8.0)  # of squared tables, times K
FIRMNESS = 5.0  # sequences of each combination of colours that a score takes as seen
WORK = 5e10  # additions that the scores may take: some 20 s
BLOCK = 2**20  # numbers of the products of pairs of sites that are held at a time
HEADS, RIDGE = 5, 1.0  # most heads, and the penalty of squared v and U
STARTS, TURNS, FIRST = 4, 8, (3.0, 0.1)  # of the search of a head; norms of v and U in its fit
ITERATIONS, FLAT = 20, 1e-6  # of a fit of T, and the relative fall that ends it


class Verdict(NamedTuple):
    """Result of the test: the gain in nats a site and its 95 % interval, and "yes" where
    that lies above 0 and the gain is .01 or more, "no" where it lies below .01, else "undecided".

    `loss` (nats a site) is the pair model's on `held_out` sequences in so many `clusters`. `form`:
    "triples" or "heads", `size` their number; triples (K, 3): the sites, from 0, of the tables.
    """

    gain: float
    low: float
    high: float
    verdict: str
    loss: float
    form: str
    size: int
    triples: np.ndarray
    held_out: int
    clusters: int


class Part(NamedTuple):
    """Sequences: colours `own` (N, L), -1 for a gap, of q colours in all; weights and clusters."""

    own: np.ndarray
    weights: np.ndarray
    clusters: np.ndarray
    colours: int

    def take(self, rows: np.ndarray) -> "Part":
        return Part(self.own[rows], self.weights[rows], self.clusters[rows], self.colours)


class Triples:
    """Tables (K, q, q, q), [a, b, c] of three sites, of colours less their frequencies `shares`
    (L, q)."""

    def __init__(self, triples: np.ndarray, shares: np.ndarray):
        self.triples, self.shape = triples, (len(triples), *3 * shares.shape[1:])
        # Each triple in the order that each of its three conditionals has.
        self.sites = np.concatenate([triples[:, [1, 2, 0]], triples[:, [2, 0, 1]], triples])
        # One minus the means, a matrix for each site of each triple.
        centred = np.eye(shares.shape[1]) - shares[triples][:, :, None]
        self.centred = centred.swapaxes(0, 1)

    def add(self, own: np.ndarray, vector: np.ndarray, logits: np.ndarray) -> None:
        """Adds the terms of a vector to logits (N, L, q) of sequences own (N, L)."""
        tables = np.einsum(
            "tabc,txa,tyb,tzc->txyz", vector.reshape(self.shape), *self.centred, optimize=True
        )
        tables = np.concatenate([np.moveaxis(tables, 1, 3), np.moveaxis(tables, 3, 1), tables])
        loops.add_tables(own, self.sites, tables, logits)

    def gradient(self, own: np.ndarray, vector: np.ndarray, errors: np.ndarray) -> np.ndarray:
        """The gradient of sum errors logits, for errors (N, L, q)."""
        found = np.zeros((len(self.sites), *self.shape[1:]))
        loops.of_tables(own, self.sites, errors, found)
        first, second, third = np.split(found, 3)
        found = np.moveaxis(first, 3, 1) + np.moveaxis(second, 1, 3) + third
        return np.einsum("txyz,txa,tyb,tzc->tabc", found, *self.centred, optimize=True).ravel()


class Heads:
    """v (H, L) and U (H, q, q, q), symmetric: T_ijk = sum_h v_i v_j v_k U, of colours less
    their frequencies `shares` (L, q)."""

    def __init__(self, number: int, shares: np.ndarray):
        self.number, self.shares = number, shares

    def add(self, own: np.ndarray, vector: np.ndarray, logits: np.ndarray) -> None:
        for _, rows, weights, values, _, _, products in self._parts(own, vector):
            logits[rows] += weights * (products @ values)

    def gradient(self, own: np.ndarray, vector: np.ndarray, errors: np.ndarray) -> np.ndarray:
        length, colours = self.shares.shape
        of_weights = np.zeros((self.number, length))
        of_values = np.zeros((self.number, colours**2, colours))
        for head, rows, weights, values, centred, others, products in self._parts(own, vector):
            here = weights * errors[rows]
            of_values[head] += np.tensordot(products, here, axes=((0, 1), (0, 1)))
            of_weights[head] += np.einsum("nia,nia->i", errors[rows], products @ values)
            # v_j is in the products of all other sites i.
            bends = (here @ values.T).reshape(*here.shape, -1)
            slopes = (bends @ others[..., None])[..., 0]
            own_bends = (bends.sum(axis=1, keepdims=True) - bends) @ (weights * centred)[..., None]
            slopes = slopes.sum(axis=1, keepdims=True) - slopes - own_bends[..., 0]
            of_weights[head] += np.einsum("nia,nia->i", slopes, centred)
        return np.concatenate([of_weights.ravel(), _symmetric(of_values, colours).ravel()])

    def more(self, own: np.ndarray, vector: np.ndarray, errors: np.ndarray, draws) -> np.ndarray:
        """The vector with one head more: of several starts, the v and U along which the loss with
        these errors falls most steeply, each climbed by turns of U and v."""
        length, colours = self.shares.shape
        one, best = Heads(1, self.shares), (-1.0, None, None)
        for _ in range(STARTS):
            weights, values = draws.standard_normal(length), np.zeros(colours**3)
            for _ in range(TURNS):
                both = np.concatenate([weights / np.linalg.norm(weights), values])
                values = one.gradient(own, both, errors)[length:]
                steepness = np.linalg.norm(values)
                both[length:] = values = values / steepness
                kept = both[:length]
                weights = one.gradient(own, both, errors)[:length]
            if steepness > best[0]:
                best = steepness, kept, values
        weights, values = np.split(vector, [self.number * length])
        return np.concatenate([weights, FIRST[0] * best[1], values, FIRST[1] * best[2]])

    def _parts(self, own: np.ndarray, vector: np.ndarray) -> Iterator:
        """Sums of some sequences at a time: the head, their rows, v (L, 1), U (q q, q), colours z
        less frequencies (n, L, q), the sums of v z over all other sites, and, over all pairs of
        others, of the symmetrised products of theirs (n, L, q q)."""
        length, colours = self.shares.shape
        weights, values = np.split(vector, [self.number * length])
        values = _symmetric(values, colours).reshape(-1, colours**2, colours)
        size = max(1, BLOCK // (length * colours**2))
        for start in range(0, len(own), size):
            rows = slice(start, start + size)
            part = own[rows, :, None]
            centred = np.where(part >= 0, (part == np.arange(colours)) - self.shares, 0.0)
            weights = weights.reshape(-1, length, 1)
            for head, (weight, value) in enumerate(zip(weights, values, strict=True)):
                each_site = weight * centred
                others = each_site.sum(axis=1, keepdims=True) - each_site
                squares = each_site[..., None] * each_site[..., None, :]
                products = others[..., None] * others[..., None, :]
                products -= squares.sum(axis=1, keepdims=True) - squares
                products = 0.5 * products.reshape(*others.shape[:2], -1)
                yield head, rows, weight, value, centred, others, products


def _symmetric(values: np.ndarray, colours: int) -> np.ndarray:
    """Means of arrays (H, q, q, q) over all orders of the last three indices."""
    values = values.reshape(-1, colours, colours, colours)
    orders = itertools.permutations((1, 2, 3))
    return np.ascontiguousarray(sum(values.transpose(0, *order) for order in orders) / 6)


def fit(form, part: Part, logits: np.ndarray, strength: float, start: np.ndarray) -> np.ndarray:
    """The vector of T of least summed loss of `part`, whose pairs give logits (N, L, q), plus
    `strength` times its square."""

    def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
        losses, errors = _errors(part, logits, form, vector)
        gradient = 2 * strength * vector - form.gradient(part.own, vector, errors)
        return float(part.weights @ losses + strength * vector @ vector), gradient

    return minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        options=options(ITERATIONS, tolerance=FLAT),
    ).x


def compare(
    tokens: np.ndarray,
    vocabulary: int,
    weights: np.ndarray | None,
    clusters: np.ndarray,
    *,
    gap: int | None = 0,
    seed: int = 0,
    threads: int = 1,
    label: str = "",
) -> Verdict:
    """The verdict on tokens (N, L) with these weights (N,), all ones if None.

    clusters (N,): numbers; sequences of one number are held out together, and their errors count as
    one. The colour `gap`, if any, is neither input nor target. `seed` draws the parts and the
    starts. Progress is shown under `label`, if given. `ValueError` for arguments that do not fit,
    or for fewer than 10 clusters in a part that is held out.
    """
    part, draws = _part(tokens, vocabulary, weights, clusters, gap), np.random.default_rng(seed)
    total = len(FACTORS) + len(NUMBERS) * len(PENALTIES) + HEADS + 1
    with Progress(total, "fits", label) as progress:
        train, test = _parted(part, draws)
        factor, wanted = _choose(*_parted(train, draws), draws, threads, progress)
        pairs = _pairs(train, factor, threads)
        progress.update(1)
        logits = _logits(pairs, test)
        *_, ((name, size, _), form, vector) = _forms(train, pairs, draws, threads, wanted)
        losses, _ = _errors(test, logits)
        gains = losses - _errors(test, logits, form, vector)[0]
    loss, sizes = test.weights @ losses / _sites(test)[1].sum(), len(np.unique(test.clusters))
    triples = form.triples if name == "triples" else np.zeros((0, 3), np.int64)
    return Verdict(*judge(gains, test), float(loss), name, size, triples, len(test.own), sizes)


def judge(gains: np.ndarray, part: Part) -> tuple[float, float, float, str]:
    """Gain, the ends of its interval, and the verdict, of gains (N,) summed over sequences' sites.

    The error is that of a ratio of sums over clusters; Student's t has as many degrees of freedom
    as clusters of equal weight would have.
    """
    places, sites = _sites(part)
    total = sites.sum()
    gained = np.bincount(places, part.weights * gains, len(sites))
    gain = gained.sum() / total
    number = total**2 / (sites**2).sum()
    error = math.sqrt(((gained - gain * sites) ** 2).sum() * number / (number - 1)) / total
    margin = float(stdtrit(number - 1, 0.975)) * error
    low, high = gain - margin, gain + margin
    found = "undecided"
    if low > 0 and gain >= MATTERS:
        found = "yes"
    elif high < MATTERS:
        found = "no"
    return float(gain), float(low), float(high), found


def _part(tokens, vocabulary, weights, clusters, gap) -> Part:
    """All sequences, their colours numbered without those that never occur."""
    Family(tokens, vocabulary, weights, gap)  # refuses what does not fit
    tokens, clusters = np.asarray(tokens), np.asarray(clusters)
    if clusters.shape != tokens.shape[:1] or tokens.shape[1] < 3:
        raise ValueError(
            f"clusters: shape {clusters.shape} for tokens of shape {tokens.shape}, expected (N,) "
            "and (N, L) with L 3 or more"
        )
    weights = np.ones(len(tokens)) if weights is None else np.asarray(weights, np.float64)
    colours = np.setdiff1d(tokens, [] if gap is None else [gap])
    numbers = np.full(vocabulary, -1)
    numbers[colours] = np.arange(len(colours))
    return Part(numbers[tokens], weights, clusters, len(colours))


def _parted(part: Part, draws: np.random.Generator) -> tuple[Part, Part]:
    """Sequences to fit, and whole clusters, drawn, that have `HELD_OUT` of the weight."""
    places, sites = _sites(part)
    most, taken, held = HELD_OUT * sites.sum(), 0.0, np.zeros(len(sites), bool)
    for cluster in draws.permutation(len(sites)):
        if taken + sites[cluster] <= most:
            taken += sites[cluster]
            held[cluster] = True
    if held.sum() < FEWEST:
        raise ValueError(
            f"clusters: {held.sum()} of {len(held)} can be held out with at most {HELD_OUT:.0%} of "
            f"the weight, expected {FEWEST} or more; take clusters at a higher identity, or more "
            "sequences"
        )
    held = held[places]
    return part.take(~held), part.take(held)


def _sites(part: Part) -> tuple[np.ndarray, np.ndarray]:
    """The number of each sequence's cluster (N,), and the weighted sites of each cluster (C,)."""
    _, places = np.unique(part.clusters, return_inverse=True)
    return places, np.bincount(places, part.weights * (part.own >= 0).sum(axis=1))


def _choose(train: Part, test: Part, draws, threads: int, progress) -> tuple[float, tuple]:
    """The factor of the penalty of pairs, then the name, size and penalty of the form of T, with
    which models of `train` lose least on `test`."""
    least, best = math.inf, None
    for factor in FACTORS:
        pairs = _pairs(train, factor, threads)
        logits = _logits(pairs, test)
        loss = test.weights @ _errors(test, logits)[0]
        progress.update(1)
        if loss > least:
            break
        least, best = loss, (factor, pairs, logits)
    (factor, pairs, logits), least, latest = best, math.inf, math.inf
    for name, form, vector in _forms(train, pairs, draws, threads):
        loss = test.weights @ _errors(test, logits, form, vector)[0]
        progress.update(1)
        if name[0] == "heads":  # these come last, each with one head more
            if loss >= latest:
                break
            latest = loss
        if loss < least:
            least, wanted = loss, name
    return factor, wanted


def _forms(part: Part, pairs: PairModel, draws, threads: int, wanted: tuple = ()) -> Iterator:
    """All forms of T fitted to `part`, or those up to `wanted`: what they are, and their vector."""
    logits, shares = _logits(pairs, part), _shares(part)
    if not wanted or wanted[0] == "triples":
        number = wanted[1] if wanted else NUMBERS[-1]
        triples = _screened(part, logits, pairs, number, threads)
        sizes = [(n, n * share) for n in NUMBERS if n <= len(triples) for share in PENALTIES]
        for size, strength in [wanted[1:]] if wanted else sizes:
            form = Triples(triples[:size], shares)
            start = np.zeros(math.prod(form.shape))
            yield ("triples", size, strength), form, fit(form, part, logits, strength, start)
    if not wanted or wanted[0] == "heads":
        form, vector = Heads(0, shares), np.zeros(0)
        for size in range(1, 1 + (wanted[1] if wanted else HEADS)):
            start = form.more(part.own, vector, _errors(part, logits, form, vector)[1], draws)
            form = Heads(size, shares)
            vector = fit(form, part, logits, RIDGE, start)
            yield ("heads", size, RIDGE), form, vector


def _pairs(part: Part, factor: float, threads: int) -> PairModel:
    family = Family(part.own + 1, part.colours + 1, part.weights, 0)
    return solve(family, (factor * penalty(family), STRENGTH), threads).model


def _logits(pairs: PairModel, part: Part) -> np.ndarray:
    """Logits (N, L, q) of the pairs, without the gap."""
    return np.ascontiguousarray(pairs.logits(part.own + 1)[..., 1:])


def _errors(part: Part, logits: np.ndarray, form=None, vector=None) -> tuple:
    """Losses (N,) of pairs with logits (N, L, q), and of T if there is one, summed over the sites
    without a gap, in nats; and w_n (1[s_ni = a] - P_i(a)), (N, L, q)."""
    found, present = logits.copy(), part.own >= 0
    if form is not None:
        form.add(part.own, vector, found)
    found -= found.max(axis=2, keepdims=True)
    own = (*np.indices(present.shape, sparse=True), np.maximum(part.own, 0))
    losses = -found[own]
    np.exp(found, out=found)
    total = found.sum(axis=2)
    losses = np.where(present, losses + np.log(total), 0.0).sum(axis=1)
    weights = part.weights[:, None] * present
    found *= (-weights / total)[..., None]
    found[own] += weights
    return losses, found


def _shares(part: Part) -> np.ndarray:
    """Frequencies (L, q) without gaps."""
    counts = counted(part.own.T, part.weights, part.colours)
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)


def _screened(part: Part, logits, pairs: PairModel, number: int, threads: int) -> np.ndarray:
    """The triples (number, 3), i < j < k, of the highest scores, the highest first.

    Where `WORK` is too little for all pairs of sites, those of the strongest couplings are taken.
    """
    length, (_, errors) = logits.shape[1], _errors(part, logits)
    known = np.maximum(part.weights, 1e-300)
    spread = np.einsum("nia,nia,n->ia", errors, errors, 1 / known) / known.sum()
    errors = errors.reshape(len(errors), -1).astype(np.float32)
    first, second = np.triu_indices(length, 1)
    kept = np.argsort(-pairs.norms(0)[first, second], kind="stable")
    kept = np.sort(kept[: max(1, int(WORK // errors.size))])
    first, second = first[kept], second[kept]
    scores, shares = np.zeros((len(kept), length)), _shares(part)
    sums = part.weights.sum(), (part.weights**2).sum()

    def run(rows: slice) -> None:
        given = part.own, errors, shares, spread, *sums, FIRMNESS, first[rows], second[rows]
        loops.screen(*given, scores[rows])

    edges = np.linspace(0, len(kept), threads + 1).astype(int)
    each(threads, run, map(slice, edges[:-1], edges[1:]))
    # A triple is seen from each of its three pairs.
    sites = np.broadcast_arrays(first[:, None], second[:, None], np.arange(length))
    sites = np.sort(np.stack(sites, axis=-1))
    real = (np.diff(sites) > 0).all(axis=-1)
    codes = sites[real] @ (length ** np.arange(2, -1, -1))
    codes, places = np.unique(codes, return_inverse=True)
    best = codes[np.argsort(-np.bincount(places, scores[real]), kind="stable")[:number]]
    return np.stack(np.unravel_index(best, (length,) * 3), axis=1)
