"""Sequences of a code law, in which sums of symbols modulo a prime are biased: exact at any L.

A term is a set e of at least two sites; y_e is the sum of their symbols mod q, and g(y) is 1 for
y = 0 and -1 / (q - 1) otherwise:

    p(x) ~ exp(sum_e J_e g(y_e)) = q^-L prod_e (1 + (q - 1) t_e g(y_e)),    t_e the mean of g(y_e).

For q = 2, g(y_e) is the product of the spins of e, and t_e = tanh J_e. The terms are linearly
independent, and so are their y: a sequence is drawn by drawing each y_e, solving for x and adding
a random vector of the kernel. Every vector of at most k sites in the span of the terms lies in the
span of those of at most k sites. Then the law of the terms of order k and less is that of largest
entropy with the marginals of p on k sites, and its conditionals are the best of order k.

Nested terms, a set of spins and the same with one spin more, would give that spin a mean: a field
on it cancels it. Their two products depend on each other; the law of largest entropy that has one
of them keeps its mean.
"""

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_softmax

from manybody.data import SPLITS, SourceError
from manybody.io import sequences
from manybody.io.seeds import streams_of
from manybody.io.sequences import Sequences

BLOCK = 2**18  # sequences that are drawn together
SPAN = 2**16  # combinations of terms that share sites, at most


class CodeLaw:
    """The law of terms `sites` with couplings J (m,), L = `length` symbols 0 ... q - 1.

    A coupling of 0 is a term that the law does not have; laws of the same sites share what
    elimination found. `SourceError` names terms that are dependent, or break the condition.
    """

    def __init__(
        self,
        sites: Sequence[Sequence[int]],
        couplings: Sequence[float],
        length: int,
        vocabulary: int = 2,
    ):
        self.sites = [tuple(sorted(term)) for term in sites]
        self.couplings = np.array(couplings, float)
        self.length, self.vocabulary = length, vocabulary
        self.orders = np.array([len(term) for term in self.sites])
        self._forms = np.array(
            [[site in term for site in range(length)] for term in self.sites], int
        )
        self._pivots, self._solved, self._turned = self._eliminated()
        self.nested = [
            (inner, outer)
            for inner, small in enumerate(self.sites)
            for outer, large in enumerate(self.sites)
            if vocabulary == 2 and len(large) == len(small) + 1 and set(small) < set(large)
        ]
        self._check()
        paired = {term for pair in self.nested for term in pair}
        alone = [(term,) for term in range(len(self.sites)) if term not in paired]
        # Each term of the energy with its coefficients in the y of the terms.
        own = np.eye(len(self.sites), dtype=int)
        self._energies = list(zip(self.sites, own, self.couplings, strict=True))
        for inner, outer in self.nested:
            field = (set(self.sites[outer]) - set(self.sites[inner])).pop()
            together = self.couplings[inner] + self.couplings[outer]
            apart = self.couplings[inner] - self.couplings[outer]
            value = (np.logaddexp(apart, -apart) - np.logaddexp(together, -together)) / 2
            self._energies.append(((field,), own[inner] + own[outer], value))
        # Joint distributions of the y that depend on each other.
        self._joint = {group: self._of_group(group) for group in alone + self.nested}
        self.means = np.empty(len(self.sites))  # t_e
        values = self._g(np.arange(vocabulary))
        for group, joint in self._joint.items():
            for axis, term in enumerate(group):
                of_term = np.moveaxis(joint, axis, 0).reshape(vocabulary, -1).sum(axis=1)
                self.means[term] = values @ of_term

    def sample(self, count: int, random: np.random.Generator) -> np.ndarray:
        """Sequences (count, L) uint8, drawn exactly."""
        found = np.empty((count, self.length), np.uint8)
        free = np.delete(np.arange(self.length), self._pivots)
        for start in range(0, count, BLOCK):
            part = found[start : start + BLOCK]
            part[:, free] = random.integers(self.vocabulary, size=(len(part), len(free)))
            sums = np.empty((len(part), len(self.sites)), int)
            for group, joint in self._joint.items():
                drawn = random.choice(joint.size, size=len(part), p=joint.ravel())
                sums[:, group] = np.stack(np.unravel_index(drawn, joint.shape), axis=1)
            fixed = sums @ self._turned.T - part[:, free] @ self._solved[:, free].T
            part[:, self._pivots] = fixed % self.vocabulary
        return found

    def log_probability(self, tokens: np.ndarray) -> np.ndarray:
        """log p(x), in nats, of tokens (N, L): (N,)."""
        sums = np.asarray(tokens, int) @ self._forms.T % self.vocabulary
        uniform = (self.length - len(self.sites)) * np.log(self.vocabulary)
        logs = [np.log(joint)[tuple(sums[:, group].T)] for group, joint in self._joint.items()]
        return sum(logs, np.full(len(tokens), -uniform))

    def log_conditionals(self, tokens: np.ndarray) -> np.ndarray:
        """log p(x_i = a | rest), in nats: (N, L) to (N, L, q)."""
        tokens = np.asarray(tokens, int)
        logits = np.zeros((*tokens.shape, self.vocabulary))
        for sites, _, coupling in self._energies:
            own = tokens[:, sites, None]
            sums = own.sum(axis=1, keepdims=True) + np.arange(self.vocabulary) - own
            logits[:, sites] += coupling * self._g(sums)
        return log_softmax(logits, axis=2)

    @property
    def entropy(self) -> float:
        """Entropy of a sequence, in nats."""
        uniform = (self.length - len(self.sites)) * np.log(self.vocabulary)
        return float(uniform + sum(map(_entropy, self._joint.values())))

    def site_losses(self, other: "CodeLaw") -> np.ndarray:
        """Loss (L,) under this law, in nats, of each site by the conditionals of another one with
        terms on the same sites."""
        found = np.full(self.length, np.log(self.vocabulary))
        for site in range(self.length):
            groups = [group for group in self._joint if self._forms[list(group), site].any()]
            if not groups:
                continue
            members = [term for group in groups for term in group]
            states = np.indices((self.vocabulary,) * len(members)).reshape(len(members), -1)
            joint = np.ones(())
            for group in groups:
                joint = np.multiply.outer(joint, self._joint[group])
            logits = np.zeros((self.vocabulary, states.shape[1]))  # of symbols, from the own one on
            for sites, coefficients, coupling in other._energies:
                if site in sites:
                    sums = coefficients[members] @ states
                    logits += coupling * self._g(sums + np.arange(self.vocabulary)[:, None])
            found[site] = -log_softmax(logits, axis=0)[0] @ joint.ravel()
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
        """The law of largest entropy in which the terms where `kept` (m,) have the same means."""
        couplings = np.where(kept, self.couplings, 0.0)
        for pair in self.nested:
            if kept[list(pair)].sum() == 1:
                (one,) = (term for term in pair if kept[term])
                couplings[one] = np.arctanh(self.means[one])
        return CodeLaw(self.sites, couplings, self.length, self.vocabulary)

    def sub_law(self, orders: Collection[int] | None = None, scale: float = 1.0) -> "CodeLaw":
        """The law of the terms of these orders, by default all, their couplings times `scale`."""
        kept = True if orders is None else np.isin(self.orders, list(orders))
        couplings = scale * np.where(kept, self.couplings, 0.0)
        return CodeLaw(self.sites, couplings, self.length, self.vocabulary)

    def _present(self) -> list[int]:
        return sorted(set(self.orders[self.couplings != 0].tolist()))

    def _gains(self, order: int) -> np.ndarray:
        below, with_it = self.kept(self.orders < order), self.kept(self.orders <= order)
        return self.site_losses(below) - self.site_losses(with_it)

    def _g(self, sums: np.ndarray) -> np.ndarray:
        return np.where(sums % self.vocabulary == 0, 1.0, -1 / (self.vocabulary - 1))

    def _of_group(self, group: tuple[int, ...]) -> np.ndarray:
        """Probabilities (q,) * n of the y of n terms."""
        shape = (self.vocabulary,) * len(group)
        sums = np.indices(shape).reshape(len(group), -1)
        logits = np.zeros(sums.shape[1])
        for _, coefficients, coupling in self._energies:
            if coefficients[list(group)].any():
                logits += coupling * self._g(coefficients[list(group)] @ sums)
        return np.exp(log_softmax(logits)).reshape(shape)

    def _eliminated(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Pivots (m,), the forms (m, L) with a unit matrix there, and T (m, m) that makes them."""
        count, q = len(self.sites), self.vocabulary
        table = np.concatenate([self._forms, np.eye(count, dtype=int)], axis=1)
        pivots = []
        for row, term in enumerate(self.sites):
            places = np.flatnonzero(table[row, : self.length])
            if not len(places):
                used = np.flatnonzero(table[row, self.length :])
                others = [self.sites[other] for other in used if other != row]
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

    def _check(self) -> None:
        """`SourceError` unless the span has no vector of fewer sites than the terms it is made of,
        but for the spins that fields keep from having a mean."""
        clusters: list[list[int]] = []  # of terms that share sites
        for term, sites in enumerate(self.sites):
            near = [one for one in clusters if self._forms[np.ix_(one, sites)].any()]
            clusters = [one for one in clusters if one not in near]
            clusters.append(sorted(sum(near, [term])))
        for cluster in clusters:
            if self.vocabulary ** len(cluster) > SPAN:
                raise SourceError(
                    f"found {len(cluster)} terms that share sites; expected at most {SPAN} "
                    "combinations of such terms; leave some out",
                    "terms",
                )
            chosen = np.indices((self.vocabulary,) * len(cluster)).reshape(len(cluster), -1).T
            made = chosen @ self._forms[cluster] % self.vocabulary
            for pair in self.nested:
                if pair[0] in cluster:
                    columns = [cluster.index(term) for term in pair]
                    chosen[np.ix_(chosen[:, columns].all(axis=1), columns)] = 0
            largest = ((chosen > 0) * self.orders[cluster]).max(axis=1)
            wrong = np.flatnonzero((made > 0).sum(axis=1) < largest)
            if len(wrong):
                terms = [self.sites[cluster[place]] for place in np.flatnonzero(chosen[wrong[0]])]
                raise SourceError(
                    f"found {_named(terms)}, which combine to the sites "
                    f"{np.flatnonzero(made[wrong[0]]).tolist()}, an interaction of lower order; "
                    "expected no combination of fewer sites than each of its terms, or one term "
                    "with another one of two symbols and one site less; move one of them",
                    "terms",
                )


def coupling_of(information: float, vocabulary: int = 2) -> float:
    """J > 0 of a term that shares no sites and tells `information` c_e, in nats, of each of them:
    c_e = ln q - H(y_e), below ln q."""

    def off(likely: float) -> float:  # p(y_e = 0)
        others = (1 - likely) / (vocabulary - 1)
        entropy = -likely * np.log(likely) - (1 - likely) * np.log(others)
        return np.log(vocabulary) - entropy - information

    likely = brentq(off, 1 / vocabulary, 1 - 1e-15, xtol=1e-16)
    log_odds = np.log(likely * (vocabulary - 1) / (1 - likely))
    return float(log_odds * (vocabulary - 1) / vocabulary)


def of(source: dict) -> CodeLaw:
    """The law of a source, its entry in the config, without the terms that it leaves out."""
    terms = [(term["sites"], term) for term in source.get("terms") or []]
    first = 1 + max((site for sites, _ in terms for site in sites), default=-1)
    for group in source.get("groups") or []:
        for _ in range(group["count"]):
            terms.append((range(first, first + group["order"]), group))
            first += group["order"]
    vocabulary = source.get("vocabulary", 2)
    couplings = [
        given["coupling"]
        if given.get("coupling") is not None
        else coupling_of(given["information"], vocabulary)
        for _, given in terms
    ]
    law = CodeLaw([sites for sites, _ in terms], couplings, source["length"], vocabulary)
    return law.sub_law(source.get("keep"), source.get("scale", 1.0))


def read_conditionals(path: str | Path) -> CodeLaw:
    """The law of a file of sequences, whose document has its terms."""
    found = Sequences.open(path)
    return CodeLaw(**found.about["law"], length=found.length, vocabulary=found.vocabulary)


def make(source: dict, name: str, given: Sequence[str | Path], out: dict) -> None:
    """Writes the splits of the source called `name`.

    The document of a split has the `law`, its terms and couplings; its exact `losses`, the
    `entropy` in nats a sequence and the best loss of a `masked` token in nats, each with the error
    0; and by order the `information` c_k and `connected` I_k.
    """
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


def _entropy(joint: np.ndarray) -> float:
    return float(-(joint * np.log(joint)).sum())


def _named(terms: Sequence[Sequence[int]]) -> str:
    return " and ".join(str(list(term)) for term in terms)
