"""When a student learns each term of a code law: what it lacks at every checkpoint of a run.

With p the law and its exact conditionals, q_t the student's, of a term e of order k

    gap    K_e(t) = E_p KL(p(.|x_-i) || q_t), the mean over the sites i of e, in nats;
    share  S_k(t) = [L_p'(q_t) - L_p(q_t)] / [L_p'(p) - L_p(p)],

L_p the loss under p of the conditionals of another, summed over sites, and p' the law without its
terms of order k. K_e falls from c_e to 0; it is NaN for a term that shares sites with others, for
which S_k stands: 0 for the conditionals of p', 1 for those of p. A term's own share is the same
with p' the law without that term alone; of spins it is the student's half-logit over J_e. A causal
student is asked for the last site of each term alone.
"""

from pathlib import Path

import numpy as np
import pandas as pd

from manybody import models
from manybody.data import code, enumeration
from manybody.io.checkpoints import checkpoint_steps
from manybody.io.manifest import Manifest
from manybody.io.progress import Progress
from manybody.io.refusal import Refusal
from manybody.io.sequences import Sequences
from manybody.io.tables import CLOCKS


def measure(
    manifest: str | Path, test: str | Path, threads: int = 1, label: str = ""
) -> pd.DataFrame:
    """A row for each checkpoint of a run and term of its law, in the columns of `tables.CLOCKS`.

    manifest: that of the run. test: the test split of its source, a code law. Averages are over
    its sequences, or exact over all states where these are no more than the sequences.
    """
    from manybody.io.devices import torch_threads
    from manybody.models import stored

    run, law, frames = Manifest.read(manifest, "model"), code.read_conditionals(test), []
    tokens, weights = contexts(law, Sequences.open(test))
    clock = Clock(law, tokens, weights, models.about(run.about["description"]).causal)
    steps = checkpoint_steps(run)
    with torch_threads(threads), Progress(len(steps), "checkpoints", label) as progress:
        for step in steps:
            frames.append(
                clock.rows(student_logs(stored.load_model(run, step), tokens)).assign(step=step)
            )
            progress.update(1)
    return pd.concat(frames, ignore_index=True)[CLOCKS.schema.names]


def contexts(law: code.CodeLaw, drawn: Sequences) -> tuple[np.ndarray, np.ndarray]:
    """Sequences (n, L) and weights (n,) that averages under a law are taken with."""
    shape = (law.vocabulary,) * law.length
    if np.prod(shape, dtype=float) > len(drawn):
        return drawn[:].astype(np.int64), np.full(len(drawn), 1 / len(drawn))
    states = np.indices(shape).reshape(law.length, -1).T
    return states, np.exp(law.log_probability(states))


class Clock:
    """K_e and S_k of conditionals that are given at the tokens (n, L), weighted by (n,)."""

    def __init__(
        self, law: code.CodeLaw, tokens: np.ndarray, weights: np.ndarray, causal: bool = False
    ):
        self.law, self.information = law, law.term_information()
        self.terms = np.flatnonzero(law.couplings).tolist()
        uses = np.bincount([site for term in self.terms for site in law.sites[term]])
        if causal and uses.max() > 1:
            raise Refusal(
                f"found terms that share the sites {np.flatnonzero(uses > 1).tolist()} and a "
                "causal student; expected terms on disjoint sites; take a masked student"
            )
        self.asked = {term: list(law.sites[term])[-1 if causal else 0 :] for term in self.terms}
        own = law.log_conditionals(tokens)
        self.conditionals = np.exp(own)
        self.least = (self.conditionals * own).sum(axis=2)
        self.weights = {
            term: np.full(len(weights), np.nan)
            if uses[list(law.sites[term])].max() > 1
            else _stratified(law, term, tokens, weights)
            for term in self.terms
        }
        self.sites = sorted({site for asked in self.asked.values() for site in asked})
        self.order_shares = {
            order: self._share(law.orders != order, tokens, weights, own)
            for order in set(law.orders[self.terms].tolist())
        }
        self.own_shares = {
            term: self._share(np.arange(len(law.sites)) != term, tokens, weights, own)
            for term in self.terms
        }

    def _share(
        self, kept: np.ndarray, tokens: np.ndarray, weights: np.ndarray, own: np.ndarray
    ) -> np.ndarray:
        """Factors of log q_t in the share of the terms not `kept`: (n, L, |V|)."""
        law, sites = self.law, self.sites
        other = law.kept(kept)
        without = other.log_conditionals(tokens)
        ratio = np.take_along_axis(own - without, tokens[:, :, None], axis=2)[:, :, 0]
        ratio += (other.log_probability(tokens) - law.log_probability(tokens))[:, None]
        ratio = np.exp(ratio)  # p'(x_-i) / p(x_-i)
        ratio /= weights @ ratio
        whole = (other.site_losses(law) - law.site_losses(law))[sites].sum()
        factors = np.zeros(own.shape)
        changes = self.conditionals - ratio[:, :, None] * np.exp(without)
        factors[:, sites] = changes[:, sites] * weights[:, None, None] / whole
        return factors

    def rows(self, logs: np.ndarray) -> pd.DataFrame:
        """A row a term of what a student with log conditionals (n, L, |V|) has learned."""
        gaps = self.least - (self.conditionals * logs).sum(axis=2)  # KL at each token
        law = self.law
        nested = {term for pair in law.nested if set(pair) <= set(self.terms) for term in pair}
        return pd.DataFrame(
            {
                "term": term,
                "order": law.orders[term],
                "information": self.information[term],
                "nested": term in nested,
                "gap": self.weights[term] @ gaps[:, self.asked[term]].mean(axis=1),
                "share": (self.order_shares[law.orders[term]] * logs).sum(),
                "own_share": (self.own_shares[term] * logs).sum(),
            }
            for term in self.terms
        )


def student_logs(model, tokens: np.ndarray) -> np.ndarray:
    """Log conditionals (n, L, |V|) of a model at tokens (n, L), each masked alone; of a causal
    model given the tokens before, the first one uniform."""
    import torch

    copies = 1 if model.about.causal else model.length
    size = max(1, 2**19 // (copies * model.activation_size))
    found = np.full((*tokens.shape, model.vocabulary), -np.log(model.vocabulary))
    with torch.no_grad():
        for start in range(0, len(tokens), size):
            part = torch.from_numpy(tokens[start : start + size])
            if model.about.causal:
                logits, sites = model(part[:, :-1]), slice(1, None)
            else:
                logits, sites = model.head(model.all_masked_features(part)), slice(None)
            found[start : start + size, sites] = torch.log_softmax(logits.double(), dim=-1).numpy()
    return found


def _stratified(
    law: code.CodeLaw, term: int, tokens: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """The weights, so changed that each state of a term's sites has its probability."""
    q, own = law.vocabulary, tokens[:, law.sites[term]]
    states = enumeration.numbers(own, q)
    g = np.where(own.sum(axis=1) % q == 0, 1.0, -1 / (q - 1))
    wanted = 1 + (q - 1) * law.means[term] * g
    found = wanted * weights / np.bincount(states, weights=weights)[states]
    return found / found.sum()
