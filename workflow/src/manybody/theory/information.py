"""Information by order: how much better a token is known with every further order of its context.

F_d are the functions f(context)[a] that are sums of terms of at most d context tokens, and

    L*_k = (1/L) sum_i min over f in F_(k-1) of E_p[-log softmax f(context of i)[x_i]],
    c_k = L*_(k-1) - L*_k >= 0.

L*_1 is the mean entropy of a site, L*_L that of a site given all others. Each minimum is that of a
convex function, which is found by enumeration of all states.
"""

import numpy as np
from scipy.special import entr, logsumexp

from manybody.data.cut import least, orthonormal, turned


def information_by_order(law, most: int | None = None) -> dict[int, float]:
    """c_k, in nats a token, of the orders k = 2 ... `most`, by default L.

    law: probabilities of all states, (|V|,) * L, or an object with `vocabulary`, `length` and
    `log_probability(tokens)`.
    """
    if not isinstance(law, np.ndarray):
        shape = (law.vocabulary,) * law.length
        states = np.indices(shape).reshape(law.length, -1).T
        law = np.exp(law.log_probability(states)).reshape(shape)
    most = most or law.ndim
    losses = np.mean([_site_losses(law, site, most) for site in range(law.ndim)], axis=0)
    return {order: float(gain) for order, gain in enumerate(losses[:-1] - losses[1:], 2)}


def _site_losses(p: np.ndarray, site: int, most: int) -> list[float]:
    """The least loss of a site by functions of 0 ... most - 1 context tokens."""
    places = np.indices(p.shape, sparse=True)
    # A product of the basis is a function of the site itself, and of so many tokens of its context.
    degrees = sum(np.minimum(place, 1) for axis, place in enumerate(places) if axis != site)
    degrees = np.where(places[site] > 0, degrees, p.ndim)
    table, found = np.zeros(p.shape), []
    for degree in range(min(most, p.ndim - 1)):
        sought = f"the best conditionals by {degree} tokens at site {site}"
        value, table[degrees <= degree] = _fitted(p, site, degrees <= degree, table, sought)
        found.append(value)
    if most == p.ndim:
        found.append(float(entr(p).sum() - entr(p.sum(axis=site)).sum()))
    return found


def _fitted(
    p: np.ndarray, site: int, low: np.ndarray, start: np.ndarray, sought: str
) -> tuple[float, np.ndarray]:
    """The least loss of a site whose logits are made of the products `low`, and their factors."""
    basis, context = orthonormal(p.shape[0]), p.sum(axis=site, keepdims=True)
    means = turned(p, basis)[low]

    def spread(values: np.ndarray) -> np.ndarray:
        whole = np.zeros(p.shape)
        whole[low] = values
        return turned(whole, basis.T)

    def loss(values: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        logits = spread(values)
        norms = logsumexp(logits, axis=site, keepdims=True)
        given = np.exp(logits - norms)
        derivative = turned(context * given, basis)[low] - means
        return (context * norms).sum() - values @ means, derivative, given

    def curvature(given: np.ndarray, values: np.ndarray) -> np.ndarray:
        changes = spread(values)
        changes = given * (changes - (given * changes).sum(axis=site, keepdims=True))
        return turned(context * changes, basis)[low]

    value, found, _ = least(start[low], loss, curvature, sought)
    return value, found
