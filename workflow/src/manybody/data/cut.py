"""A planted Hamiltonian cut at order k, in two ways, by enumeration of all states.

interactions: of log p, in the gauge in which each interaction sums to 0 over the colours of any of
its sites, the terms of at most k sites. marginals: of all distributions with interactions of at
most k sites the one with the marginals of p on any k of them, which is also that of largest
entropy. Each changes what the other keeps.

Both use a basis of functions of one site, orthonormal under uniform colours, of which the first is
1: a product over sites has the order of its other factors, and is orthogonal to all others.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import softmax

from manybody.data import SPLITS, SourceError, enumeration, tree
from manybody.data.hamiltonian import Hamiltonian
from manybody.io import sequences
from manybody.io.refusal import Refusal
from manybody.io.seeds import streams_of

TOLERANCE = 1e-11  # of the means of the basis' functions
ROUNDS = 500


class Cut:
    """The Hamiltonian's distribution cut at `order`, 1 ... k - 1: `probabilities` of all states,
    (|V|,) * L, of which the config allows at most `data.STATES`."""

    def __init__(self, hamiltonian: Hamiltonian, order: int, kept: str):
        shape = (hamiltonian.vocabulary,) * hamiltonian.length
        logs = -hamiltonian.beta * enumeration.energies(hamiltonian).reshape(shape)
        cut = {"interactions": interactions_kept, "marginals": marginals_kept}[kept]
        self.probabilities = cut(logs, order)

    def draw(self, count: int, random: np.random.Generator) -> np.ndarray:
        """Sequences (count, L) int64, drawn exactly."""
        sums = self.probabilities.ravel().cumsum()
        numbers = np.searchsorted(sums, random.random(count) * sums[-1], side="right")
        return np.stack(np.unravel_index(numbers, self.probabilities.shape), axis=1)

    def masked_losses(self, tokens: np.ndarray) -> np.ndarray:
        """-log p(x_i | rest), mean over the sites, of tokens (N, L): (N,)."""
        p, places = self.probabilities, tuple(tokens.T)
        found = np.zeros(len(tokens))
        for site in range(p.ndim):
            found += np.log(p.sum(axis=site)[places[:site] + places[site + 1 :]])
        return found / p.ndim - np.log(p[places])


def interactions_kept(logs: np.ndarray, order: int) -> np.ndarray:
    """The distribution of log p's terms (|V|,) * L of at most `order` sites, in zero-sum gauge."""
    basis, low = orthonormal(logs.shape[0]), _low(logs.shape, order)
    return softmax(turned(np.where(low, turned(logs, basis) / logs.size, 0.0), basis.T))


def marginals_kept(logs: np.ndarray, order: int) -> np.ndarray:
    """The distribution of order `order` at most with the marginals of exp(logs) on that many sites.

    It is where the dual, log Z(t) - t . m, is least, m the means of the basis' functions under p;
    the dual's derivative is the difference of the means.
    """
    basis, low = orthonormal(logs.shape[0]), _low(logs.shape, order)
    low.flat[0] = False  # the constant
    means = turned(softmax(logs), basis)[low]
    table = np.zeros(logs.shape)

    def spread(values: np.ndarray) -> np.ndarray:
        table[low] = values
        return turned(table, basis.T)

    def dual(found: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        logs = spread(found)
        p, top = softmax(logs), logs.max()
        value = top + np.log(np.exp(logs - top).sum()) - found @ means
        return value, turned(p, basis)[low] - means, p

    def covariance(p: np.ndarray, values: np.ndarray) -> np.ndarray:
        changes = spread(values)
        return turned(p * (changes - (p * changes).sum()), basis)[low]

    start = turned(logs, basis)[low] / logs.size
    sought = f"the distribution of order {order} with the same marginals"
    return least(start, dual, covariance, sought)[2]


def least(found: np.ndarray, function: Callable, curvature: Callable, sought: str) -> tuple:
    """The least value of a convex function by Newton's method from `found` (n,), with the values
    (n,) where it is and what else `function` said there.

    function(values) gives its value, its derivative (n,), at the end at most `TOLERANCE`, and
    anything that curvature(that, change) makes the derivative's change of. A `Refusal` says what
    was `sought` and not found.
    """
    value, gradient, state = function(found)
    for _ in range(ROUNDS):
        if np.abs(gradient).max() <= TOLERANCE:
            return value, found, state
        step = _newton(gradient, state, curvature)
        size, slope = 1.0, gradient @ step
        tried = function(found + step)
        # Near the end the function is flat to rounding; the derivative still says what is better.
        while (
            tried[0] > value + 1e-4 * size * slope
            and np.abs(tried[1]).max() > np.abs(gradient).max()
            and size > 1e-6
        ):
            size /= 2
            tried = function(found + size * step)
        found, (value, gradient, state) = found + size * step, tried
    raise Refusal(
        f"{sought}: not found, as a derivative is {np.abs(gradient).max():.2g}, expected "
        f"{TOLERANCE:g}. Take a higher temperature"
    )


def _newton(gradient: np.ndarray, state: np.ndarray, curvature: Callable) -> np.ndarray:
    """The step of Newton's method, by conjugate gradients.

    As much is added to the diagonal as the gradient is long, so that no step is longer than 1
    where the distribution is nearly one state and the function flat.
    """
    length = np.linalg.norm(gradient)
    hessian = LinearOperator(
        2 * gradient.shape, lambda step: curvature(state, step) + length * step, dtype=float
    )
    return cg(hessian, -gradient, rtol=min(0.1, length**0.5), maxiter=200)[0]


def orthonormal(vocabulary: int) -> np.ndarray:
    """Functions of one site, rows, orthonormal under uniform colours; the first is 1."""
    start = np.eye(vocabulary)
    start[:, 0] = 1
    rows = np.linalg.qr(start)[0].T
    return rows * np.sign(rows[0, 0]) * vocabulary**0.5


def _low(shape: tuple[int, ...], order: int) -> np.ndarray:
    """The products over sites that have at most `order` factors that are not constant."""
    return sum(np.minimum(place, 1) for place in np.indices(shape, sparse=True)) <= order


def turned(table: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """`basis` applied to each axis of a table (|V|,) * L."""
    for _ in range(table.ndim):
        # The last axis becomes the first, so that after L times all stand as before.
        table = (basis @ table.reshape(-1, len(basis)).T).reshape(table.shape)
    return table


def make(source: dict, name: str, given: Sequence[str | Path], out: dict) -> None:
    """Writes the splits of the source called `name`, a cut of what file `given[0]` has.

    The document of a split has its `losses` of a masked token, in nats, with standard errors: of
    its `own` distribution, the least possible, and of the `planted` one.
    """
    hamiltonian = Hamiltonian.load(given[0])
    try:
        cut = Cut(hamiltonian, source["at"], source["kept"])
    except Refusal as error:
        raise SourceError(f"source {source['source']} has {error}", "source") from error
    streams = streams_of(source["seed"], SPLITS)
    for split in SPLITS:
        tokens = cut.draw(source["sequences"][split], np.random.default_rng(streams[split]))
        logs = hamiltonian.log_conditionals(tokens)
        true = -np.take_along_axis(logs, tokens[:, :, None], axis=2).mean(axis=(1, 2))
        own, planted = map(tree.mean_and_error, (cut.masked_losses(tokens), true))
        about = dict(
            source=name, split=split, losses=dict(own=own, planted=planted),
            at=source["at"], kept=source["kept"], seed=source["seed"], of=source["source"],
        )  # fmt: skip
        sequences.write(out[split], tokens, hamiltonian.vocabulary, about)
