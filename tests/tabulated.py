"""Models given by tables over a few context positions, and their spectrum by the definition."""

from itertools import product
from math import comb

import numpy as np
import torch
from scipy.linalg import helmert

from manybody.measure.flips import Conditionals


def model(length, vocabulary, degree, seed=0, causal=False, terms=8):
    """Logits that are sums of Gaussian tables over 1 .. degree context positions.

    Tables of more positions are larger, so that M_k of high order is no rare event.
    """
    rng = np.random.default_rng(seed)
    tables = []
    for target in range(length):
        context = np.arange(target) if causal else np.delete(np.arange(length), target)
        of_target = []
        for size in range(1, min(degree, len(context)) + 1):
            for _ in range(terms):
                sites = rng.choice(context, size, replace=False)
                table = 2 ** (size / 2) * rng.normal(size=(*[vocabulary] * size, vocabulary))
                of_target.append((sites, table))
        tables.append(of_target)

    def at(tokens, target):
        total = np.zeros((len(tokens), vocabulary))
        for sites, table in tables[target]:
            total += table[tuple(tokens[:, sites].T)]
        return total

    def next_tokens(tokens):
        every = [at(tokens.numpy(), place + 1) for place in range(tokens.shape[1])]
        return torch.from_numpy(np.stack(every, axis=1))

    if causal:
        return Conditionals(next_tokens, vocabulary, True, 4096)
    return _masked(at, vocabulary)


def dense(length, vocabulary, degree, seed=0):
    """Logits that are Gaussian in every function of 1 .. degree of the L - 1 other positions.

    On uniform contexts each degree has the same share of their variance.
    """
    rng, sites = np.random.default_rng(seed), length - 1
    basis = np.sqrt(vocabulary) * helmert(vocabulary, full=True).T
    degrees = (np.indices([vocabulary] * sites) > 0).sum(0)
    scale = np.bincount(degrees.ravel())[degrees] ** -0.5 * ((degrees > 0) & (degrees <= degree))
    logits = rng.normal(size=(length, vocabulary, *degrees.shape)) * scale
    for _ in range(sites):
        # The first site's axis goes last, so that after the loop all are in order again.
        logits = np.tensordot(logits, basis, (2, 1))
    places = vocabulary ** np.arange(sites)[::-1]
    logits = logits.reshape(length, vocabulary, -1)

    def at(tokens, target):
        return logits[target][:, np.delete(tokens, target, axis=1) @ places].T

    return _masked(at, vocabulary)


def of_hamiltonian(law):
    """The true conditionals of a Boltzmann distribution, in double precision."""

    def masked(tokens, positions):
        logs = law.log_conditionals(tokens.numpy())
        return torch.from_numpy(logs[np.arange(len(logs)), positions.numpy()])

    return Conditionals(masked, law.vocabulary, False, 1024)


def _masked(at, vocabulary):
    """A masked model of the logits at(tokens, target) (n, |V|)."""

    def masked(tokens, positions):
        tokens, positions = tokens.numpy(), positions.numpy()
        found = np.zeros((len(tokens), vocabulary))
        for target in np.unique(positions):
            found[positions == target] = at(tokens[positions == target], target)
        return torch.from_numpy(found)

    return Conditionals(masked, vocabulary, False, 4096)


def all_flips(model, s, r, target):
    """Flips (2^L, L) of all positions from s to r, and the logits (2^L, |V|) of one target."""
    bits = np.array(list(product((0, 1), repeat=len(s))))
    tokens = torch.from_numpy(np.where(bits, r, s))
    if model.causal:
        logits = model.logits(tokens[:, :-1])[:, target - 1]
    else:
        logits = model.logits(tokens, torch.full((len(bits),), target))
    return bits, logits.double().numpy()


def walsh(model, s, r, target, mu):
    """W_d, d = 0 .. L, of one target by the characters of all flips of the L positions."""
    length = len(s)
    bits, g = all_flips(model, s, r, target)
    g = g - (g @ mu)[:, None]
    coefficients = g.reshape([2] * length + [-1])
    for place in range(length):
        kept, flipped = np.split(coefficients, 2, place)
        coefficients = np.concatenate([kept + flipped, kept - flipped], place) / 2
    return np.bincount(bits.sum(1), coefficients.reshape(g.shape) ** 2 @ mu, length + 1)


def spectrum(weights):
    """What `spectrum` calls the results that follow from W_d: (quantity, order) -> value."""
    degrees = np.arange(len(weights))
    variance = weights[1:].sum()
    found = {("Var g", 0): variance, ("mean degree", 1): degrees @ weights / variance}
    for k in degrees[1:]:
        found["M", k] = sum(comb(d, k) * weights[d] for d in degrees)
        found["W", k] = weights[k]
    return found
