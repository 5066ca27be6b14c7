"""Sequences of a code law, in which sums of symbols modulo a prime are biased: exact at any L.

A term is a set e of at least two sites; y_e is the sum of their symbols mod q, and g(y) is 1 for
y = 0 and -1 / (q - 1) otherwise:

    p(x) ~ exp(sum_e J_e g(y_e)) = q^-L prod_e (1 + (q - 1) t_e g(y_e)),    t_e the mean of g(y_e).

For q = 2, g(y_e) is the product of the spins of e, and t_e = tanh J_e. The terms are linearly
independent, and so are their y: a sequence is drawn by drawing each y_e, solving for x and adding
a random vector of the kernel. Every vector of at most k sites in the span of the terms has to lie
in that of those of at most k sites. The law of the terms of order k and less is then that of
largest entropy with the marginals of p on k sites, and its conditionals are the best of order k.

Nested terms, a set of spins and that with one more, would give that spin a mean, which a field on
it cancels. The law of largest entropy with either keeps its mean. No other term has their sites.
"""

from collections.abc import Sequence
from copy import copy
from itertools import product
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_softmax, softmax

from manybody.data import SPLITS, SourceError
from manybody.io import sequences
from manybody.io.seeds import streams_of

BLOCK = 2**18  # sequences that are drawn together
SPAN = 2**16  # combinations of terms that share sites, at most


class CodeLaw:
    """The law of terms `sites` with couplings J (m,), 0 for a term that it does not have, of
    L = `length` symbols 0 ... q - 1. `SourceError` names terms that depend on each other, or that
    make an interaction of lower order."""

    def __init__(
        self,
        sites: Sequence[Sequence[int]],
        couplings: Sequence[float],
        length: int,
        vocabulary: int = 2,
    ):
        self.sites = [tuple(sorted(term)) for term in sites]
        self.couplings = np.array(couplings, float)
        self.orders = np.array(list(map(len, self.sites)))
        self.length, self.vocabulary = length, vocabulary
        self._free = (length - len(self.sites)) * np.log(vocabulary)  # entropy of given sums
        self._forms = np.zeros((len(self.sites), length), int)
        for form, term in zip(self._forms, self.sites, strict=True):
            form[list(term)] = 1
        self._pivots, self._solved, self._turned = self._eliminated()
        self.nested = [
            (inner, outer)
            for inner, small in enumerate(self.sites)
            for outer, large in enumerate(self.sites)
            if vocabulary == 2 and len(large) == len(small) + 1 and set(small) < set(large)
        ]
        paired = sum(self.nested, ())
        self._check(paired)
        alone = [(term,) for term in range(len(self.sites)) if term not in paired]
        # The joint distribution of the y of terms that depend on each other, (q,) or (2, 2).
        self._joint = {group: self._distribution(group) for group in alone + self.nested}

    @property
    def means(self) -> np.ndarray:
        """t_e, the means of g(y_e): (m,)."""
        found = np.empty(len(self.sites))
        for group, joint in self._joint.items():
            sums = np.indices(joint.shape).reshape(len(group), -1)
            found[list(group)] = _g(sums, self.vocabulary) @ joint.ravel()
        return found

    def means_in(self, tokens: np.ndarray) -> np.ndarray:
        """The means (m,) of g(y_e) over sequences (N, L), whatever drew them."""
        sums = np.asarray(tokens, int) @ self._forms.T % self.vocabulary
        return _g(sums, self.vocabulary).mean(axis=0)

    @property
    def entropy(self) -> float:
        """Entropy of a sequence, in nats."""
        return float(self._free - sum((p * np.log(p)).sum() for p in self._joint.values()))

    def sample(self, count: int, random: np.random.Generator) -> np.ndarray:
        """Sequences (count, L) uint8, drawn exactly."""
        found = random.integers(self.vocabulary, size=(count, self.length), dtype=np.uint8)
        for start in range(0, count, BLOCK):
            part = found[start : start + BLOCK]
            sums = np.empty((len(part), len(self.sites)), int)
            for group, joint in self._joint.items():
                drawn = random.choice(joint.size, size=len(part), p=joint.ravel())
                sums[:, group] = np.stack(np.unravel_index(drawn, joint.shape), axis=1)
            self._solve(part, sums)
        return found

    def log_probability(self, tokens: np.ndarray) -> np.ndarray:
        """log p(x), in nats, of tokens (N, L): (N,)."""
        sums = np.asarray(tokens, int) @ self._forms.T % self.vocabulary
        logs = [np.log(joint)[tuple(sums[:, group].T)] for group, joint in self._joint.items()]
        return sum(logs, np.full(len(tokens), -self._free))

    def log_conditionals(self, tokens: np.ndarray) -> np.ndarray:
        """log p(x_i = a | rest), in nats: (N, L) to (N, L, q)."""
        tokens, symbols = np.asarray(tokens, int), np.arange(self.vocabulary)
        logits = np.zeros((*tokens.shape, self.vocabulary))
        for group, joint in self._joint.items():
            forms = self._forms[list(group)]
            sites = np.flatnonzero(forms.any(axis=0))
            sums = (forms @ tokens.T)[:, :, None, None]
            # To the sums of each term of the group for each symbol at each of its sites.
            changes = forms[:, None, sites, None] * (symbols - tokens[:, sites, None])
            logits[:, sites] += np.log(joint)[*((sums + changes) % self.vocabulary)]
        return log_softmax(logits, axis=2)

    def site_losses(self, other: "CodeLaw") -> np.ndarray:
        """Loss (L,) under this law, in nats, of each site by the conditionals of another one with
        terms on the same sites."""
        found = np.empty(self.length)
        for site in range(self.length):
            touched = [group for group in self._joint if self._forms[list(group), site].any()]
            near = sum(touched, ())
            # A sequence for each value of the sums that the site is in.
            values = list(product(range(self.vocabulary), repeat=len(near)))
            sums = np.zeros((len(values), len(self.sites)), int)
            sums[:, near] = values
            tokens = np.zeros((len(values), self.length), np.uint8)
            self._solve(tokens, sums)
            logs = other.log_conditionals(tokens)[np.arange(len(values)), site, tokens[:, site]]
            found[site] = -softmax(self.log_probability(tokens)) @ logs
        return found

    def information(self) -> dict[int, float]:
        """c_k of each order k of a term: how much lower, in nats a token, the least loss by
        functions of k - 1 context tokens is than by those of k - 2."""
        return {order: float(self._gains(order).mean()) for order in self._present()}

    def term_information(self) -> np.ndarray:
        """c_e (m,), in nats a site: what its order gains at the sites of each term, on average."""
        gains = {order: self._gains(order) for order in set(self.orders.tolist())}
        return np.array([gains[len(term)][list(term)].mean() for term in self.sites])

    def connected(self) -> dict[int, float]:
        """The connected information I_k = H(p_k-1) - H(p_k) of each order, in nats a sequence."""
        return {
            order: self.kept(self.orders < order).entropy - self.kept(self.orders <= order).entropy
            for order in self._present()
        }

    def kept(self, kept: np.ndarray) -> "CodeLaw":
        """The law of largest entropy in which the terms where `kept` (m,) have the same means; its
        `couplings` are those that they have here."""
        found = copy(self)
        found.couplings = np.where(kept, self.couplings, 0.0)
        found._joint = {}
        for group, joint in self._joint.items():
            dropped = tuple(axis for axis, term in enumerate(group) if not kept[term])
            joint = np.broadcast_to(joint.mean(axis=dropped, keepdims=True), joint.shape)
            found._joint[group] = joint
        return found

    def _present(self) -> list[int]:
        return np.unique(self.orders[self.couplings != 0]).tolist()

    def _gains(self, order: int) -> np.ndarray:
        below, with_it = self.kept(self.orders < order), self.kept(self.orders <= order)
        return self.site_losses(below) - self.site_losses(with_it)

    def _distribution(self, group: tuple[int, ...]) -> np.ndarray:
        """Probabilities (q,) of the y of a term, or (2, 2) of two nested ones with their field."""
        g, couplings = _g(np.arange(self.vocabulary), self.vocabulary), self.couplings[list(group)]
        logits = couplings[0] * g
        if len(group) == 2:
            apart, together = couplings[0] - couplings[1], couplings.sum()
            field = (np.logaddexp(apart, -apart) - np.logaddexp(together, -together)) / 2
            logits = logits[:, None] + couplings[1] * g + field * np.outer(g, g)
        # No probability becomes 0, as 0 log 0 is no number; exp(-700) is still one.
        return softmax(np.maximum(logits, logits.max() - 700.0))

    def _solve(self, tokens: np.ndarray, sums: np.ndarray) -> None:
        """Sets the pivots of tokens (n, L) so that the terms have the sums (n, m)."""
        free = np.delete(np.arange(self.length), self._pivots)
        fixed = sums @ self._turned.T - tokens[:, free] @ self._solved[:, free].T
        tokens[:, self._pivots] = fixed % self.vocabulary

    def _eliminated(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pivots (m,), the forms (m, L) with a unit matrix there, and T (m, m) that makes them."""
        count, q = len(self.sites), self.vocabulary
        table = np.concatenate([self._forms, np.eye(count, dtype=int)], axis=1)
        pivots = []
        for row, term in enumerate(self.sites):
            places = np.flatnonzero(table[row, : self.length])
            if not len(places):
                others = [
                    self.sites[other]
                    for other in np.flatnonzero(table[row, self.length :])
                    if other != row
                ]
                raise SourceError(
                    f"found {_named([term])}, a combination of {_named(others)} mod {q}; expected "
                    "terms that are independent; leave one of them out",
                    "terms",
                )
            pivots.append(places[0])
            table[row] = table[row] * pow(int(table[row, places[0]]), -1, q) % q
            factors = table[:, places[0]].copy()
            factors[row] = 0
            table = (table - np.outer(factors, table[row])) % q
        return np.array(pivots, int), table[:, : self.length], table[:, self.length :]

    def _check(self, paired: Sequence[int]) -> None:
        """`SourceError` unless nested terms are alone on their sites, and no combination of the
        others has fewer sites than one of the terms that it is made of."""
        for pair in self.nested:
            inner, outer = (self.sites[term] for term in pair)
            if np.delete(self._forms, pair, axis=0)[:, outer].any():
                raise SourceError(
                    f"found {_named([inner, outer])}, nested, and another term that shares a site; "
                    "expected nested terms that share none with others; move one of them",
                    "terms",
                )
        shared = self._forms.sum(axis=0) > 1
        near = np.setdiff1d(np.flatnonzero(self._forms[:, shared].any(axis=1)), paired)
        if self.vocabulary ** len(near) > SPAN:
            raise SourceError(
                f"found {len(near)} terms that share sites; expected at most {SPAN} combinations "
                "of such terms; leave some out",
                "terms",
            )
        chosen = np.array(list(product(range(self.vocabulary), repeat=len(near))), int)
        made = chosen @ self._forms[near] % self.vocabulary
        largest = ((chosen > 0) * self.orders[near]).max(axis=1, initial=0)
        wrong = np.flatnonzero((made > 0).sum(axis=1) < largest)
        if len(wrong):
            terms = [self.sites[term] for term in near[chosen[wrong[0]] > 0]]
            raise SourceError(
                f"found {_named(terms)}, which combine to the sites "
                f"{np.flatnonzero(made[wrong[0]]).tolist()}, an interaction of lower order; "
                "expected no combination of fewer sites than each of its terms, or one term with "
                "another one of two symbols and one site less; move one of them",
                "terms",
            )


def _g(sums: np.ndarray, vocabulary: int) -> np.ndarray:
    return np.where(sums == 0, 1.0, -1 / (vocabulary - 1))


def coupling_of(information: float, vocabulary: int = 2) -> float:
    """J > 0 of a term that shares no sites and tells `information` c_e, in nats, of each of them:
    c_e = ln q - H(y_e), below ln q."""
    g = _g(np.arange(vocabulary), vocabulary)

    def off(coupling: float) -> float:
        p = softmax(coupling * g)
        return np.log(vocabulary) + (p * np.log(p)).sum() - information

    return brentq(off, 0, 50, xtol=1e-15)


def of(source: dict) -> CodeLaw:
    """The law of a source, its entry in the config, without the terms that it leaves out."""
    terms = [(term["sites"], term) for term in source.get("terms") or []]
    first = 1 + max((max(sites) for sites, _ in terms), default=-1)
    for group in source.get("groups") or []:
        for _ in range(group["count"]):
            terms.append((range(first, first + group["order"]), group))
            first += group["order"]
    vocabulary = source.get("vocabulary", 2)
    keep, scale = source.get("keep"), source.get("scale", 1.0)
    couplings = []
    for sites, given in terms:
        coupling = given.get("coupling")
        if coupling is None:
            coupling = coupling_of(given["information"], vocabulary)
        couplings.append(scale * coupling if keep is None or len(sites) in keep else 0.0)
    return CodeLaw([sites for sites, _ in terms], couplings, source["length"], vocabulary)


def read_conditionals(path: str | Path) -> CodeLaw:
    """The law of a file of sequences, whose document has its terms."""
    found = sequences.Sequences.open(path)
    return CodeLaw(**found.about["law"], length=found.length, vocabulary=found.vocabulary)


def make(source: dict, name: str, given: Sequence[str | Path], out: dict) -> None:
    """Writes the splits of the source called `name`. Their document has the `law`, its terms and
    couplings; its exact `losses`, the `entropy` in nats a sequence and the best loss of a `masked`
    token in nats, each with the error 0; and by order `information` c_k and `connected` I_k."""
    law, streams = of(source), streams_of(source["seed"], SPLITS)
    about = dict(
        source=name,
        seed=source["seed"],
        law=dict(sites=law.sites, couplings=law.couplings.tolist()),
        losses=dict(entropy=[law.entropy, 0.0], masked=[float(law.site_losses(law).mean()), 0.0]),
        information={str(order): value for order, value in law.information().items()},
        connected={str(order): value for order, value in law.connected().items()},
        parameters=f"terms of {law.length} symbols mod {law.vocabulary}",
    )
    for split, stream in streams.items():
        tokens = law.sample(source["sequences"][split], np.random.default_rng(stream))
        sequences.write(out[split], tokens, law.vocabulary, {**about, "split": split})


def _named(terms: Sequence[Sequence[int]]) -> str:
    return " and ".join(str(list(term)) for term in terms)
