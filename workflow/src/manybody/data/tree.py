"""Sequences of the leaves of a binary tree, exact by belief propagation, whole or filtered.

A tree of depth l has L = 2^l leaves and symbols 0 ... q - 1. The root is uniform; a node of symbol
a has children b, c with probability M[a, b, c], and each pair (b, c) has one parent, so a sequence
has one tree. A filter at level k draws the 2^k nodes there independently given the root, node j
from P_j(. | root), what M makes of it along its path; below them M holds. k = 0 is the whole tree;
at k = l leaves are independent given the root. Garnier-Brun, Mezard, Moscato and Saglietti (2025).

Messages go up, u(a) = sum_bc M[a, b, c] u_left(b) u_right(c), and from the root down again; the
derivative of p(x) by the message of a leaf is the leaf's distribution given all others.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from manybody.data import SPLITS
from manybody.io import sequences

BLOCK = 4096  # sequences whose messages are in memory at once


class Tree:
    """`rules` M (q, q, q), depth l and the level k, 0 ... l, at which it is filtered."""

    def __init__(self, rules: np.ndarray, depth: int, level: int = 0):
        self.rules = np.asarray(rules, np.float64)
        self.depth, self.level, self.vocabulary = depth, level, len(self.rules)
        self.length = 2**depth
        sides = self.rules.sum(axis=2), self.rules.sum(axis=1)
        paths = np.eye(self.vocabulary)[None]
        for _ in range(level):
            paths = np.stack([paths @ side for side in sides], axis=1).reshape(-1, *paths.shape[1:])
        self.paths = paths  # P_j(a | root): (2^k, q, q)

    def draw(self, count: int, random: np.random.Generator) -> np.ndarray:
        """Sequences (count, L) int64, drawn exactly from the root down."""
        root = random.integers(self.vocabulary, size=count)
        nodes = _chosen(self.paths.swapaxes(0, 1)[root], random)
        pairs = self.rules.reshape(self.vocabulary, -1)
        for _ in range(self.depth - self.level):
            children = np.divmod(_chosen(pairs[nodes], random), self.vocabulary)
            nodes = np.stack(children, axis=2).reshape(count, -1)
        return nodes

    def log_probability(self, tokens: np.ndarray) -> np.ndarray:
        """log p(x), in nats, of tokens (N, L): (N,)."""
        found = np.empty(len(tokens))
        for start in range(0, len(tokens), BLOCK):
            part = slice(start, start + BLOCK)
            _, at_level, scales = self._upward(tokens[part])
            found[part] = np.logaddexp.reduce(_log(at_level).sum(axis=1), axis=1) + scales
        return found - np.log(self.vocabulary)

    def log_conditionals(self, tokens: np.ndarray) -> np.ndarray:
        """log p(x_i = a | rest), in nats: (N, L) to (N, L, q)."""
        found = np.empty((*tokens.shape, self.vocabulary))
        for start in range(0, len(tokens), BLOCK):
            found[start : start + BLOCK] = self._conditionals(tokens[start : start + BLOCK])
        return found

    def _upward(self, tokens: np.ndarray) -> tuple[list, np.ndarray, np.ndarray]:
        """Messages u from the leaves to depth k, each (N, nodes, q) and scaled to a largest of 1,
        sum_a P_j(a | root) u_j(a), (N, 2^k, q), and the logs of the scales (N,)."""
        messages, scales = [np.eye(self.vocabulary)[tokens]], np.zeros(len(tokens))
        for _ in range(self.depth - self.level):
            below = messages[-1]
            found = np.einsum(
                "abc,njb,njc->nja", self.rules, below[:, ::2], below[:, 1::2], optimize=True
            )
            messages.append(_scaled(found, scales))
        return messages, np.einsum("jra,nja->njr", self.paths, messages[-1]), scales

    def _conditionals(self, tokens: np.ndarray) -> np.ndarray:
        messages, at_level, scales = self._upward(tokens)
        # Of each node the product of all others at its level; sums of logs, as factors may be 0.
        logs = _log(at_level)
        others = np.zeros_like(logs)
        others[:, 1:] += np.cumsum(logs[:, :-1], axis=1)
        others[:, :-1] += np.cumsum(logs[:, :0:-1], axis=1)[:, ::-1]
        others -= np.maximum(others.max(axis=2, keepdims=True), np.finfo(float).min)
        down = np.einsum("jra,njr->nja", self.paths, np.exp(others))
        for below in messages[-2::-1]:
            left = np.einsum("abc,nja,njc->njb", self.rules, down, below[:, 1::2], optimize=True)
            right = np.einsum("abc,nja,njb->njc", self.rules, down, below[:, ::2], optimize=True)
            down = _scaled(np.stack([left, right], axis=2).reshape(below.shape), scales)
        return _log(down / down.sum(axis=2, keepdims=True))

    def masked_losses(self, tokens: np.ndarray) -> np.ndarray:
        """Loss of a masked token under the tree, mean over the positions of tokens (N, L): (N,)."""
        logs = self.log_conditionals(tokens)
        return -np.take_along_axis(logs, tokens[:, :, None], axis=2).mean(axis=(1, 2))


def random_rules(vocabulary: int, deviation: float, random: np.random.Generator) -> np.ndarray:
    """M (q, q, q): the q^2 pairs split at random into q groups, one a parent, and the softmax over
    a parent's pairs of normal numbers of this standard deviation."""
    pairs = random.permutation(vocabulary**2).reshape(vocabulary, vocabulary)
    weights = np.exp(deviation * random.standard_normal(pairs.shape))
    rules = np.zeros((vocabulary, vocabulary**2))
    np.put_along_axis(rules, pairs, weights / weights.sum(axis=1, keepdims=True), axis=1)
    return rules.reshape((vocabulary,) * 3)


def of(source: dict) -> Tree:
    """The tree of a source, its config entry; those that differ by level only share their rules."""
    random = np.random.default_rng(source["seed"])
    rules = random_rules(source["vocabulary"], source["rules"]["deviation"], random)
    return Tree(rules, source["depth"], source["level"])


def read_conditionals(path: str | Path) -> Tree:
    """The tree of a file of sequences, whose document has its rules."""
    found = sequences.Sequences.open(path)
    depth = found.length.bit_length() - 1
    return Tree(np.array(found.about["rules"]), depth, found.about["level"])


def make(source: dict, name: str, given: Sequence[str | Path], out: dict) -> None:
    """Writes the splits of the source called `name`.

    The document of a split has the `rules`; its `losses` in nats, averages over the split with
    standard errors: the `entropy` of a sequence and the best loss of a `masked` token; and
    `masked_by_level`, the latter under the same tree filtered at each level, 0 to l.
    """
    tree = of(source)
    streams = np.random.SeedSequence(source["seed"]).spawn(tree.depth + 1)
    splits = streams[tree.level].spawn(len(SPLITS))
    levels = [Tree(tree.rules, tree.depth, level) for level in range(tree.depth + 1)]
    known = dict(source=name, seed=source["seed"], level=tree.level, rules=tree.rules.tolist())
    for split, stream in zip(SPLITS, splits, strict=True):
        tokens = tree.draw(source["sequences"][split], np.random.default_rng(stream))
        masked = [float(other.masked_losses(tokens).mean()) for other in levels]
        own = dict(entropy=-tree.log_probability(tokens), masked=tree.masked_losses(tokens))
        losses = {key: mean_and_error(values) for key, values in own.items()}
        about = dict(**known, split=split, losses=losses, masked_by_level=masked)
        sequences.write(out[split], tokens, tree.vocabulary, about)


def mean_and_error(values: np.ndarray) -> list[float]:
    """The mean of values (N,) and its standard error."""
    return [float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))]


def _chosen(probabilities: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """One draw from each distribution of the last axis: (...)."""
    sums = probabilities.cumsum(axis=-1)
    wanted = random.random(probabilities.shape[:-1]) * sums[..., -1]
    return (sums <= wanted[..., None]).sum(axis=-1)


def _scaled(messages: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """Messages (N, nodes, q) with a largest entry of 1, or 0; adds the logs to `scales` (N,)."""
    most = messages.max(axis=2, keepdims=True)
    scales += _log(most).sum(axis=(1, 2))
    return np.divide(messages, most, out=np.zeros_like(messages), where=most > 0)


def _log(values: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(values)
