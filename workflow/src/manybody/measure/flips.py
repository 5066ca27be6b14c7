"""Changes of a model's logits when tokens of their context are flipped.

A context is made of a block s of text and a reference block r: token s_j where m_j = 1, r_j where
m_j = 0. Flipping j exchanges the two. g(m) are the logits at a target, less their mean under the
unigram distribution mu, norm |g|^2 = sum_a mu_a g_a^2 (docs/science/controls.md, section 6).

Shapes: n contexts, L positions, |V| tokens. A is the number of targets that are read off one
forward: 1 of a masked model; of a causal one the L - 1 positions after the first, at once.
"""

from collections.abc import Callable, Iterator
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from manybody.models.base import Model

UNIFORM = 0.1  # share of draws that ignore the profile, so that no weight exceeds 10 times the mean


class Conditionals(NamedTuple):
    """A question to a model: the logits of a token given others.

    logits: of a masked model `logits(tokens (n, L), positions (n,))` -> (n, |V|), which masks each
    sequence at its position alone; of a causal one `logits(tokens (n, T))` -> (n, T, |V|) of the
    token after each, T < L. Tokens and positions are int64 on the CPU, logits on any device.
    """

    logits: Callable[..., Tensor]
    vocabulary: int
    causal: bool = False
    batch: int = 64  # sequences in a call
    model: Model | None = None  # whose logits they are, a linear head of d < |V| features


def of_model(model: Model) -> Conditionals:
    """The conditionals of a model of this package, in the batches that suit its device."""
    asked = _asked(model, model.head, model.vocabulary, model.activation_size)
    return asked._replace(model=model) if model.feature_size < model.vocabulary else asked


def without_head(model: Conditionals, mu: np.ndarray) -> tuple[Conditionals, np.ndarray | Tensor]:
    """The model that gives features h (d,) in place of logits, and R (d, r) of their metric:

        |g - g'|^2 = |(h - h') R|^2,   R R^T = sum_a mu_a w_a w_a^T,

    w_a the output row of token a, less their mean under mu. So no difference of logits takes
    anything |V| wide. Where the output layer is not known, the model itself and mu.
    """
    inner = model.model
    if inner is None:
        return model, mu
    of = next(inner.parameters())
    basis = torch.eye(inner.feature_size, dtype=of.dtype, device=of.device)
    rows = inner.head(basis).double()
    rows -= inner.head(torch.zeros_like(basis[:1])).double()
    shares = torch.from_numpy(mu).to(rows)
    rows -= (rows @ shares)[:, None]
    squares, axes = torch.linalg.eigh((rows * shares) @ rows.T)
    # The widest of what a causal model computes for a sequence are its logits, or else an MLP.
    size = inner.activation_size
    size = min(size, 4 * len(basis) * inner.length) if model.causal else size
    root = axes * squares.clamp(min=0).sqrt()
    return _asked(inner, lambda features: features, len(basis), size), root


def _asked(model: Model, head: Callable, numbers: int, size: int) -> Conditionals:
    """A model's `head` of its features, `numbers` wide; `size` is that of a sequence's widest."""
    device = next(model.parameters()).device
    batch = max(1, (2**19 if device.type == "cpu" else 2**28) // size)
    if model.about.causal:
        return Conditionals(
            lambda tokens: head(model.features(tokens.to(device))), numbers, True, batch
        )

    def masked(tokens: Tensor, positions: Tensor) -> Tensor:
        rows = torch.arange(len(tokens), device=device)
        return head(model.masked_features(tokens.to(device), rows, positions.to(device)))

    return Conditionals(masked, numbers, False, batch)


def unigram(tokens: np.ndarray, vocabulary: int, special: tuple[int, ...] = ()) -> np.ndarray:
    """mu (|V|,): counts in tokens (N, L) plus 1/2, normalised; 0 for special tokens."""
    counts = np.bincount(np.ravel(tokens), minlength=vocabulary) + 0.5
    counts[list(special)] = 0
    return counts / counts.sum()


def ask(model: Conditionals, tokens: np.ndarray, targets: np.ndarray) -> Tensor:
    """Logits (n, A, |V|) float64 at targets (n, A) of tokens (n, L)."""
    given = torch.from_numpy(tokens)
    if model.causal:
        found = model.logits(given[:, :-1])
    else:
        found = model.logits(given, torch.from_numpy(targets[:, 0]))[:, None]
    expected = (*targets.shape, model.vocabulary)
    if found.shape != expected:
        raise ValueError(
            f"the model gave logits of shape {tuple(found.shape)} for {len(tokens)} sequences of "
            f"L = {tokens.shape[1]}; expected {expected}, see `Conditionals.logits`"
        )
    if not torch.isfinite(found).all():
        raise ValueError("the model gave logits that are not finite; leave this checkpoint out")
    return found.double()


def norm(logits: Tensor, mu: np.ndarray | Tensor) -> np.ndarray:
    """|g|^2 (...) of logits (..., |V|), which are centred under mu here and overwritten; or of
    differences of features (..., d), with R of `without_head` for mu."""
    if isinstance(mu, Tensor):
        return (logits @ mu).square_().sum(-1).cpu().numpy()
    shares = torch.from_numpy(mu).to(logits.device)
    logits -= (logits @ shares)[..., None]
    return (logits.square_() @ shares).cpu().numpy()


def alternating(
    model: Conditionals,
    start: np.ndarray,
    other: np.ndarray,
    chosen: np.ndarray,
    targets: np.ndarray,
) -> tuple[Tensor, Tensor]:
    """2^-k sum over subsets U of T of (-1)^|U| times the logits with U flipped, by 2^k passes.

    start, other (n, L): the context, and its tokens when flipped; chosen (n, k): T. Also returns
    the logits of `start`; both (n, A, |V|).
    """
    rows, size = np.arange(len(start))[:, None], chosen.shape[1]
    first = ask(model, start, targets)
    total = first.clone()
    for flips in list(product((False, True), repeat=size))[1:]:
        here, columns = start.copy(), chosen[:, np.array(flips)]
        here[rows, columns] = other[rows, columns]
        total.add_(ask(model, here, targets), alpha=(-1) ** sum(flips))
    return total / 2**size, first


def cube(
    model: Conditionals,
    start: np.ndarray,
    other: np.ndarray,
    chosen: np.ndarray,
    targets: np.ndarray,
) -> Iterator[tuple[np.ndarray, Tensor]]:
    """All 2^q flips of chosen (q,) in one context (L,), batch by batch, in the order of binary
    numbers whose bit a flips chosen[a]: how many are flipped (n,), logits (n, A, |V|)."""
    size = len(chosen)
    bits = (np.arange(2**size)[:, None] >> np.arange(size) & 1).astype(bool)
    for begin in range(0, len(bits), model.batch):
        part = bits[begin : begin + model.batch]
        tokens = np.tile(start, (len(part), 1))
        tokens[:, chosen] = np.where(part, other[chosen], start[chosen])
        yield part.sum(1), ask(model, tokens, np.tile(targets, (len(part), 1)))


def walsh_weights(logits: Tensor, mu: np.ndarray | Tensor) -> np.ndarray:
    """w_d, d = 0 .. q, of logits (2^q, A, |V|) on a cube: (q + 1, A), by the fast transform."""
    count = len(logits)
    size = count.bit_length() - 1
    shape = logits.shape
    for bit in range(size):
        first, second = logits.view(-1, 2, 2**bit, *shape[1:]).unbind(1)
        logits = torch.stack([first + second, first - second], dim=1)
    squares = norm(logits.reshape(shape) / count, mu)
    degrees = np.bitwise_count(np.arange(count))
    return np.stack([squares[degrees == degree].sum(0) for degree in range(size + 1)])


def octaves(distances: np.ndarray) -> np.ndarray:
    """0 for distance 1, 1 for 2, 2 for 3 and 4, 3 for 5 to 8, and so on."""
    return np.ceil(np.log2(np.maximum(distances, 1))).astype(np.int64)


def chances(
    context: np.ndarray, targets: np.ndarray, profile: np.ndarray | None, uniform: float = UNIFORM
) -> np.ndarray:
    """q_j (n, A, L): with what probability position j is drawn first for each of targets (n, A).

    context (n, A, L): which positions may be flipped. profile: the weight of each octave of the
    distance |i - j|, mixed with a `uniform` share; None: uniform. Rows without a position are 0.
    """
    flat = context / np.maximum(context.sum(2, keepdims=True), 1)
    if profile is None:
        return flat
    shaped = context * profile[octaves(np.abs(targets[:, :, None] - np.arange(context.shape[2])))]
    total = shaped.sum(2, keepdims=True)
    shaped = np.divide(shaped, total, out=flat.copy() if uniform else 0 * flat, where=total > 0)
    return (1 - uniform) * shaped + uniform * flat


def draw_set(chance: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """`size` distinct positions (n, size) by chance (n, L): the largest of log q + Gumbel noise."""
    with np.errstate(divide="ignore"):
        keys = np.log(chance) + rng.gumbel(size=chance.shape)
    return np.argsort(-keys, axis=1, kind="stable")[:, :size]


def set_chance(chance: np.ndarray) -> np.ndarray:
    """Probability (...) that the drawn set is this one, by the chances (..., k) of its positions:
    the sum over the orders in which they may be drawn."""
    total = np.zeros(chance.shape[:-1])
    for order in permutations(range(chance.shape[-1])):
        drawn, product_ = np.zeros_like(total), np.ones_like(total)
        for place in order:
            product_ *= chance[..., place] / np.maximum(1 - drawn, 1e-12)
            drawn += chance[..., place]
        total += product_
    return total
