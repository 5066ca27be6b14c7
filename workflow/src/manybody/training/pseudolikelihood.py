"""Inverse Potts: couplings from sequences by maximum pseudo-likelihood.

    loss = -(1 / (W L)) sum_n w_n sum_i log P(s_i | the others),  logits_i = h_i + sum_j J_ij s_j

This is also the masked-prediction loss over all L masks, one for each conditional
(docs/science/potts.md, section 2). The couplings are those of factored attention, J_ij(a, b) =
sum_h A^h_ij V^h_ab with H heads; L-BFGS minimises the loss by one compiled pass over the sequences.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from threadpoolctl import threadpool_limits

from manybody.io.compiled import each
from manybody.training import pair_fit, pseudolikelihood_loops as pseudolikelihood

HISTORY = 10  # pairs of steps and gradients that L-BFGS remembers


class Counted:
    """Sequences (N, L) of q colours as the unique ones and the sums of their weights.

    sequence_weights (N,) are not negative; all ones if None. `ValueError` for tokens that are none
    of the colours, or for weights that do not fit.
    """

    def __init__(
        self, tokens: np.ndarray, vocabulary: int, sequence_weights: np.ndarray | None = None
    ):
        tokens = np.asarray(tokens)
        given = np.ones(len(tokens)) if sequence_weights is None else sequence_weights
        sequence_weights = np.asarray(given, np.float64)
        if sequence_weights.min() < 0 or not sequence_weights.any():
            raise ValueError(
                f"sequence_weights: found {sequence_weights.min():g} to {sequence_weights.max():g}"
                "; expected none below 0 and not all 0; leave such sequences out"
            )
        unique, self.place = np.unique(tokens, axis=0, return_inverse=True)
        self.place = self.place.reshape(-1)
        self.sequence_weights = np.bincount(self.place, sequence_weights, len(unique))
        self.total = float(sequence_weights.sum())
        self.length, self.vocabulary = tokens.shape[1], vocabulary
        self.tokens = np.ascontiguousarray(unique.T, np.int64)  # (L, U)
        counts = [np.bincount(site, self.sequence_weights, vocabulary) for site in self.tokens]
        common = np.argmax(counts, axis=1)  # each site's most frequent colour
        # A table row for each other colour that occurs, and the rows of each sequence.
        rare = unique != common
        numbers = np.nonzero(rare)[1] * vocabulary + unique[rare]
        present, rows = np.unique(numbers, return_inverse=True)
        row_site, row_colour = np.divmod(present, vocabulary)
        offsets = np.concatenate([[0], rare.sum(axis=1).cumsum()])
        # What the compiled loops read.
        self.arrays = (
            self.tokens, self.sequence_weights, offsets, rows, row_site, row_colour, common,
        )  # fmt: skip


class Heads(NamedTuple):
    """A (H, L, L) with zero diagonals, V (H, q, q), fields (L, q): logits in nats."""

    attention: np.ndarray
    values: np.ndarray
    fields: np.ndarray

    @property
    def couplings(self) -> np.ndarray:
        """J (L, L, q, q), indexed i, j, a, b: what colour b of site j adds to colour a of i."""
        return np.einsum("hij,hab->ijab", self.attention, self.values)


class Fit(NamedTuple):
    """A fitted model, its mean training loss (nats a site), and the iterations that it took."""

    model: Heads
    loss: float
    iterations: int


def losses(model: Heads, tokens: np.ndarray) -> np.ndarray:
    """Mean loss (nats a site) of each sequence of tokens (N, L), each site masked in turn: (N,)."""
    counted = Counted(tokens, model.fields.shape[1])
    found = np.zeros(counted.tokens.shape[1])
    _pass(counted, model, False, 1, found)
    return found[counted.place] / counted.length


def loss_and_gradients(counted: Counted, model: Heads, threads: int = 1) -> tuple[float, Heads]:
    """Summed loss (nats; each conditional counts with its sequence's weight), and its gradient in
    the shape of the model. The same for any number of threads."""
    return _pass(counted, model, True, threads, np.zeros(counted.tokens.shape[1]))


def fit_heads(
    counted: Counted,
    heads: int = 1,
    ridge: float = 1e-4,
    *,
    summed: bool = False,
    fields: bool = False,
    init_scale: tuple[float, float] = (0.1, 0.3),
    seed: int | np.random.SeedSequence = 0,
    iterations: int = 250,
) -> Fit:
    """Factored attention of H heads, free A.

    Minimises the mean loss, or the summed one if `summed`, plus ridge / 2 times the squared A and
    V (and fields, if there are any). A and V start from normal numbers drawn from `seed`, with the
    standard deviations `init_scale`. Ends after `iterations`, or where the objective falls no more.

    Several heads with fields are fitted by the loops of `pair_fit`, in single precision, and start
    from the nearest to a few steps of full couplings; heads beyond q^2 are 0. Those loops cost as
    much as full couplings, whatever H: one head of a few sequences would take longer.
    """
    length, vocabulary = counted.length, counted.vocabulary
    if fields and heads > 1:
        size = 1.0 if summed else counted.total * length
        family = pair_fit.Family(counted.tokens.T, vocabulary, counted.sequence_weights)
        with threadpool_limits(1):  # of small products, for which threads only wait
            found, own, loss, done = pair_fit.solve_free(family, heads, ridge * size, iterations)
        parts = [np.pad(part, [(0, heads - len(part)), (0, 0), (0, 0)]) for part in found]
        model = Heads(*(part.astype(np.float64) for part in (*parts, own)))
        return Fit(model, float(loss / (counted.total * length)), done)
    rng = np.random.default_rng(seed)
    attention = init_scale[0] * rng.standard_normal((heads, length, length))
    attention[:, *np.diag_indices(length)] = 0.0
    values = init_scale[1] * rng.standard_normal((heads, vocabulary, vocabulary))
    none = np.zeros((length, vocabulary))
    ends = np.cumsum([attention.size, values.size])

    def model(vector: np.ndarray) -> Heads:
        of_attention, of_values, own = np.split(vector, ends)
        own = own.reshape(none.shape) if fields else none
        return Heads(of_attention.reshape(attention.shape), of_values.reshape(values.shape), own)

    scale = 1.0 if summed else 1.0 / (counted.total * length)

    def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
        loss, gradients = loss_and_gradients(counted, model(vector))
        gradient = np.concatenate([part.ravel() for part in gradients])[: len(vector)]
        gradient *= scale
        gradient += ridge * vector
        return scale * loss + 0.5 * ridge * (vector @ vector), gradient

    first = np.concatenate([attention.ravel(), values.ravel(), np.zeros(fields * none.size)])
    found = minimize(objective, first, jac=True, method="L-BFGS-B", options=options(iterations))
    loss = found.fun - 0.5 * ridge * (found.x @ found.x)
    return Fit(model(found.x), float(loss / (scale * counted.total * length)), int(found.nit))


def options(iterations: int, tolerance: float = 0.0) -> dict:
    """Options of scipy's L-BFGS-B, which ends where an iteration lowers the objective by less than
    `tolerance` times its value."""
    return dict(
        maxiter=iterations, maxfun=10 * iterations, maxcor=HISTORY, ftol=tolerance, gtol=0.0
    )


def _pass(
    counted: Counted, model: Heads, gradients: bool, threads: int, found: np.ndarray
) -> tuple[float, Heads | None]:
    """Summed loss and its gradient; the losses of unique sequences are added to `found` (U,) if
    there is one thread."""
    length, vocabulary = counted.length, counted.vocabulary
    sites, heads = np.empty(length), len(model.attention)
    values = np.ascontiguousarray(model.values.transpose(0, 2, 1))
    of_attention = np.empty((length, heads, length))
    of_values = np.empty((length, heads, vocabulary, vocabulary))
    of_fields = np.empty((length, vocabulary))

    def part(ends: tuple[int, int]) -> None:
        pseudolikelihood.factored(
            *ends, *counted.arrays, model.attention, values, model.fields, gradients, sites,
            found if threads == 1 else np.zeros_like(found), of_attention, of_values, of_fields,
        )  # fmt: skip

    each(threads, part, pairwise([length * t // threads for t in range(threads + 1)]))
    total = float(sites.sum())
    if not gradients:
        return total, None
    of_values = of_values.sum(axis=0).transpose(0, 2, 1)
    return total, Heads(of_attention.transpose(1, 0, 2), of_values, of_fields)
