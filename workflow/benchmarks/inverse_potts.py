"""Couplings inferred by factored attention against those by full pseudo-likelihood (plm).

plm is `pair_fit`, a free block a pair, with the ridge, of `RIDGES`, at which its scores correlate
best with the truth: more than it could know. Its blocks and those of the heads are scored alike:
Frobenius norm in the zero-sum gauge, with (APC) and without average-product correction. Planted is
a Gaussian matrix of its own for each of 40 contacts, where heads are not the right form: of the 80
matrices, those of two directions, H heads share H.

Quality has the unit `r` or `precision` (of as many pairs as there are contacts), speed `fits/s`:
with more than 1 in `ratio` ours is better.
"""

import numpy as np

from benchmarks.harness import row, timed
from manybody.data.pair_model import PairModel
from manybody.measure import contacts
from manybody.sampling import pair_chains
from manybody.training import pair_fit, pseudolikelihood as pl

LENGTH = COLOURS = 20
SEQUENCES = 5000
CONTACTS = 40  # dense pairs
SWEEPS = 200
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3)  # of plm: half of it times the squared J and h, a site
HEADS = dict(heads=80, ridge=3e-4, iterations=16, fields=True)


def measure() -> list[dict]:
    """Rows `what, ours, baseline, ratio, unit, threads`."""
    couplings = dense(LENGTH, COLOURS, CONTACTS, 2)
    model = PairModel(np.zeros((LENGTH, COLOURS)), couplings, {})
    tokens, truth = pair_chains.sample(model, SEQUENCES, SWEEPS, 3), scores(couplings)
    few = np.random.default_rng(0).integers(0, COLOURS, (4, LENGTH))
    pl.fit_heads(pl.Counted(few, COLOURS), **HEADS | dict(iterations=1))  # compiles
    fit_full(few, RIDGES[0])
    counted = pl.Counted(tokens, COLOURS)
    ours, _, mine = timed(lambda: pl.fit_heads(counted, **HEADS))
    found = quality(scores(ours.model.couplings), truth)
    fits = []
    for ridge in RIDGES:
        full, _, seconds = timed(fit_full, tokens, ridge)
        fits.append((quality(scores(full.model.couplings), truth), ridge, seconds))
    best, ridge, seconds = max(fits, key=lambda one: one[0]["r F"])
    what = f"planted dense U, M = {SEQUENCES}: {HEADS['heads']} heads"
    what += f" (ridge {HEADS['ridge']:g}) against plm (ridge {ridge:g})"
    rows = [row(f"{what}, {name}", found[name], best[name], name.split()[0]) for name in found]
    return [*rows, row(f"{what}, time", 1 / mine, 1 / seconds, "fits/s")]


def dense(length: int, colours: int, pairs: int, seed: int) -> np.ndarray:
    """J (L, L, q, q), i, j, a, b: a standard normal matrix of its own for each of some pairs."""
    rng = np.random.default_rng(seed)
    first, second = np.triu_indices(length, 1)
    couplings = np.zeros((length, length, colours, colours))
    for pair in rng.choice(len(first), pairs, replace=False):
        i, j = first[pair], second[pair]
        couplings[i, j] = rng.standard_normal((colours, colours))
        couplings[j, i] = couplings[i, j].T
    return couplings


def scores(couplings: np.ndarray) -> np.ndarray:
    """Frobenius norms (L, L) of the symmetrised couplings (L, L, q, q) in the zero-sum gauge."""
    couplings = (couplings + couplings.transpose(1, 0, 3, 2)) / 2
    return np.sqrt(np.square(contacts.zero_sum(couplings)).sum(axis=(2, 3)))


def quality(found: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Pearson r with the true scores, and precision, of scores (L, L) and of their correction."""
    pairs, true = np.triu_indices(len(truth), 1), truth > 0
    top = int(true[pairs].sum())
    return {
        f"{unit} {name}": value
        for name, given in (("F", found), ("F-APC", contacts.apc(found)))
        for unit, value in (
            ("r", float(np.corrcoef(given[pairs], truth[pairs])[0, 1])),
            ("precision", float(contacts.precision(given, true)[top - 1])),
        )
    }


def fit_full(tokens: np.ndarray, ridge: float) -> pair_fit.Fit:
    """The least mean loss a site plus ridge / 2 times the squared J, of ordered pairs, and h."""
    family = pair_fit.Family(tokens, COLOURS)
    return pair_fit.solve(family, (ridge * tokens.size, ridge * tokens.size / 2))
