"""How far next-token laws are from those of n-grams, along the features-across-time of Belrose et
al. (ICML 2024).

    KL(p_n || q) = mean over contexts of sum_a p_n(a) log p_n(a) / q(a),   and KL(q || p_n)

with p_n the law of a token given the n - 1 before it and q the model's law given all before it
(docs/science/controls.md, section 9). A model that has learned n-grams up to n alone has
KL(p_n || q) = 0; what it learns next moves it away again. Targets have at least n - 1 tokens
before them for the largest n, so that all n are held against the same contexts.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
import torch

from manybody.data import enumeration
from manybody.data.hamiltonian import Hamiltonian
from manybody.data.ngrams import KneserNey
from manybody.io.refusal import Refusal
from manybody.measure import flips
from manybody.measure.flips import Conditionals
from manybody.models.base import Model

# n, tokens (B, L), place -> p_n of the token at that place: (B, |V|)
Law = Callable[[int, np.ndarray, int], np.ndarray]


def of_stream(stream: np.ndarray, vocabulary: int, orders: int) -> Law:
    """n-grams up to n = `orders` by interpolated Kneser-Ney, from a text of tokens (T,)."""
    models = [KneserNey(stream, vocabulary, order) for order in range(1, orders + 1)]

    def law(order: int, tokens: np.ndarray, place: int) -> np.ndarray:
        windows = np.repeat(tokens[:, None, place - order + 1 : place + 1], vocabulary, axis=1)
        windows[..., -1] = np.arange(vocabulary)
        return models[order - 1].probability(windows)

    return law


def of_hamiltonian(hamiltonian: Hamiltonian) -> Law:
    """The n-grams of a Boltzmann law, at each place its own, by enumeration of all states."""
    size, length = hamiltonian.vocabulary, hamiltonian.length
    states = enumeration.probabilities(hamiltonian).reshape((size,) * length)

    def law(order: int, tokens: np.ndarray, place: int) -> np.ndarray:
        window = range(place - order + 1, place + 1)
        joint = states.sum(tuple(site for site in range(length) if site not in window))
        found = joint[tuple(tokens[:, window[:-1]].T)]
        return np.broadcast_to(found / found.sum(-1, keepdims=True), (len(tokens), size))

    return law


def references(law: Law, tokens: np.ndarray, orders: int) -> np.ndarray:
    """p_n of the targets of tokens (B, L), in single precision: (orders, B, A, |V|)."""
    if not 1 <= orders <= tokens.shape[1]:
        raise Refusal(f"found {orders}; expected 1 to L = {tokens.shape[1]}", "orders")
    places = range(max(orders - 1, 1), tokens.shape[1])
    every = range(1, orders + 1)
    found = [[law(order, tokens, place) for place in places] for order in every]
    return np.array(found, np.float32).transpose(0, 2, 1, 3)


@torch.no_grad()
def divergences(
    model: Model | Conditionals, tokens: np.ndarray, references: np.ndarray
) -> pd.DataFrame:
    """KL(p||q) and KL(q||p) of a causal model in nats: columns quantity, order, value, se.

    tokens: (B, L); references: of these tokens, as `references` makes them. Errors are those of the
    choice of sequences. Raises `Refusal` for a masked model, which no law of the next token has.
    """
    model = model if isinstance(model, Conditionals) else flips.of_model(model)
    if not model.causal:
        raise Refusal("found a masked model; expected a causal one, which predicts the next token")
    orders, count, places, _ = references.shape
    forward, reverse = np.empty((orders, count)), np.empty((orders, count))
    asked = np.arange(1, tokens.shape[1])
    for begin in range(0, count, model.batch):
        part = slice(begin, begin + model.batch)
        logits = flips.ask(model, tokens[part], np.tile(asked, (len(tokens[part]), 1)))
        log_q = logits[:, -places:].log_softmax(-1).cpu().numpy()
        for order, laws in enumerate(references):
            p = laws[part].astype(float)
            p /= p.sum(-1, keepdims=True)
            apart = np.log(p) - log_q
            forward[order, part] = (p * apart).sum(-1).mean(1)
            reverse[order, part] = -(np.exp(log_q) * apart).sum(-1).mean(1)
    rows = [
        (name, order + 1, values.mean(), values.std(ddof=1) / count**0.5)
        for name, found in (("KL(p||q)", forward), ("KL(q||p)", reverse))
        for order, values in enumerate(found)
    ]
    return pd.DataFrame(rows, columns=["quantity", "order", "value", "se"])
