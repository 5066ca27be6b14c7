"""Full pseudo-likelihood (plmDCA): a free q x q matrix for every ordered pair of sites.

What factored attention is compared with: the same optimiser on the same compiled pass over the
sequences, which differs by the table of a site's couplings only.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.optimize import minimize

from manybody.training.pseudolikelihood import (
    Counted,
    Fit,
    Heads,
    fit_heads,
    loss_and_gradients,
    minimize_l1,
    options,
    split,
)
from manybody.training.pseudolikelihood_loops import GROUP, SUMS, clear, site


@dataclass
class Full:
    """J (L, L, q, q), indexed i, j, a, b, with J_ii = 0, and fields (L, q): logits in nats."""

    couplings: np.ndarray
    fields: np.ndarray


def fit_full(counted: Counted, ridge: float = 1e-3, iterations: int = 250) -> Fit:
    """Minimises the mean loss plus ridge / 2 times the squared J and fields, from zero: convex."""
    length, vocabulary = counted.length, counted.vocabulary
    shapes = [(length, length, vocabulary, vocabulary), (length, vocabulary)]
    scale = 1.0 / (counted.total * length)

    def model(vector: np.ndarray) -> Full:
        return Full(*split(vector, shapes))

    def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
        loss, gradients = gradients_of(counted, model(vector))
        gradient = np.concatenate([gradients.couplings.ravel(), gradients.fields.ravel()])
        gradient *= scale
        gradient += ridge * vector
        return scale * loss + 0.5 * ridge * (vector @ vector), gradient

    first = np.zeros(sum(int(np.prod(shape)) for shape in shapes))
    found = minimize(objective, first, jac=True, method="L-BFGS-B", options=options(iterations))
    return _fitted(found, model(found.x), found.fun - 0.5 * ridge * (found.x @ found.x))


def fit_sparse(
    counted: Counted, sparsity: float = 3e-4, ridge: float = 1e-4, iterations: int = 40, **settings
) -> Fit:
    """Heads without fields whose A is sparse, for sites of which few pairs interact.

    From `fit_heads` (which gets `settings`) it minimises the mean loss plus sparsity times the sum
    of |A| plus ridge / 2 times the squared V. Each of the two stages has as many iterations.
    """
    dense = fit_heads(counted, ridge=ridge, iterations=iterations, **settings)
    attention, values = dense.model.attention, dense.model.values
    shapes, size = [attention.shape, values.shape], attention.size
    scale = 1.0 / (counted.total * counted.length)

    def model(vector: np.ndarray) -> Heads:
        return Heads(*split(vector, shapes), dense.model.fields)

    def evaluate(vector: np.ndarray) -> tuple[float, np.ndarray]:
        loss, gradients = loss_and_gradients(counted, model(vector))
        own = vector[size:]
        gradient = scale * np.concatenate([gradients.attention.ravel(), gradients.values.ravel()])
        gradient[size:] += ridge * own
        return scale * loss + 0.5 * ridge * (own @ own), gradient

    start = np.concatenate([attention.ravel(), values.ravel()])
    found = minimize_l1(evaluate, start, np.arange(start.size) < size, sparsity, iterations)
    return _fitted(found, model(found.x), scale * loss_and_gradients(counted, model(found.x))[0])


def _fitted(found, model: Heads | Full, loss: float) -> Fit:
    return Fit(model=model, loss=float(loss), iterations=int(found.nit))


def gradients_of(counted: Counted, model: Full) -> tuple[float, Full]:
    """Summed loss (nats), and its gradient in the shape of the model."""
    couplings = np.ascontiguousarray(model.couplings.transpose(0, 1, 3, 2))
    sites, losses = np.empty(counted.length), np.zeros(counted.tokens.shape[1])
    of_couplings, of_fields = np.empty(couplings.shape), np.empty(model.fields.shape)
    arrays = (*counted.arrays, couplings, model.fields, True, sites, losses)
    _pass(0, counted.length, *arrays, of_couplings, of_fields)
    return float(sites.sum()), Full(of_couplings.transpose(0, 1, 3, 2), of_fields)


@njit(nogil=True, cache=True, fastmath=SUMS)
def _pass(
    first, last, tokens, sequence_weights, offsets, rows, row_site, row_colour, common,
    couplings, fields, gradients, site_losses, losses, of_couplings, of_fields,
):  # fmt: skip
    """As `kernels.pseudolikelihood.factored`, of couplings (L, L, q, q), indexed i, j, b, a."""
    length, vocabulary = fields.shape
    table, of_table = np.empty((len(row_site), vocabulary)), np.empty((len(row_site), vocabulary))
    base, of_base = np.empty(vocabulary), np.empty(vocabulary)
    logits, turns = np.empty(GROUP * vocabulary), np.empty(GROUP * vocabulary)
    work = np.empty(vocabulary)
    for i in range(first, last):
        # Not by a slice: what numpy says of shapes takes seconds to compile.
        for a in range(len(base)):
            base[a] = fields[i, a]
        for j in range(length):
            if j != i:
                for a in range(vocabulary):
                    base[a] += couplings[i, j, common[j], a]
        for row in range(len(row_site)):
            j, b = row_site[row], row_colour[row]
            for a in range(vocabulary):
                difference = couplings[i, j, b, a] - couplings[i, j, common[j], a]
                table[row, a] = difference if j != i else 0.0
        clear(of_table)
        for a in range(vocabulary):
            of_base[a] = 0.0
        site_losses[i] = site(
            tokens[i], offsets, rows, sequence_weights, table, base, gradients,
            of_table, of_base, losses, logits, turns, work,
        )  # fmt: skip
        if not gradients:
            continue
        for a in range(vocabulary):
            of_fields[i, a] = of_base[a]
        for j in range(length):
            clear(of_couplings[i, j])
            if j != i:
                for a in range(vocabulary):
                    of_couplings[i, j, common[j], a] = of_base[a]
        for row in range(len(row_site)):
            j, b = row_site[row], row_colour[row]
            if j != i:
                for a in range(vocabulary):
                    of_couplings[i, j, b, a] = of_table[row, a]
                    of_couplings[i, j, common[j], a] -= of_table[row, a]
