"""The orders of interaction that a model uses: the order spectrum of its logits.

With g(m) as in `flips`, N context positions and Walsh weights W_d of degree d,

    M_k = sum_d C(d, k) W_d = sum_T E |2^-k sum_{U in T} (-1)^|U| g(m flipped on U)|^2,  |T| = k

(docs/science/controls.md, sections 6 and 9): unbiased, and exactly zero above the degree in the
context, which is one less than the order of interaction. Var g = sum_{d > 0} W_d, and M_1 / Var g
is the mean degree. All are means over the targets of a block and over the blocks.

Positions where r_j = s_j have no influence and are never drawn. A block s has an r of its own, so
that blocks are independent and errors are those of a bootstrap over blocks, with all their draws.
"""

from collections.abc import Callable
from functools import lru_cache
from math import comb, sqrt
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from manybody.io.refusal import Refusal
from manybody.io.seeds import spawn
from manybody.io.tables import SPECTRUM
from manybody.measure import flips
from manybody.models.base import Model

CHUNKS = {False: 64, True: 16}  # draws at a time, of a masked and of a causal model
PILOT = 64  # draws that measure the profile of influence against distance
REPLICATES = 400  # of the bootstrap
# Replicates of so many numbers of blocks, each up to so many, are kept for the next checkpoint:
# 200 MB at most.
KEPT, BLOCKS = 32, 2000
BELIEVED = 4  # chunks of draws before an error is believed
FLOOR_TOLERANCE = 1.1  # factor over what endless draws would leave, in which an error is as good
ROUNDING = 1e-9  # share of Var g that single precision may leave where M_k vanishes
NONE = 1e-8  # share of the reference variance below which there is no spectrum yet
LONGEST = 17  # L of sequences whose contexts are enumerated
COLUMNS = SPECTRUM.schema.names


class Spectrum(NamedTuple):
    """`table` of results, `rows` of the draws that they follow from (`tables.SPECTRUM.schema`)."""

    table: pd.DataFrame
    rows: pd.DataFrame


@torch.no_grad()
def spectrum(
    model: Model | flips.Conditionals,
    tokens: np.ndarray,
    *,
    mu: np.ndarray | None = None,
    orders: int = 3,
    degree: int | None = None,
    law: str = "text",
    special: tuple[int, ...] = (),
    sweeps: int = 1,
    first: float = 0.03,
    higher: float = 0.003,
    forwards: int = 100_000,
    importance: bool = True,
    variance: float = 0.0,
    seed: int = 0,
    rows: pd.DataFrame | None = None,
    save: Callable[[pd.DataFrame], None] | None = None,
    progress=None,
) -> Spectrum:
    """M_1 .. M_orders, Var g and the mean degree of a model on sequences tokens (B, L).

    mu: unigram distribution (|V|,), which sets the norm; by default that of the tokens. degree: q,
    if the model's degree in its context is at most q: draws flip q positions in all 2^q ways, which
    gives W_d too. Were the degree higher, W_d would be wrong, M_k not: a model of this package that
    may exceed q is refused; other `Conditionals` are believed. law: where r is from. `text`:
    another block; half of the sequences serve as s, half as r. `unigram`: draws of mu.
    `model`: for a masked model `sweeps` of Gibbs sampling from s, L forward passes a block each;
    for a causal one its own next token at every position. special: tokens that are never flipped,
    predicted or counted.

    Draws are added until SE(M_1) <= `first` M_1 and SE(M_k) (or SE(W_d)) <= `higher` Var g for
    k >= 2, until only more blocks would help (the error is within a tenth of what endless draws on
    these would leave), or until they have taken `forwards`, one sequence each, besides those of r
    and the pilot; if 0 is asked for they take them all. importance: draw
    flips by the profile of a pilot, not uniformly. variance: Var g to compare with, that of the end
    of training; below 1e-8 of it there is no spectrum yet.

    rows: of an earlier call with the same arguments, to go on from. save(rows) is called now and
    then; progress.update(n) counts forward passes.

    The table: quantity (M, W, Var g, mean degree, M per differing, differing), order, value, se
    (standard error), floor (the error that endless draws on these blocks would leave), asked (the
    asked error), share, share_se (of Var g), draws, forwards, reached (whether the asked error is),
    state: `measured`, `upper bound` (value < 3 se, or below what rounding leaves; the bound is
    value + 3 se), or `no spectrum yet`, replicates (of M_k: its values with the blocks drawn anew,
    of all models on the same tokens alike). `differing` is the share of positions where r_j != s_j.

    Raises `Refusal` for sequences that are too few, too short or of another vocabulary, and for a
    `degree` that the model may exceed.
    """
    own = model.model if isinstance(model, flips.Conditionals) else model
    draws, length = Draws(model, tokens, mu, law, special, sweeps, seed), tokens.shape[1]
    costs = costs_of(orders, degree, length, forwards, draws.chunk)
    if degree is not None and own is not None:
        most = length - 1 if own.about.degree is None else min(own.about.degree, length - 1)
        if degree < most:
            raise Refusal(
                f"found {degree} for {own.about.generator}; expected at least {most}, the degree "
                f"that its logits can have; leave it out and give orders, which needs no bound",
                "degree",
            )
    if degree is None and importance:
        draws.learn_profile()
    wanted, done = list(costs), dict.fromkeys(costs, 0)
    while True:
        if rows is not None and len(rows):
            table = summary(rows, first, higher, degree, variance, seed)
            if save is not None:
                save(rows)
            wanted = _wanted(table, degree, BELIEVED * draws.chunk)
            drawn = rows.groupby("order")["draw"].max().reindex(list(costs), fill_value=-1)
            done = (drawn + 1) // draws.chunk
        left = forwards - sum(done[order] * cost for order, cost in costs.items())
        added = []
        for order in wanted:
            begin, cost = done[order], costs[order]
            chunks = min(max(1, begin // 4), left // cost)
            for number in range(begin, begin + chunks):
                added.append(
                    draws.sets(order, number) if degree is None else draws.cubes(degree, number)
                )
                if progress is not None:
                    progress.update(cost)
            left -= chunks * cost
        if not added:
            return Spectrum(table, rows)
        rows = pd.concat([rows, *added], ignore_index=True)


@torch.no_grad()
def enumerated(
    model: Model | flips.Conditionals,
    tokens: np.ndarray,
    *,
    mu: np.ndarray | None = None,
    special: tuple[int, ...] = (),
    seed: int = 0,
) -> Spectrum:
    """The exact spectrum of short sequences, with the blocks s and r of `spectrum` and this `seed`:
    every M_k and W_d, by 2^N forward passes for each s and target (for each s alone, if causal).
    Errors are those of the choice of blocks. `Refusal` for L above 17; else as of `spectrum`."""
    draws = Draws(model, tokens, mu, "text", special, 1, seed)
    length = draws.s.shape[1]
    if length > LONGEST:
        raise Refusal(f"found L = {length}; expected at most {LONGEST} to enumerate all contexts")
    rows = _frame([part for number in range(len(draws.s)) for part in draws.whole(number)])
    return Spectrum(summary(rows, degree=length - 1, seed=seed), rows)


def costs_of(
    orders: int, degree: int | None, length: int, forwards: int, chunk: int
) -> dict[int, int]:
    """Forwards of a `chunk` of draws by their order.

    `Refusal` for orders, or a degree, that sequences of `length` tokens do not have, and for too
    few `forwards` for a chunk of each order.
    """
    largest = orders if degree is None else degree
    if not 1 <= largest < length:
        raise Refusal(
            f"found {largest}, expected 1 to L - 1 = {length - 1}; lower it, or take a larger "
            f"length L",
            "orders" if degree is None else "degree",
        )
    costs = {order: each * chunk for order, each in forwards_of(largest, degree).items()}
    if forwards < (least := sum(costs.values())):
        raise Refusal(
            f"found {forwards}; expected at least {least}, which {chunk} draws of each order "
            f"take; allow more",
            "forwards",
        )
    return costs


def forwards_of(largest: int, degree: int | None) -> dict[int, int]:
    """Forwards of a draw by its order; those of cubes count as order 1."""
    if degree is not None:
        return {1: 2**degree + 1}
    return {order: 2**order + (order == 1) for order in range(1, largest + 1)}


def _wanted(table: pd.DataFrame, degree: int | None, least: int) -> list[int]:
    """The orders that need more draws, of at least so many each."""
    if (table["state"] == "no spectrum yet").any():
        return []
    asked = table["quantity"].isin(["M", "W"])
    if degree is not None:
        asked &= (table["quantity"] == "W") | (table["order"] == 1)
    hopeless = table["asked"].between(0, table["floor"], inclusive="neither")
    hopeless &= table["se"] < FLOOR_TOLERANCE * table["floor"]
    useful = ~(table["reached"] | hopeless)
    missed = table["order"][asked & (useful | (table["draws"] < least))].tolist()
    return missed if degree is None else [1] * any(missed)


class Draws:
    """Blocks s, their r, and samples of flips in between, as rows of `tables.SPECTRUM.schema`."""

    def __init__(self, model, tokens, mu, law, special, sweeps, seed, given=None):
        """Arguments as of `spectrum`; given: a passage (L,) to be every s, and n others (n, L)."""
        model = model if isinstance(model, flips.Conditionals) else flips.of_model(model)
        tokens = np.asarray(tokens, np.int64)
        self.model, self.seed, self.profile = model, seed, None
        self.chunk = CHUNKS[model.causal]
        if tokens.ndim != 2 or len(tokens) < 4 or tokens.shape[1] < 2:
            raise Refusal(
                f"found sequences of shape {tokens.shape}; expected (B, L) with at least 4 blocks, "
                "two of which serve as r, and L >= 2; give a longer text"
            )
        if not 0 <= tokens.min() <= tokens.max() < model.vocabulary:
            raise Refusal(
                f"found tokens from {tokens.min()} to {tokens.max()}; expected 0 to |V| - 1 = "
                f"{model.vocabulary - 1}; use the model's own tokenizer"
            )
        self.mu = flips.unigram(tokens, model.vocabulary, special) if mu is None else mu
        if self.mu.shape != (model.vocabulary,):
            raise Refusal(f"found shape {self.mu.shape}; expected (|V|,)", "mu")
        missing = np.setdiff1d(tokens[self.mu[tokens] <= 0], special)
        if missing.size:
            raise Refusal(
                f"found no share for {missing.size} tokens of the sequences, the first is "
                f"{missing[0]}; expected some for all that are not special, as what they say would "
                f"not count; add a count to each token",
                "mu",
            )
        # What differences of logits are taken with.
        self.inner, self.metric = flips.without_head(model, self.mu)
        order = np.random.default_rng(spawn(seed, "blocks")).permutation(len(tokens))
        half = len(order) // 2
        s, others = tokens[order[:half]], tokens[order[half : 2 * half]]
        if given is not None:
            s, others = np.tile(given[0], (len(given[1]), 1)), given[1]
        kept = ~np.isin(s, special)
        r = self._replacement(law, s, others, kept, special, sweeps)
        self.targets = np.arange(1 if model.causal else 0, tokens.shape[1])
        # A block of special tokens alone asks for nothing.
        some = kept[:, self.targets].any(1)
        self.blocks, self.s, self.free = order[: len(s)][some], s[some], kept[some]
        self.r = np.where(self.free & ~np.isin(r[some], special), r[some], self.s)
        if len(self.blocks) < 2:
            raise Refusal(
                f"found {len(self.blocks)} blocks with tokens that are not special; expected at "
                "least 2; give a longer text"
            )

    def learn_profile(self) -> None:
        """Root mean square influence by octave of distance, from draws stratified by it."""
        bins, pilot = flips.octaves(self.s.shape[1] - 1) + 1, []
        for place in range(bins):
            self.profile = np.eye(bins)[place]
            rng = np.random.default_rng(spawn(self.seed, "pilot", place))
            numbers = place * (PILOT // bins) + np.arange(max(1, PILOT // bins))
            pilot += self._sample_sets(1, numbers, rng, uniform=0)
        rows = _frame(pilot)
        rows = rows[(rows["weight"] > 0) & (rows["order"] == 1)]
        squares = rows["value"].pow(2).groupby(flips.octaves(rows["span"])).mean()
        found = np.sqrt(squares.reindex(range(bins)).to_numpy())
        least = np.nanmin(found, initial=np.inf, where=found > 0)
        self.profile = np.where(found > 0, found, least) if np.isfinite(least) else None

    def sets(self, order: int, number: int) -> pd.DataFrame:
        """Chunk `number` of draws of M_k, and of Var g with those of k = 1."""
        rng = np.random.default_rng(spawn(self.seed, f"order {order}", number))
        return _frame(self._sample_sets(order, number * self.chunk + np.arange(self.chunk), rng))

    def cubes(self, size: int, number: int) -> pd.DataFrame:
        """Chunk `number` of draws that flip `size` positions in all ways: M_1 .. M_size, Var g."""
        rng = np.random.default_rng(spawn(self.seed, "cubes", number))
        numbers = number * self.chunk + np.arange(self.chunk)
        return _frame([part for draw in numbers for part in self._cube(size, draw, rng)])

    def whole(self, number: int) -> list[tuple]:
        """M_k and Var g of a block, exactly: each target with all flips of its context."""
        block, targets = np.array([number]), self.targets[self.free[number, self.targets]]
        found = []
        for group in targets[None] if self.model.causal else targets[:, None]:
            asked = (self.targets if self.model.causal else group)[None]
            context = self.context(block, asked)
            chosen = np.flatnonzero(context[1].any((0, 1)))
            given = self.s[number], self.r[number], chosen, asked[0]
            logits = torch.cat([part for _, part in flips.cube(self.inner, *given)])
            weights = flips.walsh_weights(logits, self.metric)
            for order in range(self.s.shape[1]):
                binomials = [comb(d, order) for d in range(len(weights))]
                binomials[0] *= order > 0
                values = (np.array(binomials) @ weights)[None]
                given = asked, order, 0 * asked, context, np.array([1 / len(targets)]), values
                found.append(self._rows(np.isin(asked, group), block, *given))
        return found

    def context(self, blocks: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions (n, A, L) that may be flipped for targets (n, A), and those that differ."""
        apart = np.greater if self.model.causal else np.not_equal
        seen = apart(targets[:, :, None], np.arange(self.s.shape[1])) & self.free[blocks, None]
        return seen, seen & (self.r != self.s)[blocks, None]

    def _begin(self, numbers: np.ndarray, rng: np.random.Generator):
        """Contexts, their flips, fresh ones (n, L); targets (n, A), which are asked, `context`."""
        blocks = numbers % len(self.blocks)
        s, r, kept = self.s[blocks], self.r[blocks], self.free[blocks][:, self.targets]
        start = np.where(rng.random(s.shape) < 0.5, s, r)
        other = s + r - start
        targets = np.tile(self.targets, (len(blocks), 1))
        if not self.model.causal:
            targets = np.argmax(rng.random(kept.shape) * kept, axis=1)[:, None]
            kept = np.ones_like(targets, bool)
        fresh = np.where(rng.random(s.shape) < 0.5, start, other)
        return start, other, fresh, targets, kept, self.context(blocks, targets)

    def _sample_sets(self, order, numbers, rng, uniform=flips.UNIFORM) -> list[tuple]:
        start, other, fresh, targets, kept, context = self._begin(numbers, rng)
        chance = flips.chances(context[1], targets, self.profile, uniform)
        can = kept & ((chance > 0).sum(2) >= order)
        # The target whose profile the set is drawn by; any of a causal model.
        anchor = np.argmax(rng.random(can.shape) * can, axis=1)
        chosen = flips.draw_set(chance[np.arange(len(start)), anchor], order, rng)
        of_set = flips.set_chance(np.take_along_axis(chance, chosen[:, None], axis=2))
        mixed = (of_set * can).sum(1) / np.maximum(can.sum(1), 1)
        drawn = can.any(1)
        weight = np.divide(1, mixed * kept.sum(1), out=np.zeros(len(start)), where=drawn)
        values = np.zeros((2, *targets.shape))
        for begin in range(0, len(start), self.inner.batch):
            part = slice(begin, begin + self.inner.batch)
            given = start[part], other[part], chosen[part], targets[part]
            change, here = flips.alternating(self.inner, *given)
            values[0, part] = flips.norm(change, self.metric)
            if order == 1:
                here -= flips.ask(self.inner, fresh[part], targets[part])
                values[1, part] = flips.norm(here, self.metric) / 2
        first, last = chosen.min(1, keepdims=True), chosen.max(1, keepdims=True)
        span = np.maximum(targets, last) - np.minimum(targets, first)
        asked = kept & drawn[:, None]
        if self.model.causal:
            asked &= targets > last
        asked[~drawn, 0] = True  # a draw that finds nothing to flip counts, as 0
        found = [self._rows(asked, numbers, targets, order, span, context, weight, values[0])]
        if order == 1:
            mean = 1 / kept.sum(1)
            found.append(self._rows(kept, numbers, targets, 0, 0 * span, context, mean, values[1]))
        return found

    def _cube(self, size: int, number: int, rng: np.random.Generator) -> list[tuple]:
        numbers = np.array([number])
        start, other, fresh, targets, kept, context = self._begin(numbers, rng)
        flipped = context[1].any(1)
        chosen = flips.draw_set(flipped / max(flipped.sum(), 1), size, rng)[0]
        outputs = flips.cube(self.inner, start[0], other[0], chosen, targets[0])
        logits = torch.cat([part for _, part in outputs])
        change = logits[0] - flips.ask(self.inner, fresh, targets)[0]
        weights, among = flips.walsh_weights(logits, self.metric), max(int(flipped.sum()), size)
        variance, found = flips.norm(change, self.metric) / 2, []
        for order in range(size + 1):
            values = sum(comb(d, order) * weights[d] for d in range(size + 1))
            mean = np.array([comb(among, order) / comb(size, order) / kept.sum()])
            given = order, 0 * targets, context, mean, (values if order else variance)[None]
            found.append(self._rows(kept, numbers, targets, *given))
        return found

    def _rows(self, asked, numbers, targets, order, span, context, weight, values) -> tuple:
        at = np.nonzero(asked)
        number, weight = numbers[at[0]], weight[at[0]]
        seen, differ = (positions[at].sum(1) for positions in context)
        columns = self.blocks[number % len(self.blocks)], number, targets[at]
        return *columns, np.full_like(number, order), span[at], seen, differ, weight, values[at]

    def _replacement(self, law, s, others, kept, special, sweeps) -> np.ndarray:
        """r (n, L) of blocks s (n, L), of which the kept tokens are not special."""
        rng = np.random.default_rng(spawn(self.seed, f"law {law}"))
        if law == "text":
            return others
        if law == "unigram":
            return rng.choice(len(self.mu), s.shape, p=self.mu)
        r, batch = s.copy(), self.model.batch
        for begin in range(0, len(s), batch):
            part = slice(begin, begin + batch)
            if self.model.causal:
                logits = flips.ask(self.model, s[part], r[part, 1:])
                r[part, 1:] = self._tokens(logits, special, rng)
                continue
            for place in (p for _ in range(sweeps) for p in rng.permutation(s.shape[1])):
                logits = flips.ask(self.model, r[part], np.full_like(r[part, :1], place))
                drawn = self._tokens(logits, special, rng)[:, 0]
                r[part, place] = np.where(kept[part, place], drawn, s[part, place])
        return r

    @staticmethod
    def _tokens(logits: torch.Tensor, special: tuple[int, ...], rng) -> np.ndarray:
        """A token (n, A) of each distribution of logits (n, A, |V|), not a special one."""
        logits[..., list(special)] = -torch.inf
        levels = logits.softmax(-1).cumsum(-1)
        places = torch.from_numpy(rng.random(levels.shape[:-1])).to(levels.device)
        places = places[..., None] * levels[..., -1:]
        return torch.searchsorted(levels, places, right=True)[..., 0].cpu().numpy()


def _frame(parts: list[tuple]) -> pd.DataFrame:
    """The rows of all parts, tuples of columns."""
    columns = map(np.concatenate, zip(*parts, strict=True))
    return pd.DataFrame(dict(zip(COLUMNS, columns, strict=True)))


def _resampled(count: int, seed: int) -> np.ndarray:
    """Counts of each of `count` blocks in each replicate, (1 + R, count); the first has all."""
    rng = np.random.default_rng(spawn(seed, "bootstrap"))
    drawn = rng.multinomial(count, np.full(count, 1 / count), REPLICATES)
    return np.vstack([np.ones(count), drawn])


_kept = lru_cache(KEPT)(_resampled)


class Blocks:
    """Sums over blocks: the first of the replicates is of all blocks, the others resample them."""

    def __init__(self, rows: pd.DataFrame, seed: int = 0):
        names, self.places = np.unique(rows["block"], return_inverse=True)
        self.count = len(names)
        self.weights = (_kept if self.count <= BLOCKS else _resampled)(self.count, seed)
        # The factor that undoes that a resampled variance is (B - 1) / B of itself.
        self.stretch = sqrt(self.count / (self.count - 1)) if self.count > 1 else np.nan

    def sums(self, which: np.ndarray, values: np.ndarray | float = 1.0) -> np.ndarray:
        """Replicates (1 + R,) of the sum of values (rows,) over the rows `which` (rows, bool)."""
        values = np.broadcast_to(values, which.shape)[which]
        return self.weights @ np.bincount(self.places[which], values, self.count)

    def floor(self, error: float, draw: np.ndarray, which: np.ndarray, terms: np.ndarray) -> float:
        """The standard error that endless draws on these blocks would leave, `error` less what the
        draws (rows of `which`,) within blocks vary by; 0 while unknown."""
        sums, block = np.bincount(draw, terms[which]), np.zeros(draw.max() + 1, np.int64)
        block[draw] = self.places[which]
        counts, of_blocks = np.bincount(block), np.bincount(block, sums)
        freedom = len(sums) - np.count_nonzero(counts)
        if freedom < self.count:
            return 0.0
        within = (sums**2).sum() - (of_blocks**2 / np.maximum(counts, 1)).sum()
        return sqrt(max(error**2 - within / freedom / len(sums), 0.0))

    def error(self, replicates: np.ndarray) -> float:
        """Standard error, not a number of one block."""
        if np.isnan(replicates[0]):
            return np.nan
        return float(np.nanstd(replicates[1:], ddof=1) * self.stretch)


@np.errstate(divide="ignore", invalid="ignore")
def summary(
    rows: pd.DataFrame,
    first: float = 0.03,
    higher: float = 0.003,
    degree: int | None = None,
    variance: float = 0.0,
    seed: int = 0,
) -> pd.DataFrame:
    """The table of `spectrum`, of the rows of its draws and with its arguments."""
    blocks, order = Blocks(rows, seed), rows["order"].to_numpy()
    weighted = (rows["weight"] * rows["value"]).to_numpy()
    new = ~rows.duplicated(["order", "draw"]).to_numpy()
    every, largest = order == 0, order.max()
    total = blocks.sums(every, weighted) / blocks.sums(new & every)
    none = total[0] <= NONE * variance
    parts = {("M", k): signs for k, signs in enumerate(np.eye(largest + 1)) if k}
    for d in range(1, largest + 1) if degree else ():
        parts["W", d] = np.array([(-1) ** (k + d) * comb(k, d) for k in range(largest + 1)])
    results, means = [], {}
    for (quantity, k), signs in parts.items():
        drawn = k if degree is None else 1
        which, terms = signs[order] != 0, signs[order] * weighted
        these = new & (order == drawn)
        mean = means[quantity, k] = blocks.sums(which, terms) / blocks.sums(these)
        error, share = blocks.error(mean), mean / total
        floor = blocks.floor(error, rows["draw"].to_numpy()[which], which, terms)
        asked = first * mean[0] if k == 1 else higher * total[0]
        least = max(3 * error, ROUNDING * total[0])
        known = dict(
            quantity=quantity, order=k, value=mean[0], se=error, floor=floor, asked=asked,
            share=share[0], share_se=blocks.error(share), draws=these.sum(),
            forwards=these.sum() * forwards_of(largest, degree)[drawn], reached=error <= asked,
            state="upper bound" if mean[0] < least else "measured",
        )  # fmt: skip
        if quantity == "M":
            known["replicates"] = mean[0] + (mean[1:] - mean[0]) * blocks.stretch
        results.append(known)
    differing = blocks.sums(every, rows["differing"].to_numpy())
    others = {
        ("Var g", 0): total,
        ("mean degree", 1): means["M", 1] / total,
        ("M per differing", 1): means["M", 1] / differing * blocks.sums(every),
        ("differing", 0): differing / blocks.sums(every, rows["positions"].to_numpy()),
    }
    for (quantity, k), value in others.items():
        known = dict(quantity=quantity, order=k, value=value[0], se=blocks.error(value))
        results.append(known | {"reached": True, "state": "measured"})
    table = pd.DataFrame(results)
    return table.assign(state="no spectrum yet") if none else table
