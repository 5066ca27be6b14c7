"""Multi-order interactions of pairs of context tokens (Zhang et al.; Deng et al., ICLR 2022).

With f(S) the log-odds log p / (1 - p) of the true token at a target, where the context positions
S have their own tokens s and all others those of a reference block r, and N context positions,

    I^(m)(j, k) = mean over sets S of m others of f(S + jk) - f(S + j) - f(S + k) + f(S)
    J^(m)       = mean over targets, pairs and blocks of |I^(m)(j, k)|,   m = 0 .. N - 2

(docs/science/controls.md, section 9). The authors compare J^(m) over its sum over m: m is how much
context a pair is seen in, not a degree, so that a model of pairs has interactions at every m.

Blocks, their r and the targets are those of `spectrum`; of a causal model the target is the last
token, so that all contexts have one size. A position where r_j = s_j has no interactions.
"""

from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
import torch
from scipy.special import logsumexp

from manybody.io.refusal import Refusal
from manybody.io.seeds import spawn
from manybody.measure import flips
from manybody.measure.flips import Conditionals
from manybody.measure.spectrum import LONGEST, Draws
from manybody.models.base import Model

HELD = 2**14  # contexts built at once


def log_odds(logits: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """log p / (1 - p) of each of tokens (n,), in nats, by logits (n, |V|): (n,)."""
    own = np.arange(len(tokens)), tokens
    others = logits.astype(float)
    others[own] = -np.inf
    return logits[own] - logsumexp(others, axis=1)


def of_cube(values: np.ndarray) -> np.ndarray:
    """I^(m) (pairs, N - 1) of all pairs, from f (2,)*N on all sets: index 1 of an axis is own."""
    size = values.ndim
    counts = np.indices((2,) * (size - 2)).sum(0).ravel()
    found = []
    for pair in combinations(range(size), 2):
        part = np.moveaxis(values, pair, (0, 1))
        change = (part[1, 1] - part[1, 0] - part[0, 1] + part[0, 0]).ravel()
        found.append(np.bincount(counts, change) / np.bincount(counts))
    return np.array(found)


@torch.no_grad()
def enumerated(
    model: Model | Conditionals,
    tokens: np.ndarray,
    *,
    law: str = "text",
    special: tuple[int, ...] = (),
    seed: int = 0,
) -> pd.DataFrame:
    """J^(m) of all m by all sets, pairs and targets of sequences tokens (B, L): size, value, se.

    Takes 2^(L - 1) forwards a block and target. law, special and seed as of `spectrum.spectrum`.
    Errors are those of the choice of blocks. `Refusal` for L below 3 or above 17.
    """
    model = model if isinstance(model, Conditionals) else flips.of_model(model)
    draws = _draws(model, tokens, law, special, seed)
    if tokens.shape[1] > LONGEST:
        raise Refusal(
            f"found L = {tokens.shape[1]}; expected at most {LONGEST} to enumerate all contexts"
        )
    blocks, found = [], []
    for block, targets in enumerate(_targets(draws)):
        for target in targets:
            context = np.delete(np.arange(tokens.shape[1]), target)
            given = draws.r[block], draws.s[block], context, _asked(draws, target)
            logits = torch.cat([part[:, -1] for _, part in flips.cube(model, *given)]).cpu()
            truth = np.full(len(logits), draws.s[block, target])
            values = log_odds(logits.numpy(), truth).reshape((2,) * len(context))
            blocks.append(block)
            found.append(np.abs(of_cube(values)).mean(0))
    return _means(range(len(found[0])), np.array(blocks), np.array(found))


@torch.no_grad()
def drawn(
    model: Model | Conditionals,
    tokens: np.ndarray,
    sizes: list[int],
    *,
    pairs: int,
    contexts: int,
    law: str = "text",
    special: tuple[int, ...] = (),
    seed: int = 0,
) -> pd.DataFrame:
    """J^(m) of the `sizes` m from `pairs` random targets and pairs, each in `contexts` sets S.

    Columns as of `enumerated`; at most 4 x pairs x contexts forwards a size. A size of which there
    are no more sets than that is seen in all of them. Else the mean over few sets makes |I| too
    large, by as much again with half of them: value is 2 |mean of all| less the mean of |mean of
    each half|. Equal arguments draw the same pairs for all sizes, whatever the model.

    Raises `Refusal` for a size above L - 3 and an odd number of contexts; else as `spectrum` does.
    """
    model = model if isinstance(model, Conditionals) else flips.of_model(model)
    length = tokens.shape[1]
    if max(sizes) > length - 3:
        raise Refusal(f"found {max(sizes)}; expected at most L - 3 = {length - 3}", "sizes")
    if contexts % 2:
        raise Refusal(f"found {contexts}; expected an even number, for two halves", "contexts")
    draws = _draws(model, tokens, law, special, seed)
    targets, rng = _targets(draws), np.random.default_rng(spawn(seed, "interactions"))
    blocks = np.resize([block for block, asked in enumerate(targets) if len(asked)], pairs)
    found = np.zeros((pairs, len(sizes)))
    step = max(1, HELD // (4 * contexts))
    for begin in range(0, pairs, step):
        part = blocks[begin : begin + step]
        target = np.array([rng.choice(targets[block]) for block in part])
        keys = rng.random((len(part), length))
        np.put_along_axis(keys, target[:, None], np.inf, axis=1)
        order = keys.argsort(1)[:, :-1]  # of the context positions: j, k and the others
        for place, size in enumerate(sizes):
            sets = _sets(order[:, 2:], size, contexts, rng)
            found[begin : begin + step, place] = _change(
                model, draws, part, target, order[:, :2], sets, comb(length - 3, size) > contexts
            )
    return _means(sizes, blocks, found)


def _sets(others: np.ndarray, size: int, contexts: int, rng) -> np.ndarray:
    """Sets (n, K, size) of the positions others (n, N - 2): all, or `contexts` random ones."""
    count = others.shape[1]
    if comb(count, size) <= contexts:
        every = np.array(list(combinations(range(count), size)), int)
        return others[:, every.reshape(comb(count, size), size)]
    chosen = rng.random((len(others), contexts, count)).argsort(2)[..., :size]
    return np.take_along_axis(others[:, None], chosen, axis=2)


def _change(model, draws: Draws, blocks, targets, pairs, sets, few: bool) -> np.ndarray:
    """|I^(m)| (n,) of n targets and pairs (n, 2), from sets (n, K, m); few: not all there are."""
    own = np.zeros((*sets.shape[:2], 4, draws.s.shape[1]), bool)
    np.put_along_axis(own, sets[:, :, None], True, axis=3)
    for which, (first, second) in enumerate([(1, 1), (1, 0), (0, 1), (0, 0)]):
        rows = np.arange(len(pairs))
        own[rows, :, which, pairs[:, 0]] = first
        own[rows, :, which, pairs[:, 1]] = second
    s, r = draws.s[blocks], draws.r[blocks]
    # Pairs without interactions are not asked about.
    changed = np.take_along_axis(s != r, pairs, axis=1).all(1)
    given = np.where(own, s[:, None, None], r[:, None, None])[changed].reshape(-1, s.shape[1])
    targets, each = targets[changed], own.shape[1] * 4
    truth, repeated = s[changed, targets].repeat(each), targets.repeat(each)
    values = np.empty(len(given))
    for begin in range(0, len(given), model.batch):
        part = slice(begin, begin + model.batch)
        asked = repeated[part, None]
        if model.causal:
            asked = np.tile(draws.targets, (len(given[part]), 1))
        logits = flips.ask(model, given[part], asked)[:, -1].cpu().numpy()
        values[part] = log_odds(logits, truth[part])
    change = values.reshape(-1, own.shape[1], 4) @ np.array([1, -1, -1, 1])
    size = np.abs(change.mean(1))
    if few:
        size = 2 * size - np.abs(change.reshape(len(change), 2, -1).mean(2)).mean(1)
    found = np.zeros(len(blocks))
    found[changed] = size
    return found


def _draws(model: Conditionals, tokens: np.ndarray, law: str, special, seed: int) -> Draws:
    if tokens.shape[1] < 3:
        raise Refusal(f"found L = {tokens.shape[1]}; expected at least 3, a target and a pair")
    return Draws(model, tokens, None, law, special, 1, seed)


def _targets(draws: Draws) -> list[np.ndarray]:
    """Of each block the targets that are asked; the last token alone of a causal model."""
    last = draws.s.shape[1] - 1
    asked = np.array([last]) if draws.model.causal else draws.targets
    return [asked[free[asked]] for free in draws.free]


def _asked(draws: Draws, target: int) -> np.ndarray:
    """The targets that one forward is read off at, of which the last is `target`."""
    return draws.targets if draws.model.causal else np.array([target])


def _means(sizes, blocks: np.ndarray, values: np.ndarray) -> pd.DataFrame:
    """Means of values (n, sizes), block by block, and their errors over blocks."""
    of_blocks = pd.DataFrame(values).groupby(blocks).mean()
    columns = {"size": list(sizes), "value": of_blocks.mean(), "se": of_blocks.sem()}
    return pd.DataFrame(columns)
