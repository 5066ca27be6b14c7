"""Couplings inferred by factored attention against those by full pseudo-likelihood (plm).

plm is `pair_fit`, a free block a pair, with the ridge, of `RIDGES`, at which its scores correlate
best with the truth: more than it could know. Its blocks and those of the heads are scored alike:
Frobenius norm in the zero-sum gauge, with (APC) and without average-product correction. Planted are

- couplings J_ij U_ab, the contact map and stored U of the source `potts`, beta 1.707, where one
  head is the right form;
- a Gaussian matrix of its own for each of 40 contacts, where heads are not: of the 80 matrices,
  those of two directions, H heads share H.

Quality has the unit `r` or `precision` (of as many pairs as there are contacts), speed `fits/s`:
with more than 1 in `ratio` ours is better.
"""

import numpy as np

from benchmarks.harness import row, timed
from manybody.data import pair_gibbs
from manybody.data.hamiltonian import Hamiltonian
from manybody.data.pair_model import PairModel
from manybody.data.potts import contact_map, stored_colours
from manybody.measure import contacts
from manybody.sampling import pair_chains
from manybody.training import pair_fit, pseudolikelihood as pl

BETA = 1.707
LENGTH = COLOURS = 20
FACTORISED, DENSE = 3000, 5000  # sequences
CONTACTS, SCALE = 40, 1.0  # dense pairs, and the standard deviation of their entries
SWEEPS = 200
RIDGES = (1e-6, 1e-5, 1e-4, 1e-3)  # of plm: half of it times the squared J and h, a site
ONE = dict(heads=1, ridge=1e-4, iterations=80)
SPARSE = dict(heads=1, sparsity=3e-4, ridge=1e-4, iterations=40)
HEADS = dict(heads=80, ridge=3e-4, iterations=16, fields=True)


def measure() -> list[dict]:
    """Rows `what, ours, baseline, ratio, unit, threads`."""
    hamiltonian = Hamiltonian(contact_map(LENGTH), -stored_colours() / 2, BETA)
    tokens = pair_gibbs.sample(hamiltonian, FACTORISED, SWEEPS, np.random.SeedSequence(1)).tokens
    truth = np.abs(hamiltonian.couplings)
    rows = []
    for settings in (ONE, SPARSE):
        rows += compare(f"planted J x U, M = {FACTORISED}", tokens, truth, settings)
    couplings = dense(LENGTH, COLOURS, CONTACTS, SCALE, np.random.SeedSequence(2))
    model = PairModel(np.zeros((LENGTH, COLOURS)), couplings, {})
    tokens = pair_chains.sample(model, DENSE, SWEEPS, 3)
    return rows + compare(f"planted dense U, M = {DENSE}", tokens, scores(couplings), HEADS)


def dense(
    length: int, colours: int, pairs: int, scale: float, stream: np.random.SeedSequence
) -> np.ndarray:
    """J (L, L, q, q), i, j, a, b: a Gaussian matrix of its own for each of some random pairs."""
    rng = np.random.default_rng(stream)
    first, second = np.triu_indices(length, 1)
    couplings = np.zeros((length, length, colours, colours))
    for pair in rng.choice(len(first), pairs, replace=False):
        i, j = first[pair], second[pair]
        couplings[i, j] = scale * rng.standard_normal((colours, colours))
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


def compare(what: str, tokens: np.ndarray, truth: np.ndarray, settings: dict) -> list[dict]:
    """Rows on one sample: tokens (N, L), and the true scores (L, L)."""
    _compile(settings)
    counted = pl.Counted(tokens, COLOURS)
    fit = fit_sparse if "sparsity" in settings else pl.fit_heads
    ours, _, mine = timed(lambda: fit(counted, **settings))
    found = quality(scores(ours.model.couplings), truth)
    fits = []
    for ridge in RIDGES:
        full, _, seconds = timed(fit_full, tokens, ridge)
        fits.append((quality(scores(full.model.couplings), truth), ridge, seconds))
    best, ridge, seconds = max(fits, key=lambda one: one[0]["r F"])
    heads = "1 head" if settings["heads"] == 1 else f"{settings['heads']} heads"
    heads += f", sparse ({settings['sparsity']:g})" if "sparsity" in settings else ""
    what = f"{what}: {heads} (ridge {settings['ridge']:g}) against plm (ridge {ridge:g})"
    rows = [row(f"{what}, {name}", found[name], best[name], name.split()[0]) for name in found]
    return [*rows, row(f"{what}, time", 1 / mine, 1 / seconds, "fits/s")]


def _compile(settings: dict) -> None:
    few = np.random.default_rng(0).integers(0, COLOURS, (4, LENGTH))
    short = {name: settings[name] for name in settings.keys() & {"heads", "fields"}}
    pl.fit_heads(pl.Counted(few, COLOURS), iterations=1, **short)
    fit_full(few, RIDGES[0])


def fit_full(tokens: np.ndarray, ridge: float) -> pair_fit.Fit:
    """The least mean loss a site plus ridge / 2 times the squared J, of ordered pairs, and h."""
    family = pair_fit.Family(tokens, COLOURS)
    return pair_fit.solve(family, (ridge * tokens.size, ridge * tokens.size / 2))


def fit_sparse(
    counted: pl.Counted,
    sparsity: float = 3e-4,
    ridge: float = 1e-4,
    iterations: int = 40,
    **settings,
) -> pl.Fit:
    """Heads without fields whose A is sparse, for sites of which few pairs interact.

    From `fit_heads` (which gets `settings`) it minimises the mean loss plus sparsity times the sum
    of |A| plus ridge / 2 times the squared V. Each of the two stages has as many iterations.
    """
    dense = pl.fit_heads(counted, ridge=ridge, iterations=iterations, **settings)
    attention, values = dense.model.attention, dense.model.values
    shapes, size = [attention.shape, values.shape], attention.size
    scale = 1.0 / (counted.total * counted.length)

    def model(vector: np.ndarray) -> pl.Heads:
        return pl.Heads(*pl.split(vector, shapes), dense.model.fields)

    def evaluate(vector: np.ndarray) -> tuple[float, np.ndarray]:
        loss, gradients = pl.loss_and_gradients(counted, model(vector))
        own = vector[size:]
        gradient = scale * np.concatenate([gradients.attention.ravel(), gradients.values.ravel()])
        gradient[size:] += ridge * own
        return scale * loss + 0.5 * ridge * (own @ own), gradient

    start = np.concatenate([attention.ravel(), values.ravel()])
    found = pl.minimize_l1(evaluate, start, np.arange(start.size) < size, sparsity, iterations)
    loss = scale * pl.loss_and_gradients(counted, model(found.x))[0]
    return pl.Fit(model=model(found.x), loss=float(loss), iterations=int(found.nit))
